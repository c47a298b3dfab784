//! Do workloads on simulated machines show what papers print?

mod reproduction;
mod simulation;
