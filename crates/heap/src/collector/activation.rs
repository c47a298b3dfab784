//! The beginning of a cycle: its plan becomes durable and then takes effect.

use std::sync::Arc;

use firn_format::geometry::BITMAP_BYTES;
use firn_format::plan::Phase;
use firn_format::statistics::{Counter, WORDS};
use firn_format::superblock::PoolKind;
use firn_media::{Medium, MediumExt};

use super::active::Active;
use super::compaction_plan::CompactionPlan;
use super::planned::{Planned, Unused, abandon};
use crate::alloc::Place;
use crate::error::Error;
use crate::inner::Inner;
use crate::order::{Perturbation, Perturbed, in_order};
use crate::relocation::cycle::Cycle;
use crate::relocation::media::{WriteBacks, store_phase, write_back_bitmap};
use crate::relocation::plan::write_plan;
use crate::relocation::scheme::Scheme;
use crate::stat_shard;
use crate::steps;
use crate::tx::redo::Ring;
use firn_format::geometry::FrameRun;

/// About this many freed objects, at most, are taken out of a plan while the world is stopped.
const FEW_FREED: usize = 256;

impl<'p, M: Medium> Planned<'p, M> {
    /// Makes the plan durable, then puts it into force.
    ///
    /// Errors: an operation stayed open, the frame table is damaged; the planning is undone.
    pub(super) fn activate(self, scheme: &'static Scheme) -> Result<Active<'p, M>, Error> {
        let (inner, frames, mut plan) = (self.inner, self.frames, self.plan);
        let medium = &inner.medium;
        let header = write_plan(medium, frames.frame, &plan.entries, plan.units, scheme);
        let words = &mut Words {
            inner,
            plan: &plan,
            frames,
        };
        in_order!(words => write_back_words, persist_words);
        in_order!(try words => fill);
        in_order!(words => write_back_bits);
        let entries = core::mem::take(&mut plan.entries);
        let cycle = Cycle::new(medium, frames.frame, header, scheme, entries)?;
        let cycle = Arc::new(cycle);
        cycle.clear_reached(medium);
        cycle.install_lookup(medium);
        populate(inner, &plan);
        count_filled(inner, &cycle)?;
        let activation = &mut Activation {
            inner,
            cycle: &cycle,
            ring: Ring::default(),
        };
        match activation.carry_out() {
            Ok(()) => Ok(Active::new(inner, cycle)),
            Err(error) => {
                cycle.retire_lookup(medium);
                uncount_filled(inner, &cycle)?;
                let stamp = inner.redo.counter();
                inner.allocator.give_frames(medium, frames, stamp);
                abandon(inner, &plan, Unused::InTime)?;
                Err(error)
            }
        }
    }
}

/// Populates the pages of destinations before any thread waits for a copy.
fn populate<M: Medium>(inner: &Inner<M>, plan: &CompactionPlan) {
    let mut runs: Vec<FrameRun> = plan.filled.iter().map(|(run, _, _)| *run).collect();
    runs.sort_unstable_by_key(|run| run.frame);
    for run in runs.chunk_by(|one, next| one.frame.plus(one.frames) == next.frame) {
        let bytes = run.iter().map(FrameRun::bytes).sum();
        inner.medium.populate(run[0].start(), bytes);
    }
}

/// From now on destinations count as pages with objects.
fn count_filled<M: Medium>(inner: &Inner<M>, cycle: &Cycle<M>) -> Result<(), Error> {
    let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
    for run in &cycle.destinations {
        let footprint =
            inner
                .allocator
                .set_run_live(&inner.medium, run.frame, run.frames, run.units)?;
        change[Counter::LiveFrames.word()] += footprint.frames;
        change[Counter::LiveChunks.word()] += footprint.chunks;
    }
    stat_shard::add(&inner.medium, &change);
    Ok(())
}

/// Undoes the counting, and in explicit pools its traces on media: the bits of free frames are clear.
fn uncount_filled<M: Medium>(inner: &Inner<M>, cycle: &Cycle<M>) -> Result<(), Error> {
    let medium = &inner.medium;
    let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
    for run in &cycle.destinations {
        let footprint = inner
            .allocator
            .set_run_live(medium, run.frame, run.frames, 0)?;
        change[Counter::LiveFrames.word()] += footprint.frames;
        change[Counter::LiveChunks.word()] += footprint.chunks;
        if inner.kind == PoolKind::Explicit {
            medium.zero(run.frame.bitmap_at(), BITMAP_BYTES);
            medium.write_back(run.frame.bitmap_at(), BITMAP_BYTES);
        }
    }
    stat_shard::add(medium, &change);
    Ok(())
}

/// Objects that were freed in the sources since they were planned do not live at their destinations either.
fn leave_out<M: Medium>(inner: &Inner<M>, cycle: &Cycle<M>, freed: &[Place]) -> Result<(), Error> {
    let medium = &inner.medium;
    let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
    for &place in freed
        .iter()
        .filter(|_| medium.keeps(&steps::FREED_LEFT_OUT))
    {
        let bytes = place.class.map_or(0, |class| class.slot_bytes());
        let Some(unit) = cycle.find(medium, place.frame.start() + place.index * bytes) else {
            // The run is no longer planned; its slots are free already.
            if place.class.is_none() {
                inner
                    .allocator
                    .release_one(medium, place, inner.redo.counter());
            }
            continue;
        };
        let slot = inner.allocator.locate(medium, unit.to)?;
        inner.allocator.unfill(medium, slot.place)?;
        let footprint = inner.allocator.count_live(medium, slot.place, -1)?;
        change[Counter::LiveFrames.word()] += footprint.frames;
        change[Counter::LiveChunks.word()] += footprint.chunks;
        if slot.place.class.is_none() {
            // Held until the cycle ends, which gives its frames back.
            inner
                .allocator
                .release_one(medium, slot.place, inner.redo.counter());
        }
    }
    stat_shard::add(medium, &change);
    Ok(())
}

/// The frame words on media of the frames that a plan fills, before the plan counts (rule 1). The fences of the
/// activation cover the last write-backs.
struct Words<'a, M: Medium> {
    inner: &'a Inner<M>,
    plan: &'a CompactionPlan,
    /// The frames of the plan itself.
    frames: FrameRun,
}

impl<M: Medium> Words<'_, M> {
    /// Writes back the words of destinations, which are reserved, and of the plan's own frames.
    fn write_back_words(&mut self) {
        let mut lines = WriteBacks::new(&self.inner.medium);
        let destinations = self.plan.filled.iter().map(|(run, ..)| run);
        for run in destinations.chain([&self.frames]) {
            lines.words(run.frame, run.frames);
        }
    }

    /// Where allocation bits are the truth, the words are durable first. The frees of these frames did not wait for a
    /// fence: media may still describe a run of another class, or a large object, and the bits would then be read as
    /// its objects.
    fn persist_words(&mut self) {
        if self.inner.logs_allocation() {
            let medium = &self.inner.medium;
            medium.fence_for(&steps::DESTINATION_WORDS_FENCE);
        }
    }

    /// Marks the slots of the destinations that will be filled.
    ///
    /// Errors: the frame table is damaged.
    fn fill(&mut self) -> Result<(), Error> {
        let (allocator, medium) = (&self.inner.allocator, &self.inner.medium);
        let mut destinations = self.plan.filled.iter();
        destinations.try_for_each(|(run, class, units)| {
            allocator.fill_run(medium, run.frame, *class, *units)
        })
    }

    fn write_back_bits(&mut self) {
        if self.inner.logs_allocation() {
            for (run, class, _) in &self.plan.filled {
                write_back_bitmap(&self.inner.medium, run.frame, *class);
            }
        }
    }
}

/// A plan that is about to count.
struct Activation<'a, M: Medium> {
    inner: &'a Inner<M>,
    cycle: &'a Arc<Cycle<M>>,
    ring: Ring,
}

impl<M: Medium> Activation<'_, M> {
    /// Errors: an operation stayed open; as [`Activation::leave_freed_out`].
    fn carry_out(&mut self) -> Result<(), Error> {
        let activation = self;
        // Most of the objects that the program frees meanwhile are left out, and most homes are made durable, before
        // the world stops; little remains for the stop.
        while activation.leave_freed_slots_out()? > FEW_FREED {}
        in_order!(activation => settle_homes);
        let inner = activation.inner;
        inner.stop_for(&steps::STOP_FOR_PLAN, || {
            in_order!(try activation => leave_freed_out);
            in_order!(activation => retire_entries, store_active, enter);
            Ok(())
        })?
    }

    /// Leaves out the slots that were freed in the sources since they were planned. Returns how many.
    fn leave_freed_slots_out(&mut self) -> Result<usize, Error> {
        let (inner, medium) = (self.inner, &self.inner.medium);
        let freed = inner.allocator.take_held_slots(medium);
        leave_out(inner, self.cycle, &freed)?;
        Ok(freed.len())
    }

    /// Leaves out the rest of what was freed, while no operation is open.
    ///
    /// Errors: the frame table is damaged.
    fn leave_freed_out(&mut self) -> Result<(), Error> {
        let freed = self.inner.allocator.take_held(&self.inner.medium);
        leave_out(self.inner, self.cycle, &freed)
    }

    fn settle_homes(&mut self) {
        let (redo, medium) = (&self.inner.redo, &self.inner.medium);
        redo.settle_homes(medium, &mut self.ring);
    }

    /// Rule 1, C1: before the phase says so, the plan and all homes are durable, and `W_pool` equals the counter.
    fn retire_entries(&mut self) {
        let (redo, medium) = (&self.inner.redo, &self.inner.medium);
        redo.retire(medium, &mut self.ring);
    }

    fn store_active(&mut self) {
        store_phase(&self.inner.medium, Phase::Active(self.cycle.plan));
    }

    /// Puts the cycle into force.
    fn enter(&mut self) {
        let (inner, medium) = (self.inner, &self.inner.medium);
        inner
            .collector
            .set_cycle(medium, Some(Arc::clone(self.cycle)));
        if inner.keeps_addresses {
            inner.collector.retained.mark(self.cycle);
        }
    }
}

/// The faults that the crash medium plants.
impl<M: Medium> Perturbed for Words<'_, M> {
    type Medium = M;

    fn medium(&self) -> &M {
        &self.inner.medium
    }

    fn perturbations() -> Vec<Perturbation<Self>> {
        vec![
            Perturbation::left_out(&steps::PLAN_WORDS_WRITE_BACK, "write_back_words"),
            Perturbation::left_out(&steps::DESTINATION_BITS_WRITE_BACK, "write_back_bits"),
        ]
    }
}

/// The faults that the crash medium plants.
impl<M: Medium> Perturbed for Activation<'_, M> {
    type Medium = M;

    fn medium(&self) -> &M {
        &self.inner.medium
    }

    fn perturbations() -> Vec<Perturbation<Self>> {
        vec![Perturbation::left_out(
            &steps::HOMES_BEFORE_ACTIVE,
            "retire_entries",
        )]
    }
}
