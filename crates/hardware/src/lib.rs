//! The hardware that papers propose for persistent memory, as state machines without time.
//!
//! A medium that loses power and one that counts cycles share what stands here: the first asks what is
//! known after a crash, the second what each step costs. So nothing here knows of time, of stores or of
//! threads; each step returns what happened, and whoever drives it prices that or forgets it.
//!
//! FFCCD (Xu, Ye, Solihin, Shen, ISCA 2022):
//!
//! ```text
//! relocate     an object's copy as instructions: a page at most on either side, a line at a time
//! reached      which lines of copies reached persistence: the buffer in the memory controller (4.2)
//! lookup       whether an address is being moved, and where to (4.3)
//!   bloom        a filter over pages, and the filters of a cycle
//!   forwarding   the look-aside buffer of the forwarding table
//!   table        that table, in memory
//!   counts       how often each part of it had the answer
//! storage      what of it lies on the chip (Table 1)
//! lru          what buffers have in common
//! ```
#![forbid(unsafe_code)]

pub mod lookup;
mod lru;
pub mod reached;
pub mod relocate;
pub mod storage;
