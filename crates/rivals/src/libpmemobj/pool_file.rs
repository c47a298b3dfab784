//! A pool's file, which has a name only while the pool is being made.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Failure, Library, Pool};

impl<'l> Pool<'l> {
    /// Makes a pool of `bytes` bytes in `dir` and removes its file's name. From then on the file vanishes when the
    /// process ends, in whatever way.
    pub fn create_in(library: &'l Library, dir: &Path, bytes: usize) -> Result<Self, Failure> {
        let path = dir.join(format!(
            "firn-rivals-libpmemobj-{}.pool",
            std::process::id()
        ));
        let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
            return Err(Failure::Path { path });
        };
        let pool = Self::create(library, &name, bytes)?;
        let unlinked = fs::remove_file(&path);
        unlinked.map_err(|source| Failure::Io {
            doing: "unlinking the pool file",
            source,
        })?;
        Ok(pool)
    }
}
