//! The contract: loads and stores as on any mapped file, write-backs and fences into the log.

use core::ops::Range;
use std::io;
use std::sync::{Arc, PoisonError};

use firn_format::log::{Record, RecordWriter};
use firn_log::Reach;
use firn_media::{Domain, Hardware, Level, MediumError, Memory, Probe, Runtime, Space, Ticket};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES, WORDS_PER_LINE};

use super::group::{Failed, Group};
use super::{LoggedFile, noted, recovery};
use crate::beside::UNPUBLISHED;
use crate::{Mapped, MappedPlace, MappedWords};

impl LoggedFile {
    /// A line's content now.
    #[inline]
    fn line(&self, number: u64) -> (u64, u8, [u64; WORDS_PER_LINE]) {
        let at = VirtAddr(number * LINE_BYTES);
        let word = |index: usize| self.mapped.load_u64(at + index as u64 * WORD_BYTES);
        (at.0, u8::MAX, core::array::from_fn(word))
    }

    /// Appends the lines that this thread has written back.
    #[inline(never)]
    fn append_noted(&self) {
        let Some(group) = self.group() else {
            return;
        };
        noted::take(self.number, |lines| {
            group.append_lines(lines, |number| self.line(number));
        });
    }

    /// Appends lines before their fence, which persistent memory may do, too: for a thread that cannot note them any more.
    #[cold]
    fn append_at_once(&self, lines: Range<u64>) {
        if let Some(group) = self.group() {
            let lines: Vec<u64> = lines.collect();
            group.append_lines(&lines, |number| self.line(number));
        }
    }

    /// Appends a record of the medium's space.
    fn append(&self, record: &Record) {
        if let Some(group) = self.group() {
            group.append(|into| RecordWriter::append(into, record));
        }
    }

    fn failed(&self, failed: &Failed) -> MediumError {
        MediumError::Failed {
            medium: self.mapped.display_name(),
            doing: failed.doing,
            source: Arc::clone(&failed.source),
        }
    }

    /// Shows zeros in a range, which keeps its blocks if it can be stored to.
    fn cover(&self, range: &Range<u64>) -> Result<(), MediumError> {
        let shown = self.mapped.window.map_zeros(range.clone());
        shown.map_err(|e| self.mapped.io("mapping zeros", e))?;
        let mut covered = self.covered.lock().unwrap_or_else(PoisonError::into_inner);
        covered.insert(range.clone());
        Ok(())
    }

    /// Has memory of zeros in the place of what was covered in a range: the file may hold older content there.
    fn uncover(&self, range: &Range<u64>) -> Result<(), MediumError> {
        let mut covered = self.covered.lock().unwrap_or_else(PoisonError::into_inner);
        let parts: Vec<_> = covered.overlapping(range).cloned().collect();
        for part in parts {
            let part = part.start.max(range.start)..part.end.min(range.end);
            let mapped = self.mapped.window.map_memory(part.clone());
            mapped.map_err(|e| self.mapped.io("mapping reserved space", e))?;
            covered.remove(part);
        }
        Ok(())
    }
}

impl Memory for LoggedFile {
    type Place<'m> = MappedPlace<'m>;

    #[inline(always)]
    fn domain(&self) -> Domain {
        Domain::Logged
    }

    #[inline(always)]
    fn place(&self, at: VirtAddr) -> MappedPlace<'_> {
        self.mapped.place(at)
    }

    #[inline(always)]
    fn places<'m>(&'m self) -> impl Fn(VirtAddr) -> MappedPlace<'m> + Copy {
        self.mapped.places()
    }

    #[inline(always)]
    fn address(&self, place: MappedPlace<'_>) -> VirtAddr {
        self.mapped.address(place)
    }

    #[inline(always)]
    fn load_u64(&self, at: VirtAddr) -> u64 {
        self.mapped.load_u64(at)
    }

    #[inline(always)]
    fn load_bytes(&self, at: VirtAddr, into: &mut [u8]) {
        self.mapped.load_bytes(at, into);
    }

    #[inline(always)]
    fn append_bytes(&self, at: VirtAddr, len: usize, into: &mut Vec<u8>) {
        self.mapped.append_bytes(at, len, into);
    }

    #[inline(always)]
    fn store_u64(&self, at: VirtAddr, value: u64) {
        self.mapped.store_u64(at, value);
    }

    #[inline(always)]
    fn store_bytes(&self, at: VirtAddr, from: &[u8]) {
        self.mapped.store_bytes(at, from);
    }

    #[inline(always)]
    fn store_part(&self, at: VirtAddr, from: &[u8]) {
        self.mapped.store_part(at, from);
    }

    #[inline(always)]
    fn store_line(&self, line: VirtAddr, mask: u8, words: &[u64; WORDS_PER_LINE]) {
        self.mapped.store_line(line, mask, words);
    }

    #[inline(always)]
    fn copy(&self, from: VirtAddr, to: VirtAddr, len: u64) {
        self.mapped.copy(from, to, len);
    }

    #[inline(always)]
    fn add_unshared_u64(&self, at: VirtAddr, by: u64) {
        self.mapped.add_unshared_u64(at, by);
    }

    #[inline(always)]
    fn compare_exchange_u64(&self, at: VirtAddr, current: u64, new: u64) -> Result<u64, u64> {
        self.mapped.compare_exchange_u64(at, current, new)
    }

    #[inline(always)]
    fn prefetch(&self, at: VirtAddr) {
        self.mapped.prefetch(at);
    }

    fn populate(&self, at: VirtAddr, len: u64) {
        self.mapped.populate(at, len);
    }

    #[inline]
    fn write_back(&self, at: VirtAddr, len: u64) {
        if len > 0 {
            let last = at.0 + len - 1;
            let lines = at.0 / LINE_BYTES..last / LINE_BYTES + 1;
            if !noted::note(self.number, lines.clone()) {
                self.append_at_once(lines);
            }
        }
    }

    #[inline]
    fn fence(&self) {
        self.append_noted();
    }

    /// The newest record's: everything that any thread has fenced.
    #[inline]
    fn commit(&self) -> Ticket {
        Ticket(self.group().map_or(0, |group| group.appended()))
    }

    #[inline]
    fn durable(&self) -> Ticket {
        Ticket(self.group().map_or(0, |group| group.durable()))
    }

    fn wait_durable(&self, ticket: Ticket) -> Result<(), MediumError> {
        self.wait(ticket, Reach::Disk)
    }

    #[inline]
    fn wait_for_room(&self) -> Result<(), MediumError> {
        match self.group() {
            Some(group) if group.is_crowded() => self.wait(self.commit(), Reach::System),
            _ => Ok(()),
        }
    }

    #[inline]
    fn level(&self) -> Level {
        self.options.level
    }

    fn wait_at(&self, ticket: Ticket, level: Level) -> Result<(), MediumError> {
        match level {
            Level::Written => self.wait(ticket, Reach::System),
            Level::Group(time) => {
                let due = |group: &Group| group.write_within(ticket.0, time);
                self.group()
                    .map_or(Ok(()), due)
                    .map_err(|failed| self.failed(&failed))
            }
            // A level that is unknown here is as durable as can be.
            _ => self.wait_durable(ticket),
        }
    }
}

impl LoggedFile {
    /// Waits until a record has come so far.
    fn wait(&self, ticket: Ticket, reach: Reach) -> Result<(), MediumError> {
        let waited = self
            .group()
            .map_or(Ok(()), |group| group.wait(ticket.0, reach));
        waited.map_err(|failed| self.failed(&failed))
    }
}

impl Space for LoggedFile {
    fn name(&self) -> String {
        self.mapped.name()
    }

    fn boot_id(&self) -> [u8; 16] {
        self.mapped.boot_id()
    }

    /// Makes the log of a new pool, which is known from here on.
    fn claim(&self, identity: [u8; 16]) -> Result<(), MediumError> {
        self.mapped.claim(identity)?;
        if self.running.get().is_some() {
            return Ok(());
        }
        let file = self.mapped.file.as_ref().expect("a logged file has a file");
        let begun = recovery::begin(
            file,
            identity,
            UNPUBLISHED,
            &self.mapped.randomness,
            &self.options,
        );
        let started = begun.and_then(|(log, log_file)| self.start(log, log_file));
        started.map_err(|refused| self.mapped.io("making the log", io::Error::other(refused)))
    }

    #[inline(always)]
    fn is_writable(&self) -> bool {
        self.mapped.is_writable()
    }

    #[inline(always)]
    fn len(&self) -> u64 {
        self.mapped.len()
    }

    fn capacity(&self) -> u64 {
        self.mapped.capacity()
    }

    /// Blocks are allocated at once, so that words never lack one on their way home.
    fn reserve(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        let range = at.0..at.0.saturating_add(len);
        let mut since = self.lock_since();
        self.mapped.reserve(at, len)?;
        self.uncover(&range)?;
        since.len = self.mapped.len();
        if !range.is_empty() {
            since.reserved.insert(range.clone());
        }
        self.append(&Record::Reserve(range));
        Ok(())
    }

    /// The blocks go when the log is home that far.
    fn discard(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        let mut since = self.lock_since();
        let range = at.0.min(self.len())..at.0.saturating_add(len).min(self.len());
        if range.is_empty() {
            return Ok(());
        }
        self.cover(&range)?;
        since.reserved.remove(range.clone());
        self.append(&Record::Discard(range));
        Ok(())
    }

    fn discard_bytes(&self) -> u64 {
        FRAME_BYTES
    }

    fn truncate(&self, len: u64) -> Result<(), MediumError> {
        let mut since = self.lock_since();
        let old = self.len();
        if len >= old {
            return Ok(());
        }
        self.mapped.set_len(len);
        self.cover(&(len..old))?;
        since.len = len;
        since.reserved.remove(len..u64::MAX);
        self.append(&Record::Truncate(len));
        Ok(())
    }

    /// Brings everything up to now home. When a pool is opened this makes its file say so before anything is
    /// acknowledged: without its log it is refused from then on.
    fn sync(&self) -> Result<(), MediumError> {
        self.fence();
        self.bring_all_home().map_err(|failed| self.failed(&failed))
    }

    /// Brings a new pool home and gives it its name.
    fn publish(&self) -> Result<(), MediumError> {
        let is_draft = |file: &Arc<crate::file::PoolFile>| file.is_draft();
        if !self.mapped.file.as_ref().is_some_and(is_draft) {
            return Ok(());
        }
        self.fence();
        self.bring_all_home()
            .map_err(|failed| self.failed(&failed))?;
        self.mapped.publish()?;
        let checkpointer = self.running.get().map(|running| &running.checkpointer);
        let published = checkpointer.map_or(Ok(()), |checkpointer| checkpointer.publish());
        published.map_err(|failed| self.failed(&failed))
    }

    fn backed_bytes(&self) -> Result<u64, MediumError> {
        self.mapped.backed_bytes()
    }
}

impl Runtime for LoggedFile {
    type Words = MappedWords;
    type Thread = <Mapped as Runtime>::Thread;

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.mapped.is_ours()
    }

    #[inline(always)]
    fn is_usable(&self) -> bool {
        self.is_ours() && !self.group().is_some_and(Group::has_failed)
    }

    fn failure(&self) -> Option<MediumError> {
        let failed = self.group()?.lock().failed.clone()?;
        Some(self.failed(&failed))
    }

    fn words(&self, count: usize) -> MappedWords {
        self.mapped.words(count)
    }

    fn pause(&self, attempt: u32) {
        self.mapped.pause(attempt);
    }

    fn wait_while(&self, words: &MappedWords, index: usize, seen: u64, until_ns: u64) {
        self.mapped.wait_while(words, index, seen, until_ns);
    }

    fn wake(&self, words: &MappedWords, index: usize) {
        self.mapped.wake(words, index);
    }

    fn now_ns(&self) -> u64 {
        self.mapped.now_ns()
    }

    fn cpu_ns(&self) -> u64 {
        self.mapped.cpu_ns()
    }

    fn random_u64(&self) -> u64 {
        self.mapped.random_u64()
    }

    fn spawn(
        &self,
        name: &str,
        job: Box<dyn FnOnce() + Send>,
    ) -> Result<Self::Thread, MediumError> {
        self.mapped.spawn(name, job)
    }

    fn join(&self, thread: Self::Thread) -> bool {
        self.mapped.join(thread)
    }
}

impl Probe for LoggedFile {}

impl Hardware for LoggedFile {}
