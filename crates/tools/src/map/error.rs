//! Why there is no picture.

use std::path::PathBuf;

/// Why there is no picture. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The file name's extension names no known kind of picture.
    #[error("{path}: the picture's name must end in .svg or .png")]
    Ending {
        /// The picture's file.
        path: PathBuf,
    },
    /// The picture would have to replace a directory.
    #[error("{path}: is a directory; name a file in it that ends in .svg or .png")]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The picture would have to replace a pool that it shows.
    #[error("{path}: is the pool itself; name another file for the picture")]
    IsPool {
        /// The pool's file.
        path: PathBuf,
    },
}
