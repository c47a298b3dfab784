//! Group commit: who waits for the disk writes for all.
//!
//! A thread that waits for a ticket and finds no write in flight takes everything that is staged and writes it.
//! Whatever is appended meanwhile joins the next write.
//!
//! Concurrency: the lock around the [`Log`] is held for steps in memory alone, never during I/O.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use firn_format::log::BLOCK_BYTES;
use firn_format::statistics::LogFigure;
use firn_log::{Log, Next, Reach, append_lines};
use firn_media::WhenDurable;
use firn_units::LINE_BYTES;
use rustix::thread::futex::{self, Flags};

use super::callbacks::{self, Callbacks};
use super::copies::Copies;
use super::disk::is_full;
use super::figures::Figures;
use super::log_file::LogFile;
use super::noted::LineWords;
use super::pages::Pages;
use super::records::content;

/// The log of an open pool and its file.
#[derive(Debug)]
pub(super) struct Group {
    log: Mutex<State>,
    /// Counts how often more became durable, there was room, or something failed: what threads wait for. Not a
    /// [`Condvar`], after which they would all take the lock, one behind the other, only to see that they are done.
    changes: AtomicU32,
    /// Threads that wait for that. Changed and read with the lock held.
    sleepers: AtomicU32,
    /// Signalled when a checkpoint is due.
    checkpoint_due: Condvar,
    /// Signalled when something is due that nobody waits for.
    write_due: Condvar,
    /// Number of the newest record.
    appended: AtomicU64,
    /// Bytes of records that no write has taken.
    staged_bytes: AtomicUsize,
    /// Bytes of them beyond which transactions wait before they begin.
    crowded_bytes: usize,
    /// Number of pages that the process holds copies of.
    copies: AtomicUsize,
    /// Number beyond which transactions wait until copies were dropped.
    most_copies: AtomicUsize,
    /// Number of the newest record that the system was given.
    handed: AtomicU64,
    /// Number of the newest record that is durable.
    durable: AtomicU64,
    /// Whether [`State::failed`] is set.
    has_failed: AtomicBool,
    pub(super) file: LogFile,
    pub(super) figures: Figures,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) log: Log,
    pub(super) copies: Copies,
    /// Why nothing more becomes durable.
    pub(super) failed: Option<Failed>,
    /// Whether the medium is about to go.
    pub(super) closing: bool,
    /// Whether somebody waits for room.
    pub(super) starved: bool,
    /// When the newest record is to be durable at the latest, though nobody waits for it.
    due: Option<Instant>,
    callbacks: Callbacks,
}

/// A write or a sync failed.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) doing: &'static str,
    pub(super) source: Arc<io::Error>,
}

impl Group {
    pub(super) fn new(
        log: Log,
        file: LogFile,
        (crowded_bytes, most_copies): (usize, usize),
    ) -> Self {
        Self {
            log: Mutex::new(State {
                log,
                copies: Copies::default(),
                failed: None,
                closing: false,
                starved: false,
                due: None,
                callbacks: Callbacks::default(),
            }),
            changes: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            checkpoint_due: Condvar::new(),
            write_due: Condvar::new(),
            appended: AtomicU64::new(0),
            staged_bytes: AtomicUsize::new(0),
            crowded_bytes,
            copies: AtomicUsize::new(0),
            most_copies: AtomicUsize::new(most_copies),
            handed: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            file,
            figures: Figures::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends words of lines, which are ascending, as records. They are read inside the step that gives their record a
    /// place (L1).
    ///
    /// Lines behind the medium's end are left out: it was cut after they were written back. Their record would have its
    /// place behind that of the cut, and would lengthen the file again.
    pub(super) fn append_lines(&self, lines: &[LineWords], on: &impl Pages) {
        self.append_lines_to(&mut self.lock(), lines, on);
    }

    /// Runs `store`, and appends the words that `take` passes on as a record, before any other gets its place.
    pub(super) fn record<P: Pages>(
        &self,
        on: &P,
        store: impl FnOnce(),
        take: impl FnOnce(&mut dyn FnMut(&[LineWords])),
    ) {
        let mut state = self.lock();
        store();
        take(&mut |lines| self.append_lines_to(&mut state, lines, on));
    }

    fn append_lines_to(&self, state: &mut State, lines: &[LineWords], on: &impl Pages) {
        let end = lines.partition_point(|line| line.line() * LINE_BYTES < on.bytes());
        let lines = &lines[..end];
        let newest = append_lines(&mut state.log, lines.iter().map(|&line| content(on, line)));
        state
            .copies
            .note(lines.iter().map(|line| line.line()), newest);
        self.tell_copies(state);
        self.tell_appended(state, newest);
    }

    /// Says how many copies there are.
    pub(super) fn tell_copies(&self, state: &State) {
        self.copies.store(state.copies.count(), Ordering::Relaxed);
    }

    /// Whether there are as many copies as there may be.
    #[inline]
    pub(super) fn is_full_of_copies(&self) -> bool {
        self.copies.load(Ordering::Relaxed) > self.most_copies.load(Ordering::Relaxed)
    }

    /// Sets the number of copies beyond which transactions wait.
    pub(super) fn allow_copies(&self, count: usize) {
        self.most_copies.store(count, Ordering::Relaxed);
    }

    /// Appends a record.
    pub(super) fn append(&self, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let mut state = self.lock();
        let newest = state.log.append(write);
        self.tell_appended(&state, newest);
        newest
    }

    #[inline]
    fn tell_appended(&self, state: &State, newest: u64) {
        self.appended.store(newest, Ordering::Release);
        let staged = state.log.staged_bytes();
        self.staged_bytes.store(staged, Ordering::Relaxed);
    }

    /// Whether transactions are to wait before they begin: the program is faster than the disk.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        self.staged_bytes.load(Ordering::Relaxed) > self.crowded_bytes
    }

    pub(super) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Acquire)
    }

    pub(super) fn handed(&self) -> u64 {
        self.handed.load(Ordering::Acquire)
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Whether a write or a sync has failed.
    #[inline(always)]
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Waits until a record has come so far, and all before it.
    ///
    /// Errors: a write failed, now or before.
    pub(super) fn wait(&self, record: u64, reach: Reach) -> Result<(), Failed> {
        let come = match reach {
            Reach::Disk => &self.durable,
            Reach::System => &self.handed,
        };
        while come.load(Ordering::Acquire) < record {
            let mut state = self.lock();
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            match state.log.next(record, reach) {
                Next::Done => break,
                next => self.step(state, next),
            }
        }
        Ok(())
    }

    /// Does what the log asks for, or waits for who does it.
    fn step(&self, mut state: MutexGuard<'_, State>, next: Next) {
        match next {
            Next::Done => {}
            Next::Wait => self.wait_for_change(state),
            Next::Full => {
                state.starved = true;
                self.checkpoint_due.notify_all();
                self.wait_for_change(state);
            }
            Next::Sync(sync) => {
                drop(state);
                let synced = self.file.sync();
                let mut state = self.lock();
                match synced {
                    Ok(()) => state.log.synced(sync),
                    Err(source) => self.fail(&mut state, "syncing the log", source),
                }
                self.tell(&state);
            }
            Next::Grow(growth) => {
                drop(state);
                let grown = self.file.grow(&growth);
                let mut state = self.lock();
                match grown {
                    Ok(()) => state.log.grown(&growth),
                    // The log stays as long as it is: checkpoints make room in it.
                    Err(e) if is_full(&e) => state.log.stay(),
                    // A failed sync may have lost what was given to the system before.
                    Err(source) => self.fail(&mut state, "growing the log", source),
                }
                self.announce();
            }
            Next::Write(write) => {
                drop(state);
                let written = self.file.write(&write);
                let mut state = self.lock();
                let bytes = write.offsets.len() as u64 * BLOCK_BYTES;
                match written {
                    Ok(()) => {
                        state.log.written(write);
                        self.figures.add(LogFigure::Writes, 1);
                        self.figures.add(LogFigure::WrittenBytes, bytes);
                    }
                    Err(source) => self.fail(&mut state, "writing to the log", source),
                }
                self.tell(&state);
            }
        }
    }

    /// Says how far the log has come.
    fn tell(&self, state: &State) {
        self.staged_bytes
            .store(state.log.staged_bytes(), Ordering::Relaxed);
        self.handed.store(state.log.handed(), Ordering::Release);
        self.durable.store(state.log.durable(), Ordering::Release);
        self.tell_figures(state);
        if state.log.is_half_full() {
            self.checkpoint_due.notify_all();
        }
        if !state.callbacks.is_empty() {
            self.write_due.notify_all();
        }
        self.announce();
    }

    /// Says how large the log is.
    pub(super) fn tell_figures(&self, state: &State) {
        self.figures.set(LogFigure::Bytes, state.log.bytes());
        self.figures.set(LogFigure::Lag, state.log.lag_bytes());
        self.figures.set(LogFigure::Records, state.log.handed());
        self.figures.changed();
    }

    /// Waits for the next change. Changes are made under the lock, so none is missed between the look and the wait.
    fn wait_for_change(&self, state: MutexGuard<'_, State>) {
        let seen = self.changes.load(Ordering::Relaxed);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        drop(state);
        // The caller looks again, whatever ended the wait.
        let _ = futex::wait(&self.changes, Flags::PRIVATE, seen, None);
    }

    /// Wakes who waits for a change. With the lock held.
    fn announce(&self) {
        const ALL: u32 = i32::MAX as u32;
        self.changes.fetch_add(1, Ordering::Release);
        // Who goes to sleep later sees the change.
        if self.sleepers.swap(0, Ordering::Relaxed) > 0 {
            // It fails only for unmapped memory.
            let _ = futex::wake(&self.changes, Flags::PRIVATE, ALL);
        }
    }

    /// Sees to it that everything up to now is durable so much later.
    ///
    /// Errors: a write failed before.
    pub(super) fn write_within(&self, record: u64, time: Duration) -> Result<(), Failed> {
        if self.durable() >= record {
            return Ok(());
        }
        let mut state = self.lock();
        if let Some(failed) = &state.failed {
            return Err(failed.clone());
        }
        // Until the thread has written, what comes later goes along.
        let due = Instant::now() + time;
        if state.due.is_none_or(|other| due < other) {
            state.due = Some(due);
            self.write_due.notify_all();
        }
        Ok(())
    }

    /// Notes who is to be called when a record is durable, or never will be, and sees to it that it becomes so. The log's
    /// thread calls even if that is known: an earlier record's call may still be to come.
    pub(super) fn call_when_durable(&self, record: u64, call: WhenDurable) {
        let mut state = self.lock();
        state.callbacks.add(record, call);
        if state.log.durable() < record && state.failed.is_none() {
            state.due = Some(Instant::now());
        }
        self.write_due.notify_all();
    }

    /// Calls who waits for what is durable by now; everybody, where nothing becomes durable any more.
    fn call_back<'g>(
        &'g self,
        mut state: MutexGuard<'g, State>,
        name: &str,
    ) -> MutexGuard<'g, State> {
        loop {
            let durable = state.log.durable();
            let failed = state.failed.clone();
            let most = failed.as_ref().map_or(durable, |_| u64::MAX);
            let due = state.callbacks.take(most);
            if due.is_empty() {
                return state;
            }
            drop(state);
            for (record, call) in due {
                let failed = failed.as_ref().filter(|_| record > durable);
                let result = failed.map_or(Ok(()), |failed| Err(failed.named(name)));
                callbacks::call(call, result);
            }
            // Others may have come meanwhile.
            state = self.lock();
        }
    }

    /// Writes what is due and nobody waits for, and calls who wants to know, until the medium `name` goes.
    pub(super) fn write_in_time(&self, name: &str) {
        let mut state = self.lock();
        loop {
            state = self.call_back(state, name);
            if state.closing {
                break;
            }
            let now = Instant::now();
            // After a failure nothing is written any more, but calls may come.
            let due = state.due.filter(|_| state.failed.is_none());
            state = match due {
                None => {
                    let waited = self.write_due.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
                Some(due) if due > now => {
                    let waited = self.write_due.wait_timeout(state, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    state.due = None;
                    let newest = state.log.appended();
                    drop(state);
                    // A failure is in the state.
                    let _ = self.wait(newest, Reach::Disk);
                    self.lock()
                }
            };
        }
        // All is durable that ever will be.
        drop(self.call_back(state, name));
    }

    /// Waits until a checkpoint is due, or the medium is about to go.
    pub(super) fn wait_for_checkpoint<'g>(
        &'g self,
        state: MutexGuard<'g, State>,
    ) -> MutexGuard<'g, State> {
        self.checkpoint_due
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that there may be room again.
    pub(super) fn room(&self, state: &mut State) {
        state.starved = false;
        self.announce();
    }

    /// Says that the medium is about to go.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.checkpoint_due.notify_all();
        self.write_due.notify_all();
    }

    /// From here on nothing becomes durable any more.
    pub(super) fn fail(&self, state: &mut State, doing: &'static str, source: io::Error) {
        let source = Arc::new(source);
        state.failed.get_or_insert(Failed { doing, source });
        self.has_failed.store(true, Ordering::Release);
        self.announce();
        self.checkpoint_due.notify_all();
        self.write_due.notify_all();
    }
}
