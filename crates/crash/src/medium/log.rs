//! The log of a medium in [`firn_media::Domain::Logged`]: how records get their place.
//!
//! A fence appends the words that its thread has written back, as one record. They are read one by one, as a processor
//! reads them, while other threads go on: a record may hold a later store to a line and lack an earlier one to another
//! of its words. Between the first word and the record's place no other record gets one, so a later record never holds
//! an older word.

use firn_media::{Probe, Step, Ticket};
use firn_units::LINE_BYTES;

use crate::medium::crash::Crash;
use crate::medium::state::State;
use crate::memory::cells::{LINE_WORDS, index_of, mark_of};
use crate::memory::event::Event;
use crate::memory::log::{Record, Words};

/// A step of this medium that a test can leave out: rule L1 of the log.
pub static RECORD_READS_IN_PLACE: Step = Step {
    name: "record-reads-in-place",
    rule: "L1",
    what: "lines are read for a record before the record has its place",
};

/// A step of this medium that a test can leave out: a record that makes its stores itself has its place before them.
pub static RECORD_STORES_IN_PLACE: Step = Step {
    name: "record-stores-in-place",
    rule: "L1",
    what: "no other record gets a place between the stores of a record and its own",
};

impl Crash {
    /// Runs `store`, and appends the lines that the current thread has written back as one record. No other record gets a
    /// place meanwhile.
    pub(crate) fn append_stored(&self, store: impl FnOnce()) {
        if !self.leaves_out(&RECORD_STORES_IN_PLACE) {
            self.take_place();
        }
        store();
        self.append_noted();
    }

    /// Appends the lines that the current thread has written back since its last fence.
    pub(crate) fn append_noted(&self) {
        let shared = &self.shared;
        let mut state = shared.lock();
        shared.drain_current(&mut state);
        state.thread().counts.fences += 1;
        let mut noted = core::mem::take(&mut state.thread().noted);
        drop(state);
        if noted.is_empty() || shared.is_dead() {
            self.leave_place();
            return;
        }
        noted.sort_unstable();
        noted.dedup_by(|next, line| {
            let same = next.0 == line.0;
            line.1 |= if same { next.1 } else { 0 };
            same
        });
        if !self.leaves_out(&RECORD_READS_IN_PLACE) {
            self.take_place();
        }
        // The medium may have been cut since they were written back: their record follows that of the cut.
        noted.retain(|(line, _)| line * LINE_BYTES < shared.memory.len());
        let read = |(line, words)| (line, self.read_for_record(line, words));
        let lines: Box<[(u64, Words)]> = noted.into_iter().map(read).collect();
        self.append(&mut shared.lock(), Record::Lines(lines));
        self.leave_place();
    }

    /// Keeps other records from getting a place, once no other thread does.
    fn take_place(&self) {
        self.wait_for_place();
        let mut state = self.shared.lock();
        state.appending = Some(state.current);
    }

    fn leave_place(&self) {
        let mut state = self.shared.lock();
        let current = state.current;
        state.appending.take_if(|by| *by == current);
    }

    /// Words of a line as the caches hold them, read one by one. The line's mark belongs to each of them.
    fn read_for_record(&self, line: u64, words: u8) -> Words {
        let mut read = Words::default();
        let asked = (0..LINE_WORDS).filter(|word| words >> word & 1 != 0);
        let asked = asked.map(|word| line * LINE_WORDS + word);
        for word in asked.chain([mark_of(line)]) {
            // Between two words other threads may store to the line.
            self.shared.point();
            read.set(index_of(word), self.shared.visible(word));
        }
        read
    }

    /// Waits while another thread reads lines for its record.
    pub(crate) fn wait_for_place(&self) {
        let mut attempt = 0;
        let others = || {
            let state = self.shared.lock();
            state.appending.is_some_and(|by| by != state.current)
        };
        while others() && !self.shared.is_dead() {
            self.pause_thread(attempt);
            attempt += 1;
        }
    }

    /// Gives a record its place behind all others, if the medium has a log.
    pub(crate) fn append(&self, state: &mut State, record: Record) {
        if !self.shared.has_log() || state.dead {
            return;
        }
        let (thread, record) = (state.current as u16, Box::new(record));
        self.shared.emit(state, Event::Append { thread, record });
        state.records += u64::from(!state.dead);
    }

    /// Waits until the log is durable up to a record.
    pub(crate) fn make_durable(&self, ticket: Ticket) {
        let mut state = self.shared.lock();
        let (thread, Ticket(ticket)) = (state.current as u16, ticket);
        if state.dead || ticket <= state.ticket {
            return;
        }
        self.shared
            .emit(&mut state, Event::Durable { thread, ticket });
        if !state.dead {
            state.ticket = ticket;
        }
    }
}
