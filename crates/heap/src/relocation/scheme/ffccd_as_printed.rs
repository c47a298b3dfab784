//! FFCCD's figure 9 and section 3.3.3 as printed: each object is copied by itself with `relocate`. After a
//! crash an object of which all lines reached persistence has moved; one of which some did is copied again
//! as a whole; one of which none did has not moved. Then the program's log is replayed.
//!
//! Two objects in one line vouch for each other, a committed change goes with the second copy, and a log
//! that names an object's new place knows nothing of whether it has moved.
//!
//! The printed recovery undoes references to objects that have not moved, by a walk over all of them. Here
//! such an object is found by either address and copied when it is touched, as under every scheme, so nothing
//! needs to be undone.

use super::{Found, Recovery, Scheme, Settle, Shown};

/// Copy by `relocate`; recovery repeats what was begun.
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
