//! One fence per relocation, the first one.
//!
//! The copy is durable before the settled word is stored, so a settled unit is whole. The word itself may be lost as
//! long as nothing was committed to the copy; a transaction that commits there writes the word back under its own
//! fence. FFCCD's figure 7 keeps the second fence instead and lets recovery guess by comparing, which mistakes a
//! committed change for a torn copy.

use super::{Found, Recovery, Scheme, Settle, Shown};

/// Copy, fence, moved.
pub static SFCCD: Scheme = Scheme {
    name: "sfccd",
    number: 2,
    moves: true,
    found: Found::InTables,
    claims: true,
    groups: false,
    write_back_copy: true,
    fence_copy: true,
    settle: Settle::AtCopy,
    fence_settled: false,
    shown: Shown::AfterFence,
    recovery: Recovery::CopyUnsettled,
    sound: true,
    source: "FFCCD, ISCA 2022, section 3.3.3, corrected",
};
