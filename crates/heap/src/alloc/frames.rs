//! The frame space: which frames are free, and where new ones come from.
//!
//! Chunks are first looked at when they are needed, beginning with the chunk from which frames were taken last: the
//! first allocation after opening takes as long in a large pool as in a small one. When the chunks from there on have
//! no room, the earlier ones follow one by one, before the pool grows. A freed run waits in quarantine until every LSN
//! given out before is durable at home (rule A2): until then a replayed entry may still write there.

use core::hash::{Hash, Hasher};
use std::collections::VecDeque;

use firn_format::geometry::{self, Chunk, Frame, FrameRun};
use firn_format::sealed::Seal;
use firn_media::{Lock, LockGuard, Medium, MediumExt};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK};

use super::chunk_frames::ChunkFrames;
use super::chunks::Chunks;
use super::reserve::Purpose;
use crate::error::Error;
use crate::steps;

/// A pool must be able to have this many chunks before it reserves any for plans.
pub(super) const CHUNKS_TO_RESERVE: u64 = 32;
/// From this many frames on, an object is so long that the rest of its last chunk carries little weight.
const LONG_FRAMES: u64 = 8 * FRAMES_PER_CHUNK;
/// Size hints: one for each power of two of frames up to a chunk.
const HINTS: usize = FRAMES_PER_CHUNK.ilog2() as usize + 1;

/// Where frames may be taken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// From the frames that the pool has.
    Held,
    /// From those, and from frames that the pool gains by growing.
    Growing,
}

/// How far the pool may grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most bytes of the pool.
    pub(crate) max_bytes: u64,
    /// Bytes of these that only collections may use, and a pool that waits for its trace.
    pub(crate) reserve_bytes: u64,
    /// Whether the page in which an object of many pages ends is reserved for plans.
    pub(crate) reserves_last_page: bool,
}

/// The free frames, on cache lines of their own.
#[repr(align(128))]
pub(crate) struct FrameSpace(Lock<Space>);

/// The frame space, locked.
pub(crate) struct Space {
    pub(super) chunks: Vec<ChunkFrames>,
    /// How many chunks were looked at.
    pub(super) known: u64,
    pub(super) free: u64,
    /// Where looking began; all chunks from here on are known once `ahead` has reached the end.
    pub(super) frontier: usize,
    pub(super) ahead: usize,
    /// Next chunk before the frontier to look at.
    pub(super) behind: usize,
    pub(super) quarantine: VecDeque<(u64, FrameRun)>,
    /// The frames of entries outside their slots, with the entries' LSNs.
    pub(super) logs: Vec<(u64, FrameRun)>,
    /// No chunk below this one has a free run of at least 2^i frames.
    pub(super) hints: [usize; HINTS],
    pub(super) limits: Limits,
    /// Whether the reserve may be used.
    pub(super) emergency: bool,
    /// Whether the device has refused a chunk, and this pool knows of no change since.
    pub(super) growth_refused: bool,
    /// How often it has refused blocks for holes since then.
    pub(super) holes_refused: u32,
    /// [`Space::given_up`], until it changes.
    pub(super) given_up: Option<u64>,
    /// The last chunk that was reserved because something in it was pinned.
    pub(super) reserved_pinned: usize,
    /// Frames of retained plans.
    pub(super) kept_plans: u64,
    /// Free frames that are off the space while their blocks are given back, see [`super::discarding`].
    pub(super) discarding: u64,
}

impl FrameSpace {
    pub(crate) fn new(limits: Limits, emergency: bool) -> Self {
        Self(Lock::new(Space {
            chunks: Vec::new(),
            known: 0,
            free: 0,
            frontier: 0,
            ahead: 0,
            behind: 0,
            quarantine: VecDeque::new(),
            logs: Vec::new(),
            hints: [0; HINTS],
            limits,
            emergency,
            growth_refused: false,
            holes_refused: 0,
            given_up: None,
            reserved_pinned: 0,
            kept_plans: 0,
            discarding: 0,
        }))
    }

    pub(crate) fn lock<'a, M: Medium>(&'a self, medium: &'a M) -> LockGuard<'a, Space, M> {
        self.0.lock(medium)
    }

    /// Takes a run of frames, see [`Space::take`]. A pool is not full while free frames are being discarded: the
    /// discarding thread waits for no one, so waiting for it ends.
    pub(crate) fn take<M: Medium>(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        frames: u64,
        purpose: Purpose,
        (durable, reach): (u64, Reach),
    ) -> Result<FrameRun, Error> {
        let mut attempt = 0;
        loop {
            let mut space = self.lock(medium);
            match space.take(medium, chunks, frames, purpose, (durable, reach)) {
                Err(Error::PoolFull { .. }) if space.discarding > 0 && reach == Reach::Growing => {}
                outcome => return outcome,
            }
            drop(space);
            medium.pause(attempt);
            attempt += 1;
        }
    }
}

impl Space {
    /// Digests which frames are free.
    pub(super) fn digest(&self, into: &mut impl Hasher) {
        (self.frontier, self.ahead, self.behind, self.emergency).hash(into);
        (self.growth_refused, self.holes_refused).hash(into);
        for (until, run) in &self.quarantine {
            (until, run.frame.0, run.frames).hash(into);
        }
        for chunk in &self.chunks {
            (chunk.known, chunk.free, chunk.closed).hash(into);
            (
                chunk.reserved_for_plans,
                chunk.for_plans,
                chunk.for_logs,
                chunk.retired,
                chunk.hollow,
            )
                .hash(into);
            (chunk.unbacked, chunk.punched).hash(into);
        }
    }

    /// The frames of every chunk that are not free.
    pub(super) fn taken(&self) -> impl Iterator<Item = (Chunk, impl Iterator<Item = Frame>)> {
        let chunks = (0..self.chunks.len()).map(|number| Chunk(number as u64));
        chunks.map(|chunk| (chunk, self.each_taken(chunk)))
    }

    /// The frames of a chunk that are not free.
    pub(crate) fn each_taken(&self, chunk: Chunk) -> impl Iterator<Item = Frame> {
        let frames = self.chunks.get(chunk.0 as usize);
        let taken = (0..FRAMES_PER_CHUNK).filter(move |&i| frames.is_some_and(|c| !c.is_free(i)));
        taken.map(move |i| chunk.first_frame().plus(i))
    }

    /// Takes a run of frames that are known to be free, with blocks.
    ///
    /// Errors: the device has no blocks for it.
    fn take_known<M: Medium>(
        &mut self,
        medium: &M,
        frames: u64,
        purpose: Purpose,
    ) -> Result<Option<FrameRun>, Error> {
        if !self.leaves_reserve(frames, purpose) {
            return Ok(None);
        }
        let Some(run) = self.find_run(frames, purpose) else {
            return Ok(None);
        };
        self.back(medium, run)?;
        self.note_taken(medium, run);
        Ok(Some(run))
    }

    /// Notes a taken run. The page in which a long one ends is reserved, in pools with that option.
    fn note_taken<M: Medium>(&mut self, medium: &M, run: FrameRun) {
        self.mark(run, false);
        self.note_frontier(medium, run.frame.chunk());
        let end = run.frame.plus(run.frames);
        let ends_within = end.index_in_chunk() != 0;
        if self.limits.reserves_last_page && run.frames >= LONG_FRAMES && ends_within {
            self.reserve_chunk(end.chunk());
        }
    }

    /// Takes a run of frames. `durable` is the LSN below which all homes are known durable. The frames have blocks on
    /// the device; their content is arbitrary, and their words still say free.
    fn take<M: Medium>(
        &mut self,
        medium: &M,
        chunks: &Chunks<M>,
        frames: u64,
        purpose: Purpose,
        (durable, reach): (u64, Reach),
    ) -> Result<FrameRun, Error> {
        self.end_quarantine(match medium.keeps(&steps::FRAMES_WAIT) {
            true => durable,
            false => u64::MAX,
        });
        // If nothing else is found, asks the device once more for refused blocks; a collection has asked already.
        let mut may_ask = purpose != Purpose::Collection && self.has_refusals();
        let mut refusal = None;
        loop {
            match self.take_known(medium, frames, purpose) {
                // These frames turned out to be hollow; others may not be.
                Err(error) if error.is_no_room() => {
                    refusal = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
                Ok(Some(run)) => return Ok(run),
                Ok(None) => {}
            }
            // One chunk after the other, until one has room: free frames serve before the pool grows, whichever open
            // left them.
            if self.look_ahead(medium, chunks)? || self.look_behind(medium, chunks)? {
                continue;
            }
            let bytes = frames * FRAME_BYTES;
            if reach == Reach::Held {
                return Err(Error::PoolFull { bytes });
            }
            let grown = match self.growth_refused {
                true => Err(Error::PoolFull { bytes }),
                false => self.grow(medium, frames, purpose),
            };
            match grown {
                Err(error) if error.is_no_room() => {
                    refusal.get_or_insert(error);
                }
                other => {
                    other?;
                    continue;
                }
            }
            if self.chunks.iter().any(|c| !c.is_offered() && !c.for_logs) {
                // Frames in chunks that are to be emptied are better than none: until a plan has its destinations,
                // these may be the last ones.
                self.offer_all();
            } else if core::mem::take(&mut may_ask) {
                self.forget_refusals();
                refusal = None;
            } else if let Some(error) = refusal {
                return Err(error);
            }
        }
    }

    fn find_run(&mut self, frames: u64, purpose: Purpose) -> Option<FrameRun> {
        let found = match frames > FRAMES_PER_CHUNK {
            true => self.find_chunks(frames),
            false => self.find(frames),
        };
        found.or_else(|| match purpose {
            Purpose::Log => self.find_for_log(frames),
            Purpose::Objects | Purpose::Collection => None,
        })
    }

    /// Gives back frames whose words say free again; `stamp` is the LSN counter now.
    pub(crate) fn give(&mut self, run: FrameRun, stamp: u64) {
        self.quarantine.push_back((stamp, run));
    }

    /// Gives back frames that no replay writes to: a log's overflow.
    pub(crate) fn give_at_once(&mut self, run: FrameRun) {
        self.mark(run, true);
    }

    /// Keeps the frames of a log until recovery will not read its entry, which is known by its LSN.
    pub(crate) fn keep_log(&mut self, number: u64, runs: &[FrameRun]) {
        self.logs.extend(runs.iter().map(|&run| (number, run)));
    }

    /// Takes the log frames whose entries recovery will not read: a durable W lies above their LSNs (R8).
    pub(crate) fn take_ended_logs(&mut self, shown: u64) -> Vec<FrameRun> {
        let ended = self.logs.extract_if(.., |(number, _)| *number < shown);
        ended.map(|(_, run)| run).collect()
    }

    /// Whether frames of logs wait.
    pub(crate) fn keeps_logs(&self) -> bool {
        !self.logs.is_empty()
    }

    /// Whether frames wait: for LSNs to become durable, or until recovery no longer reads their entries.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.quarantine.is_empty() || self.keeps_logs()
    }

    /// Allows the reserve, for a pool that waits for a trace, or forbids it.
    pub(crate) fn set_emergency(&mut self, emergency: bool) {
        self.emergency = emergency;
    }

    /// Frees the frames that wait only for LSNs below `durable`.
    pub(crate) fn end_quarantine(&mut self, durable: u64) {
        while self
            .quarantine
            .front()
            .is_some_and(|(stamp, _)| *stamp <= durable)
        {
            if let Some((_, run)) = self.quarantine.pop_front() {
                self.mark(run, true);
            }
        }
    }

    pub(super) fn mark(&mut self, run: FrameRun, free: bool) {
        let mut frame = run.frame;
        let mut left = run.frames;
        while left > 0 {
            let first = frame.index_in_chunk();
            let here = left.min(FRAMES_PER_CHUNK - first);
            let chunk = frame.chunk().0 as usize;
            // A chunk that was not looked at yet has its frames' words on media; they will be read there.
            let Some(frames) = self.chunks.get_mut(chunk).filter(|c| c.known) else {
                break;
            };
            let before = frames.count;
            frames.set(first, here, free);
            self.free = (self.free + frames.count).saturating_sub(before);
            if free {
                for hint in &mut self.hints {
                    *hint = (*hint).min(chunk);
                }
            }
            frame = frame.plus(here);
            left -= here;
        }
    }

    /// Skips frames for which the device has no blocks. The hints then stay as they are, because they cover all frames.
    fn find(&mut self, frames: u64) -> Option<FrameRun> {
        let hint = frames.next_power_of_two().ilog2() as usize;
        let is_exact = frames.is_power_of_two() && self.holes_refused == 0;
        for chunk in self.hints[hint]..self.chunks.len() {
            let offered = Some(&self.chunks[chunk]).filter(|c| c.is_offered());
            let first = offered.and_then(|c| match self.passed_over(c) {
                0 => c.find(frames),
                groups => c.without(groups).find(frames),
            });
            if let Some(first) = first {
                if is_exact {
                    self.hints[hint] = chunk;
                }
                let frame = Chunk(chunk as u64).first_frame().plus(first);
                return Some(FrameRun { frame, frames });
            }
        }
        // The hint covers runs of 2^hint frames, which are at least as long as this one.
        if is_exact {
            self.hints[hint] = self.chunks.len();
        }
        None
    }

    /// Notes that there may be free runs from this chunk on.
    pub(super) fn may_be_free_from(&mut self, chunk: usize) {
        for hint in &mut self.hints {
            *hint = (*hint).min(chunk);
        }
    }

    fn find_chunks(&self, frames: u64) -> Option<FrameRun> {
        let (whole, rest) = (frames / FRAMES_PER_CHUNK, frames % FRAMES_PER_CHUNK);
        let mut run = 0;
        for (i, chunk) in self.chunks.iter().enumerate() {
            let having_blocks;
            let chunk = match self.passed_over(chunk) {
                0 => chunk,
                groups => {
                    having_blocks = chunk.without(groups);
                    &having_blocks
                }
            };
            if run >= whole && chunk.is_offered() && (0..rest).all(|f| chunk.is_free(f)) {
                let first = Chunk(i as u64 - whole).first_frame();
                return Some(FrameRun {
                    frame: first,
                    frames,
                });
            }
            run = if chunk.count == FRAMES_PER_CHUNK && chunk.is_offered() {
                run + 1
            } else {
                0
            };
            if rest == 0 && run >= whole {
                let first = Chunk(i as u64 + 1 - whole).first_frame();
                return Some(FrameRun {
                    frame: first,
                    frames,
                });
            }
        }
        None
    }

    /// Notes on media where frames were taken last.
    fn note_frontier<M: Medium>(&self, medium: &M, chunk: Chunk) {
        let word = Seal::Frontier.seal(chunk.0);
        if medium.load_u64(geometry::FRONTIER) != word {
            medium.store_u64(geometry::FRONTIER, word);
        }
    }

    /// Bytes that the pool may have: the medium's capacity if there is no limit.
    pub(crate) fn most_bytes<M: Medium>(&self, medium: &M) -> u64 {
        self.limits.max_bytes.min(medium.capacity())
    }

    /// Notes that this many more frames hold retained plans.
    pub(crate) fn keep_plan(&mut self, frames: u64) {
        self.given_up = None;
        self.kept_plans += frames;
    }

    /// Notes that no plan is retained any more.
    pub(crate) fn forget_plans(&mut self) {
        self.given_up = None;
        self.kept_plans = 0;
        self.take_all_on();
    }

    /// Length that the pool could have without its free chunks at the end.
    pub(crate) fn used_len(&self) -> u64 {
        let last = self.chunks.iter().rposition(|c| c.count < FRAMES_PER_CHUNK);
        (last.map_or(0, |i| i as u64 + 1)) * CHUNK_BYTES
    }

    /// Whether every chunk of a pool of `len` bytes was looked at.
    pub(crate) fn knows_all(&self, len: u64) -> bool {
        self.ahead as u64 * CHUNK_BYTES >= len && self.behind >= self.frontier
    }

    /// How many free frames a chunk has, if it was looked at and plans may use them.
    pub(crate) fn free_frames(&self, chunk: Chunk) -> u64 {
        let frames = self.chunks.get(chunk.0 as usize).filter(|c| c.is_open());
        frames.map_or(0, |c| c.count)
    }

    /// Forgets chunks from `len` bytes on.
    pub(crate) fn truncate(&mut self, len: u64) {
        let first = (len / CHUNK_BYTES) as usize;
        let gone = self.chunks.get(first..).unwrap_or_default();
        let free: u64 = gone.iter().map(|chunk| chunk.count).sum();
        let known = gone.iter().filter(|chunk| chunk.known).count() as u64;
        self.known = self.known.saturating_sub(known);
        self.free = self.free.saturating_sub(free);
        self.forget_refusals();
        self.given_up = None;
        self.chunks.truncate(first);
        self.ahead = self.ahead.min(self.chunks.len());
        self.frontier = self.frontier.min(self.chunks.len());
        self.behind = self.behind.min(self.frontier);
    }
}
