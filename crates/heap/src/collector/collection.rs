//! One collection: its states, one after the other.
//!
//! ```text
//! Marked ── Planned ── Active ── Drained ── Released
//!   ^                                          |
//!   +------ the next cycle knows what lives ---+
//! ```
//! Each state is a file and owns its findings; this file only drives them. A thread of its own and the program's
//! threads drive the same steps. A crash may come between any two of their stores.

use core::time::Duration;
use std::sync::atomic::Ordering;

use firn_format::superblock::{LogKind, PoolKind};
use firn_media::Medium;

use super::active::Active;
use super::drained::Drained;
use super::figures::{Collected, CycleStep, Ended, publish};
use super::marked::Marked;
use super::only_one::OnlyOne;
use super::options::{CollectOptions, Goal, PageSize};
use super::planned::Planned;
use super::recount::recount_allocated;
use super::survey::Survey;
use crate::error::Error;
use crate::inner::Inner;
use crate::pool::Pool;
use crate::relocation::instructions::has_instructions;
use crate::shape::Shapes;
use crate::stops::Stops;

impl<M: Medium> Pool<M> {
    /// Collects until the ratio is at the target, or nothing more can be won; in a pool with a limit, until its pages
    /// waste little of the remaining room. [`Collected::ended`] says why it ended. Reclaims unreachable objects (in a
    /// traced pool), moves objects together, and frees the pages that they leave. Meanwhile the program may go on in
    /// other threads; the calling thread must have no operation open.
    ///
    /// A cycle that a crash interrupted is ended first.
    ///
    /// Errors: another collection is under way, an operation stayed open, the pool was opened with an undo log or is
    /// damaged. A lack of room for the moved objects is no error ([`Ended::NoRoom`]). On an error, a cycle that moves
    /// objects stays open; the next collection, trace or close ends it.
    /// Crash: at any moment; nothing is lost, and the next open goes on where this one stopped.
    pub fn collect(&self, options: &CollectOptions) -> Result<Collected, Error> {
        let mut collection = self.collection(options)?;
        while collection.cycle()? {}
        Ok(collection.collected)
    }

    /// Waits until the current collection has ended one of its cycles, or ends: a pool that was full may have room
    /// then, because while a collection closes pages, nothing is allocated in their free slots. Returns false if no
    /// collection is under way, or none of this happens in time. The calling thread must have no operation open, or
    /// else no cycle ends.
    pub fn wait_for_collection(&self, most: Duration) -> bool {
        let (collector, medium) = (&self.inner.collector, &self.inner.medium);
        let until = medium.now_ns().saturating_add(most.as_nanos() as u64);
        let ended = collector.cycles_ended.load(Ordering::Acquire);
        let mut attempt = 0;
        let is_under_way = || collector.busy.load(Ordering::Acquire);
        if !is_under_way() {
            return false;
        }
        while is_under_way() && collector.cycles_ended.load(Ordering::Acquire) == ended {
            if medium.now_ns() >= until {
                return false;
            }
            medium.pause(attempt);
            attempt += 1;
        }
        true
    }

    /// The fragmentation ratio: bytes of pages that hold an object, over the bytes of the objects as the program
    /// requested them. One in an empty pool. The counters lag after a crash until the next collection or trace.
    pub fn ratio(&self, pages: PageSize) -> f64 {
        self.inner.ratio(pages)
    }

    /// Whether a cycle is open, so that objects are moving. A crash in the middle of a cycle leaves it open, until the
    /// next collection, trace or close ends it.
    pub fn has_open_cycle(&self) -> bool {
        self.inner.collector.cycle(&self.inner.medium).is_some()
    }

    /// How often and how long the collector has stopped the program since this open.
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
        if inner.log != LogKind::Redo && !inner.keeps_addresses {
            let needs = "an explicit pool, or one that was opened with a redo log";
            let what = "a collection";
            return Err(Error::WrongKind { what, needs });
        }
        if !inner.keeps_addresses && Shapes::new(&inner.types).has_pairs() {
            let needs =
                "an undo log, because objects of the pool refer to others by their positions";
            let what = "a collection";
            return Err(Error::WrongKind { what, needs });
        }
        if !options.scheme.sound && !inner.medium.is_simulated() {
            let needs = "a simulated medium, because the scheme loses committed changes";
            return Err(Error::WrongKind {
                what: options.scheme.name,
                needs,
            });
        }
        has_instructions(&inner.medium, options.scheme)?;
        let only = OnlyOne::of(inner)?;
        // The device may now have the blocks that it refused before: it is asked once more.
        let mut space = inner.allocator.space().lock(&inner.medium);
        space.forget_refusals();
        drop(space);
        Ok(Collection::new(only, *options))
    }
}

/// A collection under way. If it is dropped early, a cycle that moves objects goes on moving them at their first touch,
/// until the next collection or the close of the pool ends it.
pub struct Collection<'p, M: Medium> {
    inner: &'p Inner<M>,
    /// `None` once it is ended.
    only: Option<OnlyOne<'p, M>>,
    options: CollectOptions,
    collected: Collected,
    /// The part of it that the statistics page already shows.
    published: Collected,
    /// From the last marking of this collection.
    marked: Option<Marked<'p, M>>,
    /// The cycle that is in force, once this collection works on it.
    active: Option<Active<'p, M>>,
    /// The footprint when its last cycle began.
    before: Option<(i64, i64)>,
}

impl<M: Medium> Drop for Collection<'_, M> {
    fn drop(&mut self) {
        // Before another collection may begin.
        self.marked = None;
        self.publish();
    }
}

impl<'p, M: Medium> Collection<'p, M> {
    fn new(only: OnlyOne<'p, M>, options: CollectOptions) -> Self {
        let patience_ns = u64::try_from(options.patience.as_nanos()).unwrap_or(u64::MAX);
        let inner = only.0;
        let collector = &inner.collector;
        collector.patience_ns.store(patience_ns, Ordering::Relaxed);
        Self {
            inner,
            only: Some(only),
            options,
            collected: Collected::default(),
            published: Collected::default(),
            marked: None,
            active: Active::of_pool(inner),
            before: None,
        }
    }

    /// Ends the collection, and hands on the right to collect.
    fn end(mut self) -> Option<OnlyOne<'p, M>> {
        self.only.take()
    }

    /// What was done so far.
    pub fn collected(&self) -> &Collected {
        &self.collected
    }

    /// Runs one cycle to its end. False if there was nothing to do.
    ///
    /// Errors: as [`Pool::collect`].
    pub fn cycle(&mut self) -> Result<bool, Error> {
        if !self.begin()? {
            return Ok(false);
        }
        self.compact(u64::MAX)?;
        self.finish()?;
        self.publish();
        Ok(true)
    }

    /// Marks, reclaims, chooses and plans, and puts the plan into force: after its return objects move at their first
    /// touch. Returns false if nothing is to be moved, or the last cycle won nothing: the pool's holes may be too small
    /// for what a plan promises. Does nothing if a cycle is open already.
    ///
    /// Errors: as [`Pool::collect`].
    pub fn begin(&mut self) -> Result<bool, Error> {
        if self.active.is_some() {
            return Ok(true);
        }
        let before = self.footprint();
        if self.before.take().is_some_and(|last| before >= last) {
            self.collected.ended = Ended::NothingToWin;
            return Ok(false);
        }
        self.learn_what_lives()?;
        let planned = match self.goal() {
            Ok(goal) => self.plan(&goal)?,
            Err(why) => Err(why),
        };
        match planned {
            Ok(planned) => self.activate(planned)?,
            Err(why) => {
                self.collected.ended = why;
                return Ok(false);
            }
        }
        self.before = Some(before);
        Ok(true)
    }

    /// Pages and frames: frames that are won in a huge page that stays are room for the next cycle.
    fn footprint(&self) -> (i64, i64) {
        let pages = |pages| self.inner.footprint_pages(pages);
        (pages(self.options.pages), pages(PageSize::Small))
    }

    /// The first cycle of a collection marks; later ones know from it which objects live.
    fn learn_what_lives(&mut self) -> Result<(), Error> {
        let is_exact = self.inner.exact.load(Ordering::Acquire);
        match self.inner.kind {
            PoolKind::Traced if self.collected.cycles == 0 || !is_exact => self.mark(),
            PoolKind::Explicit if !is_exact => self.timed(CycleStep::Mark, recount_allocated),
            PoolKind::Traced | PoolKind::Explicit => Ok(()),
        }
    }

    fn mark(&mut self) -> Result<(), Error> {
        let how = self.options.marking;
        self.marked = None;
        let (marked, reclaimed) = self.timed(CycleStep::Mark, |inner| Marked::of(inner, how))?;
        self.collected.reclaimed += reclaimed;
        self.marked = Some(marked);
        Ok(())
    }

    /// The goal of the next cycle, or the reason why there is none.
    fn goal(&self) -> Result<Goal, Ended> {
        if !self.options.scheme.moves {
            return Err(Ended::NothingMoves);
        }
        let mut goal = self.options.goal();
        // A caller that moves everything, to find stale pointers, wants that for as long as possible, past any budget.
        if !goal.everything {
            let most = self.inner.may_empty();
            if most == 0 {
                return Err(Ended::AddressesKept);
            }
            goal.max_source_bytes = goal.max_source_bytes.min(most).min(self.may_copy());
        }
        Ok(goal)
    }

    /// Bytes that a cycle may empty on a medium that bounds its copies of pages. Those of moved objects and of healed
    /// references can be dropped only when the cycle has ended: it writes them back at its end, once, and stores to them
    /// until then. A reference that is healed copies a page, so they may be some times what moves. No page would be
    /// emptied if none fitted into the share.
    fn may_copy(&self) -> u64 {
        const SHARE: u64 = 8;
        let share = self.inner.medium.most_copied_bytes() / SHARE;
        share.max(self.options.pages.bytes())
    }

    fn plan(&mut self, goal: &Goal) -> Result<Result<Planned<'p, M>, Ended>, Error> {
        let survey = self.timed(CycleStep::Summary, |inner| Survey::of(inner, goal))?;
        self.collected.large_bytes = survey.occupied.large_bytes;
        self.collected.pinned_bytes = survey.occupied.pinned_bytes;
        self.timed(CycleStep::Summary, |inner| {
            Planned::find(inner, goal, survey)
        })
    }

    fn activate(&mut self, planned: Planned<'p, M>) -> Result<(), Error> {
        let plan = &planned.plan;
        let (moved, bytes) = (plan.units, plan.filled_bytes());
        if let Some(marked) = &mut self.marked {
            marked.follow(&plan.entries);
        }
        let scheme = self.options.scheme;
        let active = self.timed(CycleStep::Summary, |_| planned.activate(scheme))?;
        self.active = Some(active);
        self.collected.planned += moved;
        self.collected.planned_bytes += bytes;
        Ok(())
    }

    /// Moves up to `units` objects of the open cycle that no thread has touched yet. Returns whether everything has
    /// moved.
    ///
    /// Errors: the medium cannot give blocks back; the cycle stays open.
    pub fn compact(&mut self, units: u64) -> Result<bool, Error> {
        let Some(mut active) = self.active.take() else {
            return Ok(true);
        };
        let options = self.options;
        let compacted = self.timed(CycleStep::Compact, |_| active.compact(units, &options));
        self.active = Some(active);
        let compacted = compacted?;
        self.collected.moved += compacted.moved;
        self.collected.released_bytes += compacted.released_bytes;
        Ok(compacted.all)
    }

    /// Ends the open cycle: moves the rest, heals every reference, frees the emptied pages.
    ///
    /// Errors: as [`Pool::collect`]; the cycle stays open.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.compact(u64::MAX)?;
        let Some(drained) = self.active.as_ref().map(Drained::of) else {
            return Ok(());
        };
        // A crash interrupted this cycle, so marking knows nothing yet.
        if self.inner.kind == PoolKind::Traced && !self.inner.exact.load(Ordering::Acquire) {
            self.mark()?;
        }
        let (marked, options) = (self.marked.take(), self.options);
        let released = self.timed(CycleStep::Finish, |_| {
            drained.release(marked.as_ref(), &options)
        });
        self.marked = marked;
        // The error may have come before the cycle's end, or after it.
        self.active = Active::of_pool(self.inner);
        let released = released?;
        self.collected.cycles += 1;
        self.collected.emptied_frames += released.emptied_frames;
        self.collected.filled_frames += released.filled_frames;
        self.collected.released_bytes += released.released_bytes;
        Ok(())
    }

    /// Adds the work since the last call to the statistics page.
    fn publish(&mut self) {
        publish(&self.inner.medium, &self.published, &self.collected);
        self.published = self.collected;
    }

    fn timed<R>(
        &mut self,
        step: CycleStep,
        run: impl FnOnce(&'p Inner<M>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let inner = self.inner;
        let medium = &inner.medium;
        let (begin, cpu) = (medium.now_ns(), medium.cpu_ns());
        // Marking stores to no object.
        let storing = (step != CycleStep::Mark).then(|| inner.room.storing(medium));
        let result = run(inner);
        drop(storing);
        let ns = medium.now_ns().saturating_sub(begin);
        let cpu_ns = medium.cpu_ns().saturating_sub(cpu);
        self.collected.add_time(step, ns, cpu_ns);
        result
    }
}

impl<M: Medium> Inner<M> {
    /// Ends the open cycle, if there is one, and keeps collections from beginning until the result is dropped.
    ///
    /// Errors: a collection is under way; as [`Pool::collect`].
    pub(crate) fn without_collector(&self) -> Result<Option<OnlyOne<'_, M>>, Error> {
        let only = OnlyOne::of(self)?;
        if self.collector.cycle(&self.medium).is_none() {
            return Ok(Some(only));
        }
        let mut collection = Collection::new(only, CollectOptions::default());
        collection.finish()?;
        Ok(collection.end())
    }
}
