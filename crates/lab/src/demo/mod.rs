//! The main job: indexes a file tree in a pool on disk, and loses nothing.

mod place;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::kill::{KillPlan, run as kill_and_compare};
use crate::writers::Ledger;
use crate::{Entry, LabError, Progress, Tree, TreeLimits, check, stat};

pub use place::Place;
pub use report::DemoReport;

/// Paths that are indexed at most, and time to look for them at most.
const TREE_LIMITS: TreeLimits = TreeLimits {
    paths: 200_000,
    time: Duration::from_secs(4),
};

/// What the demo is told.
#[derive(Clone, Debug)]
pub struct DemoPlan {
    /// The tree to index.
    pub tree: PathBuf,
    /// The pool's file, kept afterwards; a temporary one if `None`.
    pub pool: Option<PathBuf>,
    /// The program that writes when it is called as the demo's child.
    pub program: PathBuf,
    /// Time that it takes, about.
    pub time: Duration,
    /// Kills.
    pub kills: u64,
    /// Decides the moments of the kills, and what the writers do.
    pub seed: u64,
}

/// Runs the demo. `tell` is told each step as it begins.
///
/// Errors: the tree cannot be read or is empty; see [`crate::kill::run`]. What is lost is part of the
/// report.
pub fn run(
    plan: &DemoPlan,
    progress: &mut dyn Progress,
    mut tell: impl FnMut(&str),
) -> Result<DemoReport, LabError> {
    let start = Instant::now();
    let place = Place::choose(plan.pool.as_deref())?;
    tell(&format!("walking the tree below {}", plan.tree.display()));
    let tree = Tree::walk(&plan.tree, TREE_LIMITS, progress)?;
    let entries = sorted(tree.entries);
    if entries.is_empty() {
        let path = plan.tree.clone();
        return Err(LabError::EmptyTree { path });
    }
    let paths = entries.len() as u64;
    tell(&format!(
        "indexing {paths} paths{} in {}, two threads, {} kills",
        if tree.cut { " (the first of more)" } else { "" },
        place.pool().display(),
        plan.kills,
    ));
    let mut ledger = Ledger::new(entries, 0, plan.seed);
    let kill_plan = KillPlan {
        program: plan.program.clone(),
        pool: place.pool().to_path_buf(),
        entries_file: place.entries_file().to_path_buf(),
        kills: plan.kills,
        time: plan.time.saturating_sub(start.elapsed()),
        collecting: Vec::new(),
    };
    let killed = kill_and_compare(&kill_plan, &mut ledger, progress)?;
    let checked = check(place.pool(), progress)?;
    Ok(DemoReport {
        tree: plan.tree.display().to_string(),
        pool: plan.pool.as_ref().map(|p| p.display().to_string()),
        paths,
        cut: tree.cut,
        seconds: start.elapsed().as_secs_f64(),
        ok: killed.is_sound() && checked.ok,
        kills: killed,
        check: checked,
        stat: stat(place.pool())?,
    })
}

/// In the order of the keys, each once.
fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_unstable();
    entries.dedup_by(|a, b| a.key == b.key);
    entries
}
