//! The instructions of proposed hardware that a scheme uses to copy and to find objects.
//!
//! A cycle begins, and resumes after a crash, only on a medium that has what its scheme needs ([`has_instructions`]).
//! So code of an open cycle relies on them.

use firn_media::{CheckLookup, Medium, Relocate};

use super::scheme::Scheme;
use crate::error::Error;

/// Checks that the medium has the instructions that a scheme uses to copy and to find objects.
///
/// Errors: it does not.
pub(crate) fn has_instructions<M: Medium>(medium: &M, scheme: &Scheme) -> Result<(), Error> {
    let offers = medium.offers();
    let needs = if scheme.checks_lookup() && offers.get::<dyn CheckLookup>().is_none() {
        "a medium with the instruction `checklookup`, which only simulated ones have"
    } else if scheme.relocates() && offers.get::<dyn Relocate>().is_none() {
        "a medium with the instruction `relocate`, which only simulated ones have"
    } else {
        return Ok(());
    };
    let what = scheme.name;
    Err(Error::WrongKind { what, needs })
}

/// The hardware that copies and remembers which lines arrived (FFCCD, section 4.1).
pub(super) fn relocator<M: Medium>(medium: &M) -> &dyn Relocate {
    medium.offers().expect()
}

/// The hardware that says where objects go (FFCCD, section 4.3).
pub(super) fn lookups<M: Medium>(medium: &M) -> &dyn CheckLookup {
    medium.offers().expect()
}
