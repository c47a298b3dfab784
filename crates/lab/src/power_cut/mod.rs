//! Power failures under a program that is killed: a disk with a volatile write-back cache, in software.
//!
//! The program writes through a [`CachingDisk`]. What it writes reaches the files at once, so that the program reads it
//! back; but a *journal* beside them says, for each sector of 512 bytes that is not durable yet, what it held before and
//! what is on its way to it. The journal is a file, so it survives a kill with SIGKILL. Then the power fails
//! ([`cut_power`]): each of those sectors gets one of its contents, whatever the others get, and the files are what a
//! real disk could have left. Recovery reads the files, and knows nothing of all that.
//!
//! # Why a kill in the middle of the bookkeeping leaves what a power failure may leave
//!
//! Each step changes the journal by one small write to its head, which counts the bytes behind it. The system copies so
//! few bytes as a whole, kill or not. Whatever else was being written lies behind the counted bytes, and is not read.
//!
//! | the kill comes | the journal says | so the disk |
//! |---|---|---|
//! | before a write is noted | nothing of it, and no byte of it is in the file | was not asked yet |
//! | after that, before the write is done | it is on its way | got any of its sectors; the file's own, partial content is not looked at |
//! | when a durable write has been noted as durable, before it returns | it is durable, and the file holds all of it | was done, and nobody heard of it |
//! | during a sync, before it is noted | all is on its way | got any of the sectors |
//! | after that, before the sync returns | all is durable that had returned when the sync began | was done, and nobody heard of it |
//!
//! # What it does not show
//!
//! The names of files: a name that is given or removed stays so, except that a new log may have none until its first
//! durable write. What a program shares with a file (a pool's statistics) goes past the disk: it is all there after a
//! power failure. So are blocks that a program allocates itself, but for the length that a file gets by them.
//!
//! ```text
//! disk       what the program writes to           cut      the power failure, and what it came to
//! journal    what is not durable, in a file       sectors  the contents that a sector may have
//! ```

mod cut;
mod disk;
mod journal;
mod sectors;
#[cfg(test)]
mod tests;

pub use cut::{PowerFailures, cut_power};
pub use disk::{CachingDisk, Syncs};

/// Bytes that a disk writes as a whole.
const SECTOR: u64 = 512;
/// Bytes that a program writes as a whole, and a disk does not.
const BLOCK: u64 = 4096;
