//! Which thread goes next: the policies that interleave runs, and the results of runs.

pub(crate) mod choices;
pub(crate) mod interleave;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod turns;
pub(crate) mod view;
