//! Whole frames, taken and given back for plans and logs.

use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, FrameRun};
use firn_media::Medium;
use std::collections::BTreeSet;

use super::frames::Reach;
use super::reserve::Purpose;
use super::slots::Allocator;
use crate::error::Error;

impl<M: Medium> Allocator<M> {
    /// Takes frames for a log's overflow. Only its content will need to reach media.
    pub(crate) fn take_log(
        &self,
        medium: &M,
        frames: u64,
        from: (u64, Reach),
    ) -> Result<FrameRun, Error> {
        let run = self.take_within(medium, frames, Purpose::Log, from)?;
        for frame in run.each() {
            medium.store_u64(frame.word_at(), FrameUse::Log.to_word());
        }
        Ok(run)
    }

    /// Takes frames for a collection; their words still say free.
    pub(crate) fn take_frames(
        &self,
        medium: &M,
        frames: u64,
        purpose: Purpose,
        durable: u64,
    ) -> Result<FrameRun, Error> {
        self.take_within(medium, frames, purpose, (durable, Reach::Growing))
    }

    /// Takes frames, and lets the pool grow only as far as `from` says.
    pub(super) fn take_within(
        &self,
        medium: &M,
        frames: u64,
        purpose: Purpose,
        from: (u64, Reach),
    ) -> Result<FrameRun, Error> {
        let chunks = &self.chunks;
        let run = self.space.take(medium, chunks, frames, purpose, from)?;
        // The chunks' states are read before their words change, see `Chunks::load`.
        self.chunks.get_all(medium, run.frame, run.frames)?;
        Ok(run)
    }

    /// Takes frames for a retained plan, see [`super::frames::Space::take_for_plans`].
    pub(crate) fn take_for_plans(
        &self,
        medium: &M,
        frames: u64,
        shared: &BTreeSet<Chunk>,
    ) -> Result<Option<FrameRun>, Error> {
        let mut space = self.space.lock(medium);
        let taken = space.take_for_plans(medium, frames, shared)?;
        drop(space);
        if let Some(run) = taken {
            self.chunks.get_all(medium, run.frame, run.frames)?;
        }
        Ok(taken)
    }

    /// Gives back frames to which nothing but their words was stored since they were taken: no entry could be replayed
    /// into them then, and none can now.
    pub(crate) fn give_unused(&self, medium: &M, run: FrameRun) {
        self.leave(run);
        let mut space = self.space.lock(medium);
        store_free(medium, run);
        space.give_at_once(run);
    }

    /// Gives frames back: their words say free, and they wait until no entry can be replayed into them.
    pub(crate) fn give_frames(&self, medium: &M, run: FrameRun, stamp: u64) {
        self.leave(run);
        // The first look at a chunk trusts these words, unless the run waits in quarantine: both change under the lock.
        let mut space = self.space.lock(medium);
        store_free(medium, run);
        space.give(run, stamp);
    }

    /// Keeps the frames of an entry outside its slot until recovery will not read it ([`Allocator::end_logs`]).
    pub(crate) fn keep_log(&self, medium: &M, number: u64, runs: &[FrameRun]) {
        if !runs.is_empty() {
            self.space.lock(medium).keep_log(number, runs);
        }
    }

    /// Whether any such frames are kept.
    pub(crate) fn keeps_logs(&self, medium: &M) -> bool {
        self.space.lock(medium).keeps_logs()
    }

    /// Gives back the frames of entries below `shown`, a lower bound of the durable W: an idle session does not hold
    /// frames that others need.
    pub(crate) fn end_logs(&self, medium: &M, shown: u64) {
        let mut space = self.space.lock(medium);
        for run in space.take_ended_logs(shown) {
            store_free(medium, run);
            space.give_at_once(run);
        }
    }

    /// Gives the overflow of a log back.
    pub(crate) fn give_log(&self, medium: &M, run: FrameRun) {
        let mut space = self.space.lock(medium);
        store_free(medium, run);
        space.give_at_once(run);
    }
}

/// Marks frames free on media.
fn store_free<M: Medium>(medium: &M, run: FrameRun) {
    for frame in run.each() {
        medium.store_u64(frame.word_at(), FrameUse::Free.to_word());
    }
}
