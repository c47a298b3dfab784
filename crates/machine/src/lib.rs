//! A fast simulated computer.
//!
//! ```text
//! description   what a machine is made of: numbers, each with its unit, kind and source
//! computer      the whole: an instruction's way through it
//!   processor     a core's clock and store buffer
//!   translation   its look-aside buffers
//!   caches        which lines are where, without data
//!     sets          what caches and look-aside buffers have in common
//!   controller    the write-pending queue
//!     device        latency, rows and bandwidth
//!   image         what memory holds, and what a power failure leaves
//! statistics    what was counted
//! time          in thousandths of a cycle
//! ```
#![forbid(unsafe_code)]

mod caches;
mod computer;
mod controller;
pub mod description;
mod device;
mod image;
mod processor;
mod sets;
pub mod statistics;
mod time;
mod translation;

pub use computer::{Computer, DRAM_START, Overlap};
pub use translation::PageSize;
