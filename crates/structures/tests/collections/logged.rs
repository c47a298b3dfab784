//! Does a pool whose file is logged keep what it acknowledged, when the process is killed at any moment?

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use firn_format::statistics::LogFigure;
use firn_heap::collector::{CollectOptions, CollectorOptions, PageSize};
use firn_heap::{CopyIdentity, Error, FrameContent, Occupancy, Pool, PoolOptions, Statistics};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Level, Medium, Memory, Space};
use firn_structures::Map;
use firn_units::{CHUNK_BYTES, VirtAddr};

use crate::support::Random;

/// Tells a run of this program that it is the one to be killed.
const CHILD: &str = "FIRN_LOGGED_CHILD";
/// Tells it to wait for the system only.
const WRITTEN: &str = "FIRN_LOGGED_WRITTEN";
const KILLS: u64 = 12;

pub fn options() -> MappedOptions {
    let mut options = MappedOptions::default().domain(Domain::Logged);
    // Small, so that it goes home, wraps around and grows while the test runs.
    options.log.initial_bytes = 1 << 20;
    options.log.bound_bytes = 3 << 20;
    options
}

pub fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

pub fn value(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + (number % 24) as usize)
}

/// How many entries there are; they are those from zero on, and nothing else is there.
pub fn entries<M: Medium>(pool: &Pool<M>) -> u64 {
    assert_eq!(pool.check().unwrap(), []);
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let map = Map::open(view, "map").unwrap();
        let count = map.len().unwrap();
        for number in 0..count {
            let found = map.get(&key(number)).unwrap();
            assert_eq!(found, Some(value(number)), "entry {number} of {count}");
        }
        count
    })
}

fn process() -> MappedOptions {
    MappedOptions::default().domain(Domain::Process)
}

fn open(path: &Path) -> Pool<Mapped> {
    let medium = Mapped::open(path, &options()).unwrap();
    Pool::open(medium, &PoolOptions::new("logged")).unwrap()
}

pub fn create(path: &Path) -> Pool<Mapped> {
    let medium = Mapped::create(path, 0, &options()).unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("logged")).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| Map::create(tx, "map").map(|_| ()))
        .unwrap();
    drop(session);
    pool
}

pub fn insert(session: &mut firn_heap::Session<Mapped>, number: u64) -> Result<(), Error> {
    session.transaction(|tx| {
        let mut map = Map::open(tx, "map")?;
        map.insert(&key(number), &value(number)).map(|_| ())
    })
}

/// A pool that was killed is refused without its log, and by whoever would overlook the log.
fn assert_needs_its_log(path: &Path, least: u64) {
    let refused = Mapped::open(path, &process()).unwrap_err();
    assert!(refused.to_string().contains("is in its log"), "{refused}");
    let before = std::fs::read(path).unwrap();
    let copy = Mapped::open_private(path, &options()).unwrap();
    let copy = Pool::open(copy, &PoolOptions::new("logged")).unwrap();
    let in_copy = entries(&copy);
    copy.abandon();
    assert!(
        in_copy >= least,
        "{least} were acknowledged, {in_copy} are in the copy"
    );
    assert_eq!(
        std::fs::read(path).unwrap(),
        before,
        "the pool's file stays as it is"
    );
    let log = path.with_file_name("pool.firn-log");
    let aside = path.with_file_name("aside");
    std::fs::rename(&log, &aside).unwrap();
    let refused = Mapped::open(path, &options()).unwrap_err();
    assert!(refused.to_string().contains("is missing"), "{refused}");
    let medium = Mapped::open(path, &process()).unwrap();
    let refused = Pool::open(medium, &PoolOptions::new("logged"))
        .err()
        .unwrap();
    assert!(refused.to_string().contains("is in its log"), "{refused}");
    std::fs::rename(&aside, &log).unwrap();
}

/// Another process looks at a pool in use, while its log goes home and wraps around.
#[test]
fn the_present_is_seen_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let pool = create(&path);
    let mut session = pool.session().unwrap();
    for number in 0..4000 {
        insert(&mut session, number).unwrap();
        if number % 401 == 0 {
            let peeked = Mapped::peek(&path).unwrap();
            assert!(!peeked.is_writable() && peeked.backing().outlives_power());
            let seen = Statistics::read(&peeked).unwrap();
            assert_eq!((seen.domain, seen.open), ("logged", true));
            assert_eq!(seen.commits, number + 2, "one made the map");
            let log = |figure: LogFigure| peeked.load_u64(figure.at());
            assert!(log(LogFigure::Records) > number && log(LogFigure::Writes) > number);
            assert!(log(LogFigure::WrittenBytes) >= log(LogFigure::Lag));
            // Words of each session's newest transaction are in its lane, and reach their places with the next.
            let used = |pages: &Occupancy| {
                pages
                    .frames
                    .iter()
                    .filter(|frame| {
                        matches!(
                            frame.content,
                            FrameContent::Slots { .. } | FrameContent::Large { .. }
                        )
                    })
                    .count()
            };
            let (there, here) = (Occupancy::read(&peeked).unwrap(), pool.occupancy().unwrap());
            assert!(number == 0 || used(&there) + 1 >= used(&here), "{number}");
        }
    }
    let other = Mapped::open_read_only(&path, &MappedOptions::default()).unwrap_err();
    assert!(other.to_string().contains("in use"), "{other}");
}

/// A copy to a file with a log keeps the identity of the pool, or gets one of its own.
#[test]
fn a_pool_is_copied_to_a_file_with_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let pool = create(&folder.path().join("pool"));
    let mut session = pool.session().unwrap();
    (0..200).for_each(|number| insert(&mut session, number).unwrap());
    drop(session);
    for (name, identity) in [("kept", CopyIdentity::Kept), ("new", CopyIdentity::New)] {
        let path = folder.path().join(name);
        let medium = Mapped::create(&path, 0, &options()).unwrap();
        let copy = pool.copy_into(medium, identity, &mut |_| ()).unwrap();
        copy.close().unwrap();
        assert!(!folder.path().join(format!("{name}.firn-log")).exists());
        let copy = Mapped::open_private(&path, &MappedOptions::default()).unwrap();
        let copy = Pool::open(copy, &PoolOptions::new("logged")).unwrap();
        assert_eq!(entries(&copy), 200);
    }
}

/// Inserts entries until it is killed, and says so after each of them.
#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    // Both levels survive a kill.
    let mut options = options();
    options.log.level = match std::env::var_os(WRITTEN) {
        Some(_) => Level::Written,
        None => Level::Sync,
    };
    let medium = Mapped::open(Path::new(&path), &options).unwrap();
    let pool = Pool::open(medium, &PoolOptions::new("logged")).unwrap();
    let eager = CollectorOptions {
        trigger: 1.01,
        least_bytes: 0,
        collect: CollectOptions {
            target: 1.0,
            pages: PageSize::Small,
            ..CollectOptions::default()
        },
        ..CollectorOptions::default()
    };
    let _collector = pool.start_collector(&eager).unwrap();
    let first = entries(&pool);
    let mut session = pool.session().unwrap();
    for number in first.. {
        insert(&mut session, number).unwrap();
        println!("inserted {number}");
    }
}

#[test]
fn a_killed_program_loses_nothing_that_was_acknowledged() {
    kill_again_and_again(5);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --long"]
fn hundreds_of_killed_programs_lose_nothing_that_was_acknowledged() {
    (0..500 / KILLS + 1).for_each(kill_again_and_again);
}

/// Kills programs that insert to one pool.
fn kill_again_and_again(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(create(&path));
    let mut random = Random(seed);
    let mut least = 0;
    for _ in 0..KILLS {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["logged::child_that_is_killed", "--exact", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped());
        if random.below(2) == 0 {
            command.env(WRITTEN, "1");
        }
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            let said = output.lines().map_while(Result::ok);
            let numbers = said.filter_map(|line| line.strip_prefix("inserted ")?.parse().ok());
            numbers.last()
        });
        std::thread::sleep(Duration::from_millis(150 + random.below(400)));
        child.kill().unwrap();
        child.wait().unwrap();
        let said: Option<u64> = reader.join().unwrap();
        least = least.max(said.map_or(0, |number| number + 1));
        assert_needs_its_log(&path, least);
        let pool = open(&path);
        let found = entries(&pool);
        assert!(
            found >= least,
            "{least} were acknowledged, {found} are there"
        );
        least = found;
        // Half of the openings end as a crash does.
        if random.below(2) == 0 {
            pool.abandon();
        }
    }
    assert!(
        least > 20 * KILLS,
        "{least} entries are too few to be killed in"
    );
}

#[test]
fn a_closed_pool_is_one_file_and_an_unclosed_one_needs_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let pool = create(&path);
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files(), 2);
    let mut session = pool.session().unwrap();
    (0..500).for_each(|number| insert(&mut session, number).unwrap());
    drop(session);
    drop(pool);
    assert_eq!(files(), 1);
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    assert_eq!(entries(&open(&copy)), 500);
    let pool = open(&path);
    insert(&mut pool.session().unwrap(), 500).unwrap();
    pool.abandon();
    assert_eq!(files(), 3, "the log of a pool that was not closed stays");
    let log = folder.path().join("pool.firn-log");
    let aside = folder.path().join("aside");
    std::fs::rename(&log, &aside).unwrap();
    let refused = Mapped::open(&path, &options()).unwrap_err();
    assert!(refused.to_string().contains("is missing"), "{refused}");
    std::fs::rename(&aside, &log).unwrap();
    assert_eq!(entries(&open(&path)), 501);
    // The log of another pool, and that of a later state of this one.
    let other = create(&folder.path().join("other"));
    other.abandon();
    std::fs::rename(folder.path().join("other.firn-log"), &log).unwrap();
    let refused = Mapped::open(&path, &options()).unwrap_err();
    assert!(
        refused.to_string().contains("is not this file's"),
        "{refused}"
    );
}

thread_local! {
    static LAST: std::cell::RefCell<Option<firn_heap::Session<Mapped>>> = const { std::cell::RefCell::new(None) };
}

/// A session may be a thread's own value, and go when the thread's notes are gone already.
#[test]
fn a_session_that_goes_with_its_thread_leaves_everything_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let pool = create(&path);
    let last = pool.clone();
    // Joined, unlike a scope's, when its own values are gone.
    let thread = std::thread::spawn(move || {
        LAST.with_borrow_mut(|session| {
            let session = session.insert(last.session().unwrap());
            insert(session, 0).unwrap();
        });
    });
    thread.join().unwrap();
    drop(pool);
    assert_eq!(entries(&open(&path)), 1);
}

/// A thread writes a line back, the pool is cut before it, and then the thread's fence comes.
#[test]
fn a_line_behind_a_cut_does_not_lengthen_the_pool() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let pool = create(&path);
    let medium = pool.medium();
    let len = medium.len();
    medium.reserve(VirtAddr(len), CHUNK_BYTES).unwrap();
    let at = VirtAddr(len + CHUNK_BYTES / 2);
    medium.store_u64(at, 7);
    medium.write_back(at, 8);
    medium.truncate(len).unwrap();
    medium.fence();
    medium.sync().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), len);
    pool.close().unwrap();
    assert_eq!(entries(&open(&path)), 0);
}
