//! Does a pool with a log stay within the memory that it may take, whatever is changed in it?

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use firn_heap::collector::{CollectOptions, CollectorOptions, PageSize};
use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Refs, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Level, Space};
use firn_structures::HashMap;

use crate::logged::options;
use crate::support::Random;

const MEMORY: u64 = 4 << 20;
/// Entries, whose values are about a kilobyte.
const ENTRIES: u64 = 30_000;
const VALUE_BYTES: usize = 1000;
const BATCH: u64 = 50;
const WRITERS: u64 = 2;

fn bounded() -> MappedOptions {
    let mut options = options().level(Level::Written);
    options.log.memory_bytes = Some(MEMORY);
    options
}

fn value(number: u64, version: u64) -> Vec<u8> {
    let mut value = vec![(number ^ version) as u8; VALUE_BYTES];
    value[..8].copy_from_slice(&version.to_le_bytes());
    value
}

/// Bytes of the pool's window that are in memory of this process: copies of the file's pages, and pages without a file.
fn private_bytes(medium: &Mapped) -> u64 {
    let window = medium.base_address() as u64..medium.base_address() as u64 + medium.capacity();
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut inside, mut bytes) = (false, 0);
    for line in maps.lines() {
        let first = line.split(' ').next().unwrap();
        let starts = first.split_once('-').map(|(start, _)| start);
        if let Some(start) = starts.and_then(|start| u64::from_str_radix(start, 16).ok()) {
            inside = window.contains(&start);
        } else if let ("Anonymous:", true) = (first, inside) {
            let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
            bytes += kib << 10;
        }
    }
    bytes
}

fn fill(pool: &Pool<Mapped>) {
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| HashMap::create(tx, "map").map(|_| ()))
        .unwrap();
    for first in (0..ENTRIES).step_by(BATCH as usize) {
        let filled = session.transaction(|tx| {
            let mut map = HashMap::open(tx, "map")?;
            (first..first + BATCH).try_for_each(|number| {
                map.insert(&number.to_be_bytes(), &value(number, 0))
                    .map(|_| ())
            })
        });
        filled.unwrap();
    }
}

/// Changes entries of one residue at random, for so many transactions. Returns their versions.
fn change(pool: &Pool<Mapped>, writer: u64, transactions: u64, most: &mut u64) -> Vec<u64> {
    let mut session = pool.session().unwrap();
    let mut random = Random(17 + writer);
    let mut versions = vec![0; ENTRIES as usize];
    for version in 1..=transactions {
        let number = random.below(ENTRIES / WRITERS) * WRITERS + writer;
        let changed = session.transaction(|tx| {
            let mut map = HashMap::open(tx, "map")?;
            let new = value(number, version);
            map.insert(&number.to_be_bytes(), &new).map(|_| ())
        });
        changed.unwrap();
        versions[number as usize] = version;
        if version % 512 == 0 {
            *most = private_bytes(pool.medium()).max(*most);
        }
    }
    versions
}

fn assert_holds(pool: &Pool<Mapped>, versions: &[Vec<u64>]) {
    assert_eq!(pool.check().unwrap(), []);
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let map = HashMap::open(view, "map").unwrap();
        assert_eq!(map.len().unwrap(), ENTRIES);
        for number in 0..ENTRIES {
            let version = versions[(number % WRITERS) as usize][number as usize];
            let found = map.get(&number.to_be_bytes()).unwrap();
            assert!(
                found == Some(value(number, version)),
                "entry {number}, version {version}"
            );
        }
    });
}

fn open(path: &Path) -> Pool<Mapped> {
    let medium = Mapped::open(path, &bounded()).unwrap();
    Pool::open(medium, &PoolOptions::new("memory")).unwrap()
}

/// Reads entries at random until told to stop.
fn read(pool: &Pool<Mapped>, goes_on: &AtomicBool) {
    let (mut session, mut random) = (pool.session().unwrap(), Random(5));
    while goes_on.load(Ordering::Relaxed) {
        let number = random.below(ENTRIES);
        let found = session.read(|view| {
            let map = HashMap::open(view, "map").unwrap();
            map.get(&number.to_be_bytes()).unwrap().unwrap()
        });
        let version = u64::from_le_bytes(found[..8].try_into().unwrap());
        assert!(found == value(number, version), "entry {number}");
    }
}

/// Two threads change the pool, one reads. Returns the versions of entries, and the most bytes of memory.
fn at_work(pool: &Pool<Mapped>) -> (Vec<Vec<u64>>, u64) {
    let goes_on = AtomicBool::new(true);
    let mut most = [0; WRITERS as usize];
    let versions = std::thread::scope(|scope| {
        scope.spawn(|| read(pool, &goes_on));
        let start = |(most, writer)| scope.spawn(move || change(pool, writer, 20_000, most));
        let writers: Vec<_> = most.iter_mut().zip(0..).map(start).collect();
        let versions = writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect();
        goes_on.store(false, Ordering::Relaxed);
        versions
    });
    (versions, most.into_iter().max().unwrap())
}

/// Two threads change a pool of eight times the memory, with a collector that moves, frees and gives back beside them.
#[test]
fn memory_stays_bounded_beside_a_collector() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let medium = Mapped::create(&path, 0, &bounded()).unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("memory")).unwrap();
    fill(&pool);
    let filled = private_bytes(pool.medium());
    let collector = pool.start_collector(&CollectorOptions {
        trigger: 1.05,
        least_bytes: 0,
        collect: CollectOptions {
            target: 1.01,
            pages: PageSize::Small,
            ..CollectOptions::default()
        },
        ..CollectorOptions::default()
    });
    let (versions, most) = at_work(&pool);
    let done = collector.unwrap().stop().unwrap();
    println!("{filled} bytes when filled, at most {most}; {done:?}");
    assert!(done.collected.moved > 0);
    let bytes = pool.medium().len();
    assert!(bytes > 8 * MEMORY, "{bytes}");
    // What transactions and steps of the collector add before they wait is on top.
    assert!(most.max(filled) < 2 * MEMORY, "{most} bytes of memory");
    assert_holds(&pool, &versions);
    pool.close().unwrap();
    let pool = open(&path);
    assert_holds(&pool, &versions);
    pool.close().unwrap();
}

/// Tells a run of this program that it is the child that changes a large pool: its path, the bytes of memory that it may
/// take, the pool's bytes, the seconds.
const CHILD: &str = "FIRN_MEMORY_CHILD";
/// The control group that it joins.
const IN_GROUP: &str = "FIRN_MEMORY_GROUP";
const POOL: u64 = 4 << 30;
const GROUP: u64 = 512 << 20;
/// What a program gets that asks for nothing.
const BOUND: u64 = GROUP / 4;
const SECONDS: u64 = 600;

/// Joins the control group, before anything asks how much memory there is.
fn join_group() {
    if let Ok(group) = std::env::var(IN_GROUP) {
        let process = std::process::id().to_string();
        std::fs::write(Path::new(&group).join("cgroup.procs"), process).unwrap();
    }
}

/// Fills a pool, and changes it at random. Says how many transactions it committed a second, and the most bytes of memory
/// that its pool took.
#[test]
fn child_that_changes_a_large_pool() {
    let Ok(plan) = std::env::var(CHILD) else {
        return;
    };
    join_group();
    let mut parts = plan.split(' ');
    let path = PathBuf::from(parts.next().unwrap());
    let mut number = || parts.next().unwrap().parse::<u64>().unwrap();
    let (memory, bytes, seconds) = (number(), number(), number());
    let mut options = MappedOptions::default().level(Level::Written);
    options.log.memory_bytes = Some(memory);
    let medium = Mapped::create(&path, 0, &options).unwrap();
    let kind = PoolKind::Explicit;
    let options = PoolOptions {
        kind,
        ..PoolOptions::new("memory")
    };
    let pool = Pool::create(medium, &options).unwrap();
    let entries = bytes / VALUE_BYTES as u64;
    let mut session = pool.session().unwrap();
    let made = session.transaction(|tx| {
        let all = tx.alloc_refs::<Bytes>(entries as usize)?;
        tx.set_root("all", all)
    });
    made.unwrap();
    let mut put = |numbers: core::ops::Range<u64>, version| {
        let done: Result<(), Error> = session.transaction(|tx| {
            let all = tx.root::<Refs<Bytes>>("all")?;
            numbers.clone().try_for_each(|number| {
                let new = tx.alloc_bytes(&value(number, version))?;
                let old = all.get(number as usize);
                all.set(number as usize, Some(new))?;
                match old {
                    // SAFETY: the only reference was replaced.
                    Some(old) => unsafe { tx.free(old) },
                    None => Ok(()),
                }
            })
        });
        done.unwrap();
    };
    for first in (0..entries).step_by(BATCH as usize) {
        put(first..entries.min(first + BATCH), 0);
    }
    let (mut random, mut most, mut done) = (Random(7), 0, 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        done += 1;
        let number = random.below(entries);
        put(number..number + 1, done);
        if done % 10_000 == 0 {
            most = private_bytes(pool.medium()).max(most);
        }
    }
    let rate = done as f64 / began.elapsed().as_secs_f64();
    println!("result {rate} {most}");
    std::io::stdout().flush().unwrap();
    drop(session);
    pool.close().unwrap();
}

/// Runs the child, in a control group if one is given. Returns what it says.
fn in_group(folder: &Path, group: Option<&Path>, memory: u64) -> (f64, u64) {
    let path = folder.join("large");
    let seconds = std::env::var("FIRN_MEMORY_SECONDS").map_or(SECONDS, |s| s.parse().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap());
    let name = "logged_memory::child_that_changes_a_large_pool";
    child.args(["--exact", name, "--nocapture"]);
    let plan = format!("{} {memory} {POOL} {seconds}", path.display());
    child.env(CHILD, plan).stdout(Stdio::piped());
    child.envs(group.map(|group| (IN_GROUP, group)));
    let output = child.output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}: {out}", output.status);
    let result = out.lines().find_map(|line| line.split_once("result "));
    let (rate, most) = result.unwrap().1.split_once(' ').unwrap();
    std::fs::remove_file(&path).unwrap();
    (rate.parse().unwrap(), most.parse().unwrap())
}

/// A control group with a limit of memory, in the interface of version 1. Gone on drop.
struct Group(PathBuf);

impl Group {
    fn new() -> Self {
        let name = format!("/sys/fs/cgroup/memory/firn-{}", std::process::id());
        std::fs::create_dir(&name).expect("control groups, and root");
        let group = Self(name.into());
        for limit in ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] {
            std::fs::write(group.0.join(limit), GROUP.to_string()).unwrap();
        }
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A pool of eight times the memory of its control group is changed at random.
#[test]
#[ignore = "takes half an hour, and root: cargo xtask test --long"]
fn a_pool_larger_than_its_memory_is_not_killed() {
    let folder = tempfile::tempdir().unwrap();
    let group = Group::new();
    let (bounded, most) = in_group(folder.path(), Some(&group.0), BOUND);
    let (free, all) = in_group(folder.path(), None, u64::MAX);
    println!("bounded: {bounded:.0} transactions a second, {most} bytes");
    println!("free: {free:.0} transactions a second, {all} bytes");
    assert!(most < BOUND + BOUND / 10, "{most} bytes");
}
