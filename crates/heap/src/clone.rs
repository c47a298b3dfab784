//! Copies of pools whose objects keep their places: every frame in use is copied as it is.
//!
//! Where programs store addresses that no type declares (pairs of words, or anything through raw addresses), a
//! reference cannot be told from a number, and the referenced object would be lost if it moved.

use firn_format::frame::FrameUse;
use firn_format::geometry::{
    CHUNK_TABLE_BYTES, Chunk, Frame, REGISTRY, STATISTICS_BLOCK_BYTES, SUPERBLOCK_BYTES,
    SUPERBLOCKS,
};
use firn_format::lane::{LANE_BYTES, LANES, lane_at, undo_done_at};
use firn_format::statistics::block_at;
use firn_format::superblock::LogKind;
use firn_media::{Medium, MediumExt};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, VirtAddr};

use crate::alloc::GROUP_FRAMES;
use crate::copy::{CopyError, CopyProgress};
use crate::error::Error;
use crate::inner::Inner;
use crate::options::PoolOptions;
use crate::pool::Pool;
use crate::superblock::{sound_superblock, stored_domain, write_superblock};

/// Copies a pool's frames, then opens the copy. Opening recovers it as the original would recover after a crash now.
///
/// Crash: the superblock is stored last, when everything else is durable; before that the target holds no pool.
pub(crate) fn clone_into<M: Medium, N: Medium>(
    from: &Inner<M>,
    target: N,
    progress: &mut dyn FnMut(CopyProgress),
) -> Result<Pool<N>, CopyError> {
    let uuid = from.superblock.lock(&from.medium).uuid;
    target.begin(uuid).map_err(Error::from)?;
    from.stopped(|| copy_frames(&from.medium, &target, progress))??;
    let mut superblock = from.superblock.lock(&from.medium).clone();
    // The copy is no more torn than the original was, whatever medium it lies on.
    superblock.boot_id = target.boot_id();
    superblock.domain = stored_domain(target.domain());
    write_superblock(&target, &mut superblock);
    let superblock = sound_superblock(&target, "", false)?;
    let options = PoolOptions {
        log: from.log,
        ..PoolOptions::new("")
    };
    Ok(Pool::open_claimed(target, &options, superblock)?)
}

fn copy_frames<M: Medium, N: Medium>(
    from: &M,
    to: &N,
    progress: &mut dyn FnMut(CopyProgress),
) -> Result<(), Error> {
    for at in SUPERBLOCKS {
        to.reserve(at, FRAME_BYTES)?;
        to.zero(at, SUPERBLOCK_BYTES);
    }
    reserve_tables(from, to)?;
    let chunks = from.len().div_ceil(CHUNK_BYTES);
    for chunk in (0..chunks).map(Chunk) {
        match chunk.is_data() {
            true => copy_data(from, to, chunk)?,
            false => copy_metadata(from, to, chunk)?,
        }
        progress(CopyProgress {
            done: chunk.0 + 1,
            of: chunks,
        });
    }
    // As long as the original, even if its end is free.
    let last = from.len() - FRAME_BYTES;
    if to.len() < from.len() {
        to.reserve(VirtAddr(last), FRAME_BYTES)?;
    }
    to.fence();
    Ok(())
}

/// Reserves what opening a pool takes for reserved, whether anything was ever stored there or not.
fn reserve_tables<M: Medium, N: Medium>(from: &M, to: &N) -> Result<(), Error> {
    to.reserve(VirtAddr(0), REGISTRY.0 + FRAME_BYTES)?;
    to.reserve(block_at(0), STATISTICS_BLOCK_BYTES)?;
    for lane in (0..LANES).filter(|&lane| from.load_u64(undo_done_at(lane)) != 0) {
        to.reserve(lane_at(lane), LANE_BYTES)?;
    }
    let chunks = (0..from.len().div_ceil(CHUNK_BYTES)).map(Chunk);
    for chunk in chunks.filter(|chunk| chunk.is_data()) {
        to.reserve(chunk.table(), CHUNK_TABLE_BYTES)?;
    }
    Ok(())
}

/// Copies the frames of a chunk that hold anything but zeros.
fn copy_metadata<M: Medium, N: Medium>(from: &M, to: &N, chunk: Chunk) -> Result<(), Error> {
    for frame in frames(chunk, from) {
        let is_superblock = SUPERBLOCKS.contains(&frame.start());
        if let Some(content) = load(from, frame).filter(|_| !is_superblock) {
            to.reserve(frame.start(), FRAME_BYTES)?;
            store(to, frame, &content);
        }
    }
    Ok(())
}

/// Copies the frames of a chunk that are in use, in groups that are reserved whole.
fn copy_data<M: Medium, N: Medium>(from: &M, to: &N, chunk: Chunk) -> Result<(), Error> {
    let all: Vec<Frame> = frames(chunk, from).collect();
    for group in all.chunks(GROUP_FRAMES as usize) {
        let mut contents = Vec::new();
        let mut is_used = false;
        for &frame in group {
            let what = FrameUse::from_word(from.load_u64(frame.word_at()), frame.word_at())?;
            let content = match what {
                FrameUse::Free => None,
                _ => load(from, frame),
            };
            // Frames emptied by ended cycles are retained without blocks.
            is_used |= !matches!(what, FrameUse::Free | FrameUse::Kept) || content.is_some();
            contents.push(content);
        }
        if !is_used {
            continue;
        }
        to.reserve(group[0].start(), group.len() as u64 * FRAME_BYTES)?;
        for (&frame, content) in group.iter().zip(&contents) {
            if let Some(content) = content {
                store(to, frame, content);
            }
        }
    }
    Ok(())
}

/// The frames of a chunk that the medium has.
fn frames<M: Medium>(chunk: Chunk, medium: &M) -> impl Iterator<Item = Frame> + use<M> {
    let end = medium.len() / FRAME_BYTES;
    let first = chunk.first_frame().0;
    (first..end.min(first + FRAMES_PER_CHUNK)).map(Frame)
}

/// The content of a frame; `None` if it is all zeros.
fn load<M: Medium>(medium: &M, frame: Frame) -> Option<Vec<u8>> {
    let mut content = vec![0; FRAME_BYTES as usize];
    medium.load_bytes(frame.start(), &mut content);
    content.iter().any(|&byte| byte != 0).then_some(content)
}

fn store<M: Medium>(medium: &M, frame: Frame, content: &[u8]) {
    medium.store_bytes(frame.start(), content);
    medium.write_back(frame.start(), FRAME_BYTES);
}

/// The kind of undeclared references in a pool, if it can have any.
pub(crate) fn undeclared<M: Medium>(from: &Inner<M>) -> Option<&'static str> {
    let has_pairs = crate::shape::Shapes::new(&from.types).has_pairs();
    if has_pairs {
        return Some("pairs of words that any object may hold, as OIDs of libpmemobj's are");
    }
    let is_raw = from.was_raw || from.log == LogKind::Undo;
    is_raw.then_some("addresses that a program may have stored in place")
}
