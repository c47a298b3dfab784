//! Redo lanes: one fence a durable transaction.
//!
//! An entry with the new values is made durable by one fence, which is the commit point; then the
//! values are stored in place, and the entry is retired when they are durable at home. The rules
//! R1 to R12 are those of `docs/protocol.md`; each step below names the one that it keeps.
//!
//! Volatile state of a slot, one word: `lsn << 2 | state`. First a lower bound of the LSN, then the LSN in flight, then
//! applied (stored in place), then durable (at home).

use firn_format::geometry;
use firn_format::lane::{ENTRY_HEADER_WORDS, EntryHeader, LANES, Record, SLOTS, slot_at};
use firn_format::sealed::Seal;
use firn_media::{Medium, MediumExt, Words};
use firn_units::VirtAddr;

use crate::steps;
use crate::tx::entry::{load_header, load_payload, store_long};
use firn_format::geometry::FrameRun;

const IN_FLIGHT: u64 = 1;
const APPLIED: u64 = 2;
const DURABLE: u64 = 3;
const STATE_MASK: u64 = 3;

/// The next LSN.
const NEXT_LSN: usize = 0;
/// LSNs below this are known to be durable at home.
const DURABLE_LSN: usize = 8;
/// The highest W that a durable entry or `W_pool` carries.
const PUBLISHED_LSN: usize = 16;
/// Lanes that were ever used since the pool was opened.
const ACTIVE: usize = 24;
/// The highest LSN that an entry in a lane has, where a transaction may also be a record of the medium.
const NEWEST_ENTRY: usize = 32;
const SHARED_WORDS: usize = 40;

/// Every `SCAN_EVERY`th entry of a lane recomputes W; the others reuse it, because recomputing loads cache lines of every
/// other session. A stale W is conservative.
const SCAN_EVERY: usize = SLOTS / 2;
/// A session helps others' homes if the slot this many turns ahead is not reusable yet. When it writes entry n, its
/// last W comes from entry n - SCAN_EVERY or later, and all but the last entry before that one were durable. So,
/// without other sessions, entries before n - SCAN_EVERY - 1 are reusable.
const HELP_AHEAD: usize = SLOTS - SCAN_EVERY - 2;

/// The lanes' volatile side.
pub(crate) struct RedoLog<M: Medium> {
    shared: M::Words,
    slots: M::Words,
}

/// A lane's ring, owned by the session that uses the lane.
#[derive(Default)]
pub(crate) struct Ring {
    next: usize,
    /// Own applied entries whose homes will be written back just before this thread's next fence.
    pending: Vec<(usize, u64)>,
    /// These homes: first byte and length.
    homes: Vec<(VirtAddr, u64)>,
    /// Other applied entries whose homes this thread wrote back since its last fence.
    helped: Vec<(usize, u64)>,
    /// The last LSN that this ring was given.
    last: u64,
    /// Whether others' homes were made durable since the last scan for W.
    has_helped: bool,
}

/// A slot that may be overwritten.
#[derive(Default)]
pub(crate) struct FreeSlot(usize);

impl Ring {
    /// Forgets which homes were, or are to be, written back: another thread may take over the ring, and its fence does
    /// not cover this one's write-backs. The session that helps the entries does both.
    pub(crate) fn detach(&mut self) {
        self.pending.clear();
        self.homes.clear();
        self.helped.clear();
    }

    /// Where to note the homes of the last noted entry; `None` where nothing is written back.
    pub(crate) fn homes<M: Medium>(&mut self, medium: &M) -> Option<&mut Vec<(VirtAddr, u64)>> {
        medium.domain().needs_flush().then_some(&mut self.homes)
    }

    /// Writes back the homes of this ring's own applied entries.
    ///
    /// This late, because a locked instruction waits for write-backs as a fence does: issued right after the in-place
    /// stores, they would delay the next operation's first exchange.
    #[inline]
    fn write_back_pending<M: Medium>(&mut self, medium: &M) {
        for (at, len) in self.homes.drain(..) {
            medium.write_back_for(&steps::HOMES_WRITE_BACK, at, len);
        }
    }
}

impl<M: Medium> RedoLog<M> {
    /// `watermark` is `W_pool`, at least 1.
    pub(crate) fn new(medium: &M, watermark: u64) -> Self {
        let shared = medium.words(SHARED_WORDS);
        for word in [NEXT_LSN, DURABLE_LSN, PUBLISHED_LSN] {
            shared.store(word, watermark);
        }
        Self {
            shared,
            slots: medium.words(LANES * SLOTS),
        }
    }

    /// Marks a lane as used, so that scans look at it.
    pub(crate) fn activate(&self, lane: usize) {
        self.raise(ACTIVE, lane as u64 + 1);
    }

    /// The next LSN; every LSN given out so far is below it.
    #[inline]
    pub(crate) fn counter(&self) -> u64 {
        self.shared.load(NEXT_LSN)
    }

    /// All LSNs below this are known to be durable at home.
    #[inline]
    pub(crate) fn known_durable(&self) -> u64 {
        self.shared.load(DURABLE_LSN)
    }

    /// The highest W known to be on media: recovery reads no entry with a lower LSN.
    pub(crate) fn shown(&self) -> u64 {
        self.shared.load(PUBLISHED_LSN)
    }

    /// Whether recovery will read no entry that was written up to now (R14).
    pub(crate) fn hides_entries(&self, medium: &M) -> bool {
        self.shown() > self.shared.load(NEWEST_ENTRY) || medium.leaves_out(&steps::ENTRIES_HIDDEN)
    }

    /// Notes that an entry with this number is being written. The write locks are still held, so the next transaction
    /// to take one of them sees the number (R14).
    #[inline]
    fn note_entry(&self, medium: &M, lsn: u64) {
        if medium.most_recorded_lines() > 0 {
            self.raise(NEWEST_ENTRY, lsn);
        }
    }

    /// Raises a word; it never falls.
    #[inline]
    fn raise(&self, word: usize, to: u64) {
        let mut seen = self.shared.load(word);
        while seen < to {
            match self.shared.compare_exchange(word, seen, to) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Notes that a durable entry, or `W_pool`, carries `watermark`.
    #[inline]
    fn show(&self, watermark: u64) {
        // Two sessions may race here and the lower W remain. Both are true and a lower one is merely conservative, so
        // this needs no lock.
        if self.shared.load(PUBLISHED_LSN) < watermark {
            self.shared.store(PUBLISHED_LSN, watermark);
        }
    }

    fn each_open_slot(&self, mut visit: impl FnMut(usize, u64)) {
        let lanes = self.shared.load(ACTIVE) as usize;
        for index in 0..lanes * SLOTS {
            let word = self.slots.load(index);
            if matches!(word & STATE_MASK, IN_FLIGHT | APPLIED) {
                visit(index, word);
            }
        }
    }

    /// The W of R4: the least LSN that may not be durable at home. Before the call, the caller read `bound` from the
    /// counter, or took it as its own LSN.
    fn scan(&self, medium: &M, bound: u64) -> u64 {
        self.know(self.least_open(medium, bound))
    }

    /// The least LSN that may not be durable at home, of those in the slots and `bound`.
    fn least_open(&self, medium: &M, bound: u64) -> u64 {
        let mut least = bound;
        self.each_open_slot(|_, word| {
            if word & STATE_MASK == APPLIED || medium.keeps(&steps::W_BELOW_FLIGHT) {
                least = least.min(word >> 2);
            }
        });
        least
    }

    /// Notes that every LSN below `least` is durable at home; returns the durable LSN that is then known.
    fn know(&self, least: u64) -> u64 {
        // A lower bound may lie below the known durable LSN. That stays true, and A2 needs an entry's W to be at least
        // the one that was known when its objects were allocated.
        let least = least.max(self.known_durable());
        self.raise(DURABLE_LSN, least);
        least
    }

    #[inline]
    fn is_reusable(&self, medium: &M, index: usize) -> bool {
        let word = self.slots.load(index);
        // R8: durable at home, and a W above it is durable. An entry's own W is at most its LSN, so a W above it always
        // comes from another entry.
        let is_hidden = || self.shared.load(PUBLISHED_LSN) > word >> 2;
        word == 0
            || word & STATE_MASK == DURABLE
                && (is_hidden() || medium.leaves_out(&steps::W_BEFORE_REUSE))
    }

    /// Waits until the lane's next slot may be overwritten. Must be called before an LSN is taken, so that no session
    /// waits with one in flight, and waiting always ends.
    pub(crate) fn free_slot(&self, medium: &M, lane: usize, ring: &mut Ring) -> FreeSlot {
        let slot = ring.next;
        let index = lane * SLOTS + slot;
        if !self.is_reusable(medium, lane * SLOTS + (slot + HELP_AHEAD) % SLOTS) {
            // R9, early enough that the session's own next fence covers it: an idle thread's applied entries would
            // otherwise pin W until the ring is full.
            self.help(medium, ring);
        }
        self.retire_until(medium, ring, || self.is_reusable(medium, index));
        FreeSlot(slot)
    }

    /// Waits until recovery will not replay entries below `bound` (R13). The caller has no LSN in flight, so waiting
    /// always ends.
    pub(crate) fn retire_below(&self, medium: &M, ring: &mut Ring, bound: u64) {
        self.retire_until(medium, ring, || self.shared.load(PUBLISHED_LSN) >= bound);
    }

    fn retire_until(&self, medium: &M, ring: &mut Ring, done: impl Fn() -> bool) {
        let mut attempt = 0;
        while !done() {
            self.retire(medium, ring);
            if !done() {
                medium.pause(attempt);
                attempt += 1;
            }
        }
    }

    /// Writes back the homes of every applied entry except this ring's own pending ones (R9).
    fn help(&self, medium: &M, ring: &mut Ring) {
        if medium.leaves_out(&steps::ADOPTION) {
            return;
        }
        let mut found = Vec::new();
        self.each_open_slot(|index, word| {
            if word & STATE_MASK == APPLIED && !ring.pending.contains(&(index, word)) {
                found.push((index, word));
            }
        });
        for (index, word) in found {
            if write_back_homes(medium, index / SLOTS, index % SLOTS, word >> 2) {
                ring.helped.push((index, word));
            }
        }
        // R5, R9: the homes written back just now are not durable yet.
        if medium.leaves_out(&steps::ADOPTED_AFTER_FENCE) {
            self.fenced_helped(ring);
        }
    }

    /// After a fence: the earlier write-backs are durable (R5, R9).
    fn fenced(&self, ring: &mut Ring) {
        for (index, word) in ring.pending.drain(..) {
            // The slot is this session's: no other session takes it beyond durable.
            self.slots.store(index, word & !STATE_MASK | DURABLE);
        }
        self.fenced_helped(ring);
    }

    fn fenced_helped(&self, ring: &mut Ring) {
        ring.has_helped |= !ring.helped.is_empty();
        for (index, word) in ring.helped.drain(..) {
            // Fails if another session marked the slot, or reused it since.
            let _ = self
                .slots
                .compare_exchange(index, word, word & !STATE_MASK | DURABLE);
        }
    }

    /// Makes every applied home durable and raises `W_pool`: two fences (R8, ring full).
    pub(crate) fn retire(&self, medium: &M, ring: &mut Ring) {
        self.settle_homes(medium, ring);
        let least = self.scan(medium, self.counter());
        self.raise_pool(medium, least);
        medium.persist_for(&steps::W_POOL_PERSIST, geometry::WATERMARK, 8);
        self.show(least);
    }

    /// Writes back a `W_pool` that is at least the known durable LSN: after the caller's next fence recovery stores
    /// nothing of lower LSNs again. Returns the LSN to pass to [`RedoLog::hidden`] then; `None` if media has it
    /// already.
    pub(crate) fn publish_durable(&self, medium: &M) -> Option<u64> {
        let known = self.known_durable();
        if self.shared.load(PUBLISHED_LSN) >= known {
            return None;
        }
        self.raise_pool(medium, known);
        medium.write_back_for(&steps::HOLES_W_POOL_WRITE_BACK, geometry::WATERMARK, 8);
        Some(known)
    }

    /// Notes that the fence after [`RedoLog::publish_durable`] is over.
    pub(crate) fn hidden(&self, known: u64) {
        self.show(known);
    }

    /// Stores `least` in `W_pool`, unless a higher value is there. Everything below is durable at home.
    fn raise_pool(&self, medium: &M, least: u64) {
        let mut word = medium.load_u64(geometry::WATERMARK);
        while Seal::Watermark.open(word).is_none_or(|old| old < least) {
            match medium.compare_exchange_u64(
                geometry::WATERMARK,
                word,
                Seal::Watermark.seal(least),
            ) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
    }

    /// Makes every applied home durable: one fence. Raises the known durable LSN.
    pub(crate) fn settle_homes(&self, medium: &M, ring: &mut Ring) {
        self.help(medium, ring);
        ring.write_back_pending(medium);
        medium.fence_for(&steps::SETTLING_FENCE);
        self.fenced(ring);
        self.scan(medium, self.counter());
    }

    /// Writes the entry and makes it durable: the commit point. `entry` has room for the header in front. All write
    /// locks are held (R2). The caller stores the homes, then calls [`RedoLog::applied`].
    pub(crate) fn commit(
        &self,
        medium: &M,
        lane: usize,
        ring: &mut Ring,
        free: FreeSlot,
        entry: &mut [u64],
        overflow: &[FrameRun],
    ) -> Committed {
        let FreeSlot(slot) = free;
        let index = lane * SLOTS + slot;
        let early = medium
            .leaves_out(&steps::SCAN_AFTER_NUMBER)
            .then(|| self.least_open(medium, u64::MAX));
        // R4: the lower bound is visible before the LSN is taken (the addition is locked). Any LSN given out before
        // serves; the session's own needs no look at the counter.
        if medium.keeps(&steps::LOWER_BOUND) {
            self.slots.store(index, ring.last << 2 | IN_FLIGHT);
        }
        let lsn = self.shared.fetch_add(NEXT_LSN, 1);
        self.slots.store(index, lsn << 2 | IN_FLIGHT);
        ring.last = lsn;
        self.note_entry(medium, lsn);
        // R5: homes that only this commit's own fence covers do not count for its W.
        if medium.leaves_out(&steps::OWN_HOMES_AFTER_FENCE) {
            self.fenced(ring);
        }
        let scans = slot.is_multiple_of(SCAN_EVERY) || core::mem::take(&mut ring.has_helped);
        let watermark = if scans {
            early.map_or_else(|| self.scan(medium, lsn), |least| self.know(least.min(lsn)))
        } else {
            self.known_durable()
        };

        let at = slot_at(lane, slot);
        let payload_words = entry.len() - ENTRY_HEADER_WORDS;
        let mut header = EntryHeader {
            lsn,
            watermark,
            payload_words: payload_words as u64,
            extents: overflow.len(),
            checksum: 0,
        };
        if overflow.is_empty() {
            header.checksum = header.checksum(bytemuck::cast_slice(&entry[ENTRY_HEADER_WORDS..]));
            entry[..ENTRY_HEADER_WORDS].copy_from_slice(&header.to_words());
            medium.store_bytes(at, bytemuck::cast_slice(entry));
            medium.write_back_for(&steps::ENTRY_WRITE_BACK, at, entry.len() as u64 * 8);
        } else {
            store_long(medium, at, header, &entry[ENTRY_HEADER_WORDS..], overflow);
        }
        ring.write_back_pending(medium);
        // R1: no in-place store is issued before this fence.
        medium.fence_for(&steps::ENTRY_FENCE);
        self.fenced(ring);
        self.show(watermark);
        ring.next = (slot + 1) % SLOTS;
        Committed { index, lsn }
    }

    /// Makes a transaction's stores and its homes, which are noted, one record of the medium: its commit point. All write
    /// locks are held. `store` stores in place.
    pub(crate) fn record(&self, medium: &M, ring: &mut Ring, store: impl FnOnce()) {
        medium.record(|| {
            store();
            ring.write_back_pending(medium);
        });
        self.fenced(ring);
    }

    /// The homes hold the values; the locks may go. Any session that sees the slot applied may help it.
    #[inline]
    pub(crate) fn applied(&self, medium: &M, done: &Committed) {
        let state = if medium.domain().needs_flush() {
            APPLIED
        } else {
            DURABLE
        };
        self.slots.store(done.index, done.lsn << 2 | state);
    }

    /// Notes an applied entry, whose homes are written back before this thread's next fence ([`Ring::homes`]).
    pub(crate) fn note_applied(&self, medium: &M, ring: &mut Ring, done: &Committed) {
        if medium.domain().needs_flush() {
            ring.pending.push((done.index, done.lsn << 2 | APPLIED));
        }
    }
}

/// A transaction past its commit point.
#[derive(Default)]
pub(crate) struct Committed {
    index: usize,
    pub(crate) lsn: u64,
}

/// Writes back the homes of the entry `lsn` in a slot. False if the slot holds another entry by now; then nothing may
/// be concluded.
fn write_back_homes<M: Medium>(medium: &M, lane: usize, slot: usize, lsn: u64) -> bool {
    let at = slot_at(lane, slot);
    let header = load_header(medium, at);
    if header.lsn != lsn {
        return false;
    }
    let Some(payload) = load_payload(medium, at, header) else {
        return false;
    };
    let mut rest = payload.as_slice();
    while let Some(record) = Record::take(&mut rest) {
        let (home, len) = record.home();
        medium.write_back_for(&steps::ADOPTED_WRITE_BACK, home, len);
    }
    rest.is_empty()
}
