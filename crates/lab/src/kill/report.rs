//! The report of a run of kills.

use serde::Serialize;

use crate::Spread;
use crate::power_cut::PowerFailures;
use crate::writers::Deed;

/// The work and findings of a run of kills.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KillReport {
    /// Children that were killed.
    pub kills: u64,
    /// Those of them that were killed before their first operation.
    pub killed_while_opening: u64,
    /// Those of them that left a cycle of the collector open.
    pub killed_while_collecting: u64,
    /// Power failures at kills, and what they did to the files.
    pub power: PowerFailures,
    /// Operations that were acknowledged, each a transaction.
    pub acknowledged: Operations,
    /// Time in which children wrote on the system's disk: those whose power does not fail.
    pub writing_seconds: f64,
    /// Their acknowledged operations in a second of that time, by all writers together.
    pub operations_per_second: f64,
    /// Operations that were committed and not yet acknowledged when the kill came.
    pub in_flight: u64,
    /// Time from opening the file to the first committed insert.
    pub reopen_ms: Spread,
    /// Time of a trace, if the parent made it.
    pub trace_ms: Spread,
    /// Entries that were compared, over all reopenings.
    pub compared: u64,
    /// Acknowledged entries that are absent, or not as they were written; a pool that is refused.
    pub lost: Vec<String>,
    /// The checker's findings.
    pub findings: Vec<String>,
}

/// Operations by what they did.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Operations {
    /// Keys that were absent.
    pub inserts: u64,
    /// Keys that got another value.
    pub updates: u64,
    /// Keys that were removed.
    pub deletes: u64,
}

impl Operations {
    pub(crate) fn count(&mut self, deed: Deed) {
        match deed {
            Deed::Insert => self.inserts += 1,
            Deed::Update => self.updates += 1,
            Deed::Remove => self.deletes += 1,
        }
    }

    /// The total.
    pub fn total(&self) -> u64 {
        self.inserts + self.updates + self.deletes
    }
}

impl KillReport {
    /// Whether nothing is lost and nothing was found.
    pub fn is_sound(&self) -> bool {
        self.lost.is_empty() && self.findings.is_empty()
    }
}
