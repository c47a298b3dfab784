//! FFCCD with all of its hardware (FFX in the paper's figures): like [`FFCCD`], but the read barrier asks the
//! instruction `checklookup` whether an object moves, and where to.
//!
//! The hardware answers from Bloom filters over the source pages, and from a look-aside buffer of the forwarding table.
//! It is told when a plan comes into force, and again by recovery; it forgets at the cycle's end. Its answers equal
//! those of the tables, so nothing else differs.

use super::{FFCCD, Found, Scheme};

/// As [`FFCCD`]; the hardware says where objects go.
pub static FFCCD_CHECKLOOKUP: Scheme = Scheme {
    name: "ffccd+checklookup",
    number: 8,
    found: Found::ByHardware,
    source: "FFCCD, ISCA 2022, sections 3.3.3 and 4, corrected",
    ..FFCCD
};
