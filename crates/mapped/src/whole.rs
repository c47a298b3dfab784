//! Writing an ordinary file so that nobody ever sees it incomplete.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::draft::{Draft, Instead, sync_directory};
use crate::{MappedError, calls};

/// Creates or replaces a file in one step: at any time, even after a kill or a power failure, `path` leads to its old
/// target or to all of `content`. The next call takes over the temporary file that a killed call left. A link is
/// followed, permissions are kept, and a pipe or a device is written to directly.
///
/// Errors: the folder is not writable, no space, another process is writing this file. An existing file stays.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let place = match std::fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => return std::fs::write(path, content),
        Ok(there) => Some((std::fs::canonicalize(path)?, there.permissions())),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => None,
        Err(other) => return Err(other),
    };
    let (target, permissions) = match place {
        Some((target, permissions)) => (target, Some(permissions)),
        None => (path.to_path_buf(), None),
    };
    let (draft, file) = Draft::begin(&target).map_err(system_error)?;
    let written = fill(&file, content, permissions)
        .and_then(|()| Ok(draft.name(&target, &Instead::Anything)?));
    if written.is_err() {
        draft.remove();
    }
    written.and_then(|()| sync_directory(&target))
}

fn fill(
    mut file: &File,
    content: &[u8],
    permissions: Option<std::fs::Permissions>,
) -> io::Result<()> {
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(content)?;
    // Before the rename: file systems may make a name durable without the content.
    Ok(calls::sync_file(file)?)
}

/// The system's error, for callers that name the file themselves.
fn system_error(error: MappedError) -> io::Error {
    match error {
        MappedError::Io { source, .. } | MappedError::Permission { source, .. } => source,
        MappedError::NotFound { .. } => io::ErrorKind::NotFound.into(),
        MappedError::IsDirectory { .. } => io::ErrorKind::IsADirectory.into(),
        other => io::Error::new(io::ErrorKind::ResourceBusy, other),
    }
}
