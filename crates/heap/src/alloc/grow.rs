//! Blocks of the device: the pool grows, and frames without blocks get some before a store to them.

use firn_format::geometry::{self, CHUNK_TABLE_BYTES, Chunk, Frame};
use firn_format::sealed::Seal;
use firn_media::{Medium, MediumError};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK};

use super::chunk_frames::ChunkFrames;
use super::frames::Space;
use super::reserve::Purpose;
use crate::alloc::chunk_frames::{GROUP_FRAMES, GROUPS};
use crate::error::Error;
use firn_format::geometry::FrameRun;

impl Space {
    pub(super) fn grow<M: Medium>(
        &mut self,
        medium: &M,
        frames: u64,
        purpose: Purpose,
    ) -> Result<(), Error> {
        let full = Error::PoolFull {
            bytes: frames * FRAME_BYTES,
        };
        if purpose != Purpose::Log && self.take_from_logs(purpose) {
            return Ok(());
        }
        let next = Chunk(self.chunks.len() as u64);
        let end = (next.0 + 1) * CHUNK_BYTES;
        if end > medium.capacity() || !self.is_within(end, purpose) {
            return Err(full);
        }
        let for_logs = purpose == Purpose::Log && !self.is_within(end, Purpose::Collection);
        if next.is_data() {
            let result = medium
                .reserve(next.table(), CHUNK_TABLE_BYTES)
                .and_then(|()| medium.reserve(next.start(), CHUNK_BYTES));
            self.growth_refused = matches!(result, Err(MediumError::NoSpace { .. }));
            match result {
                Ok(()) => {}
                Err(MediumError::NoSpace { .. }) if medium.len() >= end => return Err(full),
                Err(other) => return Err(other.into()),
            }
            self.free += FRAMES_PER_CHUNK;
            let mut frames = ChunkFrames {
                known: true,
                for_logs,
                ..ChunkFrames::UNKNOWN
            };
            frames.set(0, FRAMES_PER_CHUNK, true);
            self.known += 1;
            self.chunks.push(frames);
            medium.store_u64(geometry::LENGTH, Seal::Length.seal(next.0 + 1));
            medium.write_back(geometry::LENGTH, 8);
            self.may_be_free_from(next.0 as usize);
        } else {
            // A region's tables are reserved piece by piece, as its chunks come into use.
            self.known += 1;
            self.chunks.push(ChunkFrames {
                known: true,
                for_logs,
                ..ChunkFrames::UNKNOWN
            });
        }
        self.ahead = self.chunks.len();
        Ok(())
    }

    /// Makes sure that a run's groups have blocks.
    pub(super) fn back<M: Medium>(&mut self, medium: &M, run: FrameRun) -> Result<(), Error> {
        let chunk = run.frame.chunk();
        let frames = &mut self.chunks[chunk.0 as usize];
        // All blocks of a chunk requested at once can be a huge page.
        if frames.unbacked == u32::MAX
            && frames.count == FRAMES_PER_CHUNK
            && self.holes_refused == 0
            && medium.reserve(chunk.start(), CHUNK_BYTES).is_ok()
        {
            frames.unbacked = 0;
            frames.punched = 0;
            self.given_up = None;
        }
        let first = run.frame.0 / GROUP_FRAMES;
        let last = (run.frame.0 + run.frames - 1) / GROUP_FRAMES;
        for group in first..=last {
            let chunk = (group / GROUPS) as usize;
            let bit = 1 << (group % GROUPS);
            if self.chunks[chunk].unbacked & bit != 0 {
                let at = Frame(group * GROUP_FRAMES).start();
                let asked = medium.reserve(at, GROUP_FRAMES * FRAME_BYTES);
                if let Err(MediumError::NoSpace { .. }) = asked {
                    self.chunks[chunk].hollow |= bit;
                    self.holes_refused += 1;
                }
                asked?;
                self.chunks[chunk].unbacked &= !bit;
                self.chunks[chunk].punched &= !bit;
                self.chunks[chunk].hollow &= !bit;
                self.given_up = None;
            }
        }
        Ok(())
    }

    /// Notes that the groups of these frames may have no blocks.
    pub(crate) fn may_lack_blocks(&mut self, run: FrameRun) {
        let last = run.frame.0 + run.frames - 1;
        for group in run.frame.0 / GROUP_FRAMES..=last / GROUP_FRAMES {
            if let Some(frames) = self.chunks.get_mut((group / GROUPS) as usize) {
                frames.unbacked |= 1 << (group % GROUPS);
            }
        }
    }
}
