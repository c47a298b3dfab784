//! The core of the medium: operations on memory, buffers and durability.
//!
//! There are two ways through. Outside all simulated threads an operation reaches the cache at once, and a load only
//! reads memory; inside one it passes a scheduling point first and stores wait in the thread's buffer. Once the medium
//! is dead, nothing changes persistent memory any more.

use core::ops::Range;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use firn_media::Domain;
use firn_units::{FRAME_BYTES, LINE_BYTES, WORD_BYTES, words_touched};

use crate::medium::options::CrashOptions;
use crate::medium::state::State;
use crate::memory::buffer::Pending;
use crate::memory::cells::{LINE_WORDS, Line, mark_of};
use crate::memory::event::Event;
use crate::memory::footprint::Footprint;
use crate::memory::pages::Memory;
use crate::memory::persistence::Persistence;
use crate::schedule::policy::Schedule;
use crate::schedule::run::RunOutcome;

const DIRECT: u8 = 0;
const SIMULATED: u8 = 1;
const DEAD: u8 = 2;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Everything that a handle, its words and its places refer to.
pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) options: CrashOptions,
    pub(crate) memory: Memory,
    /// Power failures that this medium's content has been through.
    pub(crate) boots: AtomicU64,
    /// How often the device lacked blocks.
    pub(crate) refusals: AtomicU64,
    /// Power failures among `boots` that came before the state from which an exploration starts.
    base_boots: AtomicU64,
    /// How the last run under an inherited schedule went.
    pub(crate) last_run: Mutex<Option<RunOutcome>>,
    /// What an inherited schedule means.
    pub(crate) inherited: Mutex<Schedule>,
    pub(crate) footprint: Footprint,
    mode: AtomicU8,
    loads: AtomicU64,
    state: Mutex<State>,
}

impl Shared {
    pub(crate) fn new(len: u64, options: CrashOptions) -> Self {
        assert!(
            options.capacity.is_power_of_two(),
            "the capacity is a power of two"
        );
        assert!(len <= options.capacity, "the length is within the capacity");
        let persistence = Persistence::new(options.domain);
        Self {
            id: NEXT_ID.fetch_add(1, Relaxed),
            memory: Memory::new(len, options.capacity),
            boots: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            base_boots: AtomicU64::new(0),
            last_run: Mutex::new(None),
            inherited: Mutex::new(Schedule::Sequential),
            footprint: Footprint::default(),
            mode: AtomicU8::new(DIRECT),
            loads: AtomicU64::new(0),
            state: State::new(options.seed, Some(persistence)).locked(),
            options,
        }
    }

    /// Sets the number of power failures that the content has been through, before first use.
    pub(crate) fn set_base_boots(&self, boots: u64) {
        self.base_boots.store(boots, Relaxed);
        self.boots.store(boots, Relaxed);
    }

    pub(crate) fn set_boots_since_base(&self, boots: u64) {
        self.boots
            .store(self.base_boots.load(Relaxed) + boots, Relaxed);
    }

    /// How the last run under an inherited schedule went; then forgets it.
    pub(crate) fn forget_run(&self) -> Option<RunOutcome> {
        self.last_run
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what survives is a prefix of a log.
    #[inline(always)]
    pub(crate) fn has_log(&self) -> bool {
        self.options.domain == Domain::Logged
    }

    /// Whether a simulated thread runs, so that stores are buffered and threads are switched.
    #[inline(always)]
    pub(crate) fn simulating(&self) -> bool {
        self.mode.load(Relaxed) == SIMULATED
    }

    #[inline(always)]
    pub(crate) fn is_dead(&self) -> bool {
        self.mode.load(Relaxed) == DEAD
    }

    /// Sets the running thread: 0 is the context outside all simulated threads.
    pub(crate) fn enter(&self, state: &mut State, thread: usize) {
        state.current = thread;
        let mode = match (state.dead, thread) {
            (true, _) => DEAD,
            (false, 0) => DIRECT,
            (false, _) => SIMULATED,
        };
        self.mode.store(mode, Relaxed);
    }

    /// Stops the medium as it is: the content of store buffers is lost with the power.
    pub(crate) fn die(&self, state: &mut State) {
        state.dead = true;
        self.mode.store(DEAD, Relaxed);
        for thread in &mut state.threads {
            thread.buffer.abandon();
        }
    }

    /// Loads outside simulated threads since the last reset.
    pub(crate) fn direct_loads(&self) -> u64 {
        self.loads.load(Relaxed)
    }

    pub(crate) fn reset_loads(&self) {
        self.loads.store(0, Relaxed);
    }

    // ---- loads ----

    #[inline]
    pub(crate) fn load(&self, word: u64) -> u64 {
        if self.mode.load(Relaxed) == DIRECT {
            self.loads.store(self.loads.load(Relaxed) + 1, Relaxed);
            return self.visible(word);
        }
        self.load_simulated(word)
    }

    /// The cache's content of a word; the load is recorded if it has to be.
    #[inline(always)]
    pub(crate) fn visible(&self, word: u64) -> u64 {
        self.footprint.load(&self.memory, word)
    }

    /// Loads consecutive words at once, outside simulated threads. Inside one, or on a dead medium, does nothing and
    /// returns false.
    pub(crate) fn load_at_once(&self, first: u64, into: &mut [[u8; WORD_BYTES as usize]]) -> bool {
        if self.mode.load(Relaxed) != DIRECT {
            return false;
        }
        let mut done = 0;
        while done < into.len() {
            let word = first + done as u64;
            let left = (LINE_WORDS - word % LINE_WORDS) as usize;
            let end = into.len().min(done + left);
            self.footprint
                .load_words(&self.memory, word, &mut into[done..end]);
            done = end;
        }
        self.loads
            .store(self.loads.load(Relaxed) + done as u64, Relaxed);
        true
    }

    #[cold]
    fn load_simulated(&self, word: u64) -> u64 {
        self.point();
        let mut state = self.lock();
        state.thread().counts.loads += 1;
        match state.buffer().forward(word) {
            (u64::MAX, own) => own,
            (bits, own) => self.visible(word) & !bits | own,
        }
    }

    // ---- stores and write-backs ----

    /// Executes a store or a write-back: it enters the buffer of a simulated thread, or reaches
    /// the cache at once.
    pub(crate) fn issue(&self, state: &mut State, entry: Pending) {
        if !self.simulating() {
            self.complete(state, 0, entry);
            return;
        }
        let thread = state.current;
        if state.buffer().len() >= self.options.buffer_entries {
            self.drain_one(state, thread);
        }
        let was_empty = state.buffer().is_empty();
        state.buffer().push(entry);
        if was_empty && !state.scheduler.hold() {
            self.drain_one(state, thread);
        }
    }

    /// Stores consecutive words at once, if they reach the cache at once: outside simulated threads. Otherwise does
    /// nothing and returns false.
    pub(crate) fn store_at_once(&self, first: u64, words: &[[u8; WORD_BYTES as usize]]) -> bool {
        if self.mode.load(Relaxed) != DIRECT {
            return false;
        }
        let mut state = self.lock();
        state.thread().counts.stores += words.len() as u64;
        for (value, word) in words.iter().zip(first..) {
            self.check_store(word);
            let value = u64::from_le_bytes(*value);
            self.complete(&mut state, 0, Pending::Store { word, value });
        }
        true
    }

    /// Lets the oldest entry of a thread's buffer reach the cache.
    pub(crate) fn drain_one(&self, state: &mut State, thread: usize) {
        if let Some(entry) = state.threads[thread].buffer.pop() {
            self.complete(state, thread, entry);
        }
    }

    pub(crate) fn drain(&self, state: &mut State, thread: usize) {
        while !state.threads[thread].buffer.is_empty() {
            self.drain_one(state, thread);
        }
    }

    pub(crate) fn drain_current(&self, state: &mut State) {
        self.drain(state, state.current);
    }

    fn complete(&self, state: &mut State, thread: usize, entry: Pending) {
        match entry {
            Pending::Store { word, value } => {
                let old = self.memory.load(word);
                self.emit(
                    state,
                    Event::Store {
                        thread: thread as u16,
                        word,
                        old,
                        new: value,
                    },
                );
            }
            // The event holds the whole word, so its other bytes count as loaded.
            Pending::Part { word, value, mask } => {
                let old = self.visible(word);
                self.emit(
                    state,
                    Event::Store {
                        thread: thread as u16,
                        word,
                        old,
                        new: old & !mask | value & mask,
                    },
                );
            }
            Pending::WriteBack { line, words } => {
                if self.has_log() && !state.dead {
                    state.threads[thread].noted.push((line, words));
                }
                self.emit(
                    state,
                    Event::WriteBack {
                        thread: thread as u16,
                        line,
                    },
                );
            }
            Pending::Volatile {
                array,
                index,
                value,
            } => {
                if array[index].swap(value, Relaxed) != value {
                    state.progress();
                }
            }
        }
    }

    /// Checks that the word can be stored to.
    #[inline]
    pub(crate) fn check_store(&self, word: u64) {
        let at = word * WORD_BYTES;
        assert!(
            at < self.memory.len(),
            "store at {at:#x}, beyond the medium's {:#x} bytes",
            self.memory.len()
        );
        assert!(
            self.memory.is_backed(at / FRAME_BYTES),
            "store at {at:#x} into discarded space that was not reserved again"
        );
    }

    // ---- stores ----

    /// Stores a word as the current thread does: after a scheduling point, into its buffer.
    pub(crate) fn store(&self, word: u64, value: u64) {
        self.point();
        if self.is_dead() {
            return;
        }
        self.check_store(word);
        let mut state = self.lock();
        state.thread().counts.stores += 1;
        self.issue(&mut state, Pending::Store { word, value });
    }

    /// Sets or takes a line's mark, by a store that follows the stores to the line.
    pub(crate) fn store_mark(&self, line: u64, marked: bool) {
        self.point();
        if self.is_dead() {
            return;
        }
        let (word, value) = (mark_of(line), u64::from(marked));
        let mut state = self.lock();
        self.issue(&mut state, Pending::Store { word, value });
    }

    /// Writes back what bytes touch, each line after a scheduling point.
    pub(crate) fn write_back(&self, at: u64, len: u64) {
        for (line, words) in words_touched(at, len) {
            self.point();
            let mut state = self.lock();
            state.thread().counts.write_backs += 1;
            if self.options.domain.needs_flush() && line * LINE_BYTES < self.memory.len() {
                self.issue(&mut state, Pending::WriteBack { line, words });
            }
        }
    }

    // ---- events ----

    /// Makes an event happen, unless the medium is dead or dies before it.
    #[inline]
    pub(crate) fn emit(&self, state: &mut State, event: Event) {
        if state.dead {
            return;
        }
        if state.events == state.crash_at {
            self.die(state);
            return;
        }
        if let Event::Store { thread, word, .. } = event
            && let Some((by, from)) = state.dropping
        {
            let at = word * WORD_BYTES;
            assert!(
                thread == by || word < from,
                "thread {thread} stores at {at:#x} while thread {by} drops copies, and the store may be lost"
            );
        }
        state.events += 1;
        for word in event.digest() {
            state.hash = (state.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        state.threads[usize::from(event.thread())].counts.events += 1;
        state.progress();
        if self.options.relocate.is_some() && self.options.domain.needs_flush() {
            state.marked.take_in(&event);
        }
        if let Some(persistence) = &mut state.persistence {
            persistence.apply(&event, &self.memory);
        }
        event.redo(&self.memory);
        if let Some(trace) = &mut state.trace {
            trace.push(event);
            self.footprint.set_events(trace.len());
        }
    }

    /// Discards the content of the lines in `lines`.
    pub(crate) fn zero_lines(&self, state: &mut State, lines: Range<u64>) {
        for line in lines {
            if self.memory.has_fresh(line) {
                let words = line * LINE_WORDS..(line + 1) * LINE_WORDS;
                words.for_each(|word| _ = self.visible(word));
            }
            let old = self.memory.line(line);
            if old != Line::default() {
                let thread = state.current as u16;
                self.emit(
                    state,
                    Event::Zero {
                        thread,
                        line,
                        old: Box::new(old),
                    },
                );
            }
        }
    }

    /// Gives blocks to the frames in `frames`, or takes them.
    pub(crate) fn set_backing(&self, state: &mut State, frames: Range<u64>, backed: bool) {
        for frame in frames {
            if self.memory.is_backed(frame) != backed {
                let thread = state.current as u16;
                self.emit(
                    state,
                    Event::Backing {
                        thread,
                        frame,
                        backed,
                    },
                );
            }
        }
    }

    pub(crate) fn set_length(&self, state: &mut State, new: u64) {
        let old = self.memory.len();
        if old != new {
            self.emit(
                state,
                Event::Length {
                    thread: state.current as u16,
                    old,
                    new,
                },
            );
        }
    }
}
