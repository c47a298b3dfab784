//! What the measured systems keep their data in, and how durable it is there.

use std::path::Path;

use serde::Serialize;

use super::figure::Figure;
use super::{Domain, Options, cores, reopen, rival};

/// A figure, with its medium and level.
#[derive(Clone, Debug, Serialize)]
pub struct Placed {
    /// The figure.
    #[serde(flatten)]
    pub figure: Figure,
    /// What the system keeps its data in.
    pub medium: String,
    /// How durable an operation is when it returns: the level of a pool with a log and of a database, else the domain.
    pub level: &'static str,
}

impl Placed {
    /// Finds out where a figure that was measured with these options comes from.
    pub fn new(figure: Figure, options: &Options) -> Self {
        let (medium, level) = place(&figure, options);
        Self {
            figure,
            medium,
            level,
        }
    }
}

fn place(figure: &Figure, options: &Options) -> (String, &'static str) {
    let reopened = [reopen::PLAIN, reopen::COMPACTING].map(|kind| kind.structure);
    // A pool that is reopened after a kill lies on the disk.
    let (folder, domain) = match reopened.contains(&figure.structure) {
        true => (&options.disk_dir, Domain::Process),
        false => (&options.memory_dir, options.domain),
    };
    let on = file_system(folder);
    match figure.system.as_str() {
        "firn" => (format!("pool, domain {domain}, {on}"), domain.name()),
        cores::SYSTEM => ("memory".to_owned(), "none"),
        heap if heap.starts_with(rival::LIBPMEMOBJ) => {
            (format!("libpmemobj pool, {on}"), domain.name())
        }
        // The databases are not told to skip a sync, or to delay it.
        _ => (format!("database, {on}"), "sync"),
    }
}

/// The file system that a folder lies on, as the kernel calls it.
pub(super) fn file_system(folder: &Path) -> String {
    let find = || {
        let folder = folder.canonicalize().ok()?;
        let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
        let mounts = mounts.lines().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        });
        let holding = mounts.filter(|(point, _)| folder.starts_with(point));
        // Of two on one point, the later one is seen.
        let (_, kind) = holding.max_by_key(|(point, _)| point.len())?;
        Some(kind.to_owned())
    };
    find().unwrap_or_else(|| "unknown file system".to_owned())
}
