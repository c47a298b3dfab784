//! Frames taken and given back whole: for plans and logs.

use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, FrameRun};
use firn_media::Medium;
use std::collections::BTreeSet;

use super::frames::Reach;
use super::reserve::Purpose;
use super::slots::Allocator;
use crate::error::Error;

impl<M: Medium> Allocator<M> {
    /// Takes frames for a log's overflow. Nothing of it needs to reach media but what it will hold.
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

    /// Takes frames for a collection, whose words are still those of free ones.
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

    /// Takes frames for a plan that is kept, see [`super::frames::Space::take_for_plans`].
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

    /// Gives frames back in which nothing was stored since they were taken, but their words: they were free of
    /// what may be replayed then, and are.
    pub(crate) fn give_unused(&self, medium: &M, run: FrameRun) {
        self.leave(run);
        let mut space = self.space.lock(medium);
        store_free(medium, run);
        space.give_at_once(run);
    }

    /// Gives frames back: their words say so, and what may be replayed into them is waited for.
    pub(crate) fn give_frames(&self, medium: &M, run: FrameRun, stamp: u64) {
        self.leave(run);
        // Whoever looks at a chunk first believes these words, unless the run waits in quarantine: both
        // change under the lock.
        let mut space = self.space.lock(medium);
        store_free(medium, run);
        space.give(run, stamp);
    }

    /// Keeps what an entry has outside its slot until recovery will not read it ([`Allocator::end_logs`]).
    pub(crate) fn keep_log(&self, medium: &M, number: u64, runs: &[FrameRun]) {
        if !runs.is_empty() {
            self.space.lock(medium).keep_log(number, runs);
        }
    }

    /// Whether anything is kept so.
    pub(crate) fn keeps_logs(&self, medium: &M) -> bool {
        self.space.lock(medium).keeps_logs()
    }

    /// Gives back what is kept of entries below `shown`, than which a durable W is not lower: whose session is idle
    /// does not hold frames that others need.
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

/// Says on media that frames are free.
fn store_free<M: Medium>(medium: &M, run: FrameRun) {
    for frame in run.each() {
        medium.store_u64(frame.word_at(), FrameUse::Free.to_word());
    }
}
