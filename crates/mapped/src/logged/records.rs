//! Memory: what a thread writes back becomes a record at its fence, and tickets say how far records have come.

use std::sync::Arc;

use firn_format::log::{Record, RecordWriter};
use firn_format::statistics::ALL_BLOCKS;
use firn_log::{LONGEST_RECORD, Reach};
use firn_media::{Level, MediumError, Ticket, WhenDurable};
use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES, WORDS_PER_LINE};

use super::group::{Failed, Group};
use super::noted::LineWords;
use super::pages::Pages;
use super::{Logged, noted};

/// Lines of a transaction that is a record, and lines that its thread may have written back before: together one record.
const MOST_LINES: usize = 1792;
const _: () = assert!(2 * MOST_LINES * (LINE_BYTES + WORD_BYTES) as usize <= LONGEST_RECORD);

impl Logged {
    /// Notes what a thread writes back: one byte at least.
    #[inline]
    pub(crate) fn write_back(&self, on: &impl Pages, at: VirtAddr, len: u64) {
        if self.shares_statistics && ALL_BLOCKS.contains(&at.0) {
            return;
        }
        if !noted::note(self.number, at.0, len) {
            self.append_at_once(on, at.0, len);
        }
    }

    /// Appends the words that this thread has written back.
    #[inline]
    pub(crate) fn fence(&self, on: &impl Pages) {
        let Some(group) = self.group() else {
            return;
        };
        noted::take(self.number, |lines| group.append_lines(lines, on));
    }

    /// Lines that a record of [`Logged::record`] takes; none if this thread cannot note them any more, or there is no log
    /// yet.
    #[inline]
    pub(crate) fn most_recorded_lines(&self) -> usize {
        let notes = self.group().is_some() && noted::count(self.number).is_some();
        if notes { MOST_LINES } else { 0 }
    }

    /// Appends the words that `store` stores and writes back as one record, with those that this thread wrote back before.
    pub(crate) fn record(&self, on: &impl Pages, store: impl FnOnce()) {
        if noted::count(self.number).is_some_and(|count| count > MOST_LINES) {
            self.fence(on);
        }
        let group = self.group().expect("a log, as there are records");
        group.record(on, store, |append| {
            noted::take(self.number, append);
        });
    }

    /// Appends words before their fence, which persistent memory may do, too: for a thread that cannot note them any more.
    #[cold]
    fn append_at_once(&self, on: &impl Pages, at: u64, len: u64) {
        if let Some(group) = self.group() {
            group.append_lines(&noted::lines(at, len).collect::<Vec<_>>(), on);
        }
    }

    /// Appends a record of the medium's space.
    pub(super) fn append(&self, record: &Record) {
        if let Some(group) = self.group() {
            group.append(|into| RecordWriter::append(into, record));
        }
    }

    /// The newest record's: everything that any thread has fenced.
    #[inline]
    pub(crate) fn commit(&self) -> Ticket {
        Ticket(self.group().map_or(0, Group::appended))
    }

    #[inline]
    pub(crate) fn durable(&self) -> Ticket {
        Ticket(self.group().map_or(0, Group::durable))
    }

    /// Waits until a record has come so far.
    pub(crate) fn wait(
        &self,
        on: &impl Pages,
        ticket: Ticket,
        reach: Reach,
    ) -> Result<(), MediumError> {
        let waited = self
            .group()
            .map_or(Ok(()), |group| group.wait(ticket.0, reach));
        waited.map_err(|failed| failed.of(on))
    }

    /// Calls when a record is durable, or will never be.
    pub(crate) fn when_durable(&self, ticket: Ticket, call: WhenDurable) {
        match self.group() {
            Some(group) => group.call_when_durable(ticket.0, call),
            // Nothing was committed before there was a log.
            None => call(Ok(())),
        }
    }

    pub(crate) fn wait_at(
        &self,
        on: &impl Pages,
        ticket: Ticket,
        level: Level,
    ) -> Result<(), MediumError> {
        let come = match level {
            Level::Written => self.wait(on, ticket, Reach::System),
            Level::Group(time) => {
                let due = |group: &Group| group.write_within(ticket.0, time);
                let due = self.group().map_or(Ok(()), due);
                due.map_err(|failed| failed.of(on))
            }
            // A level that is unknown here is as durable as can be.
            _ => self.wait(on, ticket, Reach::Disk),
        };
        self.show_figures(on);
        come
    }

    #[inline]
    pub(crate) fn wait_for_room(&self, on: &impl Pages) -> Result<(), MediumError> {
        match self.group() {
            Some(group) if group.is_crowded() => self.wait(on, self.commit(), Reach::System),
            _ => Ok(()),
        }
    }

    /// Whether a write or a sync has failed.
    #[inline(always)]
    pub(crate) fn has_failed(&self) -> bool {
        self.group().is_some_and(Group::has_failed)
    }

    pub(crate) fn failure(&self, on: &impl Pages) -> Option<MediumError> {
        let failed = self.group()?.lock().failed.clone()?;
        Some(failed.of(on))
    }
}

impl Failed {
    pub(super) fn of(&self, on: &impl Pages) -> MediumError {
        self.named(&on.name())
    }

    pub(super) fn named(&self, medium: &str) -> MediumError {
        MediumError::Failed {
            medium: medium.to_owned(),
            doing: self.doing,
            source: Arc::clone(&self.source),
        }
    }
}

/// Words of a line as they were at one moment; zero for the others.
///
/// Other threads may store to the line meanwhile, and on persistent memory their stores become durable in their order. So
/// the words are read until two readings agree. Loads do not pass loads on x86-64, so between the two every word had the
/// value that was read.
#[inline]
pub(super) fn content(on: &impl Pages, line: LineWords) -> (u64, u8, [u64; WORDS_PER_LINE]) {
    let (at, asked) = (line.line() * LINE_BYTES, line.words());
    let read = || {
        core::array::from_fn(|word| match asked >> word & 1 {
            0 => 0,
            _ => on.word_at(at + word as u64 * WORD_BYTES),
        })
    };
    let mut words = read();
    loop {
        let again = read();
        if again == words {
            return (at, asked, words);
        }
        words = again;
    }
}
