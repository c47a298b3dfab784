//! No fence of its own, on stock hardware.
//!
//! The source is never written again, so a crash may lose the copy until something is committed to it. The first
//! transaction that changes the object has a fence before its in-place stores anyway: it writes the copy's lines back
//! under that fence and stores the settled word after it.

use super::{Found, Recovery, Scheme, Settle, Shown};

/// Copy; settled by the first change.
pub static PIGGYBACK: Scheme = Scheme {
    name: "piggyback",
    number: 3,
    moves: true,
    found: Found::InTables,
    claims: true,
    groups: false,
    write_back_copy: false,
    fence_copy: false,
    settle: Settle::AtChange,
    fence_settled: false,
    shown: Shown::AfterFence,
    recovery: Recovery::CopyUnsettled,
    sound: true,
    source: "ours",
};
