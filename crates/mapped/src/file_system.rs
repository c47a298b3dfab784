//! Which file systems promise that a store to an allocated block needs no other block.

use std::fs::File;

use rustix::fs::fstatfs;
use rustix::io::Errno;

/// The file system below a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileSystem {
    /// It keeps its content in memory.
    Memory,
    /// It writes to the blocks that were allocated, so a store to one never needs another.
    InPlace,
    /// It does not, or nobody knows: its name, and the reason.
    Unsure(&'static str, &'static str),
}

impl FileSystem {
    /// The file system that a file lies on.
    ///
    /// Only file systems that are known to promise are trusted. Any other may need a block for a store.
    pub(crate) fn below(file: &File) -> Result<Self, Errno> {
        const TMPFS: u64 = 0x0102_1994;
        const RAMFS: u64 = 0x8584_58f6;
        const EXT: u64 = 0xef53;
        const XFS: u64 = 0x5846_5342;
        const COPIES: &str = "which writes to new blocks each time";
        const ELSEWHERE: &str = "which hides the file system that has the blocks";
        Ok(match fstatfs(file)?.f_type as u64 {
            TMPFS | RAMFS => Self::Memory,
            EXT | XFS => Self::InPlace,
            0x9123_683e => Self::Unsure("btrfs", COPIES),
            0xca45_1a4e => Self::Unsure("bcachefs", COPIES),
            0x2fc1_2fc1 => Self::Unsure("ZFS", COPIES),
            0xf2f5_2010 => Self::Unsure("f2fs", COPIES),
            0x3434 => Self::Unsure("nilfs2", COPIES),
            0x794c_7630 => Self::Unsure("overlayfs", ELSEWHERE),
            0x6573_5546 => Self::Unsure("FUSE", ELSEWHERE),
            0x6969 => Self::Unsure("NFS", ELSEWHERE),
            0xff53_4d42 | 0xfe53_4d42 => Self::Unsure("SMB", ELSEWHERE),
            0x0102_1997 => Self::Unsure("9p", ELSEWHERE),
            _ => Self::Unsure("a file system", "of which that is not known"),
        })
    }
}
