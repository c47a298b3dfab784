//! A disk with a volatile write-back cache.

use core::ops::Range;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use firn_mapped::{Disk, Durability, Part, SystemDisk};

use super::SECTOR;
use super::journal::{Event, Files, Journal, PARTS, index_of};

/// Bytes of one event at most.
const STEP: u64 = 1 << 20;
/// Bytes of events beyond which the cache is full.
const BOUND: u64 = 256 << 20;
/// How long a durable write is on its way, and a sync: without that, hardly any would be when the power fails.
const WRITE_TIME: Duration = Duration::from_micros(50);
const SYNC_TIME: Duration = Duration::from_millis(4);

/// What a disk does when it is asked to make something durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syncs {
    /// That.
    Honest,
    /// Nothing, and it says that it is done: a planted fault, to see that the loss is noticed.
    Lie,
}

/// A disk below one opening of a pool. What is written and not yet durable is in its cache, which [`super::cut_power`]
/// empties as a power failure does, once the program is dead.
///
/// The cache is bounded. When it is full, the disk writes what it has, as it may do at any time.
///
/// Concurrency: calls are ordered by the journal's lock; the writes themselves are not, as on a real disk.
#[derive(Debug)]
pub struct CachingDisk {
    syncs: Syncs,
    /// The files, through the system's page cache: what is written can be read at once, by whom it may concern.
    handles: [OnceLock<File>; PARTS.len()],
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    journal: Journal,
    files: Files,
    /// Writes that are not durable, by number.
    pending: BTreeMap<u64, Pending>,
    numbers: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    part: Part,
    /// Whether the write has returned: the next sync makes it durable.
    ended: bool,
}

impl CachingDisk {
    /// A disk for the pool, with an empty cache whose journal is at `journal`.
    ///
    /// Errors: what the system says.
    pub fn new(journal: &Path, pool: &Path, syncs: Syncs) -> io::Result<Self> {
        let mut files = Files::default();
        // The program may lengthen the pool's file before it first writes to it.
        files.durable_bytes[index_of(Part::Home)] = Some(std::fs::metadata(pool)?.len());
        Ok(Self {
            syncs,
            handles: Default::default(),
            state: Mutex::new(State {
                journal: Journal::create(journal, &files)?,
                files,
                pending: BTreeMap::new(),
                numbers: 0,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, without `O_DIRECT`.
    fn cached(&self, (file, part): (&File, Part)) -> io::Result<&File> {
        let handle = &self.handles[index_of(part)];
        if let Some(cached) = handle.get() {
            return Ok(cached);
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let cached = File::options().read(true).write(true).open(path)?;
        let bytes = cached.metadata()?.len();
        let mut state = self.lock();
        if part == Part::Log && state.files.durable_bytes[0].is_none() {
            state.files.durable_bytes[0] = Some(bytes);
            // A new log is empty.
            state.files.log_is_named = bytes > 0;
        }
        drop(state);
        Ok(handle.get_or_init(|| cached))
    }

    /// Makes a range other than it was: notes that, calls, and notes the end.
    fn change(
        &self,
        on: (&File, Part),
        (range, new): (Range<u64>, Option<&[u8]>),
        durability: Durability,
        call: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        let file = self.cached(on)?;
        let numbers = self.lock().begin((file, on.1), &range, new)?;
        let called = call(file);
        if called
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::Unsupported)
        {
            self.lock().withdraw(numbers)?;
            return called;
        }
        // After any other failure it is unknown what arrives, whatever is synced.
        called?;
        let at_once = durability == Durability::AtOnce && self.syncs == Syncs::Honest;
        if !at_once {
            self.lock().end(numbers);
            return Ok(());
        }
        thread::sleep(WRITE_TIME);
        let mut state = self.lock();
        let bytes = &mut state.files.durable_bytes[index_of(on.1)];
        // A durable write can be read after the power failure, so the file is as long as that.
        *bytes = (*bytes).max(Some(range.end));
        state.files.log_is_named |= on.1 == Part::Log;
        state.settle(&numbers.collect::<Vec<_>>())
    }
}

impl State {
    /// Notes that a range is on its way to get another content; `None` stands for zeros. Returns the numbers of the
    /// writes that it takes.
    fn begin(
        &mut self,
        (file, part): (&File, Part),
        range: &Range<u64>,
        new: Option<&[u8]>,
    ) -> io::Result<Range<u64>> {
        if self.journal.bytes() > BOUND {
            let ended = self.ended(|_| true);
            self.settle(&ended)?;
        }
        let first = self.numbers;
        let (mut at, end) = (
            range.start - range.start % SECTOR,
            range.end.next_multiple_of(SECTOR),
        );
        let mut old = Vec::new();
        while at < end {
            let len = (end - at).min(STEP);
            old.clear();
            old.resize(len as usize, 0);
            read_up_to(file, at, &mut old)?;
            let mut changed = old.clone();
            let (from, to) = (range.start.max(at), range.end.min(at + len));
            let target = &mut changed[(from - at) as usize..(to - at) as usize];
            match new {
                Some(new) => target.copy_from_slice(
                    &new[(from - range.start) as usize..(to - range.start) as usize],
                ),
                None => target.fill(0),
            }
            self.journal.add(&Event::Write {
                number: self.numbers,
                part,
                at,
                len,
                old: unless_zero(&old),
                new: unless_zero(&changed),
            });
            let ended = false;
            self.pending.insert(self.numbers, Pending { part, ended });
            self.numbers += 1;
            at += len;
        }
        self.journal.say(&self.files)?;
        Ok(first..self.numbers)
    }

    /// Writes have returned.
    fn end(&mut self, numbers: Range<u64>) {
        for (_, pending) in self.pending.range_mut(numbers) {
            pending.ended = true;
        }
    }

    /// Writes that the system has no call for are not on their way.
    fn withdraw(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            self.pending.remove(&number);
            self.journal.add(&Event::Withdrawn { number });
        }
        self.journal.say(&self.files)
    }

    /// The writes that have returned.
    fn ended(&self, of: impl Fn(Part) -> bool) -> Vec<u64> {
        let ended = self.pending.iter();
        ended
            .filter(|(_, pending)| pending.ended && of(pending.part))
            .map(|(&number, _)| number)
            .collect()
    }

    /// Makes writes durable, in one step.
    fn settle(&mut self, numbers: &[u64]) -> io::Result<()> {
        for &number in numbers {
            self.pending.remove(&number);
        }
        if self.pending.is_empty() {
            return self.journal.empty(&self.files);
        }
        for &number in numbers {
            self.journal.add(&Event::Durable { number });
        }
        self.journal.say(&self.files)
    }
}

/// Fills `into`, as far as the file goes.
fn read_up_to(file: &File, at: u64, into: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], at + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn unless_zero(bytes: &[u8]) -> Option<&[u8]> {
    bytes.iter().any(|&byte| byte != 0).then_some(bytes)
}

impl Disk for CachingDisk {
    fn write(
        &self,
        on: (&File, Part),
        at: u64,
        bytes: &[u8],
        durability: Durability,
    ) -> io::Result<usize> {
        let range = at..at + bytes.len() as u64;
        self.change(on, (range, Some(bytes)), durability, |file| {
            file.write_all_at(bytes, at)
        })?;
        Ok(bytes.len())
    }

    fn sync(&self, on: (&File, Part)) -> io::Result<()> {
        let bytes = self.cached(on)?.metadata()?.len();
        let ended = self.lock().ended(|part| part == on.1);
        thread::sleep(SYNC_TIME);
        if self.syncs == Syncs::Lie {
            return Ok(());
        }
        let mut state = self.lock();
        state.files.durable_bytes[index_of(on.1)] = Some(bytes);
        state.settle(&ended)
    }

    fn allocate(&self, on: (&File, Part), range: Range<u64>) -> io::Result<()> {
        SystemDisk.allocate((self.cached(on)?, on.1), range)
    }

    fn punch(&self, on: (&File, Part), range: Range<u64>) -> io::Result<()> {
        let (all, later) = (range.clone(), Durability::WithNextSync);
        self.change(on, (all, None), later, |file| {
            SystemDisk.punch((file, on.1), range)
        })
    }

    fn zero(&self, on: (&File, Part), range: Range<u64>) -> io::Result<()> {
        let (all, later) = (range.clone(), Durability::WithNextSync);
        self.change(on, (all, None), later, |file| {
            SystemDisk.zero((file, on.1), range)
        })
    }

    /// What is cut off is zeros on their way: it may be there or not, with the length or without it.
    fn set_len(&self, on: (&File, Part), len: u64) -> io::Result<()> {
        let old = self.cached(on)?.metadata()?.len();
        let cut = len.min(old)..old;
        self.change(on, (cut, None), Durability::WithNextSync, |file| {
            SystemDisk.set_len((file, on.1), len)
        })
    }
}
