//! The changing state of a medium, under one lock.

use std::sync::Mutex;

use crate::medium::counts::Counts;
use crate::memory::buffer::StoreBuffer;
use crate::memory::event::Event;
use crate::memory::lookup::Lookups;
use crate::memory::marked::MarkedLines;
use crate::memory::persistence::Persistence;
use crate::schedule::policy::Scheduler;

/// Simulated nanoseconds at which a medium starts.
const START_NS: u64 = 1_000_000_000;

/// A simulated thread. Number 0 is the context outside all simulated threads.
#[derive(Default)]
pub(crate) struct ThreadState {
    pub(crate) buffer: StoreBuffer,
    pub(crate) counts: Counts,
    pub(crate) note: u64,
    /// What it has written back since its last fence, if the medium has a log: lines, and the words of them, a bit each.
    pub(crate) noted: Vec<(u64, u8)>,
    /// Waits until another thread has done something.
    pub(crate) paused: bool,
    /// Waits until another thread wakes it, or its time has come.
    pub(crate) parked: Option<Parked>,
    /// Paused since any thread last made progress.
    pub(crate) idle: bool,
    pub(crate) finished: bool,
    pub(crate) panicked: bool,
}

/// What a sleeping thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parked {
    /// The word: its array, and the index there.
    pub(crate) word: (usize, usize),
    pub(crate) until_ns: u64,
}

impl ThreadState {
    /// Whether it waits.
    pub(crate) fn waits(&self) -> bool {
        self.paused || self.parked.is_some()
    }

    /// Ends its sleep if its time has come.
    pub(crate) fn wake_at(&mut self, ns: u64) {
        self.parked = self.parked.filter(|parked| parked.until_ns > ns);
    }
}

/// How far a run goes before the context that started it looks again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stuck {
    No,
    Deadlock,
    StepLimit,
}

/// How much of a check is run.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// Up to the end of recovery, if the check asks whether to continue.
    Recovery,
    #[default]
    Whole,
}

/// How far a run had come when its check declared recovery complete.
#[derive(Clone, Copy)]
pub(crate) struct Recovered {
    pub(crate) knows: u64,
    /// Recorded loads until then.
    pub(crate) loads: usize,
    /// Events until then.
    pub(crate) events: usize,
}

/// What a scheduler may choose from: threads that can continue, and threads with entries in their buffers, with their
/// number; both ascending.
#[derive(Default)]
pub(crate) struct Offer {
    pub(crate) runnable: Vec<usize>,
    pub(crate) buffered: Vec<(usize, usize)>,
}

impl Offer {
    /// Fills it from these threads; the first is the context outside all simulated ones.
    pub(crate) fn of(&mut self, threads: &[ThreadState]) {
        self.runnable.clear();
        self.buffered.clear();
        for (id, thread) in threads.iter().enumerate().skip(1) {
            if !thread.finished && !thread.waits() {
                self.runnable.push(id);
            }
            if !thread.buffer.is_empty() {
                self.buffered.push((id, thread.buffer.len()));
            }
        }
    }
}

pub(crate) struct State {
    pub(crate) dead: bool,
    /// Event before which the medium dies.
    pub(crate) crash_at: u64,
    pub(crate) events: u64,
    pub(crate) hash: u64,
    pub(crate) current: usize,
    pub(crate) threads: Vec<ThreadState>,
    pub(crate) persistence: Option<Persistence>,
    pub(crate) trace: Option<Vec<Event>>,
    /// Length of the trace when the check declared recovery complete.
    pub(crate) recovery_end: Option<usize>,
    /// How far the check is to be run.
    pub(crate) stage: Stage,
    /// How far the run was when it asked.
    pub(crate) recovered: Option<Recovered>,
    /// Lines that were marked, and not written back under a fence since.
    pub(crate) marked: MarkedLines,
    pub(crate) lookups: Lookups,
    /// Newest durable commit.
    pub(crate) ticket: u64,
    /// Records of the log, if the medium has one.
    pub(crate) records: u64,
    /// Whether a thread reads lines for a record; no other record gets a place meanwhile.
    pub(crate) appending: Option<usize>,
    /// The event up to which copies were dropped.
    pub(crate) dropped: u64,
    /// Who drops copies, and from which word on.
    pub(crate) dropping: Option<(u16, u64)>,
    pub(crate) clock_ns: u64,
    pub(crate) random: fastrand::Rng,
    pub(crate) scheduler: Scheduler,
    /// The scheduler's current offer, kept to reuse its buffers.
    pub(crate) offer: Offer,
    /// Thread to resume next, if the thread that switched away has already chosen.
    pub(crate) next: Option<usize>,
    /// Points left until a thread returns control to a context that only lent it.
    pub(crate) slice: Option<u32>,
    pub(crate) steps: u64,
    pub(crate) idle_rounds: u32,
    pub(crate) stuck: Stuck,
}

impl State {
    pub(crate) fn new(seed: u64, persistence: Option<Persistence>) -> Self {
        Self {
            dead: false,
            crash_at: u64::MAX,
            events: 0,
            hash: 0,
            current: 0,
            threads: vec![ThreadState::default()],
            persistence,
            trace: None,
            recovery_end: None,
            stage: Stage::Whole,
            recovered: None,
            marked: MarkedLines::default(),
            lookups: Lookups::default(),
            ticket: 0,
            records: 0,
            appending: None,
            dropped: 0,
            dropping: None,
            clock_ns: START_NS,
            random: fastrand::Rng::with_seed(seed),
            scheduler: Scheduler::sequential(),
            offer: Offer::default(),
            next: None,
            slice: None,
            steps: 0,
            idle_rounds: 0,
            stuck: Stuck::No,
        }
    }

    pub(crate) fn locked(self) -> Mutex<Self> {
        Mutex::new(self)
    }

    /// Resets for another execution over this memory; keeps allocations.
    pub(crate) fn restart(&mut self, seed: u64) {
        self.dead = false;
        self.crash_at = u64::MAX;
        self.events = 0;
        self.hash = 0;
        self.current = 0;
        self.threads.truncate(1);
        self.threads[0].counts = Counts::default();
        self.threads[0].note = 0;
        self.threads[0].noted.clear();
        self.recovery_end = None;
        self.stage = Stage::Whole;
        self.recovered = None;
        self.marked = MarkedLines::default();
        self.lookups = Lookups::default();
        self.ticket = 0;
        self.records = 0;
        self.appending = None;
        self.dropped = 0;
        self.dropping = None;
        self.clock_ns = START_NS;
        self.random = fastrand::Rng::with_seed(seed);
        self.next = None;
        self.slice = None;
        self.steps = 0;
        self.idle_rounds = 0;
        self.stuck = Stuck::No;
    }

    pub(crate) fn thread(&mut self) -> &mut ThreadState {
        &mut self.threads[self.current]
    }

    pub(crate) fn buffer(&mut self) -> &mut StoreBuffer {
        &mut self.thread().buffer
    }

    /// Whether a line may still be in a cache with its mark.
    pub(crate) fn carries_mark(&self, line: u64) -> bool {
        self.marked.has(line)
    }

    /// Something changed that a waiting thread may be waiting for.
    pub(crate) fn progress(&mut self) {
        if self.threads.len() > 1 || self.idle_rounds > 0 {
            self.idle_rounds = 0;
            for thread in &mut self.threads {
                thread.idle = false;
            }
        }
    }

    pub(crate) fn notes(&self) -> Vec<u64> {
        self.threads.iter().map(|thread| thread.note).collect()
    }
}
