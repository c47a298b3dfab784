//! The end of a transaction with a redo log, in the order of `docs/protocol.md`.
//!
//! A commit runs phase by phase. Before [`Commit::write_entry`] only volatile memory has changed; when that returns,
//! the transaction is durable, and everything after it only repeats what recovery would do.

use firn_format::geometry::{Chunk, Frame, ROOTS};
use firn_format::lane::{ENTRY_HEADER_WORDS, Record};
use firn_format::reference::RefWord;
use firn_format::root::{MAX_ROOTS, root_at};
use firn_format::statistics::Counter;
use firn_media::{Domain, Medium, MediumExt};
use firn_units::{VirtAddr, WORD_BYTES, WORDS_PER_LINE};

use super::bits;
use super::frames::{each_frame_piece, log_frames, settle_fresh_frames, write_back_frames};
use super::overflow::take_overflow;
use super::redo::{Committed, FreeSlot, Ring};
use super::slots::{count_all, release_all, return_slot};
use super::write_set::WriteSet;
use crate::alloc::{Cache, Slot};
use crate::error::Error;
use crate::inner::Inner;
use crate::operation::State;
use crate::order::in_order;
use crate::relocation::cycle::{Cycle, Unit};
use crate::roots::{Slots, Storing};
use crate::stat_shard::StatShard;
use crate::steps;
use crate::tx::changes::{Change, Changes};
use crate::work;
use firn_format::geometry::FrameRun;

/// Commits. On an error nothing was logged and the caller rolls back.
pub(super) fn commit<M: Medium>(
    inner: &Inner<M>,
    cycle: Option<&Cycle<M>>,
    lane: usize,
    state: &mut State,
) -> Result<(), Error> {
    let medium = &inner.medium;
    drop_short_lived(&mut state.changes)?;
    if state.changes.are_none() {
        state.changes.finish(inner);
        return Ok(());
    }
    check_homes(medium, &state.changes.writes)?;
    let commit = &mut Commit::new(inner, cycle, lane, state);
    if commit.is_a_record() {
        in_order!(commit => find_moved, persist_new_objects, remember_replaced);
        in_order!(commit => note_words, note_bits, note_frames, note_settled, record);
        in_order!(commit => unlock, count_objects, offer_freed, finish);
        return Ok(());
    }
    in_order!(commit => log_words, log_frames, log_bits, find_moved, log_settled);
    commit.take_room()?;
    in_order!(commit => await_slot, persist_new_objects, write_entry);
    in_order!(commit => remember_replaced, settle, apply, unlock);
    in_order!(commit => note_entry, note_words, note_bits, note_frames, note_settled);
    in_order!(commit => count_objects, offer_freed, finish);
    Ok(())
}

/// A transaction that is being committed.
pub(super) struct Commit<'c, M: Medium> {
    pub(super) inner: &'c Inner<M>,
    /// The cycle that moves objects.
    pub(super) cycle: Option<&'c Cycle<M>>,
    lane: usize,
    pub(super) ring: &'c mut Ring,
    cache: &'c mut Cache,
    pub(super) changes: &'c mut Changes,
    tally: &'c mut StatShard,
    /// The log entry: header and payload.
    pub(super) entry: Vec<u64>,
    /// Frames taken into use since the last commit.
    pub(super) fresh: Vec<Frame>,
    /// Frames for the part of the entry that does not fit into its slot.
    overflow: Vec<FrameRun>,
    slot: FreeSlot,
    done: Committed,
}

impl<'c, M: Medium> Commit<'c, M> {
    fn new(
        inner: &'c Inner<M>,
        cycle: Option<&'c Cycle<M>>,
        lane: usize,
        state: &'c mut State,
    ) -> Self {
        let State {
            ring,
            cache,
            changes,
            tally,
        } = state;
        let lines = changes.writes.len();
        inner
            .medium
            .work(work::TRANSACTION + work::LOGGED_LINE * lines);
        let mut entry = core::mem::take(&mut changes.scratch);
        entry.clear();
        entry.resize(ENTRY_HEADER_WORDS, 0);
        Self {
            fresh: core::mem::take(&mut cache.fresh),
            inner,
            cycle,
            lane,
            ring,
            cache,
            changes,
            tally,
            entry,
            overflow: Vec::new(),
            slot: FreeSlot::default(),
            done: Committed::default(),
        }
    }

    pub(super) fn medium(&self) -> &'c M {
        &self.inner.medium
    }

    // ---- what the entry says ----

    /// Logs the words that the transaction stores.
    fn log_words(&mut self) {
        self.changes.writes.emit(&mut self.entry);
    }

    /// A1: an entry names no object in a frame that is free on media. If a new object is fenced before the entry, so
    /// are the frames' words.
    fn log_frames(&mut self) {
        if !self.changes.wrote_home {
            log_frames(self.medium(), &self.fresh, &mut self.entry);
        }
    }

    /// A6: bits are logged as bits, not as words, so that neighbours' transactions do not collide.
    fn log_bits(&mut self) {
        if self.inner.logs_allocation() {
            bits::push(&mut self.entry, &self.changes.allocated, true);
            bits::push(&mut self.entry, &self.changes.freed, false);
        }
    }

    /// Finds the moved objects that the transaction changes. Those whose copies do not count yet get their lines under
    /// the log's fence (rule 3, C4).
    fn find_moved(&mut self) {
        let (Some(cycle), medium) = (self.cycle, self.medium()) else {
            return;
        };
        let Changes { writes, units, .. } = &mut *self.changes;
        for (line, mask, _) in writes.lines() {
            for word in (0..WORDS_PER_LINE as u64).filter(|word| mask >> word & 1 != 0) {
                let unit = cycle.covering(line + word * WORD_BYTES);
                if unit.is_some() && unit != units.last().copied() {
                    units.extend(unit);
                }
            }
        }
        units.sort_unstable();
        units.dedup();
        units.retain(|&unit| cycle.before_change(medium, unit));
    }

    /// C5: the entry names the settled words of these objects.
    fn log_settled(&mut self) {
        if let Some(cycle) = self.cycle {
            for unit in &self.changes.units {
                Record::push_range(&mut self.entry, cycle.settled_at(unit.index), &[1]);
            }
        }
    }

    // ---- the commit point ----

    /// Takes frames for the part of the entry that does not fit into a slot.
    ///
    /// Errors: there are no such frames. Everything is as before the commit.
    fn take_room(&mut self) -> Result<(), Error> {
        let payload = self.entry.len() - ENTRY_HEADER_WORDS;
        match take_overflow(self.inner, self.ring, payload) {
            Ok(overflow) => self.overflow = overflow,
            Err(error) => {
                self.changes.scratch = core::mem::take(&mut self.entry);
                self.cache.fresh = core::mem::take(&mut self.fresh);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits for a free slot before the commit takes its LSN, so a transaction in flight never waits.
    fn await_slot(&mut self) {
        let medium = self.medium();
        medium.work(work::LOGGED_WORD * self.entry.len() as u64);
        self.slot = self.inner.redo.free_slot(medium, self.lane, self.ring);
    }

    /// A1 (b): an unlogged new object and its frame are durable before an entry that names them can be.
    fn persist_new_objects(&mut self) {
        if self.changes.wrote_home {
            let medium = self.medium();
            if medium.keeps(&steps::LARGE_FRAMES_WRITE_BACK) {
                write_back_frames(medium, &self.fresh);
            }
            medium.fence_for(&steps::LARGE_FENCE);
        }
    }

    /// R1, R2: takes the LSN with all locks held, writes the entry and fences it.
    fn write_entry(&mut self) {
        let (redo, medium) = (&self.inner.redo, self.medium());
        let slot = core::mem::take(&mut self.slot);
        let (entry, overflow) = (&mut self.entry, &self.overflow);
        self.done = redo.commit(medium, self.lane, self.ring, slot, entry, overflow);
        let number = self.done.lsn;
        self.inner
            .allocator
            .keep_log(medium, number, &self.overflow);
    }

    // ---- what follows from it ----

    /// M2: while marking goes on, the references that stored ones replace are remembered first.
    fn remember_replaced(&mut self) {
        if !self.changes.linked.is_empty() {
            remember_replaced(self.inner, self.changes);
        }
    }

    /// Rule 4: settled strictly after the entry's fence, which made the copies durable.
    pub(super) fn settle(&mut self) {
        if let Some(cycle) = self.cycle {
            let units = self.changes.units.iter();
            units.for_each(|unit| cycle.settle(&self.inner.medium, unit.index));
        }
    }

    fn apply(&mut self) {
        self.store_in_place();
        self.inner.redo.applied(self.medium(), &self.done);
    }

    /// N1: roots come last, when everything that they lead to is in place.
    pub(super) fn store_in_place(&mut self) {
        let (inner, medium) = (self.inner, self.medium());
        let places = self.changes.roots.iter();
        let roots: Vec<Storing> = places
            .map(|place| inner.locks.roots.begin(medium, place))
            .collect();
        store_in_place(inner, self.changes);
        roots
            .iter()
            .for_each(|root| inner.locks.roots.end(medium, root));
    }

    /// R3: the locks may go after the last in-place store, before the homes are written back.
    pub(super) fn unlock(&mut self) {
        self.changes.locks.end(&self.inner.locks);
    }

    /// R5: an applied entry counts until its homes are durable: the places noted from here on are written back before
    /// this thread's next fence.
    fn note_entry(&mut self) {
        let (redo, medium) = (&self.inner.redo, self.medium());
        redo.note_applied(medium, self.ring, &self.done);
    }

    /// The places of a transaction's words, as runs: of words where the medium writes these back alone, else of lines.
    fn note_words(&mut self) {
        let medium = self.medium();
        let Some(homes) = self.ring.homes(medium) else {
            return;
        };
        let by_words = medium.domain() == Domain::Logged;
        for (line, mut stored, _) in self.changes.writes.lines() {
            stored |= if by_words { 0 } else { u8::MAX };
            while stored != 0 {
                let first = stored.trailing_zeros();
                let count = (stored >> first).trailing_ones();
                stored &= !(u8::MAX >> (u8::BITS - count) << first);
                let run = (
                    line + u64::from(first) * WORD_BYTES,
                    u64::from(count) * WORD_BYTES,
                );
                match homes.last_mut() {
                    Some((at, len)) if *at + *len == run.0 => *len += run.1,
                    _ => homes.push(run),
                }
                if medium.leaves_out(&steps::WORDS_BEHIND_GAPS) {
                    break;
                }
            }
        }
    }

    /// The places of allocation bits.
    fn note_bits(&mut self) {
        let homes = self.ring.homes(&self.inner.medium);
        let Some(homes) = homes.filter(|_| self.inner.logs_allocation()) else {
            return;
        };
        // One by one: `extend` passes its state through memory that was just stored in other sizes than it is loaded,
        // and such a load waits until every earlier store has reached the cache.
        for (change, _) in self.changes.bit_changes() {
            let word = (change.slot.place.bitmap_word_at(), WORD_BYTES);
            if homes.last() != Some(&word) {
                homes.push(word);
            }
        }
    }

    /// The places of the words of new frames.
    fn note_frames(&mut self) {
        if let Some(homes) = self.ring.homes(&self.inner.medium) {
            each_frame_piece(&self.inner.medium, &self.fresh, |first, count| {
                homes.push((first.word_at(), count * WORD_BYTES));
            });
        }
    }

    /// C5: the settled words are homes of the entry, which counts until they are durable.
    fn note_settled(&mut self) {
        let homes = self.ring.homes(&self.inner.medium);
        if let (Some(cycle), Some(homes)) = (self.cycle, homes) {
            let settled = |unit: &Unit| (cycle.settled_at(unit.index), WORD_BYTES);
            homes.extend(self.changes.units.iter().map(settled));
        }
    }

    // ---- volatile memory ----

    fn count_objects(&mut self) {
        count_all(self.inner, self.tally, &self.changes.allocated, 1);
        count_all(self.inner, self.tally, &self.changes.freed, -1);
    }

    /// A4: slots are offered only now, after the in-place stores.
    pub(super) fn offer_freed(&mut self) {
        release_all(self.inner, &self.changes.freed);
    }

    fn finish(&mut self) {
        for slot in self.changes.short_lived.drain(..) {
            return_slot(self.inner, slot);
        }
        self.changes.scratch = core::mem::take(&mut self.entry);
        self.changes.finish(self.inner);
        self.tally.committed(&self.inner.medium);
    }
}

/// Undoes an unfinished transaction's changes of volatile state (R10: there are no others).
pub(super) fn roll_back<M: Medium>(inner: &Inner<M>, state: &mut State) {
    if !inner.medium.is_ours() {
        // A forked child must not give anything back.
        state.changes.short_lived.clear();
        return state.changes.finish(inner);
    }
    settle_fresh_frames(&inner.medium, &mut state.cache);
    let changes = &mut state.changes;
    let unused = changes.allocated.drain(..).map(|change| change.slot);
    for slot in unused.chain(changes.short_lived.drain(..)) {
        return_slot(inner, slot);
    }
    changes.finish(inner);
    state.tally.add(Counter::Aborts, 1);
}

impl Changes {
    /// Whether there is nothing to commit.
    fn are_none(&self) -> bool {
        self.writes.is_empty()
            && self.allocated.is_empty()
            && self.freed.is_empty()
            && self.short_lived.is_empty()
    }

    fn finish<M: Medium>(&mut self, inner: &Inner<M>) {
        self.locks.release(&inner.locks);
        self.writes.clear();
        self.allocated.clear();
        self.freed.clear();
        self.linked.clear();
        self.units.clear();
        self.roots = Slots::default();
        self.wrote_home = false;
    }
}

/// Rule M2: while marking goes on, the references that stored ones replace are remembered first. New objects replace
/// nothing: the former content of their slots is no reference, or one to an object long gone, which the marker would
/// take for damage.
fn remember_replaced<M: Medium>(inner: &Inner<M>, changes: &Changes) {
    let mut new: Vec<Slot> = changes.allocated.iter().map(|change| change.slot).collect();
    new.extend(&changes.short_lived);
    new.sort_unstable_by_key(|slot| slot.at);
    let is_new = |at: VirtAddr| {
        let after = new.partition_point(|slot| slot.at <= at);
        after > 0 && at.0 < new[after - 1].at.0 + new[after - 1].bytes
    };
    let replaced = changes.linked.iter().filter(|&&at| !is_new(at));
    let replaced = replaced.map(|&at| RefWord(inner.medium.load_u64(at)));
    inner
        .collector
        .remember(&inner.medium, replaced.filter(|word| !word.is_null()));
}

/// Drops writes to objects that are freed (A3), and drops objects that were both allocated and freed here, whose slots
/// are free after the commit.
///
/// Errors: an object was freed twice.
fn drop_short_lived(changes: &mut Changes) -> Result<(), Error> {
    let Changes {
        writes,
        allocated,
        freed,
        short_lived,
        ..
    } = changes;
    if freed.is_empty() {
        return Ok(());
    }
    freed.sort_unstable_by_key(|change| change.slot.at);
    if let Some(twice) = freed
        .windows(2)
        .find(|pair| pair[0].slot.at == pair[1].slot.at)
    {
        return Err(Error::NotAllocated {
            at: twice[0].slot.at.0,
        });
    }
    for change in freed.iter() {
        writes.forget(change.slot.at, change.slot.bytes);
    }
    // In one pass: removing each from the list would take time in proportion to the list.
    let mut is_own = vec![false; freed.len()];
    allocated.retain(|new| {
        let gone = freed.binary_search_by_key(&new.slot.at, |change| change.slot.at);
        if let Ok(gone) = gone {
            is_own[gone] = true;
            short_lived.push(new.slot);
        }
        gone.is_err()
    });
    let mut is_own = is_own.into_iter();
    freed.retain(|_| !is_own.next().unwrap_or_default());
    Ok(())
}

/// Refuses stores outside objects and roots, to which a damaged reference led. If logged, they would damage the pool's
/// own tables, or keep recovery from replaying the entry.
fn check_homes<M: Medium>(medium: &M, writes: &WriteSet) -> Result<(), Error> {
    let len = medium.len();
    let is_home = |line: VirtAddr| {
        let of_roots = (ROOTS..root_at(MAX_ROOTS)).contains(&line);
        line.0 < len && (Chunk::holding(line).is_data() || of_roots)
    };
    match writes.lines().find(|(line, ..)| !is_home(*line)) {
        Some((line, ..)) => Err(Error::Damaged {
            what: "a reference that was stored through",
            at: line.0,
        }),
        None => Ok(()),
    }
}

fn store_in_place<M: Medium>(inner: &Inner<M>, changes: &Changes) {
    let medium = &inner.medium;
    for (line, mask, words) in changes.writes.lines() {
        medium.store_line(line, mask, words);
    }
    if inner.logs_allocation() {
        for (change, allocate) in changes.bit_changes() {
            let (_, bit) = change.slot.place.bit();
            let (set, clear) = if allocate { (bit, 0) } else { (0, bit) };
            medium.update_bits(change.slot.place.bitmap_word_at(), set, clear);
        }
    }
}

impl Changes {
    fn bit_changes(&self) -> impl Iterator<Item = (&Change, bool)> {
        let allocated = self.allocated.iter().map(|c| (c, true));
        allocated.chain(self.freed.iter().map(|c| (c, false)))
    }
}
