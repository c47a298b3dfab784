//! Compacted copies: backups, upgrades, and what can be saved.

use std::path::Path;

use firn_heap::{CopyError, Pool};
use firn_mapped::{Mapped, MappedOptions};
use serde::Serialize;

use crate::any::{Torn, open_any};
use crate::check::findings;
use crate::{LabError, Progress, stat};

/// What was copied.
#[derive(Clone, Debug, Serialize)]
pub struct CopyReport {
    /// Objects in the copy.
    pub objects: u64,
    /// Their bytes as requested.
    pub live_bytes: u64,
    /// Length of the pool's file.
    pub file_bytes: u64,
    /// Length of the copy's file.
    pub new_file_bytes: u64,
}

/// Copies what lives in the pool in `path` into a new pool in the file `new`, packed and checked.
///
/// Errors: the pool cannot be opened, or is damaged; `new` exists, or there is no space for it. Then
/// there is no new file. Crash: `new` is there when the copy is complete; what a crash midway leaves beside it the
/// next copy removes.
pub fn copy(
    path: &Path,
    new: &Path,
    torn: Torn,
    progress: &mut dyn Progress,
) -> Result<CopyReport, LabError> {
    let target = Mapped::create(new, 0, &MappedOptions::default())?;
    let from = open_any(path, torn, progress)?;
    copy_into(&from, target, path, new, progress)?;
    from.close().map_err(LabError::pool(path))?;
    let (old, new) = (stat(path)?, stat(new)?);
    Ok(CopyReport {
        objects: new.objects,
        live_bytes: new.live_bytes,
        file_bytes: old.file_bytes,
        new_file_bytes: new.file_bytes,
    })
}

/// Copies, and names the copy when it is sound and closed.
fn copy_into(
    from: &Pool<Mapped>,
    target: Mapped,
    path: &Path,
    new: &Path,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let mut done = None;
    let copied = from.copy_into(target, &mut |now| {
        if done.is_none() {
            progress.begin("copying", Some(now.of));
        }
        progress.advance(now.done - done.unwrap_or(0));
        done = Some(now.done);
    });
    progress.end();
    let copy = copied.map_err(|error| match error {
        CopyError::Target(error) => error.into(),
        CopyError::Objects(source) => LabError::pool(path)(source),
        other => LabError::Copy {
            path: path.to_path_buf(),
            source: other,
        },
    })?;
    let found = match findings(&copy) {
        Ok(found) => found,
        Err(error) => {
            copy.abandon();
            return Err(LabError::pool(new)(error));
        }
    };
    if let Some(first) = found.first() {
        // Never named, it goes: half a copy is worse than none.
        copy.abandon();
        return Err(LabError::UnsoundCopy {
            path: new.to_path_buf(),
            finding: first.clone(),
        });
    }
    copy.close().map_err(LabError::pool(new))
}
