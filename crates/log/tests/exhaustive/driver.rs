//! Who drives the log: does what it asks for, one step at a time, in any order that the rules allow.

use firn_format::log::{BLOCK_BYTES, Head, RecordWriter, head_offset};
use firn_log::{Checkpoint, Growth, Log, Next, Options, Reach, Sync, Write};

use crate::disk::{Bytes, Contents, File, Id, ZEROS};
use crate::faults::{Fault, joined};
use crate::pool::{Deed, FRAMES, Words, bring_home, store};

/// What is explored.
#[derive(Clone, Copy)]
pub struct Config {
    pub name: &'static str,
    /// Blocks of a segment.
    pub segment: u32,
    /// Segments at first, and at most.
    pub segments: (u64, u64),
    /// What threads do.
    pub deeds: &'static [Deed],
    /// Whether what was begun is ended before anything else is begun.
    pub one_by_one: bool,
    /// Whether a sync may fail.
    pub may_fail: bool,
}

impl Config {
    pub fn options(&self) -> Options {
        let bytes = |segments: u64| segments * u64::from(self.segment) * BLOCK_BYTES;
        Options {
            initial_bytes: bytes(self.segments.0),
            bound_bytes: bytes(self.segments.1),
        }
    }
}

/// One step of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A thread does its deed and appends it.
    Append,
    /// A thread waits until all records are with the system, or on the disk, and does what is next for that.
    Ask(Reach),
    /// A thread waits until what the system has is on the disk.
    AskSync,
    EndWrite,
    EndSync,
    FailSync,
    EndGrowth,
    /// There is no space for a longer log.
    Stay,
    /// The next step of a checkpoint: home is written, home is synced, the head is written, the head is synced.
    Checkpoint,
}

pub const STEPS: [Step; 10] = [
    Step::Append,
    Step::Ask(Reach::Disk),
    Step::Ask(Reach::System),
    Step::AskSync,
    Step::EndWrite,
    Step::EndSync,
    Step::FailSync,
    Step::EndGrowth,
    Step::Stay,
    Step::Checkpoint,
];

/// How far a checkpoint has come.
enum Stage {
    None,
    Written(Checkpoint),
    Synced(Checkpoint),
    Headed(Checkpoint, Head),
}

/// A sync of the log that has begun.
struct Syncing {
    sync: Sync,
    /// What was written until this moment becomes durable,
    moment: u32,
    /// except in these blocks: their write had not ended.
    without: Vec<usize>,
}

/// The disk's two files.
#[derive(Clone)]
pub struct Disk {
    pub log: File,
    pub home: File,
}

/// An opening of the pool.
pub struct Driver<'c> {
    config: &'c Config,
    fault: Option<Fault>,
    opening: u64,
    log: Log,
    pub disk: Disk,
    /// The pool at first and after each record.
    pub states: Vec<Words>,
    writing: Option<Write>,
    syncing: Option<Syncing>,
    growing: Option<Growth>,
    stage: Stage,
    /// The newest record of each write, and whether it is durable by itself.
    writes: Vec<(u64, bool)>,
    /// The last block of the newest write.
    last: Option<u64>,
    heads: u64,
    has_failed: bool,
    /// The block to which the disk has refused a write for want of space, though the log counts on it (L8).
    pub refused: Option<usize>,
}

/// A pool and its log where an opening begins, both durable.
#[derive(Clone)]
pub struct Start {
    pub log: Vec<Id>,
    pub home: Vec<Id>,
    pub head: Head,
    pub words: Words,
    pub opening: u64,
}

impl Start {
    /// A new pool.
    pub fn new(config: &Config, contents: &mut Contents) -> Self {
        let head = Head {
            generation: 1,
            uuid: [1; 16],
            pool_generation: 0,
            salt: 100,
            segment_blocks: config.segment,
            tail: 0,
        };
        let slots = config.options().initial_bytes / BLOCK_BYTES;
        let mut log = vec![ZEROS; 2 + slots as usize];
        log[1] = contents.id(&head.encode());
        Self {
            log,
            home: vec![ZEROS; FRAMES as usize],
            head,
            words: Words::default(),
            opening: 1,
        }
    }
}

fn block(at: u64) -> usize {
    (at / BLOCK_BYTES) as usize
}

impl<'c> Driver<'c> {
    pub fn new(config: &'c Config, start: &Start, fault: Option<Fault>) -> Self {
        let initial_bytes = (start.log.len() as u64 - 2) * BLOCK_BYTES;
        let options = Options {
            initial_bytes,
            ..config.options()
        };
        Self {
            config,
            fault,
            opening: start.opening,
            log: Log::begin(start.head, options),
            disk: Disk {
                log: File::durable(start.log.clone()),
                home: File::durable(start.home.clone()),
            },
            states: vec![start.words.clone()],
            writing: None,
            syncing: None,
            growing: None,
            stage: Stage::None,
            writes: Vec::new(),
            last: None,
            heads: 0,
            has_failed: false,
            refused: None,
        }
    }

    /// Number of the newest record that is said to be durable.
    pub fn durable(&self) -> usize {
        self.log.durable() as usize
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Whether something was begun that has not ended.
    fn is_amid(&self) -> bool {
        let begun = self.writing.is_some() || self.syncing.is_some() || self.growing.is_some();
        begun || !matches!(self.stage, Stage::None)
    }

    /// Whether a step may have something to do. Saves repeating an execution for one that has not.
    pub fn may(&self, step: Step) -> bool {
        // Whoever drives the log stops at the first failure: a later sync proves nothing.
        if self.has_failed {
            return false;
        }
        let log = &self.log;
        let begins = match step {
            Step::Append | Step::Ask(_) | Step::AskSync => true,
            Step::Checkpoint => matches!(self.stage, Stage::None),
            _ => false,
        };
        if begins && self.config.one_by_one && self.is_amid() {
            return false;
        }
        match step {
            Step::Append => self.states.len() <= self.config.deeds.len(),
            Step::Ask(Reach::Disk) => log.durable() < log.appended(),
            Step::Ask(Reach::System) => log.handed() < log.appended() && !log.is_busy(),
            Step::AskSync => log.durable() < log.handed() && self.syncing.is_none(),
            Step::EndWrite => self.writing.is_some(),
            Step::EndSync => self.syncing.is_some(),
            Step::FailSync => self.syncing.is_some() && self.config.may_fail,
            Step::EndGrowth | Step::Stay => self.growing.is_some(),
            Step::Checkpoint => !matches!(self.stage, Stage::None) || log.durable() > 0,
        }
    }

    /// Takes a step. False if there is nothing to do.
    pub fn take(&mut self, step: Step, contents: &mut Contents) -> bool {
        if !self.may(step) {
            return false;
        }
        match step {
            Step::Append => self.append(),
            Step::Ask(reach) => self.ask(self.log.appended(), reach, contents),
            Step::AskSync => self.ask(self.log.handed(), Reach::Disk, contents),
            Step::EndWrite => self.end_write(),
            Step::EndSync => self.end_sync(),
            Step::FailSync => self.fail_sync(),
            Step::EndGrowth => self.end_growth(true),
            Step::Stay => self.end_growth(false),
            Step::Checkpoint => self.checkpoint(contents),
        }
    }

    fn append(&mut self) -> bool {
        let number = self.states.len() - 1;
        let Some(&deed) = self.config.deeds.get(number) else {
            return false;
        };
        let before = self.states[number].clone();
        let mut now = before.clone();
        now.take(deed, number, self.opening);
        let record = match (self.fault, number) {
            // Another thread did and appended the deed before, after this one had read its line.
            (Some(Fault::StaleLine), 1..) => {
                let mut stale = self.states[number - 1].clone();
                stale.take(deed, number, self.opening);
                stale.record(deed)
            }
            // The deed behind this one, done without this one, takes its place.
            (Some(Fault::Order), 0) => {
                let (mut other, next) = (before, self.config.deeds[1]);
                other.take(next, 1, self.opening);
                other.record(next)
            }
            _ => now.record(deed),
        };
        self.log.append(|into| RecordWriter::append(into, &record));
        self.states.push(now);
        true
    }

    fn ask(&mut self, record: u64, reach: Reach, contents: &mut Contents) -> bool {
        match self.log.next(record, reach) {
            Next::Done | Next::Wait | Next::Full => false,
            Next::Sync(sync) => {
                let in_flight = self.writing.iter().flat_map(|write| &write.offsets);
                self.syncing = Some(Syncing {
                    sync,
                    moment: self.disk.log.moment(),
                    without: in_flight.map(|&at| block(at)).collect(),
                });
                true
            }
            Next::Grow(growth) => {
                let bytes = match self.is(Fault::UnwrittenSlots) {
                    true => 0..0,
                    false => growth.bytes(),
                };
                for at in bytes.step_by(BLOCK_BYTES as usize) {
                    self.disk.log.write(block(at), ZEROS);
                }
                self.growing = Some(growth);
                true
            }
            Next::Write(mut write) => {
                write.durable |= reach == Reach::Disk && self.is(Fault::DurableAlone);
                self.begin_write(write, contents);
                true
            }
        }
    }

    /// Writes what the log asked for, after the fault that there may be.
    fn begin_write(&mut self, mut write: Write, contents: &mut Contents) {
        let mut blocks: Vec<Bytes> = write.blocks.iter().copied().collect();
        let last = write.offsets.last().copied();
        // Only where nothing else goes wrong: a checkpoint takes both writes or none.
        let is_shared =
            self.is(Fault::SharedBlock) && write.durable && self.log.home() < self.log.durable();
        if is_shared && let Some(at) = self.last {
            let before = *contents.bytes(self.disk.log.now(block(at)));
            if let Some((shared, empty)) = joined(&before, &blocks[0]) {
                blocks[0] = empty;
                blocks.push(shared);
                write.offsets.push(at);
            }
        }
        self.last = last;
        for (bytes, &at) in blocks.iter().zip(&write.offsets) {
            self.write_log(block(at), contents.id(bytes));
        }
        self.writes
            .push((write.blocks.count() as u64, write.durable));
        self.writing = Some(write);
    }

    /// Writes a block that the log counts on. The disk refuses whatever it may (L8).
    fn write_log(&mut self, block: usize, content: Id) {
        match self.disk.log.may_refuse(block) {
            true => self.refused = Some(block),
            false => self.disk.log.write(block, content),
        }
    }

    fn end_write(&mut self) -> bool {
        let Some(write) = self.writing.take() else {
            return false;
        };
        if write.durable && !self.is(Fault::NotDurable) {
            // This write alone: what was written before may still be on its way.
            let is_ours = |other| write.offsets.iter().any(|&at| block(at) == other);
            let moment = self.disk.log.moment();
            self.disk.log.sync_until(moment, is_ours);
        }
        self.log.written(write);
        true
    }

    fn end_sync(&mut self) -> bool {
        let Some(Syncing {
            sync,
            moment,
            without,
        }) = self.syncing.take()
        else {
            return false;
        };
        if !self.is(Fault::NotDurable) {
            let is_reached = |block| !without.contains(&block);
            self.disk.log.sync_until(moment, is_reached);
        }
        self.log.synced(sync);
        true
    }

    fn fail_sync(&mut self) -> bool {
        if !self.config.may_fail {
            return false;
        }
        let Some(Syncing { sync, .. }) = self.syncing.take() else {
            return false;
        };
        self.disk.log.fail_sync();
        if self.is(Fault::Poison) {
            // Tried again, it succeeds, as the system has given up what it could not write.
            self.disk.log.sync();
            self.log.synced(sync);
        } else {
            self.has_failed = true;
        }
        true
    }

    fn end_growth(&mut self, is_space: bool) -> bool {
        let Some(growth) = self.growing.take() else {
            return false;
        };
        match is_space {
            true => {
                self.disk.log.sync();
                self.log.grown(&growth);
            }
            false => self.log.stay(),
        }
        true
    }

    fn checkpoint(&mut self, contents: &mut Contents) -> bool {
        self.stage = match std::mem::replace(&mut self.stage, Stage::None) {
            Stage::None => {
                let Some(mut checkpoint) = self.log.begin_checkpoint() else {
                    return false;
                };
                bring_home(&mut self.disk.home, &checkpoint.take_home(), contents);
                if self.is(Fault::HomeBeforeLog) {
                    // Brings home what is staged, too, by a copy of the whole pool.
                    let newest = self.states[self.states.len() - 1].clone();
                    for (&at, word) in &newest.0 {
                        store(&mut self.disk.home, at, &word.to_le_bytes(), contents);
                    }
                }
                Stage::Written(checkpoint)
            }
            Stage::Written(checkpoint) => {
                if !self.is(Fault::TailBeforeHome) {
                    self.disk.home.sync();
                }
                Stage::Synced(checkpoint)
            }
            Stage::Synced(checkpoint) => {
                let head = self.log.head_after(&checkpoint);
                let at = block(head_offset(head.generation));
                self.write_log(at, contents.id(&head.encode()));
                self.heads += 1;
                Stage::Headed(checkpoint, head)
            }
            Stage::Headed(checkpoint, head) => {
                if !self.is(Fault::FreeBeforeHead) {
                    let (at, moment) =
                        (block(head_offset(head.generation)), self.disk.log.moment());
                    self.disk.log.sync_until(moment, |other| other == at);
                }
                self.log.end_checkpoint(checkpoint);
                Stage::None
            }
        };
        true
    }

    /// Identifies the state of log and disk. What the log holds follows from the records that each write took, from how
    /// far they have come, and from the slots that it has.
    pub fn key(&self) -> Vec<u32> {
        let stage = match self.stage {
            Stage::None => 0,
            Stage::Written(_) => 1,
            Stage::Synced(_) => 2,
            Stage::Headed(..) => 3,
        };
        let log = &self.log;
        let mut key = vec![
            stage,
            self.heads as u32,
            log.appended() as u32,
            log.handed() as u32,
            log.durable() as u32,
            log.staged_bytes() as u32,
            (log.bytes() / BLOCK_BYTES) as u32,
            (log.lag_bytes() / BLOCK_BYTES) as u32,
            u32::from(log.is_busy()),
            u32::from(self.writing.is_some()),
            u32::from(self.growing.is_some()),
            u32::from(self.has_failed),
        ];
        key.extend(
            self.writes
                .iter()
                .map(|&(blocks, durable)| blocks as u32 * 2 + u32::from(durable)),
        );
        if let Some(syncing) = &self.syncing {
            // Its moment counts by what was written since.
            key.extend([u32::MAX, self.disk.log.moment() - syncing.moment]);
            key.extend(syncing.without.iter().map(|&block| block as u32));
        }
        key.push(u32::MAX);
        key.extend(self.disk.log.key());
        key.push(u32::MAX);
        key.extend(self.disk.home.key());
        key
    }
}
