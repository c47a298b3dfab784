//! The state of cycles on media: the phase word, the frames of an ended cycle, and the list of retained plans.

use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_BYTES, BITMAP_WORDS, Frame, KEPT, PHASE};
use firn_format::plan::{Phase, PlanHeader};
use firn_format::sealed::Seal;
use firn_format::superblock::PoolKind;
use firn_media::{Medium, MediumExt, Step};
use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES};

use super::cycle::Cycle;
use super::plan::frames_of;
use crate::error::Error;
use crate::steps;

/// Reads the collector's phase.
///
/// Errors: the word is damaged.
pub(crate) fn phase<M: Medium>(medium: &M) -> Result<Phase, Error> {
    let value = Seal::Phase.open_at(medium.load_u64(PHASE), PHASE)?;
    Ok(Phase::from_value(value, PHASE)?)
}

/// Stores the phase and makes it durable.
pub(crate) fn store_phase<M: Medium>(medium: &M, phase: Phase) {
    let step: &Step = match phase {
        Phase::Active(_) => &steps::ACTIVE_PERSIST,
        Phase::Release(_) => &steps::RELEASE_PERSIST,
        Phase::Idle => &steps::IDLE_PERSIST,
    };
    medium.store_u64(PHASE, Seal::Phase.seal(phase.to_value()));
    medium.persist_for(step, PHASE, WORD_BYTES);
}

/// Writes to media that the sources are free, or that they and the plan are retained, and that the destinations are
/// ordinary runs; then that no cycle is open. Recovery repeats this if a crash interrupts it.
///
/// Errors: the list of retained plans is damaged.
pub(crate) fn release_on_media<M: Medium>(
    medium: &M,
    cycle: &Cycle<M>,
    kind: PoolKind,
    keeps: bool,
) -> Result<(), Error> {
    let mut lines = WriteBacks::new(medium);
    let emptied = match keeps && medium.keeps(&steps::KEPT_WORDS) {
        true => FrameUse::Kept,
        false => FrameUse::Free,
    };
    if keeps {
        let frames = cycle.header.entry_frames();
        for i in 0..frames {
            let at = cycle.plan.plus(i).word_at();
            medium.store_u64(at, FrameUse::Kept.to_word());
        }
        lines.words(cycle.plan, frames);
        link_plan(medium, cycle.plan)?;
    }
    for entry in &cycle.entries {
        let frames = frames_of(entry);
        for i in 0..frames {
            let at = entry.source.plus(i).word_at();
            medium.store_u64(at, emptied.to_word());
        }
        if kind == PoolKind::Explicit {
            medium.zero(entry.source.bitmap_at(), BITMAP_BYTES);
            let at = entry.source.bitmap_at();
            medium.write_back_for(&steps::SOURCE_BITS_WRITE_BACK, at, BITMAP_BYTES);
        }
        lines.words(entry.source, frames);
    }
    for run in &cycle.destinations {
        let what = run
            .class
            .map_or(FrameUse::Large { frames: run.frames }, FrameUse::Slots);
        medium.store_u64(run.frame.word_at(), what.to_word());
        if medium.keeps(&steps::FILLED_WRITE_BACK) {
            lines.words(run.frame, 1);
        }
    }
    drop(lines);
    medium.fence_for(&steps::RELEASED_FENCE);
    if keeps {
        store_head(medium, Some(cycle.plan));
    }
    store_phase(medium, Phase::Idle);
    Ok(())
}

/// Write-backs of stores; consecutive stores to a line share one. The last one is issued on drop.
pub(crate) struct WriteBacks<'m, M: Medium> {
    medium: &'m M,
    /// The last line that was stored to.
    line: Option<VirtAddr>,
}

impl<'m, M: Medium> WriteBacks<'m, M> {
    pub(crate) fn new(medium: &'m M) -> Self {
        Self { medium, line: None }
    }

    /// Adds the words of a run's frames.
    pub(crate) fn words(&mut self, first: Frame, frames: u64) {
        for i in 0..frames {
            let line = first.plus(i).word_at().line_start();
            if self.line != Some(line) {
                self.write_back();
                self.line = Some(line);
            }
        }
    }

    fn write_back(&mut self) {
        if let Some(line) = self.line.take() {
            self.medium.write_back(line, LINE_BYTES);
        }
    }
}

impl<M: Medium> Drop for WriteBacks<'_, M> {
    fn drop(&mut self) {
        self.write_back();
    }
}

/// Writes back the media's bitmap of a destination run.
pub(crate) fn write_back_bitmap<M: Medium>(medium: &M, frame: Frame, class: Option<Class>) {
    let words = class
        .map_or(1, |class| class.slots().div_ceil(64))
        .min(BITMAP_WORDS);
    medium.write_back(frame.bitmap_at(), words * WORD_BYTES);
}

/// The plan at the head of the list.
///
/// Errors: the word is damaged.
pub(super) fn retained_head<M: Medium>(medium: &M) -> Result<Option<Frame>, Error> {
    match medium.load_u64(KEPT) {
        // The pool is older than such lists.
        0 => Ok(None),
        word => {
            let value = Seal::Kept.open_at(word, KEPT)?;
            Ok((value != 0).then_some(Frame(value)))
        }
    }
}

/// Links a plan, whose cycle is in RELEASE, to the one that was retained before it. The caller makes that durable.
///
/// Recovery repeats this and may find the plan at the head: then the link is already there.
fn link_plan<M: Medium>(medium: &M, plan: Frame) -> Result<(), Error> {
    let before = retained_head(medium)?;
    if before != Some(plan) {
        let at = PlanHeader::before_at(plan);
        medium.store_u64(at, Seal::KeptBefore.seal(before.map_or(0, |frame| frame.0)));
        medium.write_back_for(&steps::KEPT_LINK_WRITE_BACK, at, WORD_BYTES);
    }
    Ok(())
}

/// Makes a plan, whose link is durable, the head of the list; or empties the list.
pub(crate) fn store_head<M: Medium>(medium: &M, plan: Option<Frame>) {
    medium.store_u64(KEPT, Seal::Kept.seal(plan.map_or(0, |frame| frame.0)));
    medium.persist_for(&steps::KEPT_HEAD_PERSIST, KEPT, WORD_BYTES);
}
