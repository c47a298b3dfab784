//! Does a log whose disk loses power hold a prefix of what was appended, with all that was durable?
//!
//! The disk has two files. Until a file is synced each of its sectors holds any of the contents that were written to it
//! since the last sync, whatever the others hold.

use core::ops::Range;
use std::collections::BTreeMap;

use firn_format::log::{BLOCK_BYTES, Head, LineWords, Record, RecordWriter, head_offset};
use firn_log::{Growth, Home, Log, Next, Options, Reach, Write, newest_head, scan};
use firn_units::{FRAME_BYTES, LINE_BYTES, WORD_BYTES};

const SECTOR: usize = 512;
const FRAMES: u64 = 3;
const LINES: u64 = 2;

/// A file on a disk that may lose power.
#[derive(Clone, Default)]
struct File {
    durable: Vec<u8>,
    /// Contents of sectors since the last sync, the oldest first.
    pending: BTreeMap<usize, Vec<[u8; SECTOR]>>,
}

impl File {
    fn now(&self, sector: usize) -> [u8; SECTOR] {
        let written = self.pending.get(&sector).and_then(|written| written.last());
        written.copied().unwrap_or_else(|| self.synced(sector))
    }

    fn synced(&self, sector: usize) -> [u8; SECTOR] {
        let mut content = [0; SECTOR];
        if let Some(bytes) = self.durable.get(sector * SECTOR..) {
            let len = bytes.len().min(SECTOR);
            content[..len].copy_from_slice(&bytes[..len]);
        }
        content
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let (mut at, mut rest) = (at as usize, bytes);
        while !rest.is_empty() {
            let (sector, within) = (at / SECTOR, at % SECTOR);
            let len = rest.len().min(SECTOR - within);
            let mut content = self.now(sector);
            content[within..][..len].copy_from_slice(&rest[..len]);
            self.pending.entry(sector).or_default().push(content);
            (at, rest) = (at + len, &rest[len..]);
        }
    }

    /// Makes the sectors of a range durable.
    fn sync_range(&mut self, range: Range<u64>) {
        let sectors = range.start as usize / SECTOR..range.end as usize / SECTOR;
        let mut later = self.pending.split_off(&sectors.start);
        let rest = later.split_off(&sectors.end);
        let before = std::mem::replace(&mut self.pending, later);
        self.sync();
        self.pending = before;
        self.pending.extend(rest);
    }

    fn sync(&mut self) {
        for (sector, written) in std::mem::take(&mut self.pending) {
            let end = (sector + 1) * SECTOR;
            if self.durable.len() < end {
                self.durable.resize(end, 0);
            }
            let newest = written.last().expect("a sector that was written");
            self.durable[sector * SECTOR..end].copy_from_slice(newest);
        }
    }

    fn lose_power(&mut self, random: &mut fastrand::Rng) {
        for written in self.pending.values_mut() {
            written.truncate(random.usize(..=written.len()));
        }
        self.pending.retain(|_, written| !written.is_empty());
        self.sync();
    }

    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let from = self.durable.get(at as usize..).unwrap_or(&[]);
        let len = from.len().min(into.len());
        into[..len].copy_from_slice(&from[..len]);
        len
    }

    fn bring_home(&mut self, home: &Home) {
        let zeros = [home.cut.map_or(0..0, |cut| cut..FRAMES * FRAME_BYTES)];
        let ranges = home.discarded.iter().chain(&home.zeroed).chain(&zeros);
        for range in ranges {
            for frame in
                (range.start..range.end.min(FRAMES * FRAME_BYTES)).step_by(FRAME_BYTES as usize)
            {
                self.write(frame, &[0; FRAME_BYTES as usize]);
            }
        }
        for (at, bytes) in home.words.iter() {
            self.write(at, bytes);
        }
    }
}

/// The pool's words.
type Words = BTreeMap<u64, u64>;

fn take(words: &mut Words, record: &Record) {
    let mut zero = |range: &Range<u64>| words.retain(|at, _| !range.contains(at));
    match record {
        Record::Lines(lines) => {
            for line in lines {
                for (number, &word) in line.words.iter().enumerate() {
                    words.insert(line.line + number as u64 * WORD_BYTES, word);
                }
            }
        }
        Record::Reserve(_) => {}
        Record::Discard(range) => zero(range),
        Record::Truncate(len) => zero(&(*len..u64::MAX)),
    }
    words.retain(|_, word| *word != 0);
}

fn words_of(home: &File) -> Words {
    let mut words = Words::new();
    for at in (0..FRAMES * FRAME_BYTES).step_by(WORD_BYTES as usize) {
        let mut bytes = [0; 8];
        home.read(at, &mut bytes);
        words.insert(at, u64::from_le_bytes(bytes));
    }
    words.retain(|_, word| *word != 0);
    words
}

/// What a driver gets wrong; each breaks a rule of the crate's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// L5: goes home before it is durable.
    HomeBeforeLog,
    /// L6: a head moves the tail while home is not synced.
    TailBeforeHome,
    /// L7: a segment is given out while no durable head has passed it.
    FreeBeforeHead,
    /// L2: says that a write is durable when it was only begun.
    NotDurable,
    /// L2: takes a write for durable that is so by itself, while others before it are not.
    DurableAlone,
    /// L9: the log goes on with its old salt after a crash.
    OldSalt,
}

struct Driver {
    fault: Option<Fault>,
    log_file: File,
    home_file: File,
    log: Log,
    /// The pool after each record, from the last recovery on.
    states: Vec<Words>,
    value: u64,
}

const OPTIONS: Options = Options {
    initial_bytes: 8 * BLOCK_BYTES,
    bound_bytes: 16 * BLOCK_BYTES,
};

impl Driver {
    fn new(fault: Option<Fault>) -> Self {
        let head = Head {
            generation: 1,
            uuid: [1; 16],
            pool_generation: 0,
            salt: 100,
            segment_blocks: 4,
            tail: 0,
        };
        let mut log_file = File::default();
        log_file.write(head_offset(1), &head.encode());
        log_file.write(2 * BLOCK_BYTES, &[0; 8 * BLOCK_BYTES as usize]);
        log_file.sync();
        Self {
            fault,
            log_file,
            home_file: File::default(),
            log: Log::begin(head, OPTIONS),
            states: vec![Words::new()],
            value: 0,
        }
    }

    fn append_any(&mut self, random: &mut fastrand::Rng) {
        let record = any_record(random, &mut self.value);
        self.append(&record);
    }

    /// A write has reached the disk, if it is to be durable.
    fn end(&mut self, write: Write) {
        if write.durable && self.fault != Some(Fault::NotDurable) {
            // This write alone: what was written before may still be on its way.
            for &at in &write.offsets {
                self.log_file.sync_range(at..at + BLOCK_BYTES);
            }
        }
        self.log.written(write);
    }

    fn append(&mut self, record: &Record) {
        let number = self.log.append(|into| RecordWriter::append(into, record));
        let mut words = self.states.last().unwrap().clone();
        take(&mut words, record);
        self.states.push(words);
        assert_eq!(number as usize + 1, self.states.len());
    }

    /// Does what the log asks for. Returns false if the power fails on the way.
    fn write(&mut self, reach: Reach, random: &mut fastrand::Rng) -> bool {
        loop {
            let newest = self.log.appended();
            match self.log.next(newest, reach) {
                Next::Done | Next::Wait => return true,
                Next::Sync(sync) => {
                    if random.u8(..6) == 0 {
                        return false;
                    }
                    if self.fault != Some(Fault::NotDurable) {
                        self.log_file.sync();
                    }
                    self.log.synced(sync);
                }
                Next::Full => {
                    if let Next::Sync(sync) = self.log.next(self.log.handed(), Reach::Disk) {
                        self.log_file.sync();
                        self.log.synced(sync);
                    }
                    if !self.checkpoint(random) {
                        return false;
                    }
                }
                Next::Grow(growth) if !self.grow(&growth, random) => return false,
                Next::Grow(_) => {}
                Next::Write(mut write) => {
                    write.durable |=
                        reach == Reach::Disk && self.fault == Some(Fault::DurableAlone);
                    for (block, &at) in write.blocks.iter().zip(&write.offsets) {
                        self.log_file.write(at, block);
                    }
                    if random.u8(..6) == 0 {
                        return false;
                    }
                    self.end(write);
                }
            }
        }
    }

    /// Adds slots, or finds no space for them. Returns false if the power fails on the way.
    fn grow(&mut self, growth: &Growth, random: &mut fastrand::Rng) -> bool {
        let bytes = growth.bytes();
        let zeros = vec![0; (bytes.end - bytes.start) as usize];
        self.log_file.write(bytes.start, &zeros);
        if random.u8(..8) == 0 {
            return false;
        }
        if random.u8(..8) == 0 {
            self.log.stay();
        } else {
            self.log_file.sync();
            self.log.grown(growth);
        }
        true
    }

    fn checkpoint(&mut self, random: &mut fastrand::Rng) -> bool {
        let Some(mut checkpoint) = self.log.begin_checkpoint() else {
            return true;
        };
        self.home_file.bring_home(&checkpoint.take_home());
        if self.fault == Some(Fault::HomeBeforeLog) {
            // Brings home what is staged, too, by a copy of the whole pool.
            for (&at, word) in self.states.last().unwrap() {
                self.home_file.write(at, &word.to_le_bytes());
            }
        }
        if random.u8(..6) == 0 {
            return false;
        }
        if self.fault != Some(Fault::TailBeforeHome) {
            self.home_file.sync();
        }
        let head = self.log.head_after(&checkpoint);
        self.log_file
            .write(head_offset(head.generation), &head.encode());
        if random.u8(..6) == 0 {
            return false;
        }
        if self.fault != Some(Fault::FreeBeforeHead) {
            self.log_file.sync();
        }
        self.log.end_checkpoint(checkpoint);
        true
    }

    /// Loses power and recovers, maybe several times; the pool is one that was, and nothing durable is lost.
    fn recover(&mut self, random: &mut fastrand::Rng) -> Result<(), String> {
        let acknowledged = self.log.durable() as usize;
        loop {
            self.log_file.lose_power(random);
            self.home_file.lose_power(random);
            let file = self.log_file.clone();
            let bytes = file.durable.len() as u64;
            let mut read = |at: u64, into: &mut [u8]| Ok(file.read(at, into));
            let head = newest_head(&mut read).map_err(|e| e.to_string())?;
            let found = scan(&mut read, &head, bytes).map_err(|e| e.to_string())?;
            self.home_file
                .bring_home(&firn_log::coalesce(found.records.into_iter()));
            if random.u8(..4) == 0 {
                continue;
            }
            self.home_file.sync();
            let next = Head {
                generation: head.generation + 1,
                salt: head.salt + u64::from(self.fault != Some(Fault::OldSalt)),
                tail: 0,
                ..head
            };
            self.log_file
                .write(head_offset(next.generation), &next.encode());
            if random.u8(..4) == 0 {
                continue;
            }
            self.log_file.sync();
            let slots = bytes - 2 * BLOCK_BYTES;
            let initial_bytes = slots - slots % (4 * BLOCK_BYTES);
            let options = Options {
                initial_bytes,
                ..OPTIONS
            };
            self.log = Log::begin(next, options);
            break;
        }
        let now = words_of(&self.home_file);
        let survived = self.states[acknowledged..].contains(&now);
        if !survived {
            return Err(format!(
                "{acknowledged} records were durable, and this is none of the states from there on"
            ));
        }
        self.states = vec![now];
        Ok(())
    }
}

fn any_record(random: &mut fastrand::Rng, value: &mut u64) -> Record {
    let range = |random: &mut fastrand::Rng| {
        let start = random.u64(..FRAMES);
        start * FRAME_BYTES..random.u64(start + 1..=FRAMES) * FRAME_BYTES
    };
    match random.u8(..20) {
        0 => Record::Discard(range(random)),
        1 => Record::Reserve(range(random)),
        2 => Record::Truncate(random.u64(..FRAMES) * FRAME_BYTES),
        _ => {
            let mut line = |random: &mut fastrand::Rng| {
                *value += 1;
                LineWords {
                    line: random.u64(..FRAMES) * FRAME_BYTES + random.u64(..LINES) * LINE_BYTES,
                    mask: 0xff,
                    words: [*value; 8],
                }
            };
            let count = if random.u8(..8) == 0 { 150 } else { 4 };
            Record::Lines((0..random.u8(..count)).map(|_| line(random)).collect())
        }
    }
}

/// A run of several openings, each ended by a power failure.
fn run(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut driver = Driver::new(fault);
    for opening in 0..4 {
        for _ in 0..random.usize(1..60) {
            let goes_on = match random.u8(..8) {
                0 => driver.write(Reach::Disk, &mut random),
                1 => driver.write(Reach::System, &mut random),
                2 => driver.checkpoint(&mut random),
                _ => {
                    driver.append_any(&mut random);
                    true
                }
            };
            if !goes_on {
                break;
            }
        }
        driver
            .recover(&mut random)
            .map_err(|failed| format!("seed {seed}, opening {opening}: {failed}"))?;
    }
    Ok(())
}

#[test]
fn nothing_durable_is_lost_and_nothing_is_torn_whenever_the_power_fails() {
    for seed in 0..600 {
        run(seed, None).unwrap();
    }
}

/// Each of these rules is needed: without it the runs above fail.
#[test]
fn a_driver_that_breaks_a_rule_is_caught() {
    for fault in [
        Fault::HomeBeforeLog,
        Fault::TailBeforeHome,
        Fault::FreeBeforeHead,
        Fault::NotDurable,
        Fault::DurableAlone,
        Fault::OldSalt,
    ] {
        let caught = (0..4000).find_map(|seed| run(seed, Some(fault)).err());
        assert!(caught.is_some(), "{fault:?} was not caught");
    }
}
