//! The end of a cycle: the plan ceases to count, the emptied pages are free.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_format::geometry::FrameRun;
use firn_format::plan::Phase;
use firn_format::statistics::{Counter, WORDS};
use firn_media::{Medium, MediumExt, Scope};

use super::drained::Drained;
use crate::error::Error;
use crate::inner::Inner;
use crate::order::{Perturbation, Perturbed, in_order};
use crate::relocation::Cycle;
use crate::relocation::media::{release_on_media, store_phase};
use crate::relocation::plan::frames_of;
use crate::stat_shard;
use crate::steps;

impl<M: Medium> Drained<'_, M> {
    /// Ends a cycle whose objects have all moved and whose references are all healed.
    ///
    /// Crash: until the phase is RELEASE the cycle is resumed; from then on recovery frees the pages.
    /// Errors: an operation stayed open.
    pub(super) fn close(&self) -> Result<(), Error> {
        let _scope = self.inner.medium.scope(Scope::Finish);
        let release = &mut Release {
            inner: self.inner,
            cycle: &self.cycle,
        };
        in_order!(try release => look_at_all);
        in_order!(release => write_back_copies, persist_copies);
        in_order!(try release => leave_cycle, release_on_media);
        in_order!(release => end_releasing);
        in_order!(try release => open_pages);
        in_order!(release => free_deferred);
        Ok(())
    }
}

/// A cycle that is being ended (T4).
struct Release<'r, M: Medium> {
    inner: &'r Inner<M>,
    cycle: &'r Arc<Cycle<M>>,
}

impl<M: Medium> Release<'_, M> {
    /// Loads every chunk's state. The first access to a chunk trusts its frame words, so it must come before the words
    /// of the sources change.
    ///
    /// Errors: the frame table is damaged.
    fn look_at_all(&mut self) -> Result<(), Error> {
        self.inner.allocator.look_at_all(&self.inner.medium)
    }

    fn write_back_copies(&mut self) {
        let entries = self.cycle.entries.iter();
        entries.for_each(|entry| self.cycle.write_back_copies(&self.inner.medium, entry));
    }

    /// Copies and healed references are durable before the phase says so.
    fn persist_copies(&mut self) {
        self.inner.medium.fence_for(&steps::COPIES_FENCE);
    }

    /// T4d: sets the phase to RELEASE once every operation that began before the references were healed has ended.
    ///
    /// Errors: an operation stayed open.
    fn leave_cycle(&mut self) -> Result<(), Error> {
        self.inner.stop_for_cycle(|| {
            let release = self;
            in_order!(release => store_release, forward_handles, retire_lookup, leave);
        })
    }

    fn store_release(&mut self) {
        store_phase(&self.inner.medium, Phase::Release(self.cycle.plan));
    }

    /// E: handles name destinations from now on.
    fn forward_handles(&mut self) {
        let medium = &self.inner.medium;
        let forward = |word| self.cycle.forward_word(medium, word);
        self.inner.handles.forward(medium, forward);
    }

    fn retire_lookup(&mut self) {
        self.cycle.retire_lookup(&self.inner.medium);
    }

    /// Takes the cycle out of force.
    fn leave(&mut self) {
        let (inner, medium) = (self.inner, &self.inner.medium);
        let cycle = Some(Arc::clone(self.cycle));
        inner.collector.set_releasing(medium, cycle);
        inner.collector.set_cycle(medium, None);
        inner.collector.set_deferring(false);
        if inner.keeps_addresses {
            inner.collector.retained.add(medium, self.cycle);
        }
    }

    /// Writes to media that the pages are free, then that no cycle is open.
    ///
    /// Errors: the list of retained plans is damaged.
    fn release_on_media(&mut self) -> Result<(), Error> {
        let inner = self.inner;
        release_on_media(&inner.medium, self.cycle, inner.kind, inner.keeps_addresses)
    }

    fn end_releasing(&mut self) {
        let collector = &self.inner.collector;
        collector.set_releasing(&self.inner.medium, None);
    }

    /// T4e: opens pages for reuse once media says that they are free.
    ///
    /// Errors: the frame table is damaged.
    fn open_pages(&mut self) -> Result<(), Error> {
        open_pages(self.inner, self.cycle)
    }

    /// M7: frees the slots that were freed while a collector step read objects by address.
    fn free_deferred(&mut self) {
        let (inner, medium) = (self.inner, &self.inner.medium);
        for place in inner.collector.take_deferred(medium) {
            let stamp = inner.redo.counter();
            inner.allocator.release_one(medium, place, stamp);
        }
    }
}

/// The faults that the crash medium plants.
impl<M: Medium> Perturbed for Release<'_, M> {
    type Medium = M;

    fn medium(&self) -> &M {
        &self.inner.medium
    }

    fn perturbations() -> Vec<Perturbation<Self>> {
        let open_pages = || -> (_, fn(&mut Self)) {
            ("open_pages", |release| {
                release.open_pages().expect("a sound table")
            })
        };
        vec![
            Perturbation::left_out(&steps::COPIES_WRITE_BACK, "write_back_copies"),
            Perturbation::moved(&steps::PAGES_AFTER_RELEASE, open_pages(), "leave_cycle"),
            Perturbation::left_out(&steps::HANDLES_FORWARDED, "forward_handles"),
            Perturbation::moved(&steps::PAGES_AFTER_IDLE, open_pages(), "release_on_media"),
        ]
    }
}

/// The volatile side: emptied and filled frames may be used again.
fn open_pages<M: Medium>(inner: &Inner<M>, cycle: &Cycle<M>) -> Result<(), Error> {
    let medium = &inner.medium;
    let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
    // T4e: the phase is durable. Entries that name settled words may still be replayed, so the
    // plan's frames wait as all freed frames do (A2).
    let stamp = inner.redo.counter();
    for entry in &cycle.entries {
        let frames = frames_of(entry);
        let footprint = inner
            .allocator
            .set_run_live(medium, entry.source, frames, 0)?;
        change[Counter::LiveFrames.word()] += footprint.frames;
        change[Counter::LiveChunks.word()] += footprint.chunks;
        if cycle.lacks_blocks.load(Ordering::Relaxed) {
            let run = FrameRun {
                frame: entry.source,
                frames,
            };
            inner.allocator.space().lock(medium).may_lack_blocks(run);
        }
        if inner.keeps_addresses && footprint.chunks < 0 {
            inner
                .allocator
                .space()
                .lock(medium)
                .deprioritise(entry.source.chunk());
        }
        match inner.keeps_addresses {
            true => inner.allocator.leave_emptied(entry.source),
            false => inner
                .allocator
                .give_emptied(medium, entry.source, frames, stamp),
        }
    }
    for run in &cycle.destinations {
        inner
            .allocator
            .open_filled(medium, run.frame, run.class, stamp)?;
    }
    for place in inner.allocator.take_held(medium) {
        inner.allocator.release_one(medium, place, stamp);
    }
    let kept = match inner.keeps_addresses {
        true => cycle.header.entry_frames(),
        false => 0,
    };
    let plan = FrameRun {
        frame: cycle.plan.plus(kept),
        frames: cycle.header.frames() - kept,
    };
    if plan.frames > 0 {
        inner.allocator.give_frames(medium, plan, stamp);
    }
    let mut space = inner.allocator.space().lock(medium);
    space.keep_plan(kept);
    space.open_all();
    drop(space);
    stat_shard::add(medium, &change);
    Ok(())
}
