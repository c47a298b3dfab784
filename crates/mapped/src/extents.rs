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

/// All blocks of the file's first `len` bytes, in order. `None` if the file system cannot tell.
pub(crate) fn blocks(file: &File, len: u64) -> Result<Option<Vec<Blocks>>, Errno> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < len {
        let mut request = Request {
            start: at,
            length: len - at,
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
            let end = extent.logical.saturating_add(extent.length).min(len);
            if extent.logical.max(at) < end {
                found.push(Blocks {
                    range: extent.logical.max(at)..end,
                    shared: extent.flags & SHARED != 0,
                });
                at = end;
            }
        }
        if extents.last().is_none_or(|last| last.flags & LAST != 0) || extents.len() < AT_ONCE {
            break;
        }
    }
    Ok(Some(found))
}
