//! A copy of a pool in memory, to look at what may not be opened where it lies.

use std::path::Path;

use firn_format::geometry::{SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::superblock::Superblock;
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Medium;
use firn_units::{FRAME_BYTES, VirtAddr};

use crate::{LabError, Progress};

/// Frames between two words to the progress.
const STEP_FRAMES: u64 = 4096;

/// Copies the pool in `path` into memory, as if the machine had not died since it was open: opening
/// the copy recovers it. The file stays as it is. Takes as much memory as the pool has content.
///
/// Errors: the file cannot be read, no memory.
pub(crate) fn copy_of_this_boot(
    path: &Path,
    progress: &mut dyn Progress,
) -> Result<Mapped, LabError> {
    let from = Mapped::open_read_only(path, &MappedOptions::default())?;
    let to = Mapped::anonymous(from.len(), &MappedOptions::default())?;
    copy_frames(&from, &to, progress);
    for at in SUPERBLOCKS {
        let mut bytes = [0; SUPERBLOCK_BYTES as usize];
        to.load_bytes(at, &mut bytes);
        // A copy that is damaged stays so; opening says it.
        if let Ok(mut superblock) = Superblock::decode(&bytes, at) {
            superblock.boot_id = to.boot_id();
            to.store_bytes(at, &superblock.encode());
        }
    }
    Ok(to)
}

fn copy_frames(from: &Mapped, to: &Mapped, progress: &mut dyn Progress) {
    let frames = from.len() / FRAME_BYTES;
    progress.begin("copying into memory", Some(frames));
    let mut frame = vec![0; FRAME_BYTES as usize];
    for index in 0..frames {
        let at = VirtAddr(index * FRAME_BYTES);
        from.load_bytes(at, &mut frame);
        // What is zero there is zero here, without taking memory.
        if frame.iter().any(|&byte| byte != 0) {
            to.store_bytes(at, &frame);
        }
        if (index + 1) % STEP_FRAMES == 0 {
            progress.advance(STEP_FRAMES);
        }
    }
    progress.end();
}
