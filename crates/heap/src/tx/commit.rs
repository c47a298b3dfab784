//! The end of a transaction.

use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, Frame, ROOTS};
use firn_format::lane::{ENTRY_HEADER_WORDS, MAX_EXTENTS, Record};
use firn_format::reference::RefWord;
use firn_format::root::{MAX_ROOTS, root_at};
use firn_format::statistics::Counter;
use firn_media::{Medium, MediumExt};
use firn_units::{FRAME_BYTES, FRAMES_PER_CHUNK, LINE_BYTES, VirtAddr, WORD_BYTES};

use super::write_set::WriteSet;
use super::{Change, Changes, bits, redo, type_index};
use crate::alloc::{Cache, FrameRun, Reach, Slot};
use crate::collector::cycle::{Cycle, Unit};
use crate::error::Error;
use crate::pool::Inner;
use crate::roots::{Slots, Storing};
use crate::session::State;
use crate::steps;
use crate::tally::Tally;
use crate::work;

/// Commits. On an error nothing was logged and the caller rolls back.
pub(super) fn commit<M: Medium>(
    inner: &Inner<M>,
    cycle: Option<&Cycle<M>>,
    lane: usize,
    state: &mut State,
) -> Result<(), Error> {
    let State {
        ring,
        cache,
        changes,
        tally,
    } = state;
    drop_short_lived(changes)?;
    if changes.writes.is_empty()
        && changes.allocated.is_empty()
        && changes.freed.is_empty()
        && changes.short_lived.is_empty()
    {
        changes.finish(inner);
        return Ok(());
    }
    let medium = &inner.medium;
    medium.work(work::TRANSACTION + work::LOGGED_LINE * changes.writes.len());
    check_homes(medium, &changes.writes)?;
    let mut entry = core::mem::take(&mut changes.scratch);
    entry.clear();
    entry.resize(ENTRY_HEADER_WORDS, 0);
    changes.writes.emit(&mut entry);
    let fresh = core::mem::take(&mut cache.fresh);
    if !changes.wrote_home && medium.keeps(&steps::FRAMES_LOGGED) {
        emit_fresh_frames(medium, &fresh, &mut entry);
    }
    if inner.logs_allocation() && medium.keeps(&steps::BITS_LOGGED) {
        emit_allocation_bits(medium, changes, &mut entry);
    }
    if let Some(cycle) = cycle {
        emit_settled(medium, cycle, changes, &mut entry);
    }
    let overflow = match take_overflow(inner, ring, entry.len() - ENTRY_HEADER_WORDS) {
        Ok(overflow) => overflow,
        Err(error) => {
            changes.scratch = entry;
            cache.fresh = fresh;
            return Err(error);
        }
    };
    medium.work(work::LOGGED_WORD * entry.len() as u64);
    let free = inner.redo.free_slot(medium, lane, ring);
    if changes.wrote_home {
        // A1 (b): the new object, and the frame it lies in, are durable before an entry that names
        // them can be.
        if medium.keeps(&steps::LARGE_FRAMES_WRITE_BACK) {
            write_back_frames(medium, &fresh);
        }
        medium.fence_for(&steps::LARGE_FENCE);
    }
    if medium.leaves_out(&steps::LOCKS_UNTIL_NUMBER) {
        changes.locks.end(inner);
    }
    if let Some(cycle) = cycle
        && medium.leaves_out(&steps::SETTLED_AFTER_FENCE)
    {
        settle_all(medium, cycle, changes);
    }
    let done = inner
        .redo
        .commit(medium, lane, ring, free, &mut entry, &overflow);
    inner.allocator.keep_log(medium, done.seq, &overflow);
    if !changes.linked.is_empty() && medium.keeps(&steps::REPLACED_REMEMBERED) {
        remember_replaced(inner, changes);
    }
    // Rule 4: settled strictly after the log's fence, which made the copies durable.
    if let Some(cycle) = cycle {
        settle_all(medium, cycle, changes);
    }
    if medium.leaves_out(&steps::LOCKS_UNTIL_STORED) {
        changes.locks.end(inner);
    }
    if medium.leaves_out(&steps::SLOTS_AFTER_STORES) {
        release_all(inner, &changes.freed);
    }
    let roots: Vec<Storing> = changes
        .roots
        .iter()
        .map(|place| inner.roots.begin(medium, place))
        .collect();
    store_in_place(inner, changes);
    // N1: only now, when all that they lead to is there.
    roots.iter().for_each(|root| inner.roots.end(medium, root));
    inner.redo.applied(medium, &done);
    // R3: the locks may go after the last in-place store, before the homes are written back.
    changes.locks.end(inner);
    if let Some(homes) = inner.redo.note_homes(medium, ring, &done) {
        note_homes(inner, changes, homes);
        if medium.keeps(&steps::FRAME_HOMES) {
            each_frame_piece(medium, &fresh, |first, count| {
                homes.push((first.word_at(), count * WORD_BYTES));
            });
        }
        if let Some(cycle) = cycle.filter(|_| medium.keeps(&steps::SETTLED_HOMES)) {
            // C5: the settled words are homes of the entry, which counts until they are durable.
            let settled = |unit: &Unit| (cycle.settled_at(unit.index), WORD_BYTES);
            homes.extend(changes.units.iter().map(settled));
        }
    }

    // A4: slots are offered only now, after the in-place stores.
    count_all(inner, tally, &changes.allocated, 1);
    count_all(inner, tally, &changes.freed, -1);
    release_all(inner, &changes.freed);
    for slot in changes.short_lived.drain(..) {
        return_slot(inner, slot);
    }
    changes.scratch = entry;
    changes.finish(inner);
    tally.committed(medium);
    Ok(())
}

/// Undoes what an unfinished transaction did to volatile state (R10: there is nothing else).
pub(super) fn roll_back<M: Medium>(inner: &Inner<M>, state: &mut State) {
    if !inner.medium.is_ours() {
        // A forked child has nothing to give back to.
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

/// Makes a slot free again that no committed transaction has used.
pub(super) fn return_slot<M: Medium>(inner: &Inner<M>, slot: Slot) {
    // The chunk's state was read when the slot was taken, so this cannot fail.
    let _ = inner.allocator.release(
        &inner.medium,
        slot.place,
        slot.place.bit().1,
        inner.redo.counter(),
    );
}

impl Changes {
    fn finish<M: Medium>(&mut self, inner: &Inner<M>) {
        self.locks.release(inner);
        self.writes.clear();
        self.allocated.clear();
        self.freed.clear();
        self.linked.clear();
        self.units.clear();
        self.roots = Slots::default();
        self.wrote_home = false;
    }
}

/// Finds the moved objects that the transaction changes. Those whose copies do not count yet get
/// their lines under the log's fence (rule 3, C4), and the entry names their settled words (C5).
fn emit_settled<M: Medium>(
    medium: &M,
    cycle: &Cycle<M>,
    changes: &mut Changes,
    entry: &mut Vec<u64>,
) {
    let Changes { writes, units, .. } = changes;
    for (line, mask, _) in writes.lines() {
        for word in (0..8).filter(|word| mask >> word & 1 != 0) {
            let unit = cycle.covering(line + word * WORD_BYTES);
            if unit.is_some() && unit != units.last().copied() {
                units.extend(unit);
            }
        }
    }
    units.sort_unstable();
    units.dedup();
    units.retain(|&unit| cycle.before_change(medium, unit));
    for unit in units
        .iter()
        .filter(|_| medium.keeps(&steps::SETTLED_LOGGED))
    {
        Record::push_range(entry, cycle.settled_at(unit.index), &[1]);
    }
}

/// Stores the settled words of the moved objects that the transaction changes.
fn settle_all<M: Medium>(medium: &M, cycle: &Cycle<M>, changes: &Changes) {
    let units = changes.units.iter();
    units.for_each(|unit| cycle.settle(medium, unit.index));
}

/// Rule M2: while marking goes on, what a stored reference replaces is remembered before it is
/// replaced. New objects replace nothing: what their slots held before is no reference, or one to what
/// is long gone, and the marker would take it for damage.
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

/// Drops writes to objects that are freed (A3), and objects that were allocated and freed here,
/// whose slots are free after the commit.
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
    // All at once: taking each out of the list would take as long as the list is.
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

/// Refuses stores to where neither objects nor roots are: a damaged reference led there. Logged, they
/// would damage the pool's own tables, or keep recovery from replaying the entry.
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

/// A6: bits are logged as bits, not as words, so that neighbours' transactions do not collide.
fn emit_allocation_bits<M: Medium>(medium: &M, changes: &Changes, entry: &mut Vec<u64>) {
    for (of, set) in [(&changes.allocated, true), (&changes.freed, false)] {
        if medium.keeps(&steps::BITS_AS_BITS) {
            bits::push(entry, of, set);
            continue;
        }
        for (at, mask) in bits::by_word(of) {
            let word = medium.load_u64(at);
            let word = if set { word | mask } else { word & !mask };
            Record::push_range(entry, at, &[word]);
        }
    }
}

/// Frames for the part of an entry that does not fit into its slot.
pub(super) fn take_overflow<M: Medium>(
    inner: &Inner<M>,
    ring: &mut redo::Ring,
    words: usize,
) -> Result<Vec<FrameRun>, Error> {
    let mut runs: Vec<FrameRun> = Vec::new();
    if redo::fits_slot(words) {
        return Ok(runs);
    }
    inner.end_logs();
    let mut left = (words as u64 * 8).div_ceil(FRAME_BYTES);
    let mut piece = left.min(FRAMES_PER_CHUNK);
    // So small that even if all are, there are not too many.
    let least = left.div_ceil(MAX_EXTENTS as u64 / 2);
    let (mut reach, mut has_waited) = (Reach::Held, false);
    while left > 0 {
        let durable = inner.redo.known_durable();
        let taken = if runs.len() == MAX_EXTENTS {
            Err(Error::TransactionTooLarge {
                words: words as u64,
            })
        } else {
            inner
                .allocator
                .take_log(&inner.medium, piece.min(left), (durable, reach))
        };
        match taken {
            Ok(run) => {
                runs.push(run);
                left -= run.frames;
            }
            // The space may be in pieces, which serve before the pool grows.
            Err(Error::PoolFull { .. }) if piece > least => piece = (piece / 2).max(least),
            Err(Error::PoolFull { .. }) if reach == Reach::Held => {
                if has_waited {
                    reach = Reach::Growing;
                } else {
                    // So do frames that wait, above all those of logs before this one.
                    let homes = &mut |which| inner.homes(ring, which);
                    inner.allocator.give_back_empty(&inner.medium, homes)?;
                    has_waited = true;
                }
                piece = left.min(FRAMES_PER_CHUNK);
            }
            Err(error) if error.is_no_room() && piece > 1 => piece /= 2,
            Err(error) => {
                runs.into_iter()
                    .for_each(|run| inner.allocator.give_log(&inner.medium, run));
                return Err(error);
            }
        }
    }
    Ok(runs)
}

/// Logs the words of frames that came into use since the last commit. They stand in place already;
/// but the entry may be evicted whole before its fence, and what it publishes needs its frame (A1).
fn emit_fresh_frames<M: Medium>(medium: &M, fresh: &[Frame], entry: &mut Vec<u64>) {
    for &head in fresh {
        each_table_piece(medium, head, |first, count| {
            let words: Vec<u64> = (0..count)
                .map(|i| medium.load_u64(first.plus(i).word_at()))
                .collect();
            Record::push_range(entry, first.word_at(), &words);
        });
    }
}

/// Makes the words of frames durable that came into use since the last commit, before slots in them
/// are given back without one. Whoever takes such a frame next publishes objects in it and does not
/// log its words; they must be on media by then.
pub(crate) fn settle_fresh_frames<M: Medium>(medium: &M, cache: &mut Cache) {
    if !cache.fresh.is_empty() {
        if medium.keeps(&steps::PASSED_ON_WRITE_BACK) {
            write_back_frames(medium, &cache.fresh);
        }
        medium.fence_for(&steps::PASSED_ON_FENCE);
        cache.fresh.clear();
    }
}

/// Writes back the words of frames that came into use since the last commit.
pub(super) fn write_back_frames<M: Medium>(medium: &M, fresh: &[Frame]) {
    each_frame_piece(medium, fresh, |first, count| {
        medium.write_back(first.word_at(), count * WORD_BYTES);
    });
}

fn each_frame_piece<M: Medium>(medium: &M, fresh: &[Frame], mut visit: impl FnMut(Frame, u64)) {
    for &head in fresh {
        each_table_piece(medium, head, &mut visit);
    }
}

/// Calls `visit` for each stretch of a run's words that lie together: one a chunk.
fn each_table_piece<M: Medium>(medium: &M, head: Frame, mut visit: impl FnMut(Frame, u64)) {
    let at = head.word_at();
    let frames = FrameUse::from_word(medium.load_u64(at), at).map_or(1, FrameUse::frames);
    let mut done = 0;
    while done < frames {
        let first = head.plus(done);
        let here = (frames - done).min(FRAMES_PER_CHUNK - first.index_in_chunk());
        visit(first, here);
        done += here;
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

/// Notes where the transaction stored, lines that follow each other as one.
fn note_homes<M: Medium>(inner: &Inner<M>, changes: &Changes, homes: &mut Vec<(VirtAddr, u64)>) {
    for (line, ..) in changes.writes.lines() {
        match homes.last_mut() {
            Some((at, len)) if *at + *len == line => *len += LINE_BYTES,
            _ => homes.push((line, LINE_BYTES)),
        }
    }
    if inner.logs_allocation() && inner.medium.keeps(&steps::BIT_HOMES) {
        // One by one: `extend` passes its state on through memory that was just stored, in other sizes than it is
        // loaded, and a load waits then until every store in front of it has left for the cache.
        for (change, _) in changes.bit_changes() {
            let word = (change.slot.place.bitmap_word_at(), WORD_BYTES);
            if homes.last() != Some(&word) {
                homes.push(word);
            }
        }
    }
}

impl Changes {
    fn bit_changes(&self) -> impl Iterator<Item = (&Change, bool)> {
        let allocated = self.allocated.iter().map(|c| (c, true));
        allocated.chain(self.freed.iter().map(|c| (c, false)))
    }
}

/// Counts objects that came (`sign` 1) or went (-1).
pub(super) fn count_all<M: Medium>(
    inner: &Inner<M>,
    tally: &mut Tally,
    changes: &[Change],
    sign: i64,
) {
    tally.catch_up(inner.recounts());
    let alike =
        |a: &Change, b: &Change| a.slot.place.frame == b.slot.place.frame && a.type_id == b.type_id;
    for group in changes.chunk_by(alike) {
        let place = group[0].slot.place;
        let objects = group.len() as i64 * sign;
        let bytes = group.iter().map(|c| c.requested as i64).sum::<i64>() * sign;
        // The chunk's state was read when the slot was taken or located, so this cannot fail.
        let footprint = inner
            .allocator
            .count_live(&inner.medium, place, objects)
            .unwrap_or_default();
        tally.objects(
            &inner.medium,
            (type_index(group[0].type_id), place.class_index()),
            (objects, bytes),
        );
        tally.pages(&inner.medium, footprint);
    }
}

/// Makes freed slots free, those of one bitmap word together.
pub(super) fn release_all<M: Medium>(inner: &Inner<M>, freed: &[Change]) {
    if inner.collector.defers_frees() && !freed.is_empty() {
        // M7: who marks, or heals references, may still look at these slots.
        inner
            .collector
            .defer(&inner.medium, freed.iter().map(|c| c.slot.place));
        return;
    }
    let stamp = inner.redo.counter();
    let word = |c: &Change| (c.slot.place.frame, c.slot.place.bit().0);
    for group in freed.chunk_by(|a, b| word(a) == word(b)) {
        let bits = group.iter().fold(0, |bits, c| bits | c.slot.place.bit().1);
        // The chunk's state was read when the objects were located, so this cannot fail.
        let _ = inner
            .allocator
            .release(&inner.medium, group[0].slot.place, bits, stamp);
    }
}
