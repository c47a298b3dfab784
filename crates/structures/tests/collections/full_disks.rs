//! Does a pool with a log keep what it acknowledged when its disk is full from any call on?

use core::ops::Range;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use firn_heap::{Error, Pool, PoolOptions, Session};
use firn_mapped::{Disk, Durability, Mapped, MappedOptions, Part, SystemDisk, check_log};
use firn_media::{Domain, Memory, Space};
use firn_structures::Map;
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr, WORD_BYTES};

use crate::small_file_system::SmallFileSystem;

/// Entries of a round, each in a transaction of its own. Then a transaction removes all of them.
const ENTRIES: u64 = 3;
const ROUND: u64 = ENTRIES + 1;
/// Two values and the map fit into a chunk. So when all are gone one chunk is free as a whole, and is given back.
const VALUE_BYTES: usize = 700 << 10;
/// Steps of a program: the log is longer by then than it was at first, and a part of it is home.
const STEPS: u64 = 2 * ROUND;
/// Room for the entries of two rounds.
const POOL_BYTES: u64 = 24 << 20;
/// Where the number of steps is stored.
const STEP: &[u8] = b"step";

/// What a disk is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    /// To write zeros to new slots of the log.
    Slots,
    /// To write blocks of the log, or a head.
    Log,
    /// To write to the pool's file.
    Home,
    Sync,
    /// To change a file's blocks or its length.
    Space,
}

/// A disk that others fill right before one of its calls.
#[derive(Debug)]
struct Filling {
    device: Arc<SmallFileSystem>,
    full_from: u64,
    calls: AtomicU64,
    refused: Mutex<Vec<Call>>,
}

impl Filling {
    fn new(device: &Arc<SmallFileSystem>, full_from: u64) -> Self {
        Self {
            device: Arc::clone(device),
            full_from,
            calls: AtomicU64::new(0),
            refused: Mutex::default(),
        }
    }

    /// Whether there were as many calls.
    fn was_filled(&self) -> bool {
        self.calls.load(Ordering::SeqCst) > self.full_from
    }

    /// The calls that were refused for want of space.
    fn refused(&self) -> Vec<Call> {
        let refused = self.refused.lock();
        refused.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn call<T>(&self, call: Call, run: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.full_from {
            self.device.fill();
        }
        run().inspect_err(|refused| {
            if refused.kind() == io::ErrorKind::StorageFull {
                let calls = self.refused.lock();
                calls.unwrap_or_else(PoisonError::into_inner).push(call);
            }
        })
    }
}

impl Disk for Filling {
    fn write(
        &self,
        file: (&File, Part),
        at: u64,
        bytes: &[u8],
        durability: Durability,
    ) -> io::Result<usize> {
        let call = match (file.1, durability) {
            (Part::Home, _) => Call::Home,
            (Part::Log, Durability::AtOnce) => Call::Log,
            // At the level `sync` nothing else is written to the log without being durable by itself.
            (Part::Log, Durability::WithNextSync) => Call::Slots,
        };
        self.call(call, || SystemDisk.write(file, at, bytes, durability))
    }

    fn sync(&self, file: (&File, Part)) -> io::Result<()> {
        self.call(Call::Sync, || SystemDisk.sync(file))
    }

    fn allocate(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()> {
        self.call(Call::Space, || SystemDisk.allocate(file, range))
    }

    fn punch(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()> {
        self.call(Call::Space, || SystemDisk.punch(file, range))
    }

    fn zero(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()> {
        self.call(Call::Space, || SystemDisk.zero(file, range))
    }

    fn set_len(&self, file: (&File, Part), len: u64) -> io::Result<()> {
        self.call(Call::Space, || SystemDisk.set_len(file, len))
    }
}

fn options() -> MappedOptions {
    let mut options = MappedOptions::default().domain(Domain::Logged);
    options.log.initial_bytes = 1;
    options.log.bound_bytes = 6 << 20;
    options
}

fn opened(path: &Path, options: &MappedOptions) -> Result<Pool<Mapped>, String> {
    let medium = Mapped::open(path, options).map_err(|e| e.to_string())?;
    Pool::open(medium, &PoolOptions::new("full")).map_err(|e| e.to_string())
}

fn value(step: u64) -> Vec<u8> {
    step.to_le_bytes().repeat(VALUE_BYTES / 8)
}

fn take(session: &mut Session<Mapped>, step: u64) -> Result<(), Error> {
    session.transaction(|tx| {
        let mut map = Map::open(tx, "map")?;
        map.insert(STEP, &(step + 1).to_le_bytes())?;
        match step % ROUND {
            ENTRIES => {
                (0..ENTRIES).try_for_each(|entry| map.remove(&entry.to_be_bytes()).map(|_| ()))
            }
            entry => map.insert(&entry.to_be_bytes(), &value(step)).map(|_| ()),
        }
    })
}

/// How many steps the pool has seen. It is whole, and what it holds is what they come to.
fn steps(pool: &Pool<Mapped>) -> u64 {
    assert_eq!(pool.check().unwrap(), []);
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let map = Map::open(view, "map").unwrap();
        let step = map.get(STEP).unwrap();
        let steps = step.map_or(0, |step| u64::from_le_bytes(step.try_into().unwrap()));
        let round = steps - steps % ROUND;
        for entry in 0..ENTRIES {
            let written = (entry < steps % ROUND).then(|| value(round + entry));
            let found = map.get(&entry.to_be_bytes()).unwrap();
            assert!(found == written, "entry {entry} after {steps} steps");
        }
        steps
    })
}

/// What a program was told on a disk that fills up.
struct Told {
    /// Steps that were acknowledged.
    steps: u64,
    /// Whether the pool was opened.
    opened: bool,
    /// What the program ended with, if it was refused.
    refused: Option<String>,
}

fn program(path: &Path, disk: &Arc<Filling>) -> Told {
    let mut options = options();
    options.log.disk = disk.clone();
    let (mut steps, opened) = (0, opened(path, &options));
    let is_open = opened.is_ok();
    let done = opened.and_then(|pool| {
        let mut session = pool.session().map_err(|e| e.to_string())?;
        while steps < STEPS {
            take(&mut session, steps).map_err(|e| e.to_string())?;
            steps += 1;
            if steps == ROUND {
                pool.release_free_space().map_err(|e| e.to_string())?;
            }
        }
        drop(session);
        pool.close().map_err(|e| e.to_string())
    });
    Told {
        steps,
        opened: is_open,
        refused: done.err(),
    }
}

fn create(path: &Path) {
    let medium = Mapped::create(path, POOL_BYTES, &options()).unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("full")).unwrap();
    let mut session = pool.session().unwrap();
    let made = session.transaction(|tx| Map::create(tx, "map").map(|_| ()));
    made.unwrap_or_else(|e: Error| panic!("{e}"));
    drop(session);
    pool.close().unwrap();
}

/// Runs a program on a new pool, and opens the pool again when there is space.
fn run(disk: &Arc<Filling>) -> Told {
    let path = disk.device.path().join("pool");
    create(&path);
    let told = program(&path, disk);
    disk.device.empty();
    let said = told.refused.as_deref().unwrap_or("no space");
    assert!(said.to_lowercase().contains("no space"), "{said}");
    assert!(check_log(&path, &options()).unwrap().findings.is_empty());
    let pool = opened(&path, &options()).unwrap();
    let found = steps(&pool);
    assert!(
        (told.steps..=told.steps + 1).contains(&found),
        "{} steps were acknowledged, {found} are there: {said}",
        told.steps,
    );
    // Whatever was refused, it goes on.
    take(&mut pool.session().unwrap(), found).unwrap();
    pool.close().unwrap();
    std::fs::remove_file(&path).unwrap();
    told
}

/// Fills a disk before each call in turn. Where a file system writes to the blocks that a file has, it refuses the log's
/// new slots and nothing else, and a program that has opened its pool does without them.
fn a_disk_is_full_from_each_call_on(device: Option<SmallFileSystem>, is_in_place: bool) {
    let Some(device) = device else { return };
    let device = Arc::new(device);
    let (mut full_from, mut unopened, mut refused, mut went_on) = (0, 0, 0, 0);
    loop {
        let disk = Arc::new(Filling::new(&device, full_from));
        let told = run(&disk);
        let calls = disk.refused();
        unopened += u64::from(!told.opened);
        refused += u64::from(!calls.is_empty());
        went_on += u64::from(told.refused.is_none() && !calls.is_empty());
        if is_in_place {
            let only_slots = calls.iter().all(|call| *call == Call::Slots);
            assert!(only_slots, "full from call {full_from} on: {calls:?}");
            let ended = told.refused.is_none() && told.steps == STEPS;
            assert!(ended || !told.opened, "{:?}", told.refused);
        }
        if !disk.was_filled() {
            break;
        }
        full_from += 1;
    }
    assert!(full_from > 30, "{full_from} calls are too few");
    assert!(unopened > 0 && refused > unopened, "{unopened}, {refused}");
    assert!(went_on > 0 || !is_in_place, "the log was never refused");
}

#[test]
fn an_ext4_that_is_full_from_any_call_on() {
    a_disk_is_full_from_each_call_on(SmallFileSystem::image("mkfs.ext4", 64 << 10), true);
}

#[test]
fn an_xfs_that_is_full_from_any_call_on() {
    a_disk_is_full_from_each_call_on(SmallFileSystem::image("mkfs.xfs", 300 << 10), true);
}

/// Each write there needs new blocks.
#[test]
fn a_btrfs_that_is_full_from_any_call_on() {
    a_disk_is_full_from_each_call_on(SmallFileSystem::image("mkfs.btrfs", 128 << 10), false);
}

/// Space that is given back, and space that is then reserved again, goes home on a full disk. The file system's list of the
/// file's parts would get longer, and has no block for that.
fn space_changes_on_a_full_disk(device: Option<SmallFileSystem>, is_reserved_again: bool) {
    let Some(device) = device else { return };
    let path = device.path().join("pool");
    create(&path);
    let pool = opened(&path, &options()).unwrap();
    let medium = pool.medium();
    let space = medium.len()..medium.len() + CHUNK_BYTES;
    let frames = || space.clone().step_by(FRAME_BYTES as usize);
    medium.reserve(VirtAddr(space.start), CHUNK_BYTES).unwrap();
    for at in frames() {
        medium.store_u64(VirtAddr(at), at);
        medium.write_back(VirtAddr(at), WORD_BYTES);
    }
    medium.fence();
    medium.sync().unwrap();
    device.fill();
    for at in frames().step_by(2) {
        medium.discard(VirtAddr(at), FRAME_BYTES).unwrap();
        if is_reserved_again {
            medium.reserve(VirtAddr(at), FRAME_BYTES).unwrap();
        }
    }
    medium.sync().unwrap();
    let file = File::open(&path).unwrap();
    for at in frames() {
        let mut word = [0; WORD_BYTES as usize];
        file.read_exact_at(&mut word, at).unwrap();
        let is_given_back = (at - space.start).is_multiple_of(2 * FRAME_BYTES);
        let expected = if is_given_back { 0 } else { at };
        assert_eq!(u64::from_le_bytes(word), expected, "{at:#x}");
    }
    medium.truncate(space.start).unwrap();
    device.empty();
    pool.close().unwrap();
}

#[test]
fn space_is_given_back_on_a_full_disk() {
    space_changes_on_a_full_disk(SmallFileSystem::image("mkfs.ext4", 64 << 10), false);
    space_changes_on_a_full_disk(SmallFileSystem::image("mkfs.xfs", 300 << 10), false);
}

#[test]
fn space_is_taken_again_on_a_full_disk() {
    space_changes_on_a_full_disk(SmallFileSystem::image("mkfs.ext4", 64 << 10), true);
    space_changes_on_a_full_disk(SmallFileSystem::image("mkfs.xfs", 300 << 10), true);
}
