//! Group commit: who waits for the disk writes for all.
//!
//! A thread that waits for a ticket and finds no write in flight takes everything that is staged and writes it.
//! Whatever is appended meanwhile joins the next write.
//!
//! Concurrency: the lock around the [`Log`] is held for steps in memory alone, never during I/O.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use firn_log::{Log, Next, append_lines};
use firn_units::WORDS_PER_LINE;

use super::log_file::LogFile;

/// The log of an open pool and its file.
#[derive(Debug)]
pub(super) struct Group {
    log: Mutex<State>,
    /// Signalled when more is durable, when there is room, and when something failed.
    changed: Condvar,
    /// Signalled when a round is due.
    round_due: Condvar,
    /// Number of the newest record.
    appended: AtomicU64,
    /// Number of the newest record that is durable.
    durable: AtomicU64,
    /// Whether [`State::failed`] is set.
    has_failed: AtomicBool,
    pub(super) file: LogFile,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) log: Log,
    /// Why nothing more becomes durable.
    pub(super) failed: Option<Failed>,
    /// Whether the medium is about to go.
    pub(super) closing: bool,
    /// Whether somebody waits for room.
    pub(super) starved: bool,
}

/// A write or a sync failed.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) doing: &'static str,
    pub(super) source: Arc<io::Error>,
}

impl Group {
    pub(super) fn new(log: Log, file: LogFile) -> Self {
        Self {
            log: Mutex::new(State {
                log,
                failed: None,
                closing: false,
                starved: false,
            }),
            changed: Condvar::new(),
            round_due: Condvar::new(),
            appended: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            file,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends lines as records. `read` reads a line inside the step that gives its record a place (L1).
    pub(super) fn append_lines(
        &self,
        lines: &[u64],
        read: impl Fn(u64) -> (u64, u8, [u64; WORDS_PER_LINE]),
    ) {
        let mut state = self.lock();
        let newest = append_lines(&mut state.log, lines.iter().map(|&line| read(line)));
        self.appended.store(newest, Ordering::Release);
    }

    /// Appends a record.
    pub(super) fn append(&self, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let mut state = self.lock();
        let newest = state.log.append(write);
        self.appended.store(newest, Ordering::Release);
        newest
    }

    pub(super) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Acquire)
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Whether a write or a sync has failed.
    #[inline(always)]
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Waits until a record is durable, and all before it.
    ///
    /// Errors: a write failed, now or before.
    pub(super) fn wait(&self, record: u64) -> Result<(), Failed> {
        if self.durable() >= record {
            return Ok(());
        }
        let mut state = self.lock();
        loop {
            if state.log.durable() >= record {
                return Ok(());
            }
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            state = self.step(state);
        }
    }

    /// Does what the log asks for, or waits for who does it.
    fn step<'g>(&'g self, mut state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        match state.log.next_write() {
            Next::Nothing => self.wait_for_change(state),
            Next::Full => {
                state.starved = true;
                self.round_due.notify_all();
                self.wait_for_change(state)
            }
            Next::Grow(growth) => {
                drop(state);
                let grown = self.file.grow(&growth);
                let mut state = self.lock();
                match grown {
                    Ok(()) => state.log.grown(&growth),
                    // The log stays as long as it is: rounds make room in it.
                    Err(_) => state.log.stay(),
                }
                self.changed.notify_all();
                state
            }
            Next::Write(write) => {
                drop(state);
                let written = self.file.write(&write);
                let mut state = self.lock();
                match written {
                    Ok(()) => {
                        state.log.written(write);
                        self.durable.store(state.log.durable(), Ordering::Release);
                        if state.log.is_half_full() {
                            self.round_due.notify_all();
                        }
                    }
                    Err(source) => self.fail(&mut state, "writing to the log", source),
                }
                self.changed.notify_all();
                state
            }
        }
    }

    fn wait_for_change<'g>(&'g self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a round is due, or the medium is about to go.
    pub(super) fn wait_for_round<'g>(
        &'g self,
        state: MutexGuard<'g, State>,
    ) -> MutexGuard<'g, State> {
        self.round_due
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that there may be room again.
    pub(super) fn room(&self, state: &mut State) {
        state.starved = false;
        self.changed.notify_all();
    }

    /// Says that the medium is about to go.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.round_due.notify_all();
    }

    /// From here on nothing becomes durable any more.
    pub(super) fn fail(&self, state: &mut State, doing: &'static str, source: io::Error) {
        let source = Arc::new(source);
        state.failed.get_or_insert(Failed { doing, source });
        self.has_failed.store(true, Ordering::Release);
        self.changed.notify_all();
        self.round_due.notify_all();
    }
}
