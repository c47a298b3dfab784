//! Is a backup of a medium in use what the medium held at one moment? And does the test see it when a rule is broken?

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use firn_format::FORMAT_VERSION;
use firn_format::geometry::SUPERBLOCKS;
use firn_format::reference::PoolId;
use firn_format::superblock::{LogKind, OpenState, PoolKind, StoredDomain, Superblock};
use firn_media::{Domain, Level, MediumExt, Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr};

use super::Backup;
use crate::draft::Draft;
use crate::logged::recovery::broken::{BROKEN, Rule};
use crate::{Mapped, MappedError, MappedOptions};

const BYTES: u64 = 12 * CHUNK_BYTES;
/// Places that transactions fill in turns, one half at each end of the pool: more than the log has room for, so that home
/// holds what no log does.
const SLOTS: u64 = 1021;
const STRIDE: u64 = FRAME_BYTES;
const HALVES: [u64; 2] = [2 * CHUNK_BYTES, 10 * CHUNK_BYTES];
/// Words of each half.
const WORDS: u64 = 200;

fn options() -> MappedOptions {
    let mut options = MappedOptions::default().domain(Domain::Logged);
    options.log.initial_bytes = 1 << 20;
    options.log.bound_bytes = 2 << 20;
    options
}

fn superblock() -> Superblock {
    Superblock {
        version: FORMAT_VERSION,
        generation: 1,
        uuid: [7; 16],
        pool_id: PoolId(1),
        kind: PoolKind::Traced,
        log: LogKind::Redo,
        domain: StoredDomain::Logged,
        state: OpenState::Open,
        boot_id: [0; 16],
        lanes: 1,
        layout: "backup".into(),
        limit_bytes: None,
    }
}

fn create(path: &Path) -> Mapped {
    let medium = Mapped::create(path, BYTES, &options()).unwrap();
    medium.begin(superblock().uuid).unwrap();
    medium.reserve(VirtAddr(0), BYTES).unwrap();
    medium.store_bytes(SUPERBLOCKS[0], &superblock().encode());
    medium.persist(SUPERBLOCKS[0], 4096);
    medium.publish().unwrap();
    medium
}

fn place(half: u64, slot: u64) -> u64 {
    half + slot * STRIDE
}

/// One transaction: both halves of a slot get a number.
fn write(medium: &Mapped, number: u64) {
    for half in HALVES {
        let at = place(half, number % SLOTS);
        for word in 0..WORDS {
            medium.store_u64(VirtAddr(at + 8 * word), number);
        }
        medium.write_back(VirtAddr(at), 8 * WORDS);
    }
    medium.fence();
    medium.wait_at(medium.commit(), Level::Written).unwrap();
}

/// The newest transaction in a copy that holds all before it; `None` if it holds only a part.
fn newest_in(copy: &Path) -> Option<u64> {
    let bytes = std::fs::read(copy).unwrap();
    let word = |at: u64| u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap());
    let newest = (0..SLOTS).map(|slot| word(place(HALVES[0], slot))).max()?;
    let is_whole = |number: u64| {
        let at = |half, word| place(half, number % SLOTS) + 8 * word;
        let mut words = HALVES
            .iter()
            .flat_map(|&half| (0..WORDS).map(move |w| (half, w)));
        words.all(|(half, index)| word(at(half, index)) == number)
    };
    (newest.saturating_sub(SLOTS - 1).max(1)..=newest)
        .all(is_whole)
        .then_some(newest)
}

/// What a backup turns out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Whole,
    Torn,
    Refused,
}

/// Makes backups while a thread writes.
fn back_up_again_and_again(count: usize) -> Vec<Found> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let medium = create(&path);
    let (written, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                write(&medium, number);
                written.store(number, Ordering::SeqCst);
                if ends.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        let backups = (0..count).map(|number| {
            while written.load(Ordering::SeqCst) < 2 * SLOTS {
                std::thread::yield_now();
            }
            let least = written.load(Ordering::SeqCst);
            let copy = folder.path().join(format!("copy-{number}"));
            let made = Backup::begin(&path, &copy, &MappedOptions::default(), &mut |_, _| ());
            if made.and_then(Backup::publish).is_err() {
                return Found::Refused;
            }
            let newest = newest_in(&copy);
            std::fs::remove_file(copy).unwrap();
            match newest.is_some_and(|newest| newest >= least) {
                true => Found::Whole,
                false => Found::Torn,
            }
        });
        let backups = backups.collect();
        ends.store(true, Ordering::SeqCst);
        backups
    })
}

#[test]
fn a_backup_is_a_prefix_of_what_was_written() {
    let whole = back_up_again_and_again(10);
    assert_eq!(whole, [Found::Whole; 10]);
}

/// A program of an older version takes no lock.
#[test]
fn without_a_hold_a_backup_is_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let medium = create(&path);
    write(&medium, 1);
    BROKEN.set(vec![Rule::Hold]);
    let (copy, copies) = (folder.path().join("copy"), Mutex::new(0));
    let back_up = |moves: u64| {
        *copies.lock().unwrap() = 0;
        Backup::begin(&path, &copy, &MappedOptions::default(), &mut |done, of| {
            let mut copies = copies.lock().unwrap();
            if done == of && *copies < moves {
                *copies += 1;
                write(&medium, 1 + *copies);
                medium.sync().unwrap();
            }
        })
    };
    let made = back_up(2).unwrap();
    made.publish().unwrap();
    assert_eq!(newest_in(&copy), Some(3));
    std::fs::remove_file(&copy).unwrap();
    let refused = back_up(u64::MAX).unwrap_err();
    BROKEN.take();
    assert!(matches!(refused, MappedError::Moving { .. }), "{refused}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// A transaction goes home when the first half has been copied, and the second has not. Two rules are broken on purpose:
/// nobody holds the log, and the tail from which it counts is read too late.
#[test]
fn a_backup_that_breaks_two_rules_is_torn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let medium = create(&path);
    (1..=SLOTS).for_each(|number| write(&medium, number));
    medium.sync().unwrap();
    for (broken, torn) in [
        (vec![Rule::Hold], false),
        (vec![Rule::Hold, Rule::HeadFirst], true),
    ] {
        let (copy, mut moved) = (folder.path().join("copy"), false);
        BROKEN.set(broken);
        let made = Backup::begin(&path, &copy, &MappedOptions::default(), &mut |done, of| {
            if (HALVES[0] + CHUNK_BYTES..of).contains(&done) && !std::mem::replace(&mut moved, true)
            {
                write(&medium, 2 * SLOTS);
                medium.sync().unwrap();
            }
        });
        BROKEN.take();
        // Where the file system shares blocks there is no first and no second half.
        let is_clone = made.unwrap().publish().unwrap().is_clone;
        assert!(is_clone || moved);
        assert_eq!(is_whole(&copy), is_clone || !torn);
        std::fs::remove_file(&copy).unwrap();
        // Back to what it was.
        write(&medium, SLOTS);
        medium.sync().unwrap();
    }
}

/// Whether both halves of each slot are those of one transaction.
fn is_whole(copy: &Path) -> bool {
    let bytes = std::fs::read(copy).unwrap();
    let half = |half: u64| &bytes[half as usize..][..(SLOTS * STRIDE) as usize];
    half(HALVES[0]) == half(HALVES[1])
}

/// While a backup copies, the program goes on, and its log stays where it is.
#[test]
fn the_log_does_not_go_home_while_home_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let medium = Arc::new(create(&path));
    medium.sync().unwrap();
    let (mut synced, mut begun) = (None, false);
    let copy = folder.path().join("copy");
    let made = Backup::begin(&path, &copy, &MappedOptions::default(), &mut |done, of| {
        if done < of || std::mem::replace(&mut begun, true) {
            return;
        }
        (1..=100).for_each(|number| write(&medium, number));
        let medium = Arc::clone(&medium);
        let thread = std::thread::spawn(move || medium.sync().unwrap());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!thread.is_finished(), "a sync brings home, and waits");
        synced = Some(thread);
    });
    synced.unwrap().join().unwrap();
    let figures = made.unwrap().publish().unwrap();
    assert_eq!(newest_in(&copy), Some(100));
    assert!(figures.held >= Duration::from_millis(50) && figures.log_bytes > 0);
}

#[test]
fn what_cannot_be_backed_up_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let names = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<PathBuf> = names.map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    };
    let begin = |from: &str, to: &str| {
        Backup::begin(
            path(from),
            path(to),
            &MappedOptions::default(),
            &mut |_, _| (),
        )
    };
    let refused = begin("nobody", "copy").unwrap_err();
    assert!(matches!(refused, MappedError::NotFound { .. }), "{refused}");
    let medium = create(&path("pool"));
    let before = names();
    for there in ["pool", "pool.firn-log"] {
        let refused = begin("pool", there).unwrap_err();
        assert!(matches!(refused, MappedError::Exists { .. }), "{refused}");
    }
    // Another backup to the same file is under way.
    let (draft, _file) = Draft::begin(&path("copy")).unwrap();
    let refused = begin("pool", "copy").unwrap_err();
    assert!(
        matches!(refused, MappedError::BeingCreated { .. }),
        "{refused}"
    );
    draft.remove();
    drop(begin("pool", "copy").unwrap());
    assert_eq!(names(), before);
    // The log of a pool that was not closed is gone.
    drop(medium);
    std::fs::remove_file(path("pool.firn-log")).unwrap();
    let refused = begin("pool", "copy").unwrap_err();
    assert!(
        matches!(refused, MappedError::LogMissing { .. }),
        "{refused}"
    );
    assert_eq!(names(), [path("pool")]);
    let unlogged = MappedOptions::default().domain(Domain::Process);
    let ordinary = Mapped::create(path("ordinary"), CHUNK_BYTES, &unlogged).unwrap();
    let mut process = superblock();
    process.domain = StoredDomain::Process;
    ordinary.store_bytes(SUPERBLOCKS[0], &process.encode());
    ordinary.publish().unwrap();
    let refused = begin("ordinary", "copy").unwrap_err();
    assert!(
        matches!(refused, MappedError::NotDurable { .. }),
        "{refused}"
    );
    drop(ordinary);
    assert!(!begin("ordinary", "copy").unwrap().is_closed().unwrap());
}
