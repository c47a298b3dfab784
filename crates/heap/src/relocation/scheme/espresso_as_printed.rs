//! Espresso's relocation as printed. With several threads that share objects field by field it loses committed changes:
//! any thread that finds an object not moved copies it, and others use the copy as soon as they see the word that says
//! so, which may not be durable yet.

use super::{Found, Recovery, Scheme, Settle, Shown};

/// Copy, fence, moved, fence, without a claim.
pub static ESPRESSO_AS_PRINTED: Scheme = Scheme {
    name: "espresso-as-printed",
    number: 5,
    moves: true,
    found: Found::InTables,
    claims: false,
    groups: false,
    write_back_copy: true,
    fence_copy: true,
    settle: Settle::AtCopy,
    fence_settled: true,
    shown: Shown::AtStore,
    recovery: Recovery::CopyUnsettled,
    sound: false,
    source: "Espresso, ASPLOS 2018, section 4.2; FFCCD, ISCA 2022, figure 6a",
};
