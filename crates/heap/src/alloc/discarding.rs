//! Discarding: free frames leave the space while their blocks are given back to the device.
//!
//! Giving back takes long, and no thread should wait at the space's lock for it. Meanwhile these frames are
//! unavailable: an allocation that finds no others, in a pool that may not grow, waits for them
//! ([`super::frames::FrameSpace::take`]).

use firn_format::geometry::{Chunk, Frame};
use firn_units::FRAMES_PER_CHUNK;

use super::frames::Space;
use crate::alloc::chunk_frames::{GROUP_FRAMES, GROUPS};
use firn_format::geometry::FrameRun;

impl Space {
    fn lend(&mut self, run: FrameRun) {
        self.mark(run, false);
        self.discarding += run.frames;
        self.given_up = None;
    }

    fn take_back(&mut self, run: FrameRun) {
        self.mark(run, true);
        self.discarding -= run.frames;
        self.given_up = None;
    }

    /// Takes the next free frames that may still have blocks off the space, so that they can be punched without the
    /// lock: whole groups, in aligned pieces of `together` frames, from at most one chunk, starting at `cursor`. Give
    /// them back with [`Space::punched`].
    pub(crate) fn take_punchable(
        &mut self,
        cursor: &mut usize,
        together: u64,
        durable: u64,
    ) -> Vec<FrameRun> {
        self.end_quarantine(durable);
        while *cursor < self.chunks.len() {
            let chunk = *cursor;
            *cursor += 1;
            let frames = &self.chunks[chunk];
            let mut runs: Vec<FrameRun> = Vec::new();
            for first in (0..FRAMES_PER_CHUNK).step_by(together as usize) {
                let punched = (first..first + together)
                    .step_by(GROUP_FRAMES as usize)
                    .all(|i| frames.punched >> (i / GROUP_FRAMES) & 1 != 0);
                if punched || !(first..first + together).all(|i| frames.is_free(i)) {
                    continue;
                }
                let frame = Chunk(chunk as u64).first_frame().plus(first);
                match runs.last_mut() {
                    Some(run) if run.frame.0 + run.frames == frame.0 => run.frames += together,
                    _ => runs.push(FrameRun {
                        frame,
                        frames: together,
                    }),
                }
            }
            if !runs.is_empty() {
                runs.iter().for_each(|&run| self.lend(run));
                return runs;
            }
        }
        Vec::new()
    }

    /// The groups of `run` are free again, and have no blocks if `gone`.
    pub(crate) fn punched(&mut self, run: FrameRun, gone: bool) {
        if gone {
            self.without_blocks(run);
        }
        self.take_back(run);
    }

    /// Whether this open has given the frame's blocks back, and the frame was not used since.
    pub(crate) fn lacks_blocks(&self, frame: Frame) -> bool {
        let chunk = self.chunks.get(frame.chunk().0 as usize);
        let group = frame.index_in_chunk() / GROUP_FRAMES;
        chunk.is_some_and(|chunk| chunk.punched >> group & 1 != 0)
    }

    /// Notes that the groups of `run` have no blocks.
    fn without_blocks(&mut self, run: FrameRun) {
        for group in run.frame.0 / GROUP_FRAMES..(run.frame.0 + run.frames) / GROUP_FRAMES {
            let frames = &mut self.chunks[(group / GROUPS) as usize];
            frames.unbacked |= 1 << (group % GROUPS);
            frames.punched |= 1 << (group % GROUPS);
        }
        self.given_up = None;
        // The device has blocks again.
        self.forget_refusals();
    }

    /// Takes the aligned pieces of `together` frames in which every frame is free or in `finished`, so that they can be
    /// discarded without the lock. The `finished` frames come in order, and no thread uses them. The free ones are
    /// taken off the space; give them back with [`Space::finished`].
    pub(crate) fn take_finished(&mut self, finished: &[Frame], together: u64) -> Vec<FrameRun> {
        let mut runs: Vec<FrameRun> = Vec::new();
        for same in finished.chunk_by(|a, b| a.0 / together == b.0 / together) {
            let frame = Frame(same[0].0 / together * together);
            let frames = together;
            self.take_whole(FrameRun { frame, frames }, same, &mut runs);
        }
        runs
    }

    /// Takes frames of a chunk whose used frames are all in `finished` or retained. Also takes pieces in which every
    /// frame is free.
    pub(crate) fn take_gone(
        &mut self,
        chunk: Chunk,
        finished: &[Frame],
        together: u64,
    ) -> Vec<FrameRun> {
        let mut runs: Vec<FrameRun> = Vec::new();
        for first in (0..FRAMES_PER_CHUNK).step_by(together as usize) {
            let (frame, frames) = (chunk.first_frame().plus(first), together);
            self.take_whole(FrameRun { frame, frames }, finished, &mut runs);
        }
        runs
    }

    /// Adds a piece to the last run or as a new one, if each of its frames is free or in `finished`; takes the free
    /// ones off the space. A chunk that nobody has looked at since the pool was opened keeps its blocks for now: which of
    /// its frames are free is not known.
    fn take_whole(&mut self, whole: FrameRun, finished: &[Frame], runs: &mut Vec<FrameRun>) {
        let chunk = self.chunks.get(whole.frame.chunk().0 as usize);
        let Some(frames) = chunk.filter(|chunk| chunk.known) else {
            return;
        };
        let (free, others): (Vec<Frame>, Vec<Frame>) = whole
            .each()
            .filter(|frame| finished.binary_search(frame).is_err())
            .partition(|frame| frames.is_free(frame.index_in_chunk()));
        if !others.is_empty() {
            return;
        }
        for frame in free {
            self.lend(FrameRun { frame, frames: 1 });
        }
        let follows = |run: &FrameRun| {
            let is_next = run.frame.0 + run.frames == whole.frame.0;
            is_next && run.frame.chunk() == whole.frame.chunk()
        };
        match runs.last_mut().filter(|run| follows(run)) {
            Some(run) => run.frames += whole.frames,
            None => runs.push(whole),
        }
    }

    /// Notes that the groups of `run` have no blocks if `gone`; all their frames except `finished` are free again.
    pub(crate) fn finished(&mut self, run: FrameRun, finished: &[Frame], gone: bool) {
        if gone {
            self.without_blocks(run);
        }
        for frame in run.each() {
            if finished.binary_search(&frame).is_err() {
                self.take_back(FrameRun { frame, frames: 1 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_crash::{Crash, CrashOptions, Schedule, interleavings};
    use firn_format::geometry::MIN_POOL_BYTES;
    use firn_media::Space;

    use super::super::chunks::{Chunks, Tables};
    use super::super::frames::{FrameSpace, Limits, Reach};
    use super::super::reserve::Purpose;

    /// One thread gives the blocks of every free frame back, as [`crate::Pool::release_free_space`] does; the other one
    /// takes a frame in a pool that may not grow.
    fn lend_beside_taking(schedule: Schedule) -> Result<firn_crash::RunOutcome, String> {
        let crash = Crash::new(MIN_POOL_BYTES, CrashOptions::default());
        let chunks = Chunks::new(&crash, Tables::Bitmaps, None, Arc::default());
        let limits = Limits {
            max_bytes: MIN_POOL_BYTES,
            reserve_bytes: 0,
            reserves_last_page: false,
        };
        let space = FrameSpace::new(limits, false);
        space.lock(&crash).look_at_all(&crash, &chunks).unwrap();
        let (both, chunks) = (Arc::new(space), Arc::new(chunks));
        let (lender, giving) = (Arc::clone(&both), crash.clone());
        let (taker, taking) = (both, crash.clone());
        let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![
            Box::new(move || {
                let mut cursor = 0;
                let together = super::GROUP_FRAMES;
                let runs = lender
                    .lock(&giving)
                    .take_punchable(&mut cursor, together, u64::MAX);
                for &run in &runs {
                    giving.discard(run.start(), run.bytes()).unwrap();
                }
                let mut space = lender.lock(&giving);
                runs.iter().for_each(|&run| space.punched(run, true));
            }),
            Box::new(move || {
                let from = (u64::MAX, Reach::Growing);
                let taken = taker.take(&taking, &chunks, 1, Purpose::Objects, from);
                if let Err(error) = taken {
                    panic!("{error}");
                }
            }),
        ];
        let outcome = crash.run(jobs, schedule);
        outcome.finished().map(|()| outcome)
    }

    #[test]
    fn a_pool_is_not_full_while_free_frames_are_lent() {
        let found = interleavings(1, 10_000, lend_beside_taking);
        assert_eq!(found.failure, None);
        assert!(found.exhaustive && found.executions > 10);
    }
}
