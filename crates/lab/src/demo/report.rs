//! What the demo tells.

use serde::Serialize;

use crate::kill::KillReport;
use crate::{CheckReport, Stat};

/// What the demo did and found.
#[derive(Clone, Debug, Serialize)]
pub struct DemoReport {
    /// Whether nothing is lost and the pool is sound.
    pub ok: bool,
    /// The tree that was indexed.
    pub tree: String,
    /// The pool's file, where it was kept.
    pub pool: Option<String>,
    /// Paths that were indexed.
    pub paths: u64,
    /// Whether the tree holds more than that.
    pub cut: bool,
    /// Time that all of it took.
    pub seconds: f64,
    /// The kills and what came of them.
    pub kills: KillReport,
    /// The last check.
    pub check: CheckReport,
    /// How full and how fragmented the pool has become.
    pub stat: Stat,
}
