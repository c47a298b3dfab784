//! Writing an ordinary file so that it is never seen half.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::draft::{Draft, Instead, sync_directory};
use crate::{MappedError, calls};

/// Writes a file that is made or replaced in one step: at any time, a kill or a power failure included, `path` leads
/// to what it led to before or to all of `content`. What a killed call left is taken over by the next one. A link is
/// followed, permissions stay, and a pipe or a device is written to as it is.
///
/// Errors: the folder cannot be written, no space, another process is writing the same file. What was there stays.
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
    // Before the name leads there: file systems make names durable without the content.
    Ok(calls::sync_file(file)?)
}

/// What the system said, for callers who name the file themselves.
fn system_error(error: MappedError) -> io::Error {
    match error {
        MappedError::Io { source, .. } | MappedError::Permission { source, .. } => source,
        MappedError::NotFound { .. } => io::ErrorKind::NotFound.into(),
        MappedError::IsDirectory { .. } => io::ErrorKind::IsADirectory.into(),
        other => io::Error::new(io::ErrorKind::ResourceBusy, other),
    }
}
