//! Who goes next: the policies that runs are interleaved by, and what runs come to.

pub(crate) mod choices;
pub(crate) mod interleave;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod turns;
pub(crate) mod view;
