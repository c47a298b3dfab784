//! Does a pool whose file is logged keep what it acknowledged, when the power fails at any moment?
//!
//! A run's writes and syncs are recorded. From the record come the images that a power failure may leave: of each sector
//! any of the contents that were on their way since it was last durable, whatever the other sectors hold.

use core::ops::Range;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use firn_heap::collector::CollectOptions;
use firn_heap::{Pool, PoolOptions};
use firn_mapped::{Disk, Durability, Mapped, MappedOptions, Part, SystemDisk};

use crate::logged::{create, entries, insert, options};
use crate::support::Random;

const SECTOR: u64 = 512;

/// What happened, in order.
#[derive(Debug)]
enum Event {
    /// Sectors are on their way to get these contents.
    Begin(usize, Part, Vec<(u64, [u8; SECTOR as usize])>),
    /// A write has returned.
    End(usize, Durability),
    /// The file has this length.
    Length(Part, u64),
    /// A sync has begun, with so many events before.
    BeginSync(usize, Part),
    /// A sync has returned.
    EndSync(usize),
    /// So many entries are acknowledged.
    Acknowledged(u64),
}

/// Records what it passes on to the system's disk.
#[derive(Debug, Default)]
struct Recorder {
    events: Mutex<Vec<Event>>,
    /// Numbers what is recorded.
    next: Mutex<usize>,
}

impl Recorder {
    fn push(&self, event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
    }

    fn number(&self) -> usize {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        *next
    }

    /// Records a change of a range's content around the call that makes it.
    fn change<R>(
        &self,
        (file, part): (&File, Part),
        (range, content): (Range<u64>, &dyn Fn(u64) -> u8),
        durability: Durability,
        call: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let number = self.number();
        let mut sectors = Vec::new();
        for at in (range.start - range.start % SECTOR..range.end).step_by(SECTOR as usize) {
            let mut sector = [0; SECTOR as usize];
            if !range.contains(&at) || !range.contains(&(at + SECTOR - 1)) {
                file.read_at(&mut sector, at)?;
            }
            for (at, byte) in (at..).zip(&mut sector) {
                if range.contains(&at) {
                    *byte = content(at);
                }
            }
            sectors.push((at, sector));
        }
        self.push(Event::Begin(number, part, sectors));
        let result = call();
        self.push(Event::End(number, durability));
        self.push(Event::Length(part, file.metadata()?.len()));
        result
    }
}

impl Disk for Recorder {
    fn write(
        &self,
        file: (&File, Part),
        at: u64,
        bytes: &[u8],
        durability: Durability,
    ) -> io::Result<usize> {
        let range = at..at + bytes.len() as u64;
        let content = |byte: u64| bytes[(byte - at) as usize];
        self.change(file, (range, &content), durability, || {
            SystemDisk.write(file, at, bytes, durability)
        })
    }

    fn sync(&self, file: (&File, Part)) -> io::Result<()> {
        let number = self.number();
        self.push(Event::BeginSync(number, file.1));
        let done = SystemDisk.sync(file);
        self.push(Event::EndSync(number));
        done
    }

    fn allocate(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()> {
        let done = SystemDisk.allocate(file, range);
        self.push(Event::Length(file.1, file.0.metadata()?.len()));
        done
    }

    fn punch(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()> {
        let later = Durability::WithNextSync;
        let all = range.clone();
        self.change(file, (all, &|_| 0), later, || SystemDisk.punch(file, range))
    }

    fn zero(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()> {
        let later = Durability::WithNextSync;
        let all = range.clone();
        self.change(file, (all, &|_| 0), later, || SystemDisk.zero(file, range))
    }

    fn set_len(&self, file: (&File, Part), len: u64) -> io::Result<()> {
        let done = SystemDisk.set_len(file, len);
        self.push(Event::Length(file.1, len));
        done
    }
}

/// A file's sectors: the durable content, and those on their way since, the oldest first.
#[derive(Default)]
struct Sectors {
    durable: BTreeMap<u64, [u8; SECTOR as usize]>,
    pending: Vec<Pending>,
    len: u64,
}

struct Pending {
    write: usize,
    ended: bool,
    sectors: Vec<(u64, [u8; SECTOR as usize])>,
}

impl Sectors {
    /// Makes durable all writes that `which` holds for.
    fn settle(&mut self, which: impl Fn(&Pending) -> bool) {
        let (settled, pending) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(which);
        self.pending = pending;
        let settled: Vec<Pending> = settled;
        self.durable
            .extend(settled.into_iter().flat_map(|write| write.sectors));
    }

    /// The content after a power failure.
    fn drawn(&self, random: &mut Random) -> BTreeMap<u64, [u8; SECTOR as usize]> {
        let mut histories: BTreeMap<u64, Vec<[u8; SECTOR as usize]>> = BTreeMap::new();
        for (at, content) in self.pending.iter().flat_map(|write| &write.sectors) {
            histories.entry(*at).or_default().push(*content);
        }
        // Sometimes all or nothing arrived.
        let manner = random.below(4);
        let mut drawn = self.durable.clone();
        for (at, history) in histories {
            let kept = match manner {
                0 => 0,
                1 => history.len() as u64,
                _ => random.below(history.len() as u64 + 1),
            };
            if let Some(newest) = kept.checked_sub(1) {
                drawn.insert(at, history[newest as usize]);
            }
        }
        drawn
    }

    fn write(&self, base: Option<&Path>, to: &Path, random: &mut Random) {
        match base {
            Some(base) => drop(std::fs::copy(base, to).unwrap()),
            None => drop(File::create(to).unwrap()),
        }
        let file = File::options().write(true).open(to).unwrap();
        for (at, sector) in self.drawn(random) {
            file.write_all_at(&sector, at).unwrap();
        }
        file.set_len(self.len.max(file.metadata().unwrap().len()))
            .unwrap();
    }
}

/// A recorded run, replayed up to some event.
struct Cut {
    log: Sectors,
    home: Sectors,
    acknowledged: u64,
}

impl Cut {
    fn at(events: &[Event], first: u64) -> Self {
        let mut cut = Self {
            log: Sectors::default(),
            home: Sectors::default(),
            acknowledged: first,
        };
        let mut syncs: BTreeMap<usize, (Part, Vec<usize>)> = BTreeMap::new();
        for event in events {
            match event {
                Event::Begin(write, part, sectors) => cut.part(*part).pending.push(Pending {
                    write: *write,
                    ended: false,
                    sectors: sectors.clone(),
                }),
                Event::End(write, durability) => {
                    for part in [Part::Log, Part::Home] {
                        let sectors = cut.part(part);
                        let ended = sectors.pending.iter_mut().filter(|p| p.write == *write);
                        ended.for_each(|pending| pending.ended = true);
                        if *durability == Durability::AtOnce {
                            sectors.settle(|pending| pending.write == *write);
                        }
                    }
                }
                Event::Length(part, len) => cut.part(*part).len = *len,
                Event::BeginSync(sync, part) => {
                    let ended = cut.part(*part).pending.iter().filter(|p| p.ended);
                    syncs.insert(*sync, (*part, ended.map(|p| p.write).collect()));
                }
                Event::EndSync(sync) => {
                    if let Some((part, writes)) = syncs.remove(sync) {
                        cut.part(part)
                            .settle(|pending| writes.contains(&pending.write));
                    }
                }
                Event::Acknowledged(count) => cut.acknowledged = *count,
            }
        }
        cut
    }

    fn part(&mut self, part: Part) -> &mut Sectors {
        match part {
            Part::Log => &mut self.log,
            Part::Home => &mut self.home,
        }
    }
}

/// Inserts entries into the pool in `path`, on a disk that records, and closes it or not.
fn record(path: &Path, seed: u64) -> Vec<Event> {
    let mut random = Random(seed);
    let recorder = Arc::new(Recorder::default());
    let mut options = options();
    options.log.disk = recorder.clone();
    let medium = Mapped::open(path, &options).unwrap();
    let pool = Pool::open(medium, &PoolOptions::new("logged")).unwrap();
    let first = entries(&pool);
    let mut session = pool.session().unwrap();
    for number in first..first + 100 + random.below(300) {
        insert(&mut session, number).unwrap();
        recorder.push(Event::Acknowledged(number + 1));
        if random.below(60) == 0 {
            pool.collect(&CollectOptions::default()).unwrap();
        }
        if random.below(90) == 0 {
            pool.release_free_space().unwrap();
        }
    }
    drop(session);
    match random.below(2) {
        0 => pool.abandon(),
        _ => drop(pool),
    }
    let mut events = recorder
        .events
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut events)
}

#[test]
fn a_power_failure_loses_nothing_that_was_acknowledged_and_tears_nothing() {
    cut_power(0..25, 40);
}

#[test]
#[ignore = "takes an hour; cargo xtask test --long"]
fn a_hundred_thousand_power_failures_lose_nothing_and_tear_nothing() {
    cut_power(25..525, 200);
}

/// Cuts the power of each run so often.
fn cut_power(runs: Range<u64>, images_of_each: u64) {
    // In memory where that is possible: the images need no disk.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.unwrap();
    let (mut random, mut images) = (Random(17 + runs.start), 0);
    for run in runs {
        let path = folder.path().join(format!("run{run}"));
        drop(create(&path));
        let base = folder.path().join("base");
        // Two sessions; the record is of the second.
        let medium = Mapped::open(&path, &options()).unwrap();
        let pool = Pool::open(medium, &PoolOptions::new("logged")).unwrap();
        let before = random.below(200);
        let mut session = pool.session().unwrap();
        (0..before).for_each(|number| insert(&mut session, number).unwrap());
        drop((session, pool));
        std::fs::copy(&path, &base).unwrap();
        let events = record(&path, run);
        for _ in 0..images_of_each {
            let end = random.below(events.len() as u64 + 1) as usize;
            let cut = Cut::at(&events[..end], before);
            let image = folder.path().join("image");
            let log = folder.path().join("image.firn-log");
            let _ = std::fs::remove_file(&log);
            cut.home.write(Some(&base), &image, &mut random);
            // Before its head was durable, the log may have no name yet.
            if !cut.log.durable.is_empty() || (cut.log.len > 0 && random.below(2) == 0) {
                cut.log.write(None, &log, &mut random);
            }
            let opened = Mapped::open(&image, &MappedOptions::default());
            let medium = opened.unwrap_or_else(|e| panic!("run {run}, event {end}: {e}"));
            let pool = Pool::open(medium, &PoolOptions::new("logged")).unwrap();
            let found = entries(&pool);
            assert!(
                found >= cut.acknowledged,
                "run {run}, event {end}: {} were acknowledged, {found} are there",
                cut.acknowledged
            );
            drop(pool);
            images += 1;
        }
        std::fs::remove_file(&path).unwrap();
        let _ = std::fs::remove_file(folder.path().join(format!("run{run}.firn-log")));
    }
    println!("{images} images");
}
