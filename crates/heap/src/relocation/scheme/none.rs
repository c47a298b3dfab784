//! No relocation: unreachable objects are reclaimed, live ones stay in place. The baseline.

use super::{Found, Recovery, Scheme, Settle, Shown};

/// Nothing moves.
pub static NONE: Scheme = Scheme {
    name: "none",
    number: 0,
    moves: false,
    found: Found::InTables,
    claims: true,
    groups: false,
    write_back_copy: false,
    fence_copy: false,
    settle: Settle::AtCopy,
    fence_settled: false,
    shown: Shown::AfterFence,
    recovery: Recovery::CopyUnsettled,
    sound: true,
    source: "the baseline of FFCCD, section 7",
};
