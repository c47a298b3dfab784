//! Does `firn check` find what is wrong with the log beside a pool, and where, and nothing in a sound one?

use std::os::unix::fs::FileExt;
use std::path::Path;

use firn_format::log::{BLOCK_BYTES, Block, BlockHeader, HEAD_BYTES, Head, head_offset};
use firn_heap::{Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;
use firn_structures::Map;

use crate::support::{Called, Folder, firn};

/// More blocks than a segment has.
const INSERTED: u64 = 600;
const SEGMENT: u64 = 256;
const POOL: &str = "pool";
const LOG: &str = "pool.firn-log";

/// A pool and its log, as a crash leaves them, in the memory of the test.
struct Left {
    pool: Vec<u8>,
    log: Vec<u8>,
}

impl Left {
    fn make() -> Self {
        let folder = Folder::new();
        let path = folder.path(POOL);
        let options = MappedOptions::default().domain(Domain::Logged);
        let medium = Mapped::create(&path, 0, &options).unwrap();
        let pool = Pool::create(medium, &PoolOptions::new("left")).unwrap();
        let mut session = pool.session().unwrap();
        let mut insert = |number: u64| {
            let inserted = session.transaction(|tx| {
                let mut map = Map::open_or_create(tx, "map")?;
                map.insert(&number.to_be_bytes(), b"value").map(|_| ())
            });
            inserted.unwrap();
        };
        // Both copies of the head are of a pool with a name.
        for number in 0..3 {
            insert(number);
            pool.sync().unwrap();
        }
        (3..INSERTED).for_each(insert);
        let read = |name: &str| std::fs::read(folder.path(name)).unwrap();
        Self {
            pool: read(POOL),
            log: read(LOG),
        }
    }

    fn head(&self) -> Head {
        let heads = (0..2).map(|copy| {
            let at = head_offset(copy);
            let bytes = self.log[at as usize..][..HEAD_BYTES].try_into().unwrap();
            Head::decode(&bytes, at).unwrap()
        });
        heads.max_by_key(|head| head.generation).unwrap()
    }

    /// Where a block lies that counts.
    fn place(&self, number: u64) -> u64 {
        let salt = self.head().salt;
        let at = (2 * BLOCK_BYTES..self.log.len() as u64).step_by(BLOCK_BYTES as usize);
        let mut places = at.filter(|&at| {
            let block = Block::decode(self.log[at as usize..][..4096].try_into().unwrap());
            block.is_some_and(|block| (block.salt, block.number) == (salt, number))
        });
        places.next().expect("it is there")
    }

    /// The newest block.
    fn last(&self) -> u64 {
        let mut number = self.head().tail;
        let salt = self.head().salt;
        for bytes in self.log[2 * BLOCK_BYTES as usize..].chunks_exact(4096) {
            if let Some(block) = Block::decode(bytes.try_into().unwrap())
                && block.salt == salt
            {
                number = number.max(block.number);
            }
        }
        number
    }

    fn check_in(&self, folder: &Folder, change: impl FnOnce(&Path)) -> Called {
        for (name, bytes) in [(POOL, &self.pool), (LOG, &self.log)] {
            std::fs::write(folder.path(name), bytes).unwrap();
        }
        change(&folder.path(LOG));
        firn(&["check", &folder.arg(POOL)])
    }

    /// Checks the two files after a change of the log.
    fn check(&self, change: impl FnOnce(&Path)) -> Called {
        self.check_in(&Folder::new(), change)
    }
}

fn flip(at: u64) -> impl FnOnce(&Path) {
    move |log| {
        let file = std::fs::File::options().read(true).write(true).open(log);
        let (file, mut byte) = (file.unwrap(), [0]);
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
    }
}

fn cut(bytes: u64) -> impl FnOnce(&Path) {
    move |log| {
        let file = std::fs::File::options().write(true).open(log).unwrap();
        file.set_len(bytes).unwrap();
    }
}

fn assert_found(called: &Called, words: &[&str]) {
    assert_eq!(called.status, 1, "{words:?}: {}{}", called.out, called.err);
    for word in [&["pool"], words].concat() {
        assert!(called.out.contains(word), "{word}: {}", called.out);
    }
}

#[test]
fn a_whole_log_has_no_findings_and_neither_has_a_lost_tail() {
    let left = Left::make();
    let (tail, last) = (left.head().tail, left.last());
    assert!(
        tail < SEGMENT && last > SEGMENT + 10 && last < 3 * SEGMENT,
        "{tail} {last}"
    );
    let whole = left.check(|_| ());
    assert_eq!(whole.status, 0, "{}{}", whole.out, whole.err);
    assert!(whole.out.contains("firn-log: ok"), "{}", whole.out);
    assert!(whole.out.contains("0 blocks of the tail"), "{}", whole.out);
    let lost = left.check(flip(left.place(last) + 100));
    assert_eq!(lost.status, 0, "{}{}", lost.out, lost.err);
    assert!(lost.out.contains("1 blocks of the tail"), "{}", lost.out);
}

#[test]
fn damage_is_found_and_its_place_named() {
    let left = Left::make();
    let tail = left.head().tail;
    for copy in 0..2 {
        let at = head_offset(copy);
        let named = format!("the head at byte {at} is not whole");
        assert_found(&left.check(flip(at + 20)), &[&named, LOG]);
    }
    let both = left.check(|log| (0..2).for_each(|copy| flip(head_offset(copy) + 20)(log)));
    assert_found(&both, &["no sound head", LOG, "firn copy --salvage"]);
    for number in [tail, tail + 1, SEGMENT - 1, SEGMENT, SEGMENT + 1] {
        let at = left.place(number);
        let named = format!("block {number} at byte {at} was durable and is not whole");
        assert_found(&left.check(flip(at + 100)), &[&named, LOG, "restore"]);
    }
    // Sound blocks that hold no records.
    let number = tail + 5;
    let at = left.place(number);
    let header = BlockHeader {
        salt: left.head().salt,
        number,
        begins: true,
        durable: number,
    };
    let mut block = [0; BLOCK_BYTES as usize];
    header.seal(&[9; 50], &mut block);
    let named = format!("from block {number} at byte {at} on does not consist of records");
    let called = left.check(|log| {
        let file = std::fs::File::options().write(true).open(log).unwrap();
        file.write_all_at(&block, at).unwrap();
    });
    assert_found(&called, &[&named, LOG]);
}

#[test]
fn a_log_that_is_cut_foreign_or_missing_is_found() {
    let left = Left::make();
    let segment_at = left.place(SEGMENT);
    for bytes in [
        2 * BLOCK_BYTES,
        2 * BLOCK_BYTES + 7,
        segment_at + 3 * BLOCK_BYTES,
    ] {
        let named = format!("the file ends at byte {bytes}");
        assert_found(&left.check(cut(bytes)), &[&named, LOG]);
    }
    for bytes in [0, 300] {
        let found = ["is missing", "no sound head"][usize::from(bytes > 0)];
        assert_found(&left.check(cut(bytes)), &[found, LOG]);
    }
    let missing = left.check(|log| std::fs::remove_file(log).unwrap());
    assert_found(&missing, &["is missing", LOG, "firn copy --salvage"]);
    let other = Left::make();
    let foreign = left.check(|log| std::fs::write(log, &other.log).unwrap());
    assert_found(&foreign, &["is not this file's", LOG]);
    // Nothing was changed by looking, and what is whole is rescued.
    let folder = Folder::new();
    let damaged = left.check_in(&folder, flip(left.place(SEGMENT) + 100));
    assert_eq!(damaged.status, 1);
    assert!(std::fs::read(folder.path(POOL)).unwrap() == left.pool);
    let json = crate::support::json(&["check", &folder.arg(POOL)]);
    assert_eq!(
        (&json["ok"], &json["log"]),
        (&false.into(), &serde_json::Value::Null)
    );
    std::fs::remove_file(folder.path(LOG)).unwrap();
    let new = folder.arg("new");
    let rescued = firn(&["copy", "--salvage", &folder.arg(POOL), &new]);
    assert!(rescued.status < 2, "{}", rescued.err);
    assert_eq!(firn(&["check", &new]).status, 0);
}

/// A copy that was made while the pool was closed, beside the log of the next opening.
#[test]
fn an_older_copy_is_not_taken_for_the_pool_of_the_log() {
    let folder = Folder::new();
    let (path, pool) = (folder.path(POOL), folder.arg(POOL));
    let options = MappedOptions::default().domain(Domain::Logged);
    let medium = Mapped::create(&path, 0, &options).unwrap();
    let made = Pool::create(medium, &PoolOptions::new("left")).unwrap();
    made.close().unwrap();
    let older = std::fs::read(&path).unwrap();
    let medium = Mapped::open(&path, &options).unwrap();
    let opened = Pool::open(medium, &PoolOptions::new("left")).unwrap();
    let log = std::fs::read(folder.path(LOG)).unwrap();
    let present = std::fs::read(&path).unwrap();
    drop(opened);
    for (bytes, status) in [(older, 1), (present, 0)] {
        std::fs::write(&path, bytes).unwrap();
        std::fs::write(folder.path(LOG), &log).unwrap();
        let called = firn(&["check", &pool]);
        assert_eq!(called.status, status, "{}{}", called.out, called.err);
        assert!(status == 0 || called.out.contains("is not this file's"));
    }
}
