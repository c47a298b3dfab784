//! FFCCD without fences of its own, on hardware that remembers which lines of copies reached persistence, corrected
//! where the printed protocol loses data.
//!
//! A line that reached persistence may hold later commits, so recovery never stores to it (FFCCD's observation 4).
//! Therefore a line must not count before it holds everything that belongs there: objects that share destination lines
//! are copied together under one claim, by plain stores, and the mark of each line is set by one `relocate` behind the
//! last of them. Lines that recovery completes it marks durably, because the program may commit to them before the next
//! crash.

use super::{Found, Recovery, Scheme, Settle, Shown};

/// Copy and mark; recovery completes unfinished copies.
pub static FFCCD: Scheme = Scheme {
    name: "ffccd",
    number: 6,
    moves: true,
    found: Found::InTables,
    claims: true,
    groups: true,
    write_back_copy: false,
    fence_copy: false,
    settle: Settle::ByHardware,
    fence_settled: false,
    shown: Shown::AfterFence,
    recovery: Recovery::CopyUnreached,
    sound: true,
    source: "FFCCD, ISCA 2022, sections 3.3.3 and 4, corrected",
};
