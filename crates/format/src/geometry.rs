//! The layout of a pool: addresses and sizes.

use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, VirtAddr};

/// Bytes of a superblock: three lines, to which every open stores.
pub const SUPERBLOCK_BYTES: u64 = 192;
/// The two superblocks, in frames of their own.
pub const SUPERBLOCKS: [VirtAddr; 2] = [VirtAddr(0), VirtAddr(FRAME_BYTES)];
/// The line of words that change while the pool is open; see [`crate::sealed::Seal`].
pub const STATE: VirtAddr = VirtAddr(2 * FRAME_BYTES);
/// `W_pool`: all lower LSNs are durable at home.
pub const WATERMARK: VirtAddr = VirtAddr(STATE.0);
/// The collector's phase. It shares the watermark's line, so that one fence can make both durable.
pub const PHASE: VirtAddr = VirtAddr(STATE.0 + 8);
/// End of the type registry, in bytes from [`REGISTRY`]. A line of its own.
pub const REGISTRY_END: VirtAddr = VirtAddr(STATE.0 + 64);
/// Length of the pool in chunks, so that a truncated pool is noticed. A line of its own.
pub const LENGTH: VirtAddr = VirtAddr(STATE.0 + 128);
/// Chunk from which frames were last taken. A hint: stored without a write-back, and not trusted.
pub const FRONTIER: VirtAddr = VirtAddr(STATE.0 + 192);
/// First frame of the plan of the latest retained cycle; zero if none is retained.
pub const KEPT: VirtAddr = VirtAddr(STATE.0 + 256);
/// The root table.
pub const ROOTS: VirtAddr = VirtAddr(16 << 10);
/// The type registry.
pub const REGISTRY: VirtAddr = VirtAddr(64 << 10);
/// Bytes of the type registry.
pub const REGISTRY_BYTES: u64 = 512 << 10;
/// The statistics: a base block, then one per lane.
pub const STATISTICS: VirtAddr = VirtAddr(1 << 20);
/// Bytes of a block of statistics.
pub const STATISTICS_BLOCK_BYTES: u64 = 4096;

/// The lanes' chunk.
pub const LANES_START: VirtAddr = VirtAddr(CHUNK_BYTES);

/// Chunks of a region: as many as its tables describe.
pub const REGION_CHUNKS: u64 = 512;
/// Chunks that a region's tables take.
pub const TABLE_CHUNKS: u64 = 5;
/// Bytes of the allocation bitmap of a frame.
pub const BITMAP_BYTES: u64 = 32;
/// Words of the allocation bitmap of a frame.
pub const BITMAP_WORDS: u64 = BITMAP_BYTES / 8;
/// Bytes that describe a chunk: its frame words, then its bitmaps.
pub const CHUNK_TABLE_BYTES: u64 = FRAMES_PER_CHUNK * (8 + BITMAP_BYTES);
/// First chunk of region 0 that holds tables. It follows the metadata and the lanes.
const FIRST_TABLE_CHUNK: u64 = 2;
/// First chunk that holds objects.
pub const FIRST_DATA_CHUNK: u64 = FIRST_TABLE_CHUNK + TABLE_CHUNKS;
/// Bytes of the smallest pool: metadata and one data chunk.
pub const MIN_POOL_BYTES: u64 = (FIRST_DATA_CHUNK + 1) * CHUNK_BYTES;
/// Bytes of the largest pool that a reference can address.
pub const MAX_POOL_BYTES: u64 = 1 << 48;

const _: () = assert!(CHUNK_TABLE_BYTES * REGION_CHUNKS == TABLE_CHUNKS * CHUNK_BYTES);
const _: () = assert!(REGISTRY.0 + REGISTRY_BYTES <= STATISTICS.0);

/// A chunk, counted from the start of the pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Chunk(pub u64);

/// A frame, counted from the start of the pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Frame(pub u64);

/// Consecutive frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRun {
    /// The first frame.
    pub frame: Frame,
    /// The number of frames.
    pub frames: u64,
}

impl FrameRun {
    /// The address of its first byte.
    pub fn start(&self) -> VirtAddr {
        self.frame.start()
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.frames * FRAME_BYTES
    }

    /// Its frames, ascending.
    pub fn each(&self) -> impl Iterator<Item = Frame> + use<> {
        let first = self.frame;
        (0..self.frames).map(move |i| first.plus(i))
    }
}

impl Chunk {
    /// The chunk that holds `at`.
    #[inline(always)]
    pub const fn holding(at: VirtAddr) -> Self {
        Self(at.0 / CHUNK_BYTES)
    }

    /// Its first byte.
    #[inline(always)]
    pub const fn start(self) -> VirtAddr {
        VirtAddr(self.0 * CHUNK_BYTES)
    }

    /// Its first frame.
    #[inline(always)]
    pub const fn first_frame(self) -> Frame {
        Frame(self.0 * FRAMES_PER_CHUNK)
    }

    /// Whether it holds objects, not metadata.
    #[inline(always)]
    pub const fn is_data(self) -> bool {
        if self.0 < REGION_CHUNKS {
            self.0 >= FIRST_DATA_CHUNK
        } else {
            self.0 % REGION_CHUNKS >= TABLE_CHUNKS
        }
    }

    /// The address of its tables.
    #[inline(always)]
    pub const fn table(self) -> VirtAddr {
        let region = self.0 / REGION_CHUNKS;
        let first = if region == 0 {
            FIRST_TABLE_CHUNK
        } else {
            region * REGION_CHUNKS
        };
        VirtAddr(first * CHUNK_BYTES + self.0 % REGION_CHUNKS * CHUNK_TABLE_BYTES)
    }
}

impl Frame {
    /// The frame that holds `at`.
    #[inline(always)]
    pub const fn holding(at: VirtAddr) -> Self {
        Self(at.0 / FRAME_BYTES)
    }

    /// Its first byte.
    #[inline(always)]
    pub const fn start(self) -> VirtAddr {
        VirtAddr(self.0 * FRAME_BYTES)
    }

    /// The chunk that holds it.
    #[inline(always)]
    pub const fn chunk(self) -> Chunk {
        Chunk(self.0 / FRAMES_PER_CHUNK)
    }

    /// Its index within its chunk.
    #[inline(always)]
    pub const fn index_in_chunk(self) -> u64 {
        self.0 % FRAMES_PER_CHUNK
    }

    /// The address of its frame word.
    #[inline(always)]
    pub const fn word_at(self) -> VirtAddr {
        VirtAddr(self.chunk().table().0 + self.index_in_chunk() * 8)
    }

    /// The address of its allocation bitmap.
    #[inline(always)]
    pub const fn bitmap_at(self) -> VirtAddr {
        VirtAddr(
            self.chunk().table().0 + FRAMES_PER_CHUNK * 8 + self.index_in_chunk() * BITMAP_BYTES,
        )
    }

    /// The frame `count` frames later.
    #[inline(always)]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lie_in_table_chunks_and_never_overlap() {
        let mut last_end = 0;
        for chunk in 0..1100 {
            let table = Chunk(chunk).table();
            assert!(!Chunk::holding(table).is_data());
            assert!(!Chunk::holding(table + (CHUNK_TABLE_BYTES - 1)).is_data());
            assert!(table.0 >= last_end);
            last_end = table.0 + CHUNK_TABLE_BYTES;
        }
    }
}
