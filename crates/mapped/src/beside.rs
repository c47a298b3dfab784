//! The files beside a pool's: what they are called, and whether a log is there.
//!
//! The log is `NAME.firn-log`, a file that is being made `.NAME.firn-new`. A name that would be too long is cut, and a
//! digest keeps it unique.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use firn_format::log::{BLOCK_BYTES, HEAD_BLOCKS, Head};
use firn_log::newest_head;
use rustix::fs::unlink;

use crate::MappedError;

/// Longest file name, in bytes, on every file system that matters.
const LONGEST_NAME: usize = 255;
/// The generation of a pool that has no name yet, in the head of its log.
pub(crate) const UNPUBLISHED: u64 = 0;
/// The first generation of a pool that has one.
pub(crate) const PUBLISHED: u64 = 1;

/// What the log of a pool is called.
///
/// Errors: the path names a folder, or nothing.
pub(crate) fn log_of(pool: &Path) -> Result<PathBuf, MappedError> {
    name_beside(pool, b"", b".firn-log")
}

/// What a file is called until it is complete.
///
/// Errors: as [`log_of`].
pub(crate) fn draft_of(path: &Path) -> Result<PathBuf, MappedError> {
    name_beside(path, b".", b".firn-new")
}

/// Sees to it that no log lies where that of a new pool belongs. One goes that was made for a pool that never had its
/// name.
///
/// Errors: `LogOfAnother` if it is the log of a pool that may be elsewhere; what the system says.
pub(crate) fn make_way(pool: &Path) -> Result<(), MappedError> {
    let log = log_of(pool)?;
    let error =
        |source| MappedError::io(&log.display().to_string(), "making way for a log", source);
    let Some(heads) = heads(&log).map_err(error)? else {
        return Ok(());
    };
    let mut read = |at: u64, into: &mut [u8]| {
        let from = heads.get(at as usize..).unwrap_or(&[]);
        let len = from.len().min(into.len());
        into[..len].copy_from_slice(&from[..len]);
        Ok(len)
    };
    let unpublished = |head: Head| head.pool_generation == UNPUBLISHED;
    if is_blank(&heads) || newest_head(&mut read).is_ok_and(unpublished) {
        return unlink(&log).map_err(|e| error(e.into()));
    }
    let path = pool.to_path_buf();
    Err(MappedError::LogOfAnother { path, log })
}

/// Refuses a pool beside which its log lies: without the log its newest content is missing.
///
/// Errors: `HasLog`, and what the system says.
pub(crate) fn refuse_log(pool: &Path) -> Result<(), MappedError> {
    match log_beside(pool)? {
        None => Ok(()),
        Some(log) => Err(MappedError::HasLog {
            path: pool.to_path_buf(),
            log,
        }),
    }
}

/// The log beside a pool, if there is one that counts.
///
/// Errors: what the system says.
pub(crate) fn log_beside(pool: &Path) -> Result<Option<PathBuf>, MappedError> {
    let log = log_of(pool)?;
    let error = |source| MappedError::io(&log.display().to_string(), "looking for a log", source);
    let counts = heads(&log)
        .map_err(error)?
        .is_some_and(|heads| !is_blank(&heads));
    Ok(counts.then_some(log))
}

/// The bytes where a log's heads belong, as far as the file goes; `None` if there is no log.
fn heads(log: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(log) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut heads = Vec::new();
    file.take(HEAD_BLOCKS * BLOCK_BYTES)
        .read_to_end(&mut heads)?;
    Ok(Some(heads))
}

/// Whether no head was ever written: it is durable before the first record is.
fn is_blank(heads: &[u8]) -> bool {
    heads.iter().all(|&byte| byte == 0)
}

fn name_beside(path: &Path, before: &[u8], after: &[u8]) -> Result<PathBuf, MappedError> {
    let is_folder = path.as_os_str().as_bytes().ends_with(b"/");
    let Some(name) = path.file_name().filter(|_| !is_folder) else {
        let path = path.to_path_buf();
        return Err(match path.as_os_str().is_empty() {
            true => MappedError::NotFound { path },
            false => MappedError::IsDirectory { path },
        });
    };
    let (name, added) = (name.as_bytes(), before.len() + after.len());
    let mut made = before.to_vec();
    if name.len() + added <= LONGEST_NAME {
        made.extend_from_slice(name);
    } else {
        let digest = format!("-{:016x}", digest(name));
        let kept = LONGEST_NAME - added - digest.len();
        made.extend_from_slice(&name[..kept.min(name.len())]);
        made.extend_from_slice(digest.as_bytes());
    }
    made.extend_from_slice(after);
    Ok(path.with_file_name(OsString::from_vec(made)))
}

/// FNV-1a. It only has to tell long names apart.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
