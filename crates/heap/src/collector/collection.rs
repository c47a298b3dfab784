//! One collection: the steps of a cycle, one after the other.
//!
//! Whoever drives it, a thread of its own or the program's, does the same steps; a crash may come
//! between any two stores of them.

use core::time::Duration;
use std::sync::atomic::Ordering;

use firn_format::frame::FrameUse;
use firn_format::geometry::Frame;
use firn_format::plan::{ENTRY_WORDS, EntriesChecksum, PlanHeader};
use firn_format::superblock::{LogKind, PoolKind};
use firn_media::{Medium, MediumExt, Scope};
use firn_units::{LINE_BYTES, WORD_BYTES};

use super::compact::Progress;
use super::figures::{Collected, Ended, Step, publish, publish_stops};
use super::heal::Known;
use super::mark::Marking;
use super::summary::{Aim, Draft, Forwarding, PageSize, RUNS_AHEAD};
use super::survey::Survey;
use crate::alloc::{Purpose, Run};
use crate::error::Error;
use crate::inner::{Inner, STOP_LIMIT_NS};
use crate::pool::Pool;
use crate::relocation::instructions::has_instructions;
use crate::relocation::plan::frames_of;
use crate::relocation::scheme::{PIGGYBACK, Scheme};
use crate::shape::Shapes;
use crate::steps;
use crate::stops::Stops;
use firn_format::geometry::FrameRun;

/// Entries of a plan that are written together.
const WRITTEN_TOGETHER: usize = 64;
/// Objects of a cycle at most.
const MAX_UNITS: u64 = 1 << 18;
/// Bytes of source pages that one cycle empties, unless told otherwise.
const DEFAULT_SOURCE_BYTES: u64 = 256 << 20;

/// How a collection works.
#[derive(Clone, Copy, Debug)]
pub struct CollectOptions {
    /// Ratio of page bytes to live bytes at which it is content; at least 1. In a pool with a limit, and on a device
    /// that has refused blocks, it goes on below that until what pages waste is a sixteenth of what is left.
    pub target: f64,
    /// Which pages count.
    pub pages: PageSize,
    /// Whether all that can move does, in one cycle as far as `max_source_bytes` goes, whatever that wins: to
    /// find programs that hold what they should not.
    pub everything: bool,
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
    /// Whether the blocks of sources are given back while the cycle goes on, as soon as everything in
    /// them has moved. Costs two fences for every 8 MiB of sources, and a word stored for each object.
    pub release_blocks: bool,
    /// How long each moment without an open operation is waited for; 10 s by itself. Then the collection gives up.
    pub patience: Duration,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            target: 1.25,
            pages: PageSize::Huge,
            everything: false,
            scheme: &PIGGYBACK,
            marking: Marking::Concurrent,
            forwarding: Forwarding::Split,
            max_source_bytes: DEFAULT_SOURCE_BYTES,
            bytes_per_second: None,
            release_blocks: false,
            patience: Duration::from_nanos(STOP_LIMIT_NS),
        }
    }
}

impl CollectOptions {
    fn aim(&self) -> Aim {
        Aim {
            pages: self.pages,
            everything: self.everything,
            spares_pages: self.pages == PageSize::Huge,
            target: self.target.max(1.0),
            forwarding: self.forwarding,
            max_source_bytes: self.max_source_bytes,
            max_units: MAX_UNITS,
        }
    }
}

impl<M: Medium> Pool<M> {
    /// Collects until the ratio is at the target, or nothing more is to be won; in a pool that cannot grow as it
    /// likes, until pages waste little of what is left of it. [`Collected::ended`] says why it ended. Reclaims what is
    /// unreachable (in a traced pool), moves objects together, and frees the pages that they leave.
    /// The program may go on meanwhile in other threads; this one must have no operation open.
    ///
    /// A cycle that a crash interrupted is ended first.
    ///
    /// Errors: another collection is under way, an operation stayed open, the pool was opened with an
    /// undo log or is damaged. That there is no room for what would move is no error ([`Ended::NoRoom`]). A cycle that moves objects stays open then; the next collection,
    /// trace or close ends it.
    /// Crash: at any moment; nothing is lost, and the next open goes on where this one stopped.
    pub fn collect(&self, options: &CollectOptions) -> Result<Collected, Error> {
        let mut collection = self.collection(options)?;
        while collection.cycle()? {}
        Ok(collection.collected)
    }

    /// Waits until the collection that is under way has ended one of its cycles, or ends: a pool that was full has room
    /// then, perhaps. While a collection closes pages, nothing is stored in what is free in them. False if none is under way, or none of
    /// that comes about in time. The calling thread must have no operation open, or nothing does.
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
        // What the device refused before it may have now: it is asked once.
        let mut space = inner.allocator.space().lock(&inner.medium);
        space.forget_refusals();
        drop(space);
        Ok(Collection::new(only, *options))
    }
}

/// The right to collect, or to keep others from it. One at a time.
pub(crate) struct OnlyOne<'p, M: Medium>(&'p Inner<M>);

impl<'p, M: Medium> OnlyOne<'p, M> {
    /// Errors: somebody has it; the pool is closed.
    pub(crate) fn of(inner: &'p Inner<M>) -> Result<Self, Error> {
        inner.check_process()?;
        if inner.collector.busy.swap(true, Ordering::AcqRel) {
            return Err(Error::Collecting);
        }
        let only = Self(inner);
        match inner.closed.load(Ordering::Acquire) {
            true => Err(Error::Closed),
            false => Ok(only),
        }
    }
}

impl<M: Medium> Drop for OnlyOne<'_, M> {
    fn drop(&mut self) {
        self.0.collector.busy.store(false, Ordering::Release);
    }
}

/// A collection under way. Dropped early, a cycle that moves objects goes on moving them at their
/// first touch, until the next collection or the close of the pool ends it.
pub struct Collection<'p, M: Medium> {
    inner: &'p Inner<M>,
    /// `None` once it is ended.
    only: Option<OnlyOne<'p, M>>,
    options: CollectOptions,
    collected: Collected,
    /// What the statistics page says of it already.
    published: Collected,
    /// From the last marking of this collection.
    known: Option<Known<M>>,
    /// What was taken up when its last cycle began.
    before: Option<(i64, i64)>,
    /// With the sources of the open cycle.
    progress: Option<Progress>,
}

impl<M: Medium> Drop for Collection<'_, M> {
    fn drop(&mut self) {
        self.forget();
        self.publish();
    }
}

impl<'p, M: Medium> Collection<'p, M> {
    fn new(only: OnlyOne<'p, M>, options: CollectOptions) -> Self {
        let patience_ns = u64::try_from(options.patience.as_nanos()).unwrap_or(u64::MAX);
        let collector = &only.0.collector;
        collector.patience_ns.store(patience_ns, Ordering::Relaxed);
        Self {
            inner: only.0,
            only: Some(only),
            options,
            collected: Collected::default(),
            published: Collected::default(),
            known: None,
            before: None,
            progress: None,
        }
    }

    /// Ends it, and hands on the right to collect.
    fn end(mut self) -> Option<OnlyOne<'p, M>> {
        self.only.take()
    }
}

impl<M: Medium> Collection<'_, M> {
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

    /// Marks, reclaims, chooses and plans, and puts the plan into force: from its return on objects
    /// move at their first touch. False if nothing is to be moved, or the last cycle won nothing: what
    /// a plan promises, the pool's holes may be too small to keep. Does nothing if a cycle is open
    /// already.
    ///
    /// Errors: as [`Pool::collect`].
    pub fn begin(&mut self) -> Result<bool, Error> {
        let inner = self.inner;
        if inner.collector.cycle(&inner.medium).is_some() {
            return Ok(true);
        }
        let before = self.footprint();
        if self.before.take().is_some_and(|last| before >= last) {
            self.collected.ended = Ended::NothingToWin;
            return Ok(false);
        }
        match inner.kind {
            PoolKind::Traced if self.must_mark() => self.mark_and_reclaim()?,
            PoolKind::Explicit if !inner.exact.load(Ordering::Acquire) => {
                self.timed(Step::Mark, Inner::recount_allocated)?;
            }
            PoolKind::Traced | PoolKind::Explicit => {}
        }
        if !self.options.scheme.moves {
            self.collected.ended = Ended::NothingMoves;
            return Ok(false);
        }
        let mut aim = self.options.aim();
        // Who has everything moved, to find pointers that are kept too long, wants that for as long as it goes.
        if !aim.everything {
            let most = inner.may_empty();
            if most == 0 {
                self.collected.ended = Ended::AddressesKept;
                return Ok(false);
            }
            aim.max_source_bytes = aim.max_source_bytes.min(most);
        }
        let survey = self.timed(Step::Summary, |inner| inner.look(&aim))?;
        self.collected.large_bytes = survey.stand.large_bytes;
        self.collected.pinned_bytes = survey.stand.pinned_bytes;
        let begun = self.timed(Step::Summary, |inner| inner.begin_cycle(&aim, survey))?;
        let (draft, cycle) = match begun {
            Begun::Plan(draft, frames) => (draft, frames),
            Begun::Not(why) => {
                self.collected.ended = why;
                return Ok(false);
            }
        };
        let moved = draft.units;
        let bytes = draft.filled_bytes();
        let scheme = self.options.scheme;
        if let Some(known) = &mut self.known {
            known.follow(&draft.entries);
        }
        self.timed(Step::Summary, |inner| inner.activate(draft, cycle, scheme))?;
        self.before = Some(before);
        self.collected.planned += moved;
        self.collected.planned_bytes += bytes;
        Ok(true)
    }

    /// Pages, and frames: those that are won in a huge page that stays are room for the next cycle.
    fn footprint(&self) -> (i64, i64) {
        let pages = |pages| self.inner.footprint_pages(pages);
        (pages(self.options.pages), pages(PageSize::Small))
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
    /// Errors: the medium cannot give blocks back; the cycle stays open.
    pub fn compact(&mut self, units: u64) -> Result<bool, Error> {
        let Some(cycle) = self.inner.collector.cycle(&self.inner.medium) else {
            return Ok(true);
        };
        let options = self.options;
        let mut progress = match self.progress.take() {
            Some(progress) => progress,
            None => Progress::new(&cycle),
        };
        let compacted = self.timed(Step::Compact, |inner| {
            inner.compact(&cycle, &mut progress, units, &options)
        });
        self.progress = Some(progress);
        let compacted = compacted?;
        self.collected.moved += compacted.moved;
        self.collected.released_bytes += compacted.released_bytes;
        Ok(compacted.all)
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
        if inner.keeps_addresses {
            self.timed(Step::Finish, |inner| inner.heal_pairs(&cycle))?;
        }
        self.timed(Step::Finish, |inner| inner.close_cycle(&cycle))?;
        if inner.keeps_addresses {
            let options = self.options;
            let released = self.timed(Step::Finish, |inner| {
                inner.release_kept(options.pages, options.everything)
            })?;
            self.collected.released_bytes += released;
        }
        inner.collector.cycles_ended.fetch_add(1, Ordering::Release);
        self.progress = None;
        self.collected.cycles += 1;
        self.collected.emptied_frames += cycle.entries.iter().map(frames_of).sum::<u64>();
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

impl<M: Medium> Inner<M> {
    /// Ends the cycle that is open, if one is, and keeps collections from beginning until the result is
    /// dropped.
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

    /// [`Inner::stop_for_cycle`], by the stop's name.
    pub(super) fn stop_for<R>(
        &self,
        stop: &firn_media::Step,
        change: impl FnOnce() -> R,
    ) -> Result<R, Error> {
        if self.medium.leaves_out(stop) {
            return Ok(change());
        }
        self.stop_for_cycle(change)
    }

    /// Stops the world for a step of the collector, and counts how long it stood.
    pub(super) fn stop_for_cycle<R>(&self, change: impl FnOnce() -> R) -> Result<R, Error> {
        let medium = &self.medium;
        let mut stops = Stops::default();
        let patience_ns = self.collector.patience_ns.load(Ordering::Relaxed);
        let result = self.stopped_within(patience_ns, &mut stops, change);
        self.collector.stops.lock(medium).add_all(&stops);
        publish_stops(self, &stops);
        result
    }

    /// Takes what the next plan needs. Where there is no room for what the emptiest page holds, some of what is
    /// in it moves: a few frames win a few more, and these more again, until there is. In a pool that cannot grow as
    /// it likes runs move, too, when no page is to be won any more: frames are what is left to be won.
    ///
    /// Errors: stop S was not granted, the frame table is damaged; everything is open again.
    fn begin_cycle(&self, aim: &Aim, survey: Survey) -> Result<Begun, Error> {
        let begun = self.begin_with(aim, &survey)?;
        // Where addresses stay, what is emptied of a page makes room for nobody.
        if aim.pages == PageSize::Small || aim.everything || self.keeps_addresses {
            return Ok(begun);
        }
        let target = match begun {
            Begun::Plan(..) => return Ok(begun),
            Begun::Not(Ended::NoRoom) => 1.0,
            // Only as far as a limit asks for.
            Begun::Not(_) => f64::INFINITY,
        };
        let small = Aim {
            pages: PageSize::Small,
            target,
            ..*aim
        };
        Ok(match self.begin_with(&small, &survey.in_frames())? {
            Begun::Not(_) => begun,
            plan => plan,
        })
    }

    /// Begins a cycle with the candidates of one survey: as many of them as win something.
    fn begin_with(&self, aim: &Aim, survey: &Survey) -> Result<Begun, Error> {
        let mut most = survey.candidates.len();
        let mut why = Ended::NothingToWin;
        loop {
            let choice = self.choose(aim, survey, most)?;
            if choice.lacks_room {
                why = Ended::NoRoom;
            }
            if choice.reached && why == Ended::NothingToWin {
                why = Ended::Target;
            }
            let sources = self.sources(aim, survey, &choice);
            if sources.is_empty() {
                return Ok(Begun::Not(why));
            }
            match self.prepare(aim, survey, sources)? {
                Begun::Plan(draft, frames) => return Ok(Begun::Plan(draft, frames)),
                Begun::Not(other) => why = why.max(other),
            }
            // Half of them may fit between what stays.
            if choice.count <= 1 {
                return Ok(Begun::Not(why));
            }
            most = choice.first + choice.count / 2;
        }
    }

    /// Closes the chosen sources and takes what their plan needs, which does not count yet. If it wins nothing,
    /// everything is as it was.
    ///
    /// Errors: stop S was not granted, the frame table is damaged; everything is open again.
    fn prepare(&self, aim: &Aim, survey: &Survey, chosen: Vec<Run>) -> Result<Begun, Error> {
        let mut draft = Draft::default();
        let prepared = self
            .close_runs(chosen, &mut draft.closed)
            .and_then(|()| self.plan(aim, &mut draft))
            .and_then(|()| match self.wins(aim, survey, &draft)? {
                true => self.take_plan_frames(&draft).map(Some),
                false => Ok(None),
            });
        match prepared {
            Ok(Some(frames)) => Ok(Begun::Plan(draft, frames)),
            Ok(None) => {
                let why = match draft.entries.len() < draft.closed.len() {
                    true => Ended::NoRoom,
                    false => Ended::NothingToWin,
                };
                self.abandon(&draft, Unused::AtOnce)?;
                Ok(Begun::Not(why))
            }
            Err(error) => {
                self.abandon(&draft, Unused::AtOnce)?;
                match error.is_no_room() {
                    true => Ok(Begun::Not(Ended::NoRoom)),
                    false => Err(error),
                }
            }
        }
    }

    /// Closes runs, those in sessions' hands too.
    fn close_runs(&self, chosen: Vec<Run>, closed: &mut Vec<Run>) -> Result<(), Error> {
        let medium = &self.medium;
        let mut open = Vec::new();
        for (i, run) in chosen.iter().enumerate() {
            if let Some(soon) = chosen.get(i + RUNS_AHEAD) {
                self.allocator.expect(medium, soon.frame.start());
            }
            match self.allocator.close_run(medium, run, self.redo.counter())? {
                true => closed.push(*run),
                false => open.push(*run),
            }
        }
        // Runs in sessions' hands come back while no operation is open; and from then on whatever is
        // in use in a closed run was committed.
        self.stop_for(&steps::STOP_FOR_SOURCES, || {
            self.allocator.drain_all(medium)?;
            for run in open {
                if self
                    .allocator
                    .close_run(medium, &run, self.redo.counter())?
                {
                    closed.push(run);
                }
            }
            Ok::<_, Error>(())
        })??;
        // Nothing is allocated in them any more, so what was pinned in them since they were chosen is known now.
        let fixed = self.collector.pinned.lock(medium).clone();
        for run in closed.extract_if(.., |run| fixed.contains(&run.frame)) {
            self.allocator
                .reopen_run(medium, &run, self.redo.counter())?;
        }
        Ok(())
    }

    fn take_plan_frames(&self, draft: &Draft) -> Result<PlanFrames, Error> {
        let medium = &self.medium;
        let header = PlanHeader {
            entries: draft.entries.len() as u64,
            units: draft.units,
            scheme: 0,
            checksum: 0,
        };
        let frames = header.frames();
        let run = match self.take_beside_plans(frames)? {
            Some(run) => run,
            None => {
                let durable = self.redo.known_durable();
                self.allocator
                    .take_frames(medium, frames, Purpose::Collection, durable)?
            }
        };
        medium.populate(run.start(), run.bytes());
        for frame in run.each() {
            let word = FrameUse::Plan.to_word();
            medium.store_u64(frame.word_at(), word);
        }
        Ok(PlanFrames(run))
    }

    /// Frames for a plan beside those that are kept, where they are kept and the device takes back whole pieces alone.
    fn take_beside_plans(&self, frames: u64) -> Result<Option<FrameRun>, Error> {
        if !self.plans_hold_pages() {
            return Ok(None);
        }
        let shared = self.pages_of_plans();
        self.allocator.take_for_plans(&self.medium, frames, &shared)
    }

    /// Undoes a plan that never counted.
    pub(super) fn abandon(&self, draft: &Draft, unused: Unused) -> Result<(), Error> {
        let medium = &self.medium;
        for (run, _, _) in &draft.filled {
            match unused {
                Unused::AtOnce => self.allocator.give_unused(medium, *run),
                Unused::InTime => {
                    self.allocator
                        .give_frames(medium, *run, self.redo.counter());
                }
            }
        }
        for run in &draft.closed {
            self.allocator
                .reopen_run(medium, run, self.redo.counter())?;
        }
        self.give_left_over();
        self.allocator.space().lock(medium).open_all();
        Ok(())
    }

    /// Large objects that were freed in runs that are no sources after all. Slots in such runs are free
    /// already.
    fn give_left_over(&self) {
        let medium = &self.medium;
        for place in self.allocator.take_held(medium) {
            if place.class.is_none() {
                self.allocator
                    .release_one(medium, place, self.redo.counter());
            }
        }
    }
}

/// Frames that were taken for a plan.
pub(super) struct PlanFrames(pub(super) FrameRun);

/// What came of the attempt to begin a cycle.
enum Begun {
    Plan(Draft, PlanFrames),
    Not(Ended),
}

/// When destinations that are not filled after all may be used again.
#[derive(Clone, Copy)]
pub(super) enum Unused {
    /// At once: nothing of them was written back but that they were reserved.
    AtOnce,
    /// Once a fence has passed what was written back of them.
    InTime,
}

/// Writes a plan, and writes it back.
pub(super) fn write_plan<M: Medium>(
    medium: &M,
    plan: Frame,
    draft: &Draft,
    scheme: &'static Scheme,
) -> PlanHeader {
    let _scope = medium.scope(Scope::Summary);
    let mut checksum = EntriesChecksum::default();
    for (piece, entries) in draft.entries.chunks(WRITTEN_TOGETHER).enumerate() {
        let mut words = [0; WRITTEN_TOGETHER * ENTRY_WORDS];
        for (words, entry) in words.chunks_exact_mut(ENTRY_WORDS).zip(entries) {
            words.copy_from_slice(&entry.to_words());
        }
        let words = &words[..entries.len() * ENTRY_WORDS];
        checksum.update(words);
        let at = PlanHeader::entry_at(plan, (piece * WRITTEN_TOGETHER) as u64);
        medium.store_bytes(at, bytemuck::cast_slice(words));
    }
    let header = PlanHeader {
        entries: draft.entries.len() as u64,
        units: draft.units,
        scheme: scheme.number,
        checksum: checksum.value(),
    };
    medium.store_bytes(plan.start(), bytemuck::cast_slice(&header.to_words()));
    medium.zero(header.settled_at(plan), header.units * WORD_BYTES);
    let bytes = (1 + header.entries) * LINE_BYTES + header.units * WORD_BYTES;
    medium.write_back_for(&steps::PLAN_WRITE_BACK, plan.start(), bytes);
    header
}
