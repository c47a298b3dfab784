//! FFCCD's figure 7 as printed, which loses committed changes: copy, write-back, moved, write-back, one fence. Recovery
//! copies again wherever a moved object differs from its source, and so overwrites changes that were committed since.

use super::{Found, Recovery, Scheme, Settle, Shown};

/// Copy, moved, fence; recovery compares.
pub static SFCCD_AS_PRINTED: Scheme = Scheme {
    name: "sfccd-as-printed",
    number: 4,
    moves: true,
    found: Found::InTables,
    claims: true,
    groups: false,
    write_back_copy: true,
    fence_copy: false,
    settle: Settle::AtCopy,
    fence_settled: true,
    shown: Shown::AfterFence,
    recovery: Recovery::CopyDifferent,
    sound: false,
    source: "FFCCD, ISCA 2022, figure 7",
};
