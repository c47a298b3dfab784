//! Occupancy: the content of each 4 KiB frame of a pool, and how full it is.
//!
//! It is read from a medium like [`crate::Statistics`], without a lock and without opening the pool; or from the
//! allocator's own knowledge in an open pool, which is exact without a close.

use core::ops::Range;
use std::sync::atomic::Ordering;

use firn_format::FormatError;
use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_WORDS, Chunk, FIRST_DATA_CHUNK, Frame, TABLE_CHUNKS};
use firn_format::statistics::Counter;
use firn_format::superblock::{OpenState, PoolKind};
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, WORD_BYTES};

use crate::error::Error;
use crate::inner::Inner;
use crate::pool::Pool;
use crate::stat_shard;
use crate::superblock::newest_superblock;

/// Chunks of region 0 in front of its tables that hold no log.
const METADATA_CHUNKS: u64 = 1;
/// First chunk of region 0's tables.
const FIRST_TABLE_CHUNK: u64 = FIRST_DATA_CHUNK - TABLE_CHUNKS;

/// The content of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameContent {
    /// Superblocks, roots, types, statistics.
    Metadata,
    /// A transaction's log: a lane's chunk, or its overflow.
    Log,
    /// Frame words and allocation bitmaps.
    Table,
    /// Nothing.
    Free,
    /// Part of a run of slots.
    Slots {
        /// Bytes of the frame that belong to slots with an object; `None` if that is not known.
        live_bytes: Option<u16>,
    },
    /// Part of a large object.
    Large {
        /// Bytes of the frame that belong to the object; `None` if it is not known whether it lives.
        live_bytes: Option<u16>,
    },
}

impl FrameContent {
    /// Bytes of the frame that belong to objects: zero where there can be none, `None` if not known.
    pub fn live_bytes(self) -> Option<u64> {
        match self {
            Self::Slots { live_bytes } | Self::Large { live_bytes } => live_bytes.map(u64::from),
            _ => Some(0),
        }
    }
}

/// A frame of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameOccupancy {
    /// Its content.
    pub content: FrameContent,
    /// Whether the device has data for it; false if it was discarded or never stored to. `None` where the medium cannot
    /// say.
    pub has_data: Option<bool>,
}

/// The content of each frame of a pool at one time.
#[derive(Clone, Debug)]
pub struct Occupancy {
    /// The frames, from the start of the pool.
    pub frames: Vec<FrameOccupancy>,
    /// Whether it is known for each slot if an object lives in it, so that the figures are exact. It always is in an
    /// explicit pool.
    pub exact: bool,
    /// Objects.
    pub objects: u64,
    /// Bytes of the objects as the program requested them.
    pub live_bytes: u64,
    /// Bytes of the 4 KiB pages that hold a live object.
    pub footprint_4k_bytes: u64,
    /// Bytes of the 2 MiB pages that hold a live object.
    pub footprint_2m_bytes: u64,
}

/// The slots of a run that hold objects.
#[derive(Clone, Copy)]
struct RunUse {
    /// Bits of the slots that are in use.
    used: [u64; BITMAP_WORDS as usize],
    /// The number of objects, where slots can be in use without one: in a session's active runs.
    objects: Option<u64>,
}

impl Occupancy {
    /// Reads the occupancy of a pool from its medium. Takes no lock: another program may have the pool open. In a
    /// traced pool that was not closed, only the frames in use are known, not how full they are.
    ///
    /// Errors: not a pool, or a damaged one.
    pub fn read<M: Medium>(medium: &M) -> Result<Self, FormatError> {
        let superblock = newest_superblock(medium)?;
        let exact = superblock.state == OpenState::Closed;
        let bitmaps_hold = exact || superblock.kind == PoolKind::Explicit;
        let on_media = |frame| bitmaps_hold.then(|| stored_use(medium, frame));
        Self::gather(medium, superblock.lanes as usize, exact, on_media)
    }

    /// Footprint on 4 KiB pages divided by live bytes; `None` without objects.
    pub fn ratio_4k(&self) -> Option<f64> {
        (self.live_bytes > 0).then(|| self.footprint_4k_bytes as f64 / self.live_bytes as f64)
    }

    /// Footprint on 2 MiB pages divided by live bytes; `None` without objects.
    pub fn ratio_2m(&self) -> Option<f64> {
        (self.live_bytes > 0).then(|| self.footprint_2m_bytes as f64 / self.live_bytes as f64)
    }

    fn gather<M: Medium>(
        medium: &M,
        lanes: usize,
        exact: bool,
        use_of: impl Fn(Frame) -> Option<RunUse>,
    ) -> Result<Self, FormatError> {
        let sums = stat_shard::sums(medium, lanes);
        let sum = |counter: Counter| sums[counter.word()].max(0) as u64;
        let contents = contents(medium, use_of)?;
        let is_known = |content: &FrameContent| content.live_bytes().is_some();
        let (pages, chunks) = if exact || contents.iter().all(is_known) {
            footprint(&contents)
        } else {
            (sum(Counter::LiveFrames), sum(Counter::LiveChunks))
        };
        // A failure of the medium counts as `cannot say`.
        let data = medium.data_ranges().unwrap_or_default();
        Ok(Self {
            frames: with_data(contents, data.as_deref()),
            exact,
            objects: sum(Counter::Objects),
            live_bytes: sum(Counter::LiveBytes),
            footprint_4k_bytes: pages.saturating_mul(FRAME_BYTES),
            footprint_2m_bytes: chunks.saturating_mul(CHUNK_BYTES),
        })
    }
}

impl<M: Medium> Pool<M> {
    /// The current content of each frame, for programs that inspect their own pool: exact without a close, unless a
    /// crash left gaps that only [`Pool::trace`] can fill.
    ///
    /// Errors: the pool is damaged.
    /// Concurrency: stops no one. Transactions that commit meanwhile may be included in part.
    pub fn occupancy(&self) -> Result<Occupancy, Error> {
        let inner = &*self.inner;
        inner.check_usable()?;
        let (exact, knows) = (inner.exact.load(Ordering::Acquire), inner.knows_slots());
        let use_of = |frame| knows.then(|| inner.use_of(frame));
        Ok(Occupancy::gather(
            &inner.medium,
            inner.lane_count,
            exact,
            use_of,
        )?)
    }
}

impl<M: Medium> Inner<M> {
    fn use_of(&self, frame: Frame) -> RunUse {
        match self.allocator.known_use(frame) {
            Some((used, objects)) => RunUse {
                used,
                objects: Some(objects),
            },
            // The chunk was not touched since the pool was opened with valid bitmaps.
            None => stored_use(&self.medium, frame),
        }
    }
}

fn stored_use<M: Medium>(medium: &M, frame: Frame) -> RunUse {
    let word = |w| medium.load_u64(frame.bitmap_at() + w as u64 * WORD_BYTES);
    RunUse {
        used: core::array::from_fn(word),
        objects: None,
    }
}

/// The content of every frame.
fn contents<M: Medium>(
    medium: &M,
    use_of: impl Fn(Frame) -> Option<RunUse>,
) -> Result<Vec<FrameContent>, FormatError> {
    let count = medium.len() / FRAME_BYTES;
    let mut contents = Vec::with_capacity(count as usize);
    while (contents.len() as u64) < count {
        let head = Frame(contents.len() as u64);
        if !head.chunk().is_data() {
            contents.push(outside_data(head.chunk()));
            continue;
        }
        let what = frame_use(medium, head)?;
        match what {
            FrameUse::Free => contents.push(FrameContent::Free),
            FrameUse::Log | FrameUse::Plan | FrameUse::Kept => contents.push(FrameContent::Log),
            // A running program has changed the run since its first frame was read.
            FrameUse::Tail { .. } => contents.push(FrameContent::Slots { live_bytes: None }),
            FrameUse::Slots(_) | FrameUse::Large { .. } => {
                let known = use_of(head);
                contents.push(part(what, known, 0));
                for back in 1..what.frames().min(count - head.0) {
                    if frame_use(medium, head.plus(back))? != (FrameUse::Tail { back }) {
                        break;
                    }
                    contents.push(part(what, known, back));
                }
            }
        }
    }
    Ok(contents)
}

fn frame_use<M: Medium>(medium: &M, frame: Frame) -> Result<FrameUse, FormatError> {
    FrameUse::from_word(medium.load_u64(frame.word_at()), frame.word_at())
}

fn outside_data(chunk: Chunk) -> FrameContent {
    match chunk.0 {
        0..METADATA_CHUNKS => FrameContent::Metadata,
        METADATA_CHUNKS..FIRST_TABLE_CHUNK => FrameContent::Log,
        _ => FrameContent::Table,
    }
}

/// The content of frame number `index` of a run.
fn part(run: FrameUse, known: Option<RunUse>, index: u64) -> FrameContent {
    let live = |class: Option<Class>| Some(live_bytes(class, &known?, index) as u16);
    match run {
        FrameUse::Slots(class) => FrameContent::Slots {
            live_bytes: live(Some(class)),
        },
        _ => FrameContent::Large {
            live_bytes: live(None),
        },
    }
}

/// Bytes of frame number `index` of a run that belong to its objects. In a run with slots in a session's active runs,
/// each slot in use gets an equal share of the objects, which is exact where the run is one frame long.
fn live_bytes(class: Option<Class>, known: &RunUse, index: u64) -> u64 {
    let is_used = |slot: u64| known.used[slot as usize / 64] >> (slot % 64) & 1 != 0;
    let Some(class) = class else {
        let objects = known.objects.unwrap_or(1);
        return FRAME_BYTES * u64::from(is_used(0) && objects > 0);
    };
    let (start, end) = (index * FRAME_BYTES, (index + 1) * FRAME_BYTES);
    let bytes = class.slot_bytes();
    let bytes_used: u64 = (start / bytes..class.slots().min(end.div_ceil(bytes)))
        .filter(|&slot| is_used(slot))
        .map(|slot| end.min((slot + 1) * bytes) - start.max(slot * bytes))
        .sum();
    let slots_used = (0..class.slots()).filter(|&slot| is_used(slot)).count() as u64;
    match known.objects {
        Some(objects) if objects < slots_used => (bytes_used * objects).div_ceil(slots_used),
        _ => bytes_used,
    }
}

/// Pages and chunks that hold a live object.
fn footprint(contents: &[FrameContent]) -> (u64, u64) {
    let is_live = |content: &&FrameContent| content.live_bytes() != Some(0);
    let chunks = contents.chunks(FRAMES_PER_CHUNK as usize);
    (
        contents.iter().filter(is_live).count() as u64,
        chunks
            .filter(|chunk| chunk.iter().any(|c| is_live(&c)))
            .count() as u64,
    )
}

/// Adds to each frame whether it lies in one of the ranges, which ascend.
fn with_data(contents: Vec<FrameContent>, data: Option<&[Range<u64>]>) -> Vec<FrameOccupancy> {
    let mut ranges = data.map(|ranges| ranges.iter().peekable());
    let frames = contents.into_iter().enumerate().map(|(number, content)| {
        let start = number as u64 * FRAME_BYTES;
        let has_data = ranges.as_mut().map(|ranges| {
            while ranges.next_if(|range| range.end <= start).is_some() {}
            ranges.peek().is_some_and(|r| r.start < start + FRAME_BYTES)
        });
        FrameOccupancy { content, has_data }
    });
    frames.collect()
}
