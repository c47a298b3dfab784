//! Which parts of a file have blocks, and which of these blocks another file shares (`FS_IOC_FIEMAP`).
//!
//! `SEEK_DATA` and `SEEK_HOLE` do not tell: they report blocks that were allocated but never written as a hole.

use core::mem::{offset_of, size_of};
use core::ops::Range;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

/// Extents that one call asks for.
const AT_ONCE: usize = 256;

/// `struct fiemap`, with room for extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

const _: () = assert!(size_of::<Extent>() == 56 && offset_of!(Request, extents) == 32);

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
const LAST: u32 = 1;
const SHARED: u32 = 0x2000;

/// Consecutive blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Bytes of the file.
    pub(crate) range: Range<u64>,
    /// Whether another file shares these blocks, so that a store needs new ones.
    pub(crate) shared: bool,
}

/// All blocks of a range of the file, in order. `None` if the file system cannot tell.
pub(crate) fn blocks(file: &File, range: Range<u64>) -> Result<Option<Vec<Blocks>>, Errno> {
    let (mut found, mut at, end) = (Vec::new(), range.start, range.end);
    while at < end {
        let mut request = Request {
            start: at,
            length: end - at,
            flags: 0,
            mapped: 0,
            room: AT_ONCE as u32,
            reserved: 0,
            extents: [Extent {
                logical: 0,
                physical: 0,
                length: 0,
                reserved: [0; 2],
                flags: 0,
                more_reserved: [0; 3],
            }; AT_ONCE],
        };
        // SAFETY: the request has the layout that the call expects, which the assertion above checks, and room for as
        // many extents as it says.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
        if done != 0 {
            return match Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO) {
                Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL => Ok(None),
                Errno::INTR => continue,
                other => Err(other),
            };
        }
        let extents = &request.extents[..(request.mapped as usize).min(AT_ONCE)];
        for extent in extents {
            let start = extent.logical.max(at);
            let until = extent.logical.saturating_add(extent.length).min(end);
            if start < until {
                found.push(Blocks {
                    range: start..until,
                    shared: extent.flags & SHARED != 0,
                });
                at = until;
            }
        }
        if extents.last().is_none_or(|last| last.flags & LAST != 0) || extents.len() < AT_ONCE {
            break;
        }
    }
    Ok(Some(found))
}

/// The parts of a range that have no blocks of the file's own, in order. `None` if the file system cannot tell.
pub(crate) fn holes(file: &File, range: &Range<u64>) -> Result<Option<Vec<Range<u64>>>, Errno> {
    let Some(blocks) = blocks(file, range.clone())? else {
        return Ok(None);
    };
    let (mut holes, mut at) = (Vec::new(), range.start);
    let own = blocks.into_iter().filter(|blocks| !blocks.shared);
    let end = range.end..range.end;
    for Range { start, end } in own.map(|blocks| blocks.range).chain([end]) {
        if at < start {
            holes.push(at..start);
        }
        at = end;
    }
    Ok(Some(holes))
}

/// The pieces of a file of `len` bytes that have some blocks and lack others.
pub(crate) fn incomplete(blocks: &[Blocks], piece: u64, len: u64) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    let (mut start, mut held) = (0, 0);
    let mut end_piece = |start: u64, held: u64| {
        let whole = start..(start + piece).min(len);
        if held == 0 || held >= whole.end - whole.start {
            return;
        }
        match found.last_mut() {
            Some(last) if last.end == whole.start => last.end = whole.end,
            _ => found.push(whole),
        }
    };
    for Blocks { range, .. } in blocks {
        let mut at = range.start;
        while at < range.end {
            let here = at - at % piece;
            if here != start {
                end_piece(start, held);
                (start, held) = (here, 0);
            }
            let end = range.end.min(here + piece);
            held += end - at;
            at = end;
        }
    }
    end_piece(start, held);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_with_some_blocks_are_found() {
        let blocks = |ranges: &[Range<u64>]| -> Vec<Blocks> {
            let owned = |range: &Range<u64>| Blocks {
                range: range.clone(),
                shared: false,
            };
            ranges.iter().map(owned).collect()
        };
        let found = |ranges: &[Range<u64>]| incomplete(&blocks(ranges), 8, 36);
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[0..8, 16..24, 32..36]), []);
        assert_eq!(found(&[0..4, 4..8, 9..10]), [8..16]);
        assert_eq!(found(&[1..7, 7..8]), [0..8]);
        assert_eq!(found(&[4..20, 33..36]), [0..8, 16..24, 32..36]);
        assert_eq!(found(&[4..8, 8..12, 23..33]), [0..24, 32..36]);
    }
}
