//! A fast simulated computer.
//!
//! ```text
//! machine       the computer as a medium: what programs run on
//!   options       what it is run with
//!   threads       simulated ones, the one that is behind first
//!   words         volatile memory
//!   state         what threads share
//!     range       ranges, line by line
//! description   what a machine is made of: numbers, each with its unit, kind and source
//! computer      the whole: an instruction's way through it
//!   miss          what the nearest cache is not enough for
//!   power         what a power failure takes
//!   processor     a core's clock and store buffer
//!   underway      stores that a power failure loses
//!   translation   its look-aside buffers
//!   caches        which lines are where, without data
//!     sets          what caches and look-aside buffers have in common
//!   mechanism     hardware that somebody proposes, and the port it is plugged on
//!   controller    what reads and writes come to
//!     queue         the write-pending queue
//!     device        latency, rows and bandwidth
//!   image         what memory holds, and what a power failure leaves
//! statistics    what was counted
//!   traffic       bytes of devices, by cause
//!   energy        what they took, where somebody says so
//! time          in thousandths of a cycle
//! ```
#![forbid(unsafe_code)]

mod caches;
mod computer;
mod controller;
pub mod description;
mod device;
mod energy;
mod image;
mod machine;
pub mod mechanism;
mod options;
mod processor;
mod queue;
mod range;
mod sets;
mod state;
pub mod statistics;
mod threads;
pub mod time;
mod traffic;
mod translation;
mod underway;
mod words;

pub use computer::{Computer, DRAM_START, Overlap, Request};
pub use machine::{Machine, MachinePlace};
pub use options::MachineOptions;
pub use threads::{Job, MachineThread, RunEnd};
pub use translation::PageSize;
pub use words::MachineWords;
