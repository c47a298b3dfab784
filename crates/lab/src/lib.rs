//! The laboratory of Firn, as a library: its heap and structures are measured, crashed, damaged, killed and
//! simulated, and papers' figures are reproduced.
//!
//! ```text
//! bench        the cost of Firn, beside other systems in one run
//! churn        entries come and go, beside a collector
//! writers      threads that write and read, and the expected content of their maps
//! kill         writers that are killed, and the check that nothing acknowledged is lost
//! demo         the main job, on real input
//! power_cut    a disk with a volatile cache under a program that is killed: the power fails, too
//! crash        campaigns of crashes on memory that loses power, with every image that a crash may leave
//! damage       damaged pools, each of which must be a clear error or a sound answer
//! simulation   workloads on simulated machines
//! reproduction papers' figures and tables on them, one folder per paper
//! calibration  the phases of the simulated workloads on any medium, to compare the machines with real ones
//! table, html  figures side by side; pages that need no other file
//! spread       the spread of figures
//! ```
//!
//! Workloads on structures are in `firn-workloads`, a user's tools for a pool in `firn-tools`. Nothing here prints:
//! progress and remarks go to a [`firn_tools::Progress`], results are returned.
#![deny(unsafe_code)]

pub mod bench;
pub mod calibration;
pub mod churn;
mod collector_work;
pub mod crash;
pub mod damage;
pub mod demo;
mod error;
mod html;
pub mod kill;
pub mod power_cut;
pub mod reproduction;
pub mod simulation;
mod spread;
mod table;
pub mod writers;

pub use collector_work::CollectorWork;
pub use error::LabError;
pub use spread::Spread;
pub use table::Table;
