//! No relocation: what is unreachable is reclaimed, what lives stays where it is. The baseline.

use super::{Recovery, Scheme, Settle};

/// Nothing moves.
pub static NONE: Scheme = Scheme {
    name: "none",
    number: 0,
    moves: false,
    write_back_copy: false,
    fence_copy: false,
    settle: Settle::AtCopy,
    fence_settled: false,
    recovery: Recovery::CopyUnsettled,
    sound: true,
    source: "the baseline of FFCCD, section 7",
};
