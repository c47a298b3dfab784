//! Frames for the part of a log entry outside its slot.

use firn_format::lane::MAX_EXTENTS;
use firn_media::Medium;
use firn_units::{FRAME_BYTES, FRAMES_PER_CHUNK, WORD_BYTES};

use super::redo;
use crate::alloc::Reach;
use crate::error::Error;
use crate::inner::Inner;
use crate::tx::entry::fits_slot;
use firn_format::geometry::FrameRun;

/// Frames for the part of an entry that does not fit into its slot.
pub(super) fn take_overflow<M: Medium>(
    inner: &Inner<M>,
    ring: &mut redo::Ring,
    words: usize,
) -> Result<Vec<FrameRun>, Error> {
    let mut runs: Vec<FrameRun> = Vec::new();
    if fits_slot(words) {
        return Ok(runs);
    }
    inner.end_logs();
    let mut left = (words as u64 * WORD_BYTES).div_ceil(FRAME_BYTES);
    let mut piece = left.min(FRAMES_PER_CHUNK);
    // Large enough that the number of pieces stays within the limit even if all have this size.
    let least = left.div_ceil(MAX_EXTENTS as u64 / 2);
    let (mut reach, mut has_waited) = (Reach::Held, false);
    while left > 0 {
        let durable = inner.redo.known_durable();
        let taken = if runs.len() == MAX_EXTENTS {
            Err(Error::TransactionTooLarge {
                words: words as u64,
            })
        } else {
            inner
                .allocator
                .take_log(&inner.medium, piece.min(left), (durable, reach))
        };
        match taken {
            Ok(run) => {
                runs.push(run);
                left -= run.frames;
            }
            // Free space may be in pieces, which serve before the pool grows.
            Err(Error::PoolFull { .. }) if piece > least => piece = (piece / 2).max(least),
            Err(Error::PoolFull { .. }) if reach == Reach::Held => {
                if has_waited {
                    reach = Reach::Growing;
                } else {
                    // So do waiting frames, above all those of earlier logs.
                    let homes = &mut |which| inner.homes(ring, which);
                    inner.allocator.give_back_empty(&inner.medium, homes)?;
                    has_waited = true;
                }
                piece = left.min(FRAMES_PER_CHUNK);
            }
            Err(error) if error.is_no_room() && piece > 1 => piece /= 2,
            Err(error) => {
                runs.into_iter()
                    .for_each(|run| inner.allocator.give_log(&inner.medium, run));
                return Err(error);
            }
        }
    }
    Ok(runs)
}
