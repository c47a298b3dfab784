//! The report.

use firn_heap::collector::scheme::Scheme;
use firn_tools::Standing;
use serde::{Serialize, Serializer};

use crate::CollectorWork;

/// When a collector begins, where it ends, and how.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CollectorSetting {
    /// Ratio on 2 MiB pages above which it begins.
    pub trigger: f64,
    /// Ratio at which it ends; at least 1.
    pub target: f64,
    /// How a copy comes to count; see [`firn_heap::collector::scheme`].
    #[serde(serialize_with = "name")]
    pub scheme: &'static Scheme,
}

fn name<S: Serializer>(scheme: &&'static Scheme, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(scheme.name)
}

/// The outcome.
#[derive(Clone, Debug, Serialize)]
pub struct ChurnReport {
    /// The pool's file.
    pub pool: String,
    /// The pool's domain. With a log, each transaction waits for the disk.
    pub domain: &'static str,
    /// The root that names the map.
    pub map: String,
    /// Entries.
    pub entries: u64,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// Seed of every order.
    pub seed: u64,
    /// Rounds.
    pub rounds: u64,
    /// The collector that worked meanwhile, if there was one.
    pub setting: Option<CollectorSetting>,
    /// The phases of all rounds, in their order.
    pub phases: Vec<Phase>,
    /// The collector's work.
    pub collector: Option<CollectorWork>,
    /// The whole pool at the end, no collection under way, before the entries were removed.
    pub end: Standing,
    /// Whether the entries that were left at the end stayed.
    pub kept: bool,
    /// Entries that were removed at the end.
    pub cleaned: u64,
    /// Total time, including opening and closing.
    pub seconds: f64,
}

/// One phase.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// The round, from 1.
    pub round: u64,
    /// The step.
    pub phase: &'static str,
    /// Operations, each a transaction.
    pub operations: u64,
    /// CPU time of the program's thread, without the collector's.
    pub cpu_ns_an_operation: f64,
    /// Operations in a second of wall time.
    pub per_second: f64,
    /// The whole pool when it ended. A collection may have been under way.
    pub standing: Standing,
}
