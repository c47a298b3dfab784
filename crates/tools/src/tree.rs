//! File trees: every path below a directory, with its size.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{Entry, Progress, ToolError};

/// Paths between two reports of progress, and between two readings of the clock.
const STEP: usize = 256;

/// Limits on how much of a tree is examined.
#[derive(Clone, Copy, Debug)]
pub struct TreeLimits {
    /// Paths at most.
    pub paths: usize,
    /// Time at most.
    pub time: Duration,
}

impl TreeLimits {
    /// All of it.
    pub const NONE: Self = Self {
        paths: usize::MAX,
        time: Duration::MAX,
    };
}

/// What was found below a directory.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Each path as key, its size in bytes as value, in no particular order.
    pub entries: Vec<Entry>,
    /// Whether a limit cut it short.
    pub cut: bool,
    /// Paths that could not be examined.
    pub unreadable: u64,
}

impl Tree {
    /// Walks the tree below `root`, without following symbolic links.
    ///
    /// Errors: `root` itself cannot be read. Paths below it that cannot be read are counted and left out.
    pub fn walk(
        root: &Path,
        limits: TreeLimits,
        progress: &mut dyn Progress,
    ) -> Result<Self, ToolError> {
        look_at(root)?;
        let (start, mut tree) = (Instant::now(), Self::default());
        let mut folders = vec![root.to_path_buf()];
        progress.begin("walking the tree", None);
        while let Some(folder) = folders.pop() {
            let before = tree.entries.len();
            let Self {
                entries,
                unreadable,
                ..
            } = &mut tree;
            *unreadable += read_folder(&folder, &mut folders, &mut |entry| {
                entries.push(entry);
                Ok(())
            })?;
            let (now, step) = (tree.entries.len(), STEP);
            if now / step != before / step {
                progress.advance((now / step * step - before / step * step) as u64);
            }
            if now >= limits.paths || start.elapsed() >= limits.time {
                tree.cut = now > limits.paths || !folders.is_empty();
                tree.entries.truncate(limits.paths);
                break;
            }
        }
        progress.end();
        Ok(tree)
    }

    /// Passes every entry below `root` to `visit` as it is found, and keeps none. Returns the number of paths that
    /// could not be examined.
    ///
    /// Errors: as [`Tree::walk`], and those that `visit` returns.
    pub fn visit(
        root: &Path,
        visit: &mut dyn FnMut(Entry) -> Result<(), ToolError>,
    ) -> Result<u64, ToolError> {
        look_at(root)?;
        let (mut unreadable, mut folders) = (0, vec![root.to_path_buf()]);
        while let Some(folder) = folders.pop() {
            unreadable += read_folder(&folder, &mut folders, visit)?;
        }
        Ok(unreadable)
    }
}

/// Errors: `root` is no directory, or cannot be read.
fn look_at(root: &Path) -> Result<(), ToolError> {
    let listing = std::fs::read_dir(root);
    listing
        .map(drop)
        .map_err(ToolError::file(root, "reading the directory"))
}

/// Visits the entries of a folder, and adds the folders in it to `folders`. Returns the number of paths that could not
/// be examined.
///
/// Errors: those that `visit` returns.
fn read_folder(
    folder: &Path,
    folders: &mut Vec<PathBuf>,
    visit: &mut dyn FnMut(Entry) -> Result<(), ToolError>,
) -> Result<u64, ToolError> {
    let Ok(listing) = std::fs::read_dir(folder) else {
        return Ok(1);
    };
    let mut unreadable = 0;
    for item in listing {
        // Does not follow the link, if it is one.
        let Ok((item, metadata)) = item.and_then(|i| i.metadata().map(|m| (i, m))) else {
            unreadable += 1;
            continue;
        };
        let path = item.path();
        visit(Entry {
            key: path.as_os_str().as_bytes().to_vec(),
            value: metadata.len().to_string().into_bytes(),
        })?;
        if metadata.is_dir() {
            folders.push(path);
        }
    }
    Ok(unreadable)
}
