//! Real memory as a medium: files on DAX, on disk and on tmpfs, and anonymous memory.
//!
//! [`Mapped`] reserves an address window whose length is a power of two, maps the pool at its start and lets the rest
//! read as zeros. An address read from damaged media is masked into the window, so following it gives a wrong answer,
//! but never reaches foreign memory and never faults.
//!
//! # What a file promises
//!
//! | backing | domain | kept after kill -9 | kept after a power failure |
//! |---|---|---|---|
//! | [`Backing::Dax`] | `adr` | what was stored | what was written back and fenced |
//! | [`Backing::Disk`] | `process` | what was stored | what was stored before [`Space::sync`] |
//! | [`Backing::Tmpfs`] | `process` | what was stored | nothing |
//! | [`Backing::Anonymous`] | `process` | nothing | nothing |
//!
//! [`MappedOptions::domain`] overrides the domain, so that code for persistent memory can be measured on
//! machines without any.
//!
//! # Blocks before stores
//!
//! A store must never need a block that the device may lack: if none were left, it would raise SIGBUS. So
//! [`Space::reserve`] allocates blocks ahead. On a disk it does so in whole pieces of 2 MiB, because the kernel's page
//! cache may hold a file in folios of that size, and the first store to a folio allocates the blocks that it lacks.
//! File systems that write to new blocks each time, or may do so, cannot keep this promise: a pool there is opened for
//! writing only with [`FileSystems::Any`].
//!
//! # What the crate relies on
//!
//! Nobody shortens the file while it is open: the kernel raises SIGBUS on an access to a page past the end of a file.
//! The lock keeps out every other [`Mapped`]. A forked child does not use the medium that it inherited: its locks are
//! copies that exclude nobody. A limit on file sizes (`ulimit -f`) ends a process whose pool grows past it; if the
//! process ignores SIGXFSZ, growing is an error instead. Linux on x86-64 only.
//!
//! [`Space::sync`]: firn_media::Space::sync
//! [`Space::reserve`]: firn_media::Space::reserve

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("firn-mapped needs Linux on x86-64: mmap windows, clwb and total store order");

mod backing;
mod backup;
pub mod barrier;
mod beside;
mod calls;
mod copy;
mod draft;
mod error;
mod extents;
mod file;
mod file_system;
mod flush;
mod holes;
mod huge;
mod identity;
mod logged;
mod made;
mod mapped;
mod medium;
mod opening;
mod options;
mod place;
mod process;
mod runtime;
mod space;
mod system;
mod transfer;
mod whole;
mod window;
mod words;

pub use backing::Backing;
pub use backup::{Backup, BackupFigures};
pub use error::MappedError;
pub use flush::FlushInstruction;
pub use logged::{Disk, Durability, LogCheck, LogFinding, LogFound, Part, SystemDisk, check_log};
pub use mapped::Mapped;
pub use options::{FileSystems, HugePages, LogOptions, MappedOptions, Placement};
pub use place::MappedPlace;
pub use whole::write_whole;
pub use words::MappedWords;
