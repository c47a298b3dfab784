//! Volatile state of the frames, built chunk by chunk on first use.
//!
//! Each frame has one line of words: its state, its free slots, and the number of its objects.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use firn_format::FormatError;
use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_WORDS, Chunk, Frame, REGION_CHUNKS};
use firn_format::superblock::PoolKind;
use firn_media::{Lock, Medium, Words};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, WORD_BYTES};

use crate::alloc::footprint::Footprint;
use crate::relocation::Part;
use crate::relocation::cycle::Cycle;
use crate::relocation::retained::Table;

/// Words of a frame's state.
pub(crate) const FRAME_WORDS: usize = 8;
/// Word: a [`FrameState`].
pub(crate) const STATE: usize = 0;
/// Words: one bit per slot, set while the slot is free and active in no session.
pub(crate) const FREE: usize = 1;
/// Word: how many objects committed transactions left in the frame.
pub(crate) const LIVE: usize = FREE + BITMAP_WORDS as usize;
/// Word: one more than the frame's position on its list, guarded by the list's lock.
pub(crate) const POSITION: usize = LIVE + 1;
/// Word: the lane whose session allocated from the run last; the run belongs on that lane's list. The session that
/// makes the run active changes it.
pub(crate) const OWNER: usize = POSITION + 1;
/// Word behind the frames: how many frames of the chunk hold objects.
const CHUNK_LIVE: usize = FRAMES_PER_CHUNK as usize * FRAME_WORDS;

/// Who may allocate from a run of slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum FrameState {
    /// Nobody, and it is on no list: it was full when it was retired.
    Full = 0,
    /// Any session, after taking it off its list.
    Listed = 1,
    /// One session.
    Owned = 2,
    /// Nobody any more: its frames are being given back.
    Leaving = 3,
    /// Nobody: the open cycle empties it.
    Source = 4,
    /// Nobody: the open cycle fills it. Slots that are freed in it wait for the cycle's end (piggyback rule 11).
    Destination = 5,
}

/// State of one chunk's frames.
pub(crate) struct ChunkState<M: Medium> {
    words: M::Words,
}

impl<M: Medium> ChunkState<M> {
    #[inline(always)]
    pub(crate) fn words(&self) -> &M::Words {
        &self.words
    }

    /// Whether a run in the chunk holds objects.
    pub(crate) fn holds_objects(&self) -> bool {
        self.words.load(CHUNK_LIVE) != 0
    }

    /// Counts a frame of this chunk as holding objects, or no longer. Returns whether the chunk thereby gained its
    /// first such frame or lost its last.
    pub(crate) fn count_live_frame(&self, now_live: bool) -> bool {
        if now_live {
            self.words.fetch_add(CHUNK_LIVE, 1) == 0
        } else {
            self.words.fetch_add(CHUNK_LIVE, 1u64.wrapping_neg()) == 1
        }
    }
}

/// First word of a frame's state within its chunk's.
#[inline(always)]
pub(crate) fn base(frame: Frame) -> usize {
    frame.index_in_chunk() as usize * FRAME_WORDS
}

/// What the pool's tables on media said when it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tables {
    /// Everything: the pool was closed cleanly, or recovered completely.
    Exact,
    /// Which slots are free; a crash may have left runs in which nothing was published.
    Bitmaps,
    /// Which frames are free; a crash may have left such runs here, too.
    Frames,
}

impl Tables {
    /// The meaning of a pool's tables, by whether its counters and bitmaps are `exact` or a crash left them behind.
    pub(crate) const fn of(kind: PoolKind, exact: bool) -> Self {
        match (exact, kind) {
            (true, _) => Tables::Exact,
            (false, PoolKind::Explicit) => Tables::Bitmaps,
            (false, PoolKind::Traced) => Tables::Frames,
        }
    }
}

type Region<M> = Box<[OnceLock<ChunkState<M>>]>;

/// All chunks' states.
pub(crate) struct Chunks<M: Medium> {
    regions: Box<[OnceLock<Region<M>>]>,
    /// Held during the first look at a chunk.
    looking: Lock<()>,
    tables: Tables,
    /// The cycle that a crash interrupted and this open goes on with.
    resumed: Option<Arc<Cycle<M>>>,
    /// The retained cycles that this open found.
    kept: Arc<Table>,
    live: Live,
}

/// Frames of runs that hold objects, and chunks in which such runs lie, of the known chunks. On cache lines of their
/// own, because sessions change them while others read the neighbouring fields.
#[derive(Default)]
#[repr(align(128))]
struct Live {
    frames: AtomicI64,
    chunks: AtomicI64,
}

const _: () = assert!(OWNER < FRAME_WORDS);

/// Mask of the bits of bitmap word `word` that are slots of a run of `slots`.
#[inline]
pub(crate) fn slot_mask(slots: u64, word: u64) -> u64 {
    let below = slots.saturating_sub(word * 64).min(64);
    if below == 64 {
        u64::MAX
    } else {
        (1 << below) - 1
    }
}

impl<M: Medium> Chunks<M> {
    pub(crate) fn new(
        medium: &M,
        tables: Tables,
        resumed: Option<Arc<Cycle<M>>>,
        kept: Arc<Table>,
    ) -> Self {
        let regions = medium.capacity().div_ceil(CHUNK_BYTES * REGION_CHUNKS) as usize;
        Self {
            regions: (0..regions).map(|_| OnceLock::new()).collect(),
            looking: Lock::new(()),
            tables,
            resumed,
            kept,
            live: Live::default(),
        }
    }

    /// Counts frames and chunks that hold objects.
    pub(super) fn count_footprint(&self, change: Footprint) {
        self.live.frames.fetch_add(change.frames, Ordering::Relaxed);
        if change.chunks != 0 {
            self.live.chunks.fetch_add(change.chunks, Ordering::Relaxed);
        }
    }

    /// Frames and chunks that hold objects, of the known chunks.
    pub(super) fn footprint(&self) -> Footprint {
        Footprint {
            frames: self.live.frames.load(Ordering::Relaxed),
            chunks: self.live.chunks.load(Ordering::Relaxed),
        }
    }

    /// Whether the allocation bitmaps on media were the truth when the pool was opened.
    pub(crate) fn bitmaps_hold(&self) -> bool {
        self.tables != Tables::Frames
    }

    /// Whether a crash may have left unpublished runs.
    pub(super) fn may_need_repair(&self) -> bool {
        self.tables != Tables::Exact
    }

    fn cell(&self, chunk: Chunk) -> &OnceLock<ChunkState<M>> {
        let region = self.regions[(chunk.0 / REGION_CHUNKS) as usize]
            .get_or_init(|| (0..REGION_CHUNKS).map(|_| OnceLock::new()).collect());
        &region[(chunk.0 % REGION_CHUNKS) as usize]
    }

    /// The state of a chunk, if it is known.
    #[inline]
    pub(crate) fn known(&self, chunk: Chunk) -> Option<&ChunkState<M>> {
        self.regions[(chunk.0 / REGION_CHUNKS) as usize].get()?[(chunk.0 % REGION_CHUNKS) as usize]
            .get()
    }

    /// The state of a chunk, read from media the first time.
    #[inline]
    pub(crate) fn get(&self, medium: &M, chunk: Chunk) -> Result<&ChunkState<M>, FormatError> {
        match self.known(chunk) {
            Some(state) => Ok(state),
            None => self.load(medium, chunk),
        }
    }

    #[cold]
    fn load(&self, medium: &M, chunk: Chunk) -> Result<&ChunkState<M>, FormatError> {
        // One thread at a time: a second, later look would take frames that the first thread already uses for leftovers
        // of a crash, and free them.
        let _looking = self.looking.lock(medium);
        if let Some(state) = self.known(chunk) {
            return Ok(state);
        }
        let (state, footprint) = self.read_media(medium, chunk)?;
        self.count_footprint(footprint);
        Ok(self.cell(chunk).get_or_init(|| state))
    }

    /// Closes a run of the cycle that a crash interrupted, as it was closed before. Returns how many slots the cycle
    /// fills in a destination.
    fn filled_at_crash(&self, words: &M::Words, frame: Frame) -> Option<u64> {
        let cycle = self.resumed.as_ref()?;
        let (state, filled) = match cycle.part(frame)? {
            Part::Source(_) => (FrameState::Source, None),
            Part::Destination(index) => {
                let units = cycle.destinations[index].units;
                (FrameState::Destination, Some(units))
            }
        };
        words.store(base(frame) + STATE, state as u64);
        filled
    }

    fn read_media(
        &self,
        medium: &M,
        chunk: Chunk,
    ) -> Result<(ChunkState<M>, Footprint), FormatError> {
        if medium.is_writable() {
            self.repair(medium, chunk)?;
        }
        let words = medium.words(CHUNK_LIVE + 8);
        let mut live_frames = 0;
        let mut footprint = Footprint::default();
        for i in 0..FRAMES_PER_CHUNK {
            let frame = chunk.first_frame().plus(i);
            let at = frame.word_at();
            let word = medium.load_u64(at);
            if word == 0 {
                continue;
            }
            let what = FrameUse::from_word(word, at)?;
            let slots = match what {
                FrameUse::Slots(class) => class.slots(),
                FrameUse::Large { .. } => 1,
                // Part of a large object from an earlier chunk.
                FrameUse::Tail { .. } if i == 0 => {
                    live_frames += 1;
                    continue;
                }
                _ => continue,
            };
            let filled = self.filled_at_crash(&words, frame).unwrap_or(slots);
            let live = match self.bitmaps_hold() {
                true => read_bitmap(medium, &words, frame, slots),
                false => fill_unknown(&words, frame, slots, filled),
            };
            live_frames += live.min(1);
            footprint.frames += (live.min(1) * what.frames()) as i64;
        }
        words.store(CHUNK_LIVE, live_frames);
        footprint.chunks = live_frames.min(1) as i64;
        Ok((ChunkState { words }, footprint))
    }

    /// Frees the words of runs that a crash left unpublished.
    ///
    /// A run's words reach media with the first commit that publishes an object in it, all under one fence; before
    /// that, lines may have been evicted one by one. So a run that lacks a part holds nothing. Called before this open
    /// of the pool allocates in the chunk.
    ///
    /// Runs that are reserved for a cycle count while that cycle is open. Otherwise they are free, and so are the
    /// frames of its plan: the crash came before the plan counted.
    fn repair(&self, medium: &M, chunk: Chunk) -> Result<(), FormatError> {
        let cycle = self.resumed.as_deref();
        for i in 0..FRAMES_PER_CHUNK {
            let frame = chunk.first_frame().plus(i);
            if medium.load_u64(frame.word_at()) == 0 {
                continue;
            }
            let sound = match frame_use(medium, frame)? {
                FrameUse::Free => true,
                FrameUse::Log => false,
                FrameUse::Plan => cycle.is_some_and(|cycle| cycle.holds_plan(frame)),
                FrameUse::Kept => self.kept.holds(frame),
                what @ (FrameUse::Slots(_) | FrameUse::Large { .. }) => {
                    self.counts(medium, frame, what) && is_whole(medium, frame)?
                }
                FrameUse::Tail { back } => match frame.0.checked_sub(back).map(Frame) {
                    Some(head) if head.chunk().is_data() => {
                        let what = frame_use(medium, head)?;
                        what.frames() > back
                            && self.counts(medium, head, what)
                            && is_whole(medium, head)?
                    }
                    _ => false,
                },
            };
            if !sound {
                for word in 0..BITMAP_WORDS {
                    let at = frame.bitmap_at() + word * WORD_BYTES;
                    if FrameUse::is_reserved(medium.load_u64(frame.word_at())) {
                        medium.store_u64(at, 0);
                    }
                }
                medium.store_u64(frame.word_at(), FrameUse::Free.to_word());
            }
        }
        Ok(())
    }

    /// Whether a run's first frame says that it counts. Reserved runs count if they belong to the open cycle. A large
    /// object's words are durable before the entry that publishes it (A1, choice b): where bits are the truth, a clear
    /// bit says that the object was never published. Runs of slots without an object stay, and serve the next objects.
    fn counts(&self, medium: &M, head: Frame, what: FrameUse) -> bool {
        let of_cycle = |cycle: &Arc<Cycle<M>>| cycle.part(head).is_some();
        if self.resumed.as_ref().is_some_and(of_cycle) {
            return true;
        }
        let is_dead = matches!(what, FrameUse::Large { .. })
            && self.bitmaps_hold()
            && medium.load_u64(head.bitmap_at()) & 1 == 0;
        !is_dead && !FrameUse::is_reserved(medium.load_u64(head.word_at()))
    }

    /// Whether the frame belongs to a source of the interrupted cycle, or of a retained one.
    pub(crate) fn may_lack_blocks(&self, frame: Frame) -> bool {
        let part = self.resumed.as_ref().and_then(|cycle| cycle.part(frame));
        matches!(part, Some(Part::Source(_))) || self.kept.holds(frame)
    }

    /// Loads the state of every chunk of a run.
    pub(crate) fn get_all(&self, medium: &M, first: Frame, frames: u64) -> Result<(), FormatError> {
        for chunk in first.chunk().0..=first.plus(frames - 1).chunk().0 {
            self.get(medium, Chunk(chunk))?;
        }
        Ok(())
    }

    /// Every known chunk.
    pub(crate) fn all_known(&self) -> impl Iterator<Item = (Chunk, &ChunkState<M>)> {
        self.regions
            .iter()
            .enumerate()
            .filter_map(|(r, cell)| Some((r, cell.get()?)))
            .flat_map(|(r, region)| {
                region.iter().enumerate().filter_map(move |(c, cell)| {
                    Some((Chunk(r as u64 * REGION_CHUNKS + c as u64), cell.get()?))
                })
            })
    }
}

fn frame_use<M: Medium>(medium: &M, frame: Frame) -> Result<FrameUse, FormatError> {
    FrameUse::from_word(medium.load_u64(frame.word_at()), frame.word_at())
}

/// Whether the run that starts here has all of its tails.
fn is_whole<M: Medium>(medium: &M, head: Frame) -> Result<bool, FormatError> {
    let frames = frame_use(medium, head)?.frames();
    if (head.0 + frames) * FRAME_BYTES > medium.len() {
        return Ok(false);
    }
    for back in 1..frames {
        if frame_use(medium, head.plus(back))? != (FrameUse::Tail { back }) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads a run's allocation bits. Returns how many slots hold an object.
fn read_bitmap<M: Medium>(medium: &M, words: &M::Words, frame: Frame, slots: u64) -> u64 {
    let mut live = 0;
    for word in 0..BITMAP_WORDS {
        let mask = slot_mask(slots, word);
        let used = medium.load_u64(frame.bitmap_at() + word * WORD_BYTES) & mask;
        live += u64::from(used.count_ones());
        words.store(base(frame) + FREE + word as usize, !used & mask);
    }
    words.store(base(frame) + LIVE, live);
    live
}

/// Sets up a run whose live objects are unknown: no slot that may be filled is free until a transaction frees it or a
/// trace finds it unused, and all of them count as living, so that the frame stays.
fn fill_unknown(words: &impl Words, frame: Frame, slots: u64, filled: u64) -> u64 {
    words.store(base(frame) + LIVE, filled);
    for word in 0..BITMAP_WORDS {
        let free = slot_mask(slots, word) & !slot_mask(filled, word);
        words.store(base(frame) + FREE + word as usize, free);
    }
    filled
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_crash::{Crash, CrashOptions, interleavings};
    use firn_format::geometry::{FIRST_DATA_CHUNK, MIN_POOL_BYTES};

    use firn_media::Memory;

    use super::*;

    /// Uses the first frames of a chunk that were just found to be free.
    fn use_frames(chunks: &Chunks<Crash>, medium: &Crash, chunk: Chunk, uses: [FrameUse; 2]) {
        chunks.get(medium, chunk).unwrap();
        for (frame, what) in (0..).zip(uses) {
            let frame = chunk.first_frame().plus(frame);
            medium.store_u64(frame.word_at(), what.to_word());
        }
    }

    /// The first look at a chunk frees the leftovers of a crash, before any thread uses it; later looks do not.
    #[test]
    fn who_looks_at_a_chunk_frees_nothing_that_is_used_already() {
        let chunk = Chunk(FIRST_DATA_CHUNK);
        let large = [FrameUse::Large { frames: 2 }, FrameUse::Tail { back: 1 }];
        for uses in [large, [FrameUse::Log; 2]] {
            let found = interleavings(2, 4_000, |schedule| {
                let crash = Crash::new(MIN_POOL_BYTES, CrashOptions::default());
                let chunks = Arc::new(Chunks::new(&crash, Tables::Bitmaps, None, Arc::default()));
                let (mine, medium) = (Arc::clone(&chunks), crash.clone());
                let (others, other) = (Arc::clone(&chunks), crash.clone());
                let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![
                    Box::new(move || use_frames(&mine, &medium, chunk, uses)),
                    Box::new(move || {
                        others.get(&other, chunk).unwrap();
                    }),
                ];
                let outcome = crash.run(jobs, schedule);
                outcome.finished()?;
                let frame = chunk.first_frame();
                match frame_use(&crash, frame).unwrap() == uses[0] {
                    true => Ok(outcome),
                    false => Err("a frame in use was freed".to_owned()),
                }
            });
            println!("{} executions", found.executions);
            assert_eq!(found.failure, None);
        }
    }
}
