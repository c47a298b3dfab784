//! Frames kept free for collections, and the state of a full device.
//!
//! A collection takes frames before it gives any back: for its plan, and for the first copies. In a pool that cannot
//! grow there would be none, just where a collection is needed most. So the program's allocations stop before the last
//! free frames of such a pool ([`Space::leaves_reserve`]): these never hold the program's objects, but logs, which are
//! given back when their transaction ends, may use them. A pool with a limit also reserves a share of it for
//! collections, whose winnings make up for it: until then the program's allocations leave as many frames free as the
//! collection took of the share. The rule also covers the frames that a log takes, of the reserve or beyond the limit.
//!
//! A device that has refused blocks is not asked again and again: frames with blocks are used first. It is asked again
//! by an allocation of the program that finds none, once by the next collection, and after this pool has given blocks
//! back.
//! given blocks back.

use std::collections::BTreeSet;

use firn_format::geometry::Chunk;
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK};

use super::chunk_frames::ChunkFrames;
use super::frames::{CHUNKS_TO_RESERVE, Space};
use crate::alloc::chunk_frames::{GROUP_FRAMES, GROUPS};
use crate::error::Error;
use firn_format::geometry::FrameRun;

/// Frames that the program's allocations leave free at least.
const LEAST_FRAMES: u64 = 32;
/// The program's allocations also leave one frame in this many of the known chunks free. In a log the bits of a frame's
/// objects take four words at the least object size, and at most three for larger ones
/// ([`firn_format::lane::Record::push_masks`]): so the bits of all objects of the pool fit, and all can be freed at
/// once.
const SHARE: u64 = 128;

/// After this many consecutive holes for which the device refuses blocks, no other hole is tried.
const MOST_REFUSALS: u32 = 4;

/// What frames are taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Objects of the program.
    Objects,
    /// A log; its frames are given back when its transaction ends.
    Log,
    /// A plan, or its destinations.
    Collection,
}

/// Frames that a collection may take, as far as known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Free frames.
    pub(crate) frames: u64,
    /// The longest row of free frames.
    pub(crate) longest: u64,
    /// Frames by which the pool may still grow within its limit.
    pub(crate) growth: u64,
    /// The most frames that the program may fill with objects, including those that it has filled; `None` without a
    /// limit, if the device has refused no blocks.
    pub(crate) most: Option<u64>,
}

impl Space {
    /// Whether the device has refused blocks since the last change.
    pub(super) fn has_refusals(&self) -> bool {
        self.growth_refused || self.holes_refused > 0
    }

    /// Allows asking the device again.
    pub(crate) fn forget_refusals(&mut self) {
        self.growth_refused = false;
        if core::mem::take(&mut self.holes_refused) > 0 {
            self.chunks.iter_mut().for_each(|chunk| chunk.hollow = 0);
        }
    }

    /// Groups of a chunk that are skipped: those for which the device has refused blocks, and after a few refusals all
    /// that may have none.
    pub(super) fn passed_over(&self, chunk: &ChunkFrames) -> u32 {
        match self.holes_refused < MOST_REFUSALS {
            true => chunk.hollow,
            false => chunk.unbacked,
        }
    }

    /// Whether these frames can be taken while enough frames stay free.
    pub(super) fn leaves_reserve(&mut self, frames: u64, purpose: Purpose) -> bool {
        let free_for_logs: u64 = self.for_logs().map(|chunk| chunk.count).sum();
        purpose != Purpose::Objects || self.free >= frames + free_for_logs + self.kept_free()
    }

    /// The chunks from which only logs take frames.
    fn for_logs(&self) -> impl Iterator<Item = &ChunkFrames> {
        self.chunks.iter().rev().take_while(|chunk| chunk.for_logs)
    }

    /// Bytes of the pool without these chunks.
    pub(crate) fn len_within_limit(&self) -> u64 {
        (self.chunks.len() - self.for_logs().count()) as u64 * CHUNK_BYTES
    }

    /// Finds free frames in these chunks.
    pub(super) fn find_for_log(&self, frames: u64) -> Option<FrameRun> {
        let numbers = (0..self.chunks.len()).rev();
        let theirs = numbers.zip(self.for_logs());
        let mut found = theirs.filter_map(|(number, chunk)| {
            let first = chunk.without(self.passed_over(chunk)).find(frames)?;
            let frame = Chunk(number as u64).first_frame().plus(first);
            Some(FrameRun { frame, frames })
        });
        found.next()
    }

    /// Opens the first of these chunks to all purposes, if the pool may be that long by now.
    pub(super) fn take_from_logs(&mut self, purpose: Purpose) -> bool {
        let first = self.chunks.len() - self.for_logs().count();
        let end = (first as u64 + 1) * CHUNK_BYTES;
        if first == self.chunks.len() || !self.is_within(end, purpose) {
            return false;
        }
        self.chunks[first].for_logs = false;
        self.may_be_free_from(first);
        true
    }

    /// Frames that the program's allocations leave free.
    fn kept_free(&mut self) -> u64 {
        let bytes = self.len_within_limit();
        let most = self.limits.max_bytes;
        let with_reserve = bytes + self.limits.reserve_bytes;
        let taken = match with_reserve <= most || self.emergency {
            true => 0,
            // This much of the reserve has become part of the pool.
            false => with_reserve
                .saturating_sub(self.given_up())
                .saturating_sub(most),
        };
        let known = self.known - self.for_logs().count() as u64;
        let share = (known * FRAMES_PER_CHUNK).div_ceil(SHARE);
        (taken / FRAME_BYTES).max(share).max(LEAST_FRAMES)
    }

    /// Whether the pool may be this long.
    ///
    /// For a log it may be twice as long as its limit: freeing objects in a full pool must not fail for lack of log
    /// space. The log is given back when its transaction ends, the program's allocations leave as much free, and
    /// closing the pool cuts off its end.
    ///
    /// Where addresses stay, the given-up frames hardly ever form whole chunks, but a pool grows by whole chunks. So
    /// the pool may exceed this sum by less than a chunk: as much of its own chunks has no blocks, and the program's
    /// allocations leave it free ([`Space::kept_free`]).
    pub(super) fn is_within(&mut self, bytes: u64, purpose: Purpose) -> bool {
        let reserve = match self.emergency || purpose != Purpose::Objects {
            true => 0,
            false => self.limits.reserve_bytes,
        };
        let most = match purpose {
            Purpose::Log => self.limits.max_bytes.saturating_mul(2),
            Purpose::Objects | Purpose::Collection => self.limits.max_bytes,
        };
        if bytes + reserve <= most {
            return true;
        }
        let given_up = self.given_up();
        (bytes + reserve).saturating_sub(given_up) <= most + slack(given_up)
    }

    /// Takes the free frames of a chunk whose groups have no blocks off the space. Everything else in the chunk is
    /// retained, so they would only be holes between unusable frames. The pool gets its room in one piece elsewhere
    /// instead.
    pub(crate) fn retire(&mut self, chunk: Chunk) {
        let Some(frames) = self.chunks.get(chunk.0 as usize) else {
            return;
        };
        let is_hole = |i: &u64| frames.is_free(*i) && frames.punched >> (i / GROUP_FRAMES) & 1 != 0;
        let holes: Vec<u64> = (0..FRAMES_PER_CHUNK).filter(is_hole).collect();
        for i in holes {
            let frame = chunk.first_frame().plus(i);
            self.mark(FrameRun { frame, frames: 1 }, false);
            self.chunks[chunk.0 as usize].retired[i as usize / 64] |= 1 << (i % 64);
        }
        self.given_up = None;
    }

    /// Puts the retired frames back.
    pub(super) fn take_all_on(&mut self) {
        for number in 0..self.chunks.len() {
            let retired = core::mem::take(&mut self.chunks[number].retired);
            let is_retired = |i: &u64| retired[*i as usize / 64] >> (i % 64) & 1 != 0;
            for i in (0..FRAMES_PER_CHUNK).filter(is_retired) {
                let frame = Chunk(number as u64).first_frame().plus(i);
                self.mark(FrameRun { frame, frames: 1 }, true);
            }
        }
    }

    /// The frames that a collection may take. Every chunk was looked at.
    pub(crate) fn room<M: Medium>(&mut self, medium: &M) -> Room {
        let mut room = Room {
            frames: 0,
            longest: 0,
            growth: 0,
            most: None,
        };
        for chunk in self.chunks.iter().filter(|chunk| chunk.is_open()) {
            let having_blocks;
            let chunk = match self.passed_over(chunk) {
                0 => chunk,
                groups => {
                    having_blocks = chunk.without(groups);
                    &having_blocks
                }
            };
            room.frames += chunk.count;
            // This serves to see whether a plan fits; a plan longer than a chunk is not searched for here.
            if chunk.count > room.longest {
                room.longest = room.longest.max(chunk.longest());
            }
        }
        let len = self.len_within_limit();
        let most = self.most_bytes(medium);
        let given_up = self.given_up();
        let is_limited = self.limits.max_bytes < medium.capacity();
        if !self.growth_refused {
            let left = (most + slack(given_up) + given_up).saturating_sub(len);
            let left = left.min(medium.capacity().saturating_sub(len));
            room.growth = left / CHUNK_BYTES * FRAMES_PER_CHUNK;
        }
        if is_limited || self.growth_refused || most == medium.capacity() && room.growth == 0 {
            let data = (0..len / CHUNK_BYTES).filter(|&number| Chunk(number).is_data());
            let held = data.count() as u64 * FRAMES_PER_CHUNK + room.growth;
            let not_theirs = given_up + self.limits.reserve_bytes.max(LEAST_FRAMES * FRAME_BYTES);
            room.most = Some(held.saturating_sub(not_theirs / FRAME_BYTES));
        }
        room
    }

    /// Takes frames for a retained plan from a chunk that holds only such plans: a device that discards only whole
    /// chunks can never get back a chunk with a retained plan in it, so plans share one. If no shared chunk has room,
    /// an unused one is taken, or the pool grows. A small pool has no chunk to spare: there, plans lie between objects
    /// in one of the chunks that already have some, `shared`. `None` if none of this is possible.
    pub(crate) fn take_for_plans<M: Medium>(
        &mut self,
        medium: &M,
        frames: u64,
        shared: &BTreeSet<Chunk>,
    ) -> Result<Option<FrameRun>, Error> {
        if self.limits.max_bytes < CHUNKS_TO_RESERVE * CHUNK_BYTES {
            for chunk in shared {
                if let Some(run) = self.take_in(medium, *chunk, frames)? {
                    return Ok(Some(run));
                }
            }
            return Ok(None);
        }
        let shared = |chunk: &ChunkFrames| chunk.for_plans && chunk.find(frames).is_some();
        let unused = |chunk: &ChunkFrames| chunk.is_offered() && chunk.count == FRAMES_PER_CHUNK;
        let mut found = self.chunks.iter().position(shared);
        found = found.or_else(|| self.chunks.iter().position(unused));
        if found.is_none() && frames <= FRAMES_PER_CHUNK && !self.growth_refused {
            match self.grow(medium, FRAMES_PER_CHUNK, Purpose::Objects) {
                Err(error) if error.is_no_room() => {}
                other => other?,
            }
            found = self.chunks.iter().position(unused);
        }
        let Some((number, first)) =
            found.and_then(|number| Some((number, self.chunks[number].find(frames)?)))
        else {
            return Ok(None);
        };
        let frame = Chunk(number as u64).first_frame().plus(first);
        let run = FrameRun { frame, frames };
        match self.back(medium, run) {
            Err(error) if error.is_no_room() => return Ok(None),
            other => other?,
        }
        self.mark(run, false);
        self.chunks[number].for_plans = true;
        Ok(Some(run))
    }

    /// Grows the pool until a collection may take this many free frames, or the pool may grow no further.
    pub(crate) fn grow_for<M: Medium>(&mut self, medium: &M, frames: u64) -> Result<(), Error> {
        let missing = frames.saturating_sub(self.room(medium).frames);
        for _ in 0..missing.div_ceil(FRAMES_PER_CHUNK) {
            match self.grow(medium, FRAMES_PER_CHUNK, Purpose::Collection) {
                Err(error) if error.is_no_room() => break,
                other => other?,
            }
        }
        Ok(())
    }

    /// Bytes that do not count towards the limit. Where addresses stay, these are the frames emptied by cycles, which
    /// have no blocks and no use, and the plans that forward their addresses. Free bytes count, because they may get
    /// blocks at any time.
    pub(super) fn given_up(&mut self) -> u64 {
        if let Some(known) = self.given_up {
            return known;
        }
        let of_chunk = |chunk: &ChunkFrames| {
            let punched = (0..GROUPS).filter(|group| chunk.punched >> group & 1 != 0);
            let frames =
                punched.flat_map(|group| (0..GROUP_FRAMES).map(move |i| group * GROUP_FRAMES + i));
            frames.filter(|&i| !chunk.is_free(i)).count() as u64
        };
        let chunks = self.chunks.iter().filter(|chunk| chunk.punched != 0);
        let frames: u64 = chunks.map(of_chunk).sum();
        // Frames being discarded are free soon.
        let given_up = (frames.saturating_sub(self.discarding) + self.kept_plans) * FRAME_BYTES;
        self.given_up = Some(given_up);
        given_up
    }
}

/// Bytes by which a pool may be longer than its limit plus the bytes given up.
fn slack(given_up: u64) -> u64 {
    match given_up {
        0 => 0,
        _ => CHUNK_BYTES - FRAME_BYTES,
    }
}
