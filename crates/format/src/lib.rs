//! Every byte that a pool holds on media, and nothing else.
//!
//! ```text
//! chunk 0        superblock A | superblock B | state words | roots | type registry | statistics
//! chunk 1        lanes: the transactions' logs
//! chunks 2..7    tables of region 0 (frame words and allocation bitmaps of 512 chunks)
//! chunks 7..     data; every 512th chunk starts a region whose first five chunks are its tables
//! ```
//!
//! A pool is position-independent: all addresses are bytes from its start. All integers are little
//! endian. Blocks that hold nothing need not exist on the device, so a fresh pool takes little space.
//!
//! Every structure that the heap trusts carries a check: a checksum if it is written as a whole, or twelve bits inside
//! the word if it must change in one store.
#![forbid(unsafe_code)]

pub mod class;
pub mod frame;
pub mod geometry;
pub mod header;
pub mod lane;
pub mod log;
pub mod plan;
pub mod reference;
pub mod registry;
pub mod root;
pub mod sealed;
pub mod statistics;
pub mod superblock;

mod bytes;
mod error;

pub use error::FormatError;

/// Version of this layout. Every pool that is open for writing has it.
pub const FORMAT_VERSION: u32 = 2;

/// The oldest version that is read. A pool of this version or a later one is read as it is, and gets [`FORMAT_VERSION`]
/// when it is opened for writing. Others are refused; see `FormatError::Version`.
pub const OLDEST_FORMAT_VERSION: u32 = 1;

/// The checksum of every structure that is written as a whole: 64-bit XXH3.
#[inline]
pub fn checksum(bytes: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}
