//! Chunks from which frames are taken only as a last resort, or not at all; and taking frames from a given chunk.

use firn_format::geometry::Chunk;
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAMES_PER_CHUNK};

use super::chunk_frames::ChunkFrames;
use super::frames::{CHUNKS_TO_RESERVE, Space};
use crate::error::Error;
use firn_format::geometry::FrameRun;

impl Space {
    /// Closes a chunk: nothing is taken from it until it is opened again.
    pub(crate) fn close(&mut self, chunk: Chunk) {
        if let Some(frames) = self.chunks.get_mut(chunk.0 as usize) {
            frames.closed = true;
        }
    }

    /// From now on takes frames of a chunk only if there are no others.
    pub(crate) fn deprioritise(&mut self, chunk: Chunk) {
        if let Some(frames) = self.chunks.get_mut(chunk.0 as usize) {
            frames.deprioritised = frames.count < FRAMES_PER_CHUNK;
        }
    }

    /// From now on leaves the free frames of a chunk to plans, if it was looked at and is in use.
    pub(crate) fn reserve_chunk(&mut self, chunk: Chunk) {
        let known = self.chunks.get_mut(chunk.0 as usize).filter(|c| c.known);
        if let Some(frames) = known {
            frames.reserved_for_plans = frames.count < FRAMES_PER_CHUNK;
        }
    }

    /// Reserves a chunk in which an object was pinned: one at a time, and none in a small pool.
    pub(crate) fn reserve_pinned(&mut self, chunk: Chunk) {
        let is_small = self.limits.max_bytes < CHUNKS_TO_RESERVE * CHUNK_BYTES;
        let has_room = |c: &ChunkFrames| c.reserved_for_plans && c.count > 0;
        if !is_small && !self.chunks.get(self.reserved_pinned).is_some_and(has_room) {
            self.reserve_chunk(chunk);
            self.reserved_pinned = chunk.0 as usize;
        }
    }

    /// Stops reserving a chunk for plans: it no longer holds anything that never moves.
    pub(crate) fn unreserve(&mut self, chunk: Chunk) {
        let index = chunk.0 as usize;
        if let Some(frames) = self.chunks.get_mut(index).filter(|c| c.reserved_for_plans) {
            frames.reserved_for_plans = false;
            self.may_be_free_from(index);
        }
    }

    /// Opens every closed chunk.
    pub(crate) fn open_all(&mut self) {
        self.offer(|chunk| chunk.closed = false);
    }

    /// Opens every closed chunk, and ends all deprioritising and reserving.
    pub(crate) fn offer_all(&mut self) {
        self.offer(|chunk| {
            (chunk.closed, chunk.deprioritised, chunk.reserved_for_plans) = (false, false, false);
            chunk.for_plans = false;
        });
    }

    fn offer(&mut self, change: impl Fn(&mut ChunkFrames)) {
        for (index, chunk) in self.chunks.iter_mut().enumerate() {
            if chunk.is_offered() {
                continue;
            }
            change(chunk);
            for hint in &mut self.hints {
                *hint = (*hint).min(index);
            }
        }
    }

    /// Takes a run of frames from this chunk, like [`Space::take`], if it has one.
    pub(crate) fn take_in<M: Medium>(
        &mut self,
        medium: &M,
        chunk: Chunk,
        frames: u64,
    ) -> Result<Option<FrameRun>, Error> {
        loop {
            let open = self.chunks.get(chunk.0 as usize).filter(|c| c.is_open());
            let found = open.and_then(|c| match self.passed_over(c) {
                0 => c.find(frames),
                groups => c.without(groups).find(frames),
            });
            let Some(first) = found else { return Ok(None) };
            let run = FrameRun {
                frame: chunk.first_frame().plus(first),
                frames,
            };
            match self.back(medium, run) {
                // That group turned out to be hollow; others may not be.
                Err(error) if error.is_no_room() => continue,
                other => other?,
            }
            self.mark(run, false);
            return Ok(Some(run));
        }
    }
}
