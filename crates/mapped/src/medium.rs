//! The contract on real memory: its memory and its space.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use firn_log::Reach;
use firn_media::{Domain, Level, MediumError, Memory, Space, Ticket, WhenDurable};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES, WORDS_PER_LINE, round_up};

use crate::copy::{copy_in, copy_out, copy_words, store_part};
use crate::flush::{Flush, write_back_lines};
use crate::identity::Claim;
use crate::logged::Logged;
use crate::{Mapped, MappedPlace};

impl Mapped {
    /// The word at `at`, masked into the window.
    #[inline(always)]
    fn word(&self, at: u64) -> &AtomicU64 {
        let at = at & self.mask & !(WORD_BYTES - 1);
        // SAFETY: the mask keeps the word in the window and aligned; the window stays readable while `self` lives. Code
        // that stores through it has checked `store_limit` first, so the word is in a writable mapping; all accesses
        // are atomic.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at as usize).cast()) }
    }

    /// Panics unless `at` is a multiple of a word and the `len` bytes from it may be stored to.
    #[inline(always)]
    fn check_store(&self, at: VirtAddr, len: u64) {
        let limit = self.store_limit.load(Ordering::Relaxed);
        let fits = at.0 <= limit && len <= limit - at.0;
        if !fits || !at.0.is_multiple_of(WORD_BYTES) {
            self.refuse_store(at, len);
        }
    }

    /// The log's part of this medium, which [`Flush::Log`] comes with.
    fn log(&self) -> &Logged {
        self.logged.as_ref().expect("a medium that logs has a log")
    }

    #[inline(never)]
    fn fence_by_log(&self) {
        self.log().fence(self);
    }

    #[inline(never)]
    fn newest_record(&self) -> Ticket {
        self.log().commit()
    }

    /// The part of a write-back that is not worth inlining.
    #[inline(never)]
    fn write_back_lines(&self, at: VirtAddr, len: u64) {
        let instruction = match self.flush {
            Flush::Lines(instruction) if len > 0 => instruction,
            Flush::Log if len > 0 => return self.log().write_back(self, at, len),
            _ => return,
        };
        let held = self.len();
        assert!(
            at.0 <= held && len <= held - at.0,
            "a write-back of {len} bytes at {at}, beyond {held}"
        );
        // SAFETY: the range was just checked to lie in the window. The window is aligned to a huge page, so both its
        // ends are ends of lines.
        unsafe { write_back_lines(instruction, self.base.as_ptr().add(at.0 as usize), len) }
    }

    /// Appends a range that leaves the window.
    #[cold]
    #[inline(never)]
    fn append_beyond(&self, at: VirtAddr, len: usize, into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + len, 0);
        self.load_bytes(at, &mut into[start..]);
    }

    #[cold]
    #[inline(never)]
    fn refuse_store(&self, at: VirtAddr, len: u64) -> ! {
        let name = self.display_name();
        assert!(
            self.writable,
            "{name}: a store to a pool that is open for reading"
        );
        panic!(
            "{name}: a store of {len} bytes at {at}, which is no word of the {} bytes reserved",
            self.len()
        );
    }
}

impl Memory for Mapped {
    type Place<'m> = MappedPlace<'m>;

    #[inline(always)]
    fn domain(&self) -> Domain {
        self.domain
    }

    #[inline(always)]
    fn place(&self, at: VirtAddr) -> MappedPlace<'_> {
        self.places()(at)
    }

    #[inline(always)]
    fn places<'m>(&'m self) -> impl Fn(VirtAddr) -> MappedPlace<'m> + Copy {
        let (base, mask) = (self.base, self.place_mask);
        // SAFETY: the mask keeps the pointer in the window, which starts at a multiple of a place's alignment; the
        // place borrows `self`.
        move |at| unsafe { MappedPlace::new(base.add((at.0 & mask) as usize)) }
    }

    #[inline(always)]
    fn address(&self, place: MappedPlace<'_>) -> VirtAddr {
        VirtAddr(place.at.addr().get().wrapping_sub(self.base.addr().get()) as u64)
    }

    #[inline(always)]
    fn load_u64(&self, at: VirtAddr) -> u64 {
        if at.0 > self.mask {
            return 0;
        }
        self.word(at.0).load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store_u64(&self, at: VirtAddr, value: u64) {
        self.check_store(at, WORD_BYTES);
        self.word(at.0).store(value, Ordering::Release);
    }

    #[inline(always)]
    fn compare_exchange_u64(&self, at: VirtAddr, current: u64, new: u64) -> Result<u64, u64> {
        self.check_store(at, WORD_BYTES);
        self.word(at.0)
            .compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    #[inline]
    fn prefetch(&self, at: VirtAddr) {
        let line = self.base.as_ptr().wrapping_add(at.0 as usize);
        // SAFETY: the instruction is a hint: it reads nothing that the program can observe, and ignores an address
        // outside the window.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
    }

    fn populate(&self, at: VirtAddr, len: u64) {
        let end = at.0.saturating_add(len).min(self.len());
        let start = at.0.min(end) & !(FRAME_BYTES - 1);
        // If this fails, the first store to a page faults it in.
        let _ = self
            .window
            .populate_for_stores(start..round_up(end, FRAME_BYTES));
    }

    fn load_bytes(&self, at: VirtAddr, into: &mut [u8]) {
        let at = at.0.min(self.capacity());
        let held = (into.len() as u64).min(self.capacity() - at) as usize;
        let (from_window, beyond) = into.split_at_mut(held);
        let source = self.base.as_ptr().wrapping_add(at as usize);
        // SAFETY: the source lies in the window, which is readable and changed only by atomics; no slice reaches into a
        // window.
        unsafe { copy_out(source, from_window.as_mut_ptr(), from_window.len()) };
        beyond.fill(0);
    }

    /// Zeroes nothing first. Inlined, so that a length known to the compiler becomes a few moves: the processor can
    /// then have several short reads under way at once.
    #[inline(always)]
    fn append_bytes(&self, at: VirtAddr, len: usize, into: &mut Vec<u8>) {
        let start = into.len();
        if at.0 > self.mask || len as u64 > self.capacity() - at.0 {
            return self.append_beyond(at, len, into);
        }
        if len > into.capacity() - start {
            make_room(into, len);
        }
        let source = self.base.as_ptr().wrapping_add(at.0 as usize);
        // SAFETY: the source was just checked to lie in the window, which is readable and changed only by atomics. The
        // vector has room for `len` more bytes, outside the window, and they are written before `set_len` counts them.
        unsafe {
            copy_out(source, into.as_mut_ptr().add(start), len);
            into.set_len(start + len);
        }
    }

    #[inline]
    fn store_bytes(&self, at: VirtAddr, from: &[u8]) {
        self.check_store(at, (from.len() as u64).next_multiple_of(WORD_BYTES));
        // SAFETY: all words of the destination were just checked to be reserved, and `at` to be aligned to a word.
        unsafe { copy_in(from, self.base.as_ptr().wrapping_add(at.0 as usize)) };
    }

    #[inline]
    fn store_part(&self, at: VirtAddr, from: &[u8]) {
        let within = at.0 % WORD_BYTES;
        self.check_store(VirtAddr(at.0 - within), WORD_BYTES);
        assert!(
            matches!(from.len(), 1 | 2 | 4) && at.0.is_multiple_of(from.len() as u64),
            "{} bytes at {at} are no part of a word",
            from.len()
        );
        // SAFETY: the word that holds the destination was just checked to be reserved; a part lies at a multiple of its
        // length, so in one word.
        unsafe { store_part(from, self.base.as_ptr().wrapping_add(at.0 as usize)) };
    }

    #[inline]
    fn copy(&self, from: VirtAddr, to: VirtAddr, len: u64) {
        self.check_store(to, len);
        let held = self.capacity();
        assert!(
            from.0 <= held && len <= held - from.0 && (from.0 | len).is_multiple_of(WORD_BYTES),
            "a copy of {len} bytes from {from}, which are no words of {held} bytes"
        );
        let base = self.base.as_ptr();
        let (from, to) = [from, to].map(|at| base.wrapping_add(at.0 as usize)).into();
        // SAFETY: both ranges were just checked to be whole words in the window, and the destination to be reserved;
        // both are changed only by atomics.
        unsafe { copy_words(from, to, (len / WORD_BYTES) as usize) };
    }

    #[inline(always)]
    fn store_line(&self, line: VirtAddr, mask: u8, words: &[u64; WORDS_PER_LINE]) {
        self.check_store(line, LINE_BYTES);
        let first: *const AtomicU64 = self.word(line.0);
        let store = |number: usize| {
            // SAFETY: all words of the line were just checked to be reserved, and `line` to be aligned to a word.
            let word = unsafe { &*first.add(number) };
            word.store(words[number], Ordering::Release);
        };
        if mask == u8::MAX {
            (0..WORDS_PER_LINE).for_each(store);
            return;
        }
        let mut rest = mask;
        while rest != 0 {
            store(rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }

    #[inline(always)]
    fn add_unshared_u64(&self, at: VirtAddr, by: u64) {
        self.check_store(at, WORD_BYTES);
        let word = self.word(at.0);
        word.store(
            word.load(Ordering::Relaxed).wrapping_add(by),
            Ordering::Release,
        );
    }

    #[inline(always)]
    fn write_back(&self, at: VirtAddr, len: u64) {
        match self.flush {
            Flush::Nothing | Flush::FenceOnly => {}
            Flush::Lines(_) | Flush::Log => self.write_back_lines(at, len),
        }
    }

    #[inline(always)]
    fn fence(&self) {
        match self.flush {
            Flush::Log => self.fence_by_log(),
            other => other.fence(),
        }
    }

    #[inline(always)]
    fn most_recorded_lines(&self) -> usize {
        match self.flush {
            Flush::Log => self.log().most_recorded_lines(),
            _ => 0,
        }
    }

    #[inline]
    fn record(&self, store: impl FnOnce()) {
        self.log().record(self, store);
    }

    /// With a log, the newest record's. Without one, always the same ticket: every commit is durable, in the sense of the
    /// domain, when this returns. No commit has to wait for another, and numbering them would make all threads share a
    /// line.
    #[inline(always)]
    fn commit(&self) -> Ticket {
        match self.flush {
            Flush::Log => self.newest_record(),
            _ => Ticket::default(),
        }
    }

    #[inline(always)]
    fn durable(&self) -> Ticket {
        match self.flush {
            Flush::Log => self.log().durable(),
            _ => Ticket::default(),
        }
    }

    #[inline]
    fn wait_durable(&self, ticket: Ticket) -> Result<(), MediumError> {
        let logged = self.logged.as_ref();
        logged.map_or(Ok(()), |logged| logged.wait(self, ticket, Reach::Disk))
    }

    fn when_durable(&self, ticket: Ticket, call: WhenDurable) {
        match &self.logged {
            Some(logged) => logged.when_durable(ticket, call),
            None => call(Ok(())),
        }
    }

    #[inline]
    fn wait_for_room(&self) -> Result<(), MediumError> {
        let logged = self.logged.as_ref();
        logged.map_or(Ok(()), |logged| logged.wait_for_room(self))
    }

    #[inline]
    fn level(&self) -> Level {
        self.options.log.level
    }

    #[inline]
    fn wait_at(&self, ticket: Ticket, level: Level) -> Result<(), MediumError> {
        let logged = self.logged.as_ref();
        logged.map_or(Ok(()), |logged| logged.wait_at(self, ticket, level))
    }
}

impl Space for Mapped {
    fn name(&self) -> String {
        self.display_name()
    }

    #[inline(always)]
    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn capacity(&self) -> u64 {
        self.mask + 1
    }

    fn is_writable(&self) -> bool {
        self.writable
    }

    fn boot_id(&self) -> [u8; 16] {
        self.boot_id
    }

    /// Copies in anonymous memory and in read-only files need no claim: nobody stores their references. Nor does a backup:
    /// it is recovered and closed, and no program gets to see it before.
    fn claim(&self, identity: [u8; 16]) -> Result<(), MediumError> {
        let claimed = self.file.as_ref().filter(|file| !file.is_backup());
        if claimed.is_none() || !self.writable || self.claim.get().is_some() {
            return Ok(());
        }
        let claim = Claim::take(identity, self.display_name())?;
        let _ = self.claim.set(claim);
        Ok(())
    }

    fn begin(&self, identity: [u8; 16]) -> Result<(), MediumError> {
        match &self.logged {
            Some(logged) => logged.begin(self, identity),
            None => Ok(()),
        }
    }

    fn reserve(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        assert_whole_frames(at, len);
        if len == 0 {
            return Ok(());
        }
        let range = at.0..at.0.saturating_add(len);
        match &self.logged {
            Some(logged) => logged.reserve(self, range),
            None => self.reserve_space(range),
        }
    }

    fn discard(&self, at: VirtAddr, len: u64) -> Result<(), MediumError> {
        assert_whole_frames(at, len);
        let range = at.0..at.0.saturating_add(len);
        match &self.logged {
            Some(logged) => logged.discard(self, range),
            None => self.discard_space(range),
        }
    }

    fn discard_bytes(&self) -> u64 {
        self.piece_bytes()
    }

    fn truncate(&self, len: u64) -> Result<(), MediumError> {
        assert_whole_frames(VirtAddr(0), len);
        match &self.logged {
            Some(logged) => logged.truncate(self, len),
            None => self.truncate_space(len),
        }
    }

    fn sync(&self) -> Result<(), MediumError> {
        match &self.logged {
            Some(logged) => logged.sync(self),
            None => self.sync_space(),
        }
    }

    fn most_copied_bytes(&self) -> u64 {
        match self.flush {
            Flush::Log => self.log().most_copied_bytes(),
            _ => u64::MAX,
        }
    }

    #[inline(always)]
    fn is_full_of_copies(&self) -> bool {
        match self.flush {
            Flush::Log => self.log().is_full_of_copies(),
            _ => false,
        }
    }

    fn ready_copies(&self, from: VirtAddr) {
        if let Some(logged) = &self.logged {
            logged.ready_copies(self, from.0);
        }
    }

    fn drop_copies(&self, from: VirtAddr) -> bool {
        let logged = self.logged.as_ref();
        logged.is_some_and(|logged| logged.drop_copies(self, from.0))
    }

    /// Writes a new file out and gives it the name that it was created for, which must still be free. A backup gets its
    /// name later ([`crate::Backup::publish`]).
    fn publish(&self) -> Result<(), MediumError> {
        if self.file.as_ref().is_some_and(|file| file.is_backup()) {
            return Ok(());
        }
        match &self.logged {
            Some(logged) => logged.publish(self),
            None => self.publish_file(),
        }
    }

    fn backed_bytes(&self) -> Result<u64, MediumError> {
        self.allocated_bytes()
    }

    /// Blocks that were reserved but never stored to count as no data.
    fn data_ranges(&self) -> Result<Option<Vec<Range<u64>>>, MediumError> {
        match self.logged {
            // What is not home yet is in no block.
            Some(_) => Ok(None),
            None => self.ranges_with_data(),
        }
    }
}

#[cold]
#[inline(never)]
fn make_room(into: &mut Vec<u8>, len: usize) {
    into.reserve(len);
}

fn assert_whole_frames(at: VirtAddr, len: u64) {
    assert!(
        at.0.is_multiple_of(FRAME_BYTES) && len.is_multiple_of(FRAME_BYTES),
        "{len} bytes at {at} are no whole frames"
    );
}
