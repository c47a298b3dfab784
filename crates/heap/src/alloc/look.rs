//! The first look at each chunk, when a thread first needs it.

use firn_format::frame::FrameUse;
use firn_format::geometry::{self, Chunk};
use firn_format::sealed::Seal;
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAMES_PER_CHUNK};

use super::chunk_frames::ChunkFrames;
use super::chunks::Chunks;
use super::frames::Space;
use crate::alloc::chunk_frames::{GROUP_FRAMES, GROUPS};
use crate::error::Error;

impl Space {
    /// Looks at the next chunk from the frontier on. False if there is none.
    pub(super) fn look_ahead<M: Medium>(
        &mut self,
        medium: &M,
        chunks: &Chunks<M>,
    ) -> Result<bool, Error> {
        let held = (medium.len() / CHUNK_BYTES) as usize;
        if self.chunks.is_empty() {
            let stored = Seal::Frontier.open(medium.load_u64(geometry::FRONTIER));
            self.frontier = stored.map_or(0, |chunk| (chunk as usize).min(held));
            self.ahead = self.frontier;
        }
        if self.chunks.len() < held {
            self.chunks.resize(held, ChunkFrames::UNKNOWN);
        }
        if self.ahead >= self.chunks.len() {
            return Ok(false);
        }
        self.look_at(medium, chunks, self.ahead)?;
        self.ahead += 1;
        Ok(true)
    }

    /// Looks at the next chunk before the frontier. False if there is none.
    pub(super) fn look_behind<M: Medium>(
        &mut self,
        medium: &M,
        chunks: &Chunks<M>,
    ) -> Result<bool, Error> {
        if self.behind >= self.frontier {
            return Ok(false);
        }
        self.look_at(medium, chunks, self.behind)?;
        self.behind += 1;
        Ok(true)
    }

    /// Reads a chunk's frame words.
    fn look_at<M: Medium>(
        &mut self,
        medium: &M,
        chunks: &Chunks<M>,
        index: usize,
    ) -> Result<(), Error> {
        let chunk = Chunk(index as u64);
        let mut frames = ChunkFrames {
            known: true,
            ..ChunkFrames::UNKNOWN
        };
        if chunk.is_data() {
            if chunks.may_need_repair() {
                // Loading the chunk's state frees the unpublished runs that a crash left.
                chunks.get(medium, chunk)?;
            }
            for i in 0..FRAMES_PER_CHUNK {
                let at = chunk.first_frame().plus(i).word_at();
                if FrameUse::from_word(medium.load_u64(at), at)? == FrameUse::Free {
                    frames.set(i, 1, true);
                }
            }
            // A group with a frame in use was reserved whole, unless it holds a source of the interrupted cycle: blocks
            // of sources are given back together with those of the free frames beside them.
            for group in 0..GROUPS {
                let first = group * GROUP_FRAMES;
                let may_lack = |i| {
                    let frame = chunk.first_frame().plus(i);
                    frames.is_free(i) || chunks.may_lack_blocks(frame)
                };
                if (first..first + GROUP_FRAMES).all(may_lack) {
                    frames.unbacked |= 1 << group;
                }
            }
        }
        for (_, run) in &self.quarantine {
            for frame in run.each().filter(|f| f.chunk() == chunk) {
                if frames.is_free(frame.index_in_chunk()) {
                    frames.set(frame.index_in_chunk(), 1, false);
                }
            }
        }
        if frames.count > 0 {
            for hint in &mut self.hints {
                *hint = (*hint).min(index);
            }
        }
        self.known += 1;
        self.free += frames.count;
        self.chunks[index] = frames;
        Ok(())
    }

    /// Looks at every chunk, and at its objects.
    pub(crate) fn look_at_all<M: Medium>(
        &mut self,
        medium: &M,
        chunks: &Chunks<M>,
    ) -> Result<(), Error> {
        while self.look_ahead(medium, chunks)? {}
        while self.look_behind(medium, chunks)? {}
        let all = (0..self.chunks.len()).map(|index| Chunk(index as u64));
        for chunk in all.filter(|chunk| chunk.is_data()) {
            chunks.get(medium, chunk)?;
        }
        Ok(())
    }
}
