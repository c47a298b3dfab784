//! The words of frames taken into use since a session's last commit: they are stored in place already, and media must
//! have them before an object in such a frame counts (A1).

use firn_format::frame::FrameUse;
use firn_format::geometry::Frame;
use firn_format::lane::Record;
use firn_media::{Medium, MediumExt};
use firn_units::{FRAMES_PER_CHUNK, WORD_BYTES};

use crate::alloc::Cache;
use crate::steps;

/// Logs the words of frames taken into use since the last commit. They are stored in place already, but the whole entry
/// may be evicted before its fence, and the objects that it publishes need their frames (A1).
pub(super) fn log_frames<M: Medium>(medium: &M, fresh: &[Frame], entry: &mut Vec<u64>) {
    for &head in fresh {
        each_table_piece(medium, head, |first, count| {
            let words: Vec<u64> = (0..count)
                .map(|i| medium.load_u64(first.plus(i).word_at()))
                .collect();
            Record::push_range(entry, first.word_at(), &words);
        });
    }
}

/// Makes the words of frames taken into use since the last commit durable, before slots in them are given back without
/// a commit. The next session to use such a frame publishes objects in it without logging its words, so they must be
/// durable by then.
pub(crate) fn settle_fresh_frames<M: Medium>(medium: &M, cache: &mut Cache) {
    if !cache.fresh.is_empty() {
        if medium.keeps(&steps::PASSED_ON_WRITE_BACK) {
            write_back_frames(medium, &cache.fresh);
        }
        medium.fence_for(&steps::PASSED_ON_FENCE);
        cache.fresh.clear();
    }
}

/// Writes back the words of frames taken into use since the last commit.
pub(super) fn write_back_frames<M: Medium>(medium: &M, fresh: &[Frame]) {
    each_frame_piece(medium, fresh, |first, count| {
        medium.write_back(first.word_at(), count * WORD_BYTES);
    });
}

pub(super) fn each_frame_piece<M: Medium>(
    medium: &M,
    fresh: &[Frame],
    mut visit: impl FnMut(Frame, u64),
) {
    for &head in fresh {
        each_table_piece(medium, head, &mut visit);
    }
}

/// Calls `visit` for each contiguous stretch of a run's words: one per chunk.
fn each_table_piece<M: Medium>(medium: &M, head: Frame, mut visit: impl FnMut(Frame, u64)) {
    let at = head.word_at();
    let frames = FrameUse::from_word(medium.load_u64(at), at).map_or(1, FrameUse::frames);
    let mut done = 0;
    while done < frames {
        let first = head.plus(done);
        let here = (frames - done).min(FRAMES_PER_CHUNK - first.index_in_chunk());
        visit(first, here);
        done += here;
    }
}
