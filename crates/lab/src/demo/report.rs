//! The report of the demo.

use firn_tools::{CheckReport, DefragReport, Standing, Stat};
use serde::Serialize;

use super::Comparison;
use crate::kill::KillReport;
use crate::power_cut::PowerFailures;

/// The demo's work and findings.
#[derive(Clone, Debug, Serialize)]
pub struct DemoReport {
    /// Whether nothing is lost and the pool is sound.
    pub ok: bool,
    /// The tree that was indexed.
    pub tree: String,
    /// The pool's file, if it was kept.
    pub pool: Option<String>,
    /// The page.
    pub page: String,
    /// What the pool is on: a disk, or memory.
    pub medium: &'static str,
    /// Paths that were indexed.
    pub paths: u64,
    /// Whether the tree holds more than that.
    pub cut: bool,
    /// Most bytes by which values are longer than a path's size.
    pub payload_bytes: usize,
    /// Total time.
    pub seconds: f64,
    /// The kills while the tree was indexed, and their results.
    pub indexing: KillReport,
    /// Entries that were deleted then, at random.
    pub deleted: u64,
    /// The pool with the holes that this left.
    pub fragmented: Standing,
    /// Two threads at work, without a collector and with one.
    pub comparison: Comparison,
    /// The kills in the middle of compactions, and their results.
    pub compactions: KillReport,
    /// The last collection, after as many entries were deleted again.
    pub defrag: DefragReport,
    /// The pool after it, closed: a pool with a log gives blocks back when the log goes home.
    pub packed: Standing,
    /// Entries that were compared after it.
    pub compared: u64,
    /// Entries that were then not as they were written.
    pub lost: Vec<String>,
    /// The last check.
    pub check: CheckReport,
    /// All figures of the pool at the end.
    pub stat: Stat,
}

impl DemoReport {
    /// Every loss.
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

    /// Power failures in all.
    pub fn all_power(&self) -> PowerFailures {
        self.indexing.power.and(self.compactions.power)
    }

    /// Entries that were compared in all.
    pub fn all_compared(&self) -> u64 {
        let sides = self.comparison.without.compared + self.comparison.with.compared;
        self.indexing.compared + sides + self.compactions.compared + self.compared
    }
}
