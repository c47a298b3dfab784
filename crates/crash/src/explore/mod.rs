//! Crashing a workload wherever it can crash: what is tried, how, and what was found.

pub(crate) mod explorer;
pub(crate) mod frame;
pub(crate) mod lazy;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod story;
pub(crate) mod swarm;
pub(crate) mod walk;
