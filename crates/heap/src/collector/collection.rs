//! One collection: the steps of a cycle, one after the other.
//!
//! Whoever drives it, a thread of its own or the program's, does the same steps; a crash may come
//! between any two stores of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_format::geometry::Frame;
use firn_format::plan::{Entry, Phase, PlanHeader, entries_checksum};
use firn_format::statistics::{Counter, WORDS};
use firn_format::superblock::{LogKind, PoolKind};
use firn_media::{Medium, MediumExt, Scope};
use firn_units::{FRAME_BYTES, LINE_BYTES, WORD_BYTES};

use super::Turn;
use super::cycle::Cycle;
use super::figures::{Collected, Step, publish, publish_stops};
use super::heal::Known;
use super::mark::Marking;
use super::release::{store_phase, write_back_bitmap, write_back_words};
use super::scheme::{PIGGYBACK, Scheme};
use super::summary::{Aim, Draft, Forwarding, PageSize};
use crate::alloc::{FrameRun, Run};
use crate::error::Error;
use crate::pool::{Inner, Pool};
use crate::stops::Stops;
use crate::tally;
use crate::tx::redo::Ring;

/// Objects of a run that are asked for ahead, and bytes of each.
const PREFETCHED: usize = 16;
const PREFETCHED_BYTES: u64 = 192;
/// Objects of a cycle at most.
const MAX_UNITS: u64 = 1 << 18;
/// Bytes of source pages that one cycle empties, unless told otherwise.
const DEFAULT_SOURCE_BYTES: u64 = 256 << 20;

/// How a collection works.
#[derive(Clone, Copy, Debug)]
pub struct CollectOptions {
    /// Ratio of page bytes to live bytes at which it is content; at least 1.
    pub target: f64,
    /// Which pages count.
    pub pages: PageSize,
    /// How a copy comes to count.
    pub scheme: &'static Scheme,
    /// How marking is done.
    pub marking: Marking,
    /// How many destinations a source page may have.
    pub forwarding: Forwarding,
    /// Bytes of source pages that one cycle empties at most; what is in flight at a crash.
    pub max_source_bytes: u64,
    /// Bytes copied a second by the collector itself; as fast as it can if `None`.
    pub bytes_per_second: Option<u64>,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            target: 1.25,
            pages: PageSize::Huge,
            scheme: &PIGGYBACK,
            marking: Marking::Concurrent,
            forwarding: Forwarding::Split,
            max_source_bytes: DEFAULT_SOURCE_BYTES,
            bytes_per_second: None,
        }
    }
}

impl CollectOptions {
    fn aim(&self) -> Aim {
        Aim {
            pages: self.pages,
            target: self.target.max(1.0),
            forwarding: self.forwarding,
            max_source_bytes: self.max_source_bytes,
            max_units: MAX_UNITS,
        }
    }
}

impl<M: Medium> Pool<M> {
    /// Collects until the ratio is at the target, or nothing more is to be won: reclaims what is
    /// unreachable (in a traced pool), moves objects together, and frees the pages that they leave.
    /// The program may go on meanwhile in other threads; this one must have no operation open.
    ///
    /// A cycle that a crash interrupted is ended first.
    ///
    /// Errors: another collection is under way, an operation stayed open, the pool was opened with an
    /// undo log, is damaged or full; what was begun is ended or undone.
    /// Crash: at any moment; nothing is lost, and the next open goes on where this one stopped.
    pub fn collect(&self, options: &CollectOptions) -> Result<Collected, Error> {
        let mut collection = self.collection(options)?;
        while collection.cycle()? {}
        Ok(collection.collected)
    }

    /// The fragmentation ratio: bytes of pages that hold an object, over the bytes of the objects as
    /// the program requested them. One where nothing lives. From counters that lag after a crash,
    /// until the next collection or trace.
    pub fn ratio(&self, pages: PageSize) -> f64 {
        self.inner.ratio(pages)
    }

    /// Whether a cycle is open: objects are on the move. So it is after the recovery of a crash in the
    /// middle of one, until the next collection, trace or close ends it.
    pub fn has_open_cycle(&self) -> bool {
        self.inner.collector.cycle(&self.inner.medium).is_some()
    }

    /// How often and how long the program stood for the collector since this open.
    pub fn collector_stops(&self) -> Stops {
        *self.inner.collector.stops.lock(&self.inner.medium)
    }

    /// A collection that the caller drives step by step.
    ///
    /// Errors: as [`Pool::collect`].
    pub fn collection(&self, options: &CollectOptions) -> Result<Collection<'_, M>, Error> {
        let inner = &*self.inner;
        if !inner.writable {
            return Err(Error::ReadOnly);
        }
        if inner.log != LogKind::Redo {
            let (what, needs) = ("a collection", "a pool that was opened with a redo log");
            return Err(Error::WrongKind { what, needs });
        }
        if !options.scheme.sound && !inner.medium.capabilities().simulated {
            let needs = "a simulated medium, because the scheme loses committed changes";
            return Err(Error::WrongKind {
                what: options.scheme.name,
                needs,
            });
        }
        let turn = inner.collector.take_turn()?;
        Ok(Collection {
            inner,
            _turn: Some(turn),
            options: *options,
            collected: Collected::default(),
            published: Collected::default(),
            known: None,
        })
    }
}

/// A collection under way. Dropped early, a cycle that moves objects goes on moving them at their
/// first touch, until the next collection or the close of the pool ends it.
pub struct Collection<'p, M: Medium> {
    inner: &'p Inner<M>,
    /// Its own, or `None` where the caller has it.
    _turn: Option<Turn<'p>>,
    options: CollectOptions,
    collected: Collected,
    /// What the statistics page says of it already.
    published: Collected,
    /// From the last marking of this collection.
    known: Option<Known<M>>,
}

impl<M: Medium> Drop for Collection<'_, M> {
    fn drop(&mut self) {
        self.forget();
        self.publish();
    }
}

impl<M: Medium> Collection<'_, M> {
    /// What was done so far.
    pub fn collected(&self) -> &Collected {
        &self.collected
    }

    /// Runs one cycle to its end. False if there was nothing to do, or nothing was won: what a plan
    /// promises, the pool's holes may be too small to keep.
    ///
    /// Errors: as [`Pool::collect`].
    pub fn cycle(&mut self) -> Result<bool, Error> {
        let pages = self.options.pages;
        // Frames that are won in a huge page that stays are room for the next cycle.
        let footprint = |inner: &Inner<M>| {
            let frames = inner.footprint_pages(PageSize::Small);
            (inner.footprint_pages(pages), frames)
        };
        let before = footprint(self.inner);
        if !self.begin()? {
            return Ok(false);
        }
        self.compact(u64::MAX)?;
        self.finish()?;
        self.publish();
        Ok(footprint(self.inner) < before)
    }

    /// Marks, reclaims, chooses and plans, and puts the plan into force: from its return on objects
    /// move at their first touch. False if nothing is to be moved. Does nothing if a cycle is open
    /// already.
    ///
    /// Errors: as [`Pool::collect`].
    pub fn begin(&mut self) -> Result<bool, Error> {
        let inner = self.inner;
        if inner.collector.cycle(&inner.medium).is_some() {
            return Ok(true);
        }
        if inner.kind == PoolKind::Traced && self.must_mark() {
            self.mark_and_reclaim()?;
        }
        if !self.options.scheme.moves {
            return Ok(false);
        }
        let aim = self.options.aim();
        let Some(chosen) = self.timed(Step::Summary, |inner| inner.choose(&aim))? else {
            return Ok(false);
        };
        let begun = self.timed(Step::Summary, |inner| inner.prepare(&aim, chosen))?;
        let Some((draft, cycle)) = begun else {
            return Ok(false);
        };
        let moved = draft.units;
        let bytes = draft.filled_bytes();
        let scheme = self.options.scheme;
        if let Some(known) = &mut self.known {
            known.follow(&draft.entries);
        }
        self.timed(Step::Summary, |inner| inner.activate(draft, cycle, scheme))?;
        self.collected.planned += moved;
        self.collected.planned_bytes += bytes;
        Ok(true)
    }

    /// The first cycle of a collection marks; later ones know what lives from it.
    fn must_mark(&self) -> bool {
        self.collected.cycles == 0 || !self.inner.exact.load(Ordering::Acquire)
    }

    fn mark_and_reclaim(&mut self) -> Result<(), Error> {
        let how = self.options.marking;
        self.forget();
        let (reclaimed, known) = self.timed(Step::Mark, |inner| {
            inner.allocator.look_at_all(&inner.medium)?;
            let marked = inner.mark(how)?;
            let reclaimed = inner.reclaim(&marked);
            if reclaimed.is_err() {
                inner.allocator.stop_noting(&inner.medium, &marked.taken);
            }
            let known = Known {
                referring: marked.trace.referring,
                since: marked.taken,
            };
            Ok((reclaimed?, known))
        })?;
        self.collected.reclaimed += reclaimed;
        self.known = Some(known);
        Ok(())
    }

    /// Shows on the statistics page what was done since the last time.
    fn publish(&mut self) {
        publish(&self.inner.medium, &self.published, &self.collected);
        self.published = self.collected;
    }

    /// Forgets what marking found.
    fn forget(&mut self) {
        if let Some(known) = self.known.take() {
            let inner = self.inner;
            inner.allocator.stop_noting(&inner.medium, &known.since);
        }
    }

    /// Moves up to `units` objects of the open cycle that nobody has touched yet. Returns whether
    /// that was all.
    ///
    /// Errors: none today; a medium that fails will say so here.
    pub fn compact(&mut self, units: u64) -> Result<bool, Error> {
        let Some(cycle) = self.inner.collector.cycle(&self.inner.medium) else {
            return Ok(true);
        };
        let rate = self.options.bytes_per_second;
        let (moved, all) = self.timed(Step::Compact, |inner| {
            Ok::<_, Error>(compact(&inner.medium, &cycle, units, rate))
        })?;
        self.collected.moved += moved;
        Ok(all)
    }

    /// Ends the open cycle: moves the rest, heals every reference, frees the emptied pages.
    ///
    /// Errors: as [`Pool::collect`]; the cycle stays open.
    pub fn finish(&mut self) -> Result<(), Error> {
        let inner = self.inner;
        let Some(cycle) = inner.collector.cycle(&inner.medium) else {
            return Ok(());
        };
        self.compact(u64::MAX)?;
        // A cycle that a crash interrupted: what lives is not known any more.
        if inner.kind == PoolKind::Traced && !inner.exact.load(Ordering::Acquire) {
            self.mark_and_reclaim()?;
        }
        let known = self.known.take();
        let healed = self.timed(Step::Finish, |inner| inner.heal(&cycle, known.as_ref()));
        self.known = known;
        healed?;
        self.timed(Step::Finish, |inner| inner.close_cycle(&cycle))?;
        self.collected.cycles += 1;
        self.collected.emptied_frames += cycle
            .entries
            .iter()
            .map(super::cycle::frames_of)
            .sum::<u64>();
        self.collected.filled_frames +=
            cycle.destinations.iter().map(|run| run.frames).sum::<u64>();
        Ok(())
    }

    fn timed<R>(
        &mut self,
        step: Step,
        run: impl FnOnce(&Inner<M>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let inner = self.inner;
        let medium = &inner.medium;
        let (begin, cpu) = (medium.now_ns(), medium.cpu_ns());
        let result = run(inner);
        let ns = medium.now_ns().saturating_sub(begin);
        let cpu_ns = medium.cpu_ns().saturating_sub(cpu);
        self.collected.add_time(step, ns, cpu_ns);
        result
    }
}

fn compact<M: Medium>(
    medium: &M,
    cycle: &Cycle<M>,
    limit: u64,
    bytes_per_second: Option<u64>,
) -> (u64, bool) {
    let begin = medium.now_ns();
    let (mut moved, mut bytes) = (0, 0u64);
    for (index, entry) in cycle.entries.iter().enumerate() {
        // The objects of the next run are asked for while those of this one are copied.
        if let Some(next) = cycle.entries.get(index + 1) {
            let bytes = next
                .class
                .map_or(0, |class| class.slot_bytes())
                .min(PREFETCHED_BYTES);
            for (_, from) in cycle.units_of(next).take(PREFETCHED) {
                (0..bytes)
                    .step_by(LINE_BYTES as usize)
                    .for_each(|at| medium.prefetch(from + at));
            }
        }
        for (unit, from) in cycle.units_of(entry) {
            if moved >= limit {
                return (moved, false);
            }
            if cycle.relocate_from(medium, unit, from) {
                moved += 1;
                bytes += entry
                    .class
                    .map_or(entry.split * FRAME_BYTES, |class| class.slot_bytes());
            }
        }
        if let Some(rate) = bytes_per_second {
            let due_ns = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
            let mut attempt = 0;
            while u128::from(medium.now_ns().saturating_sub(begin)) < due_ns {
                medium.pause(attempt);
                attempt += 1;
            }
        }
    }
    (moved, true)
}

impl<M: Medium> Inner<M> {
    /// Ends the cycle that is open, if one is. No collection begins as long as the turn lives.
    ///
    /// Errors: a collection is under way; as [`Pool::collect`].
    pub(crate) fn end_open_cycle(&self) -> Result<Turn<'_>, Error> {
        let turn = self.collector.take_turn()?;
        if self.collector.cycle(&self.medium).is_none() {
            return Ok(turn);
        }
        let mut collection = Collection {
            inner: self,
            _turn: None,
            options: CollectOptions::default(),
            collected: Collected::default(),
            published: Collected::default(),
            known: None,
        };
        collection.finish()?;
        Ok(turn)
    }

    /// Stops the world for a step of the collector, and counts how long it stood.
    pub(super) fn stop_for_cycle<R>(&self, change: impl FnOnce() -> R) -> Result<R, Error> {
        let medium = &self.medium;
        let mut stops = Stops::default();
        let result = self.stopped_counting(&mut stops, change);
        self.collector.stops.lock(medium).add_all(&stops);
        publish_stops(medium, &stops);
        result
    }

    /// Closes the chosen sources and writes the plan, which does not count yet. `None` if nothing is
    /// left of it.
    fn prepare(&self, aim: &Aim, chosen: Vec<Run>) -> Result<Option<(Draft, PlanFrames)>, Error> {
        let mut closed = Vec::new();
        let planned = self
            .close_sources(chosen, &mut closed)
            .and_then(|()| self.plan(aim, closed.clone()));
        let draft = match planned {
            Ok(draft) => draft,
            Err(error) => {
                self.reopen(&closed)?;
                return Err(error);
            }
        };
        if draft.entries.is_empty() {
            self.reopen(&[])?;
            return Ok(None);
        }
        match self.take_plan_frames(&draft) {
            Ok(frames) => Ok(Some((draft, frames))),
            Err(error) => {
                self.abandon(&draft)?;
                if !error.is_no_room() {
                    return Err(error);
                }
                // Destinations took all the room: half of them, and what is won makes room for more.
                let mut sources = draft.closed;
                sources.truncate(sources.len() / 2);
                if sources.is_empty() {
                    Ok(None)
                } else {
                    self.prepare(aim, sources)
                }
            }
        }
    }

    /// Closes the chosen sources; those that are closed when this returns are in `closed`, whether or
    /// not it fails.
    fn close_sources(&self, chosen: Vec<Run>, closed: &mut Vec<Run>) -> Result<(), Error> {
        let medium = &self.medium;
        let mut open = Vec::new();
        for run in chosen {
            let now = self.allocator.close_run(medium, &run)?;
            if now {
                closed.push(run)
            } else {
                open.push(run)
            }
        }
        // Runs in sessions' hands come back while no operation is open; and from then on whatever is
        // in use in a closed run was committed.
        self.stop_for_cycle(|| {
            self.allocator.drain_all(medium)?;
            for run in open {
                if self.allocator.close_run(medium, &run)? {
                    closed.push(run);
                }
            }
            Ok::<_, Error>(())
        })?
    }

    fn take_plan_frames(&self, draft: &Draft) -> Result<PlanFrames, Error> {
        let medium = &self.medium;
        let header = PlanHeader {
            entries: draft.entries.len() as u64,
            units: draft.units,
            scheme: 0,
            checksum: 0,
        };
        let durable = self.redo.known_durable();
        let run = self
            .allocator
            .take_frames(medium, header.frames(), durable)?;
        for frame in run.each() {
            let word = firn_format::frame::FrameUse::Plan.to_word();
            medium.store_u64(frame.word_at(), word);
        }
        Ok(PlanFrames(run))
    }

    /// Undoes a plan that never counted.
    fn abandon(&self, draft: &Draft) -> Result<(), Error> {
        let medium = &self.medium;
        for (run, _, _) in &draft.filled {
            self.allocator
                .give_frames(medium, *run, self.redo.counter());
        }
        self.reopen(&draft.closed)
    }

    /// Opens sources again that are not emptied after all. What was freed in them meanwhile is free: a
    /// slot of it that is used again must not be taken for one that was freed.
    fn reopen(&self, closed: &[Run]) -> Result<(), Error> {
        let medium = &self.medium;
        for run in closed {
            self.allocator.reopen_run(medium, run)?;
        }
        let held = self.allocator.take_held(medium);
        for place in held.into_iter().filter(|place| place.class.is_none()) {
            self.allocator
                .release_one(medium, place, self.redo.counter());
        }
        self.allocator.space().lock(medium).open_all();
        Ok(())
    }

    /// Makes the plan durable, then lets it count.
    fn activate(
        &self,
        draft: Draft,
        frames: PlanFrames,
        scheme: &'static Scheme,
    ) -> Result<(), Error> {
        let medium = &self.medium;
        let plan = frames.0.frame;
        let header = write_plan(medium, plan, &draft, scheme);
        for (run, class, filled) in &draft.filled {
            self.allocator
                .fill_run(medium, run.frame, *class, *filled)?;
            write_back_words(medium, run.frame, run.frames);
            write_back_bitmap(medium, run.frame, *class);
        }
        write_back_words(medium, plan, frames.0.frames);
        let cycle = Cycle::new(medium, plan, header, scheme, draft.entries.clone())?;
        let cycle = Arc::new(cycle);
        self.count_filled(&cycle)?;
        let mut ring = Ring::default();
        // Most homes are made durable before the world stops; the rest is little.
        self.redo.settle_homes(medium, &mut ring);
        let active = self.stop_for_cycle(|| {
            self.leave_out_freed(&cycle)?;
            // Rule 1, C1: the plan and all homes are durable, W_pool is the counter, then the phase.
            self.redo.retire(medium, &mut ring);
            store_phase(medium, Phase::Active(plan));
            self.collector.set_cycle(medium, Some(Arc::clone(&cycle)));
            Ok::<_, Error>(())
        });
        match active {
            Ok(done) => done,
            Err(error) => {
                self.allocator
                    .give_frames(medium, frames.0, self.redo.counter());
                self.abandon(&draft)?;
                Err(error)
            }
        }
    }

    /// Destinations count as pages with objects from now on.
    fn count_filled(&self, cycle: &Cycle<M>) -> Result<(), Error> {
        let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
        for run in &cycle.destinations {
            let footprint =
                self.allocator
                    .set_run_live(&self.medium, run.frame, run.frames, run.units)?;
            change[Counter::LiveFrames.word()] += footprint.frames;
            change[Counter::LiveChunks.word()] += footprint.chunks;
        }
        tally::add(&self.medium, &change);
        Ok(())
    }

    /// What was freed in the sources since they were planned does not live at its destination either.
    fn leave_out_freed(&self, cycle: &Cycle<M>) -> Result<(), Error> {
        let medium = &self.medium;
        for place in self.allocator.take_held(medium) {
            let bytes = place.class.map_or(0, |class| class.slot_bytes());
            let Some(unit) = cycle.find(place.frame.start() + place.index * bytes) else {
                continue;
            };
            let slot = self.allocator.locate(medium, unit.to)?;
            self.allocator.unfill(medium, slot.place)?;
            self.allocator.count_live(medium, slot.place, -1)?;
        }
        Ok(())
    }
}

/// Frames that were taken for a plan.
struct PlanFrames(FrameRun);

/// Writes a plan, and writes it back.
fn write_plan<M: Medium>(
    medium: &M,
    plan: Frame,
    draft: &Draft,
    scheme: &'static Scheme,
) -> PlanHeader {
    let _scope = medium.scope(Scope::Summary);
    let words: Vec<u64> = draft.entries.iter().flat_map(Entry::to_words).collect();
    let header = PlanHeader {
        entries: draft.entries.len() as u64,
        units: draft.units,
        scheme: scheme.number,
        checksum: entries_checksum(&words),
    };
    medium.store_bytes(plan.start(), bytemuck::cast_slice(&header.to_words()));
    medium.store_bytes(PlanHeader::entry_at(plan, 0), bytemuck::cast_slice(&words));
    medium.zero(header.settled_at(plan), header.units * WORD_BYTES);
    let bytes = (1 + header.entries) * LINE_BYTES + header.units * WORD_BYTES;
    medium.write_back(plan.start(), bytes);
    header
}
