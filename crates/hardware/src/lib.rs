//! The hardware that papers propose for persistent memory, as state machines without time.
//!
//! A medium that loses power and a medium that counts cycles share this code: the first asks what is known after a
//! crash, the second what each step costs. So nothing here knows of time, stores or threads. Each step returns what
//! happened, and its caller prices that or ignores it.
//!
//! FFCCD (Xu, Ye, Solihin, Shen, ISCA 2022):
//!
//! ```text
//! relocate     an object's copy as instructions: at most a page on either side, one line at a time
//! reached      which lines of copies reached persistence: the buffer in the memory controller (4.2)
//! lookup       whether an address is being moved, and to where (4.3)
//!   bloom        a filter over pages, and the filters of a cycle
//!   forwarding   the look-aside buffer of the forwarding table
//!   table        that table, in memory
//!   counts       how often each part gave the answer
//! storage      how much of it lies on the chip (Table 1)
//! lru          the common part of the buffers
//! ```
#![forbid(unsafe_code)]

pub mod lookup;
mod lru;
pub mod reached;
pub mod relocate;
pub mod storage;
