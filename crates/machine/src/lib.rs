//! A fast simulated computer.
//!
//! ```text
//! machine       the computer as a medium, on which programs run
//!   options       options of a machine
//!   threads       simulated threads, of which the one furthest behind runs first
//!   words         volatile memory
//!   state         the state that threads share
//!     range       ranges, line by line
//! description   the parts of a machine: numbers, each with its unit, kind and source
//! computer      the whole: an instruction's path through it
//!   miss          accesses for which the nearest cache does not suffice
//!   power         power failures that leave the caches
//!   processor     a core's clock and store buffer
//!   underway      stores that a power failure loses
//!   translation   its look-aside buffers
//!   caches        which lines are where, without data
//!     sets          the common part of caches and look-aside buffers
//!   mechanism     proposed hardware, and its port
//!   controller    the path of reads and writes to the devices
//!     queue         the write-pending queue
//!     device        latency, rows and bandwidth
//!   image         the content of memory, and what a power failure leaves
//! statistics    all counts
//!   traffic       bytes of devices, by cause
//!   energy        energy of devices, if a source gives it
//! time          thousandths of a cycle
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
