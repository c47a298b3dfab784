//! The paths of the demo's files: on a disk, if there is one.

use std::path::{Path, PathBuf};
use std::process;

use firn_mapped::{Mapped, MappedOptions};
use firn_tools::ToolError;

use crate::LabError;

/// Prefix of the names of temporary directories; the process's number follows.
const PREFIX: &str = "firn-demo-";
/// Cargo's build directory.
const TARGET: &str = "target";

/// The files of a demo. Those that the user did not ask to keep are removed with this value.
#[derive(Debug)]
pub struct Place {
    pool: PathBuf,
    entries: PathBuf,
    twin: PathBuf,
    journal: PathBuf,
    is_on_disk: bool,
    temporary: Option<PathBuf>,
}

impl Place {
    /// The pool at `asked`, or in a new temporary directory.
    ///
    /// Errors: a pool that should be new exists; no directory can be written.
    pub fn choose(asked: Option<&Path>) -> Result<Self, LabError> {
        if let Some(pool) = asked {
            // Fails if the file exists, and reports so before any work is done.
            let probe = Mapped::create(pool, 0, &MappedOptions::default())?;
            let beside = |ending| {
                let mut name = pool.as_os_str().to_owned();
                name.push(ending);
                PathBuf::from(name)
            };
            return Ok(Self {
                pool: pool.to_path_buf(),
                entries: beside(".entries"),
                twin: beside(".twin"),
                journal: beside(".disk"),
                is_on_disk: probe.backing().outlives_power(),
                temporary: None,
            });
        }
        let (folder, is_on_disk) = temporary_folder()?;
        Ok(Self {
            is_on_disk,
            journal: folder.join("disk"),
            pool: folder.join("pool"),
            entries: folder.join("entries"),
            twin: folder.join("twin"),
            temporary: Some(folder),
        })
    }

    /// The pool's file.
    pub fn pool(&self) -> &Path {
        &self.pool
    }

    /// The file of entries.
    pub fn entries_file(&self) -> &Path {
        &self.entries
    }

    /// The path for a copy of the pool.
    pub fn twin(&self) -> &Path {
        &self.twin
    }

    /// The path for the journal of a disk whose power fails.
    pub fn journal(&self) -> &Path {
        &self.journal
    }

    /// What the files are on.
    pub fn medium(&self) -> &'static str {
        match self.is_on_disk {
            true => "a disk",
            false => "memory (tmpfs)",
        }
    }

    /// Removes the copy of the pool, and its log if it was not closed.
    pub fn remove_twin(&self) {
        // If they cannot be removed, they go with this value, or are left to the next demo.
        let _ = std::fs::remove_file(&self.twin);
        let _ = std::fs::remove_file(self.twin.with_added_extension("firn-log"));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // If it cannot be removed, it is left to the next demo.
        if let Some(folder) = &self.temporary {
            let _ = std::fs::remove_dir_all(folder);
        } else {
            let _ = std::fs::remove_file(&self.entries);
            let _ = std::fs::remove_file(&self.journal);
            self.remove_twin();
        }
    }
}

/// Makes a directory of this process's own, on a disk if one of the usual places is on one. Returns whether it is.
fn temporary_folder() -> Result<(PathBuf, bool), ToolError> {
    let mut made: Vec<PathBuf> = Vec::new();
    for parent in candidates() {
        remove_abandoned(&parent);
        let folder = parent.join(format!("{PREFIX}{}", process::id()));
        if std::fs::create_dir(&folder).is_ok() {
            made.push(folder);
        }
    }
    let found: Vec<Option<bool>> = made.iter().map(|folder| outlives_power(folder)).collect();
    let mut wanted = [Some(true), Some(false)].into_iter();
    let on_disk = wanted.find_map(|wanted| found.iter().position(|&found| found == wanted));
    if made.is_empty() {
        let denied = std::io::ErrorKind::PermissionDenied.into();
        let doing = "making a directory, here and in /var/tmp,";
        return Err(ToolError::file(&std::env::temp_dir(), doing)(denied));
    }
    let chosen = on_disk.unwrap_or(0);
    let is_on_disk = found[chosen] == Some(true);
    let chosen = made.swap_remove(chosen);
    for other in made {
        // It is empty; if it stays, it is left to the next demo.
        let _ = std::fs::remove_dir(other);
    }
    Ok((chosen, is_on_disk))
}

fn candidates() -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let is_target = |p: &&Path| {
        p.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(TARGET))
    };
    let target = program.ancestors().find(is_target).map(Path::to_path_buf);
    let usual = ["/var/tmp".into(), std::env::temp_dir()];
    target.into_iter().chain(usual).collect()
}

/// Removes the directories of demos that were killed themselves.
fn remove_abandoned(parent: &Path) {
    let Ok(listing) = std::fs::read_dir(parent) else {
        return;
    };
    for item in listing.flatten() {
        let name = item.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let owner = number.and_then(|number| number.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = std::fs::remove_dir_all(item.path());
        }
    }
}

/// Whether files there outlive a power failure; `None` where no pool can be made.
fn outlives_power(folder: &Path) -> Option<bool> {
    let probe = folder.join("probe");
    // It never has a name, so it vanishes at once.
    Mapped::create(&probe, 0, &MappedOptions::default())
        .ok()
        .map(|medium| medium.backing().outlives_power())
}
