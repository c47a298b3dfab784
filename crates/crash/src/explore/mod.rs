//! Crashing a workload wherever it can crash: what is tried, how, and what was found.

mod eager;
mod engine;
pub(crate) mod explorer;
mod frame;
mod lazy;
pub(crate) mod options;
mod path;
mod prefixes;
mod replay;
pub(crate) mod report;
pub(crate) mod story;
pub(crate) mod swarm;
pub(crate) mod walker;
