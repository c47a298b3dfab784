//! FFCCD's figure 9 and section 3.3.3 as printed: each object is copied by itself with `relocate`. After a crash an
//! object has moved if all of its lines reached persistence; if some did, the whole object is copied again; if none
//! did, it has not moved. Then the program's log is replayed.
//!
//! It loses data: two objects in one line vouch for each other, the second copy overwrites a committed change, and a
//! log that names an object's new place does not know whether it has moved.
//!
//! The printed recovery walks over all references and undoes those to objects that have not moved. Here, as under every
//! scheme, such an object is found by either address and copied when it is touched, so nothing needs to be undone.

use super::{Found, Recovery, Scheme, Settle, Shown};

/// Copy by `relocate`; recovery repeats unfinished copies.
pub static FFCCD_AS_PRINTED: Scheme = Scheme {
    name: "ffccd-as-printed",
    number: 7,
    moves: true,
    found: Found::InTables,
    claims: true,
    groups: false,
    write_back_copy: false,
    fence_copy: false,
    settle: Settle::ByHardware,
    fence_settled: false,
    shown: Shown::AfterFence,
    recovery: Recovery::CopyReached,
    sound: false,
    source: "FFCCD, ISCA 2022, section 3.3.3 and figure 9",
};
