//! Two fences per relocation: the copy is durable before the word that says so, and that word before any thread may
//! change the copy.
//!
//! As printed (Espresso section 4.2; FFCCD figure 6a) a second thread may change the copy between the
//! word's store and its fence, and two threads may copy one object over each other. So the claim is a
//! compare-and-swap here, and the copy is shown to others only after the second fence.

use super::{Found, Recovery, Scheme, Settle, Shown};

/// Copy, fence, moved, fence.
pub static ESPRESSO: Scheme = Scheme {
    name: "espresso",
    number: 1,
    moves: true,
    found: Found::InTables,
    claims: true,
    groups: false,
    write_back_copy: true,
    fence_copy: true,
    settle: Settle::AtCopy,
    fence_settled: true,
    shown: Shown::AfterFence,
    recovery: Recovery::CopyUnsettled,
    sound: true,
    source: "Espresso, ASPLOS 2018, section 4.2, with a claim",
};
