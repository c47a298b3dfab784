//! What the demo tells.

use firn_tools::{CheckReport, DefragReport, Standing, Stat};
use serde::Serialize;

use super::Comparison;
use crate::kill::KillReport;

/// What the demo did and found.
#[derive(Clone, Debug, Serialize)]
pub struct DemoReport {
    /// Whether nothing is lost and the pool is sound.
    pub ok: bool,
    /// The tree that was indexed.
    pub tree: String,
    /// The pool's file, where it was kept.
    pub pool: Option<String>,
    /// The page.
    pub page: String,
    /// Paths that were indexed.
    pub paths: u64,
    /// Whether the tree holds more than that.
    pub cut: bool,
    /// Bytes by which values are longer than a path's size, at most.
    pub payload_bytes: usize,
    /// Time that all of it took.
    pub seconds: f64,
    /// The kills while the tree was indexed, and what came of them.
    pub indexing: KillReport,
    /// Entries that were deleted then, at random.
    pub deleted: u64,
    /// The pool with the holes that they left.
    pub fragmented: Standing,
    /// Two threads at work, without a collector and with one.
    pub comparison: Comparison,
    /// The kills in the middle of compactions, and what came of them.
    pub compactions: KillReport,
    /// The last collection, after as many entries were deleted again.
    pub defrag: DefragReport,
    /// Entries that were compared after it.
    pub compared: u64,
    /// What is not as it was written then.
    pub lost: Vec<String>,
    /// The last check.
    pub check: CheckReport,
    /// All figures of the pool at the end.
    pub stat: Stat,
}

impl DemoReport {
    /// Everything that is lost.
    pub fn all_lost(&self) -> impl Iterator<Item = &String> {
        let sides = [&self.comparison.without, &self.comparison.with];
        let kills = [&self.indexing, &self.compactions];
        let lost = kills.into_iter().flat_map(|kills| &kills.lost);
        lost.chain(sides.into_iter().flat_map(|side| &side.lost))
            .chain(&self.lost)
    }

    /// Everything that the checker found.
    pub fn all_findings(&self) -> impl Iterator<Item = &String> {
        let kills = [&self.indexing, &self.compactions];
        let findings = kills.into_iter().flat_map(|kills| &kills.findings);
        findings.chain(&self.check.findings)
    }

    /// Entries that were compared in all.
    pub fn all_compared(&self) -> u64 {
        let sides = self.comparison.without.compared + self.comparison.with.compared;
        self.indexing.compared + sides + self.compactions.compared + self.compared
    }
}
