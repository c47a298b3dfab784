//! Whether a pool and the collections in it are sound.

use std::path::Path;

use firn_heap::{Error, OpenError, Pool, Target, View};
use firn_mapped::{Backing, Mapped, MappedOptions};
use firn_media::Medium;
use firn_structures::avl::AvlRoot;
use firn_structures::hash::HashRoot;
use firn_structures::inline_tree::InlineRoot;
use firn_structures::list::ListRoot;
use firn_structures::map::MapRoot;
use firn_structures::queue::QueueRoot;
use firn_structures::red_black::RedBlackRoot;
use firn_structures::strings::StringsRoot;
use firn_structures::vector::VectorRoot;
use firn_structures::{
    AvlTree, HashMap, InlineTree, List, Map, Queue, RedBlackTree, StringArray, Vector,
};
use serde::Serialize;

use crate::any::{Torn, open_any};
use crate::log::{self, LogReport};
use crate::{Progress, ToolError};

/// The checker's result.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// Whether nothing was found.
    pub ok: bool,
    /// Version of the pool's format, where it could be opened.
    pub version: Option<u32>,
    /// The log that was beside the pool: a program has it open, or a crash left it.
    pub log: Option<LogReport>,
    /// What is wrong, in sentences.
    pub findings: Vec<String>,
}

/// Checks the pool in `path`, whatever it holds: its log, tables, headers, types, references, allocation, and every
/// collection that a root names. A log that is damaged, missing, or another pool's is a finding; then the pool is not
/// opened. A pool that was closed is only read. Any other is recovered first, as by any open. A pool that
/// was open when the machine died is recovered and checked in memory, and its file stays as it is; the first finding is
/// then that no open accepts it.
///
/// Errors: no such file, in use (if nothing is wrong with the log), not a pool. Faults inside a pool are findings.
pub fn check(
    path: &Path,
    mapped: &MappedOptions,
    progress: &mut dyn Progress,
) -> Result<CheckReport, ToolError> {
    let (log, mut found) = log::look(path, mapped)?;
    let mut version = None;
    match open_any(path, Torn::InMemory, mapped, progress) {
        Ok(pool) => {
            version = Some(pool.format_version());
            found.extend(in_pool(pool, path, progress)?);
        }
        // What is wrong with the log is why the pool is not opened.
        Err(_) if !found.is_empty() => {}
        Err(error) if error.is_damage() => found.push(error.to_string()),
        Err(error) => {
            if let Some(log) = &log {
                let log = &log.path;
                progress.remark(&format!(
                    "{log}: ok; to check the pool itself while it is in use, check a copy that `firn backup` makes"
                ));
            }
            return Err(error);
        }
    }
    Ok(CheckReport {
        ok: found.is_empty(),
        version,
        log,
        findings: found,
    })
}

/// What is wrong with a pool, which is closed then.
fn in_pool(
    pool: Pool<Mapped>,
    path: &Path,
    progress: &mut dyn Progress,
) -> Result<Vec<String>, ToolError> {
    progress.begin("checking", None);
    let found = findings(&pool);
    progress.end();
    // A pool in memory only is the copy of one that no open accepts, whatever is found in it.
    let torn = pool.medium().backing() == Backing::Anonymous;
    let closed = pool.close();
    let mut found = found
        .and_then(|f| closed.map(|()| f))
        .map_err(ToolError::pool(path))?;
    if torn {
        let pool = path.display().to_string();
        found.insert(0, OpenError::MachineDied { pool }.to_string());
    }
    Ok(found)
}

/// What is wrong with an open pool and with the collections that its roots name.
///
/// Errors: an operation on the pool stayed open, or every lane is in use.
pub fn findings<M: Medium>(pool: &Pool<M>) -> Result<Vec<String>, Error> {
    let mut findings: Vec<String> = pool.check()?.iter().map(ToString::to_string).collect();
    let mut session = pool.session()?;
    let guard = session.guard();
    match guard.view().root_names() {
        Ok(names) => {
            for name in names {
                findings.extend(root_findings(guard.view(), &name));
            }
        }
        Err(error) => findings.push(format!("the root table: {error}")),
    }
    Ok(findings)
}

/// What is wrong with the collection of a root; nothing if the root is no collection.
///
/// The registry tells its type: asking for a map would register the map's type in a pool that has none, and fail where
/// the pool is only read.
fn root_findings<'g, V: View<'g>>(view: V, name: &str) -> Vec<String> {
    let found = collection_findings(view, name).unwrap_or_else(|error| vec![error.to_string()]);
    let in_root = |what| format!("root `{name}`: {what}");
    found.into_iter().map(in_root).collect()
}

fn collection_findings<'g, V: View<'g>>(view: V, name: &str) -> Result<Vec<String>, Error> {
    match view.root_type_name(name)?.as_deref() {
        Some(MapRoot::NAME) => Map::open(view, name)?.check(),
        Some(ListRoot::NAME) => List::open(view, name)?.check(),
        Some(AvlRoot::NAME) => AvlTree::open(view, name)?.check(),
        Some(RedBlackRoot::NAME) => RedBlackTree::open(view, name)?.check(),
        Some(InlineRoot::NAME) => InlineTree::open(view, name)?.check(),
        Some(HashRoot::NAME) => HashMap::open(view, name)?.check(),
        Some(VectorRoot::NAME) => Vector::open(view, name)?.check(),
        Some(QueueRoot::NAME) => Queue::open(view, name)?.check(),
        Some(StringsRoot::NAME) => StringArray::open(view, name)?.check(),
        _ => Ok(Vec::new()),
    }
}
