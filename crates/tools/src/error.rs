//! What may go wrong, in sentences that name the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use firn_format::FormatError;
use firn_heap::{CopyError, Error, OpenError};
use firn_mapped::MappedError;
use thiserror::Error;

/// Work on a pool failed. A pool that was being changed holds every batch before the failure, and
/// nothing of the batch that failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolError {
    /// A picture was not drawn.
    #[error(transparent)]
    Map(#[from] crate::map::MapError),
    /// The file could not be opened or created.
    #[error(transparent)]
    Mapped(#[from] MappedError),
    /// The file holds no pool that could be opened.
    #[error(transparent)]
    Open(OpenError),
    /// The bytes are not a sound pool.
    #[error("{path}: {source}{}", way_out(source))]
    Format {
        /// The pool's file.
        path: String,
        /// What is wrong with them.
        source: FormatError,
    },
    /// An operation on an open pool failed.
    #[error("{path}: {source}")]
    Pool {
        /// The pool's file.
        path: PathBuf,
        /// What failed.
        source: Error,
    },
    /// A file other than the pool could not be read or written.
    #[error("{path}: {doing} failed: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A pool could not be copied.
    #[error("{path}: {source}")]
    Copy {
        /// The pool's file.
        path: PathBuf,
        /// What failed.
        source: CopyError,
    },
    /// The checker finds something in a copy, which is removed.
    #[error("{path}: the copy is not sound ({finding}); run `firn check` on the pool")]
    UnsoundCopy {
        /// The copy's file.
        path: PathBuf,
        /// The first finding.
        finding: String,
    },
    /// A line is no entry.
    #[error(
        "{input}:{line}: the line {what}; correct it and load again (the {loaded} lines before it are in the pool)"
    )]
    Line {
        /// What is wrong with it.
        what: String,
        /// The input.
        input: String,
        /// Counted from 1.
        line: u64,
        /// Lines that were loaded.
        loaded: u64,
    },
    /// A number is out of range.
    #[error("{what} must be {range}, not {found}")]
    Range {
        /// The parameter.
        what: &'static str,
        /// Its range.
        range: &'static str,
        /// The value found.
        found: String,
    },
    /// There is no such scheme.
    #[error("there is no scheme `{name}`; the schemes are {allowed}")]
    Scheme {
        /// What was asked for.
        name: String,
        /// The schemes that keep what was committed.
        allowed: String,
    },
    /// A scheme is kept only to show what it loses.
    #[error(
        "the scheme `{name}` ({source_of}) loses committed changes in a crash and runs only on simulated media; use one of {allowed}"
    )]
    UnsoundScheme {
        /// The scheme.
        name: &'static str,
        /// Where it was published.
        source_of: &'static str,
        /// The schemes that keep what was committed.
        allowed: String,
    },
}

impl From<OpenError> for ToolError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Format { pool, source } => Self::Format { path: pool, source },
            other => Self::Open(other),
        }
    }
}

impl ToolError {
    /// Wraps the error of an operation on the pool at `path`.
    pub fn pool(path: &Path) -> impl Fn(Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Pool {
            path: path.clone(),
            source,
        }
    }

    /// Wraps a system error about another file.
    pub fn file(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File {
            path,
            doing,
            source,
        }
    }

    /// Whether the pool itself is damaged, rather than the wrong file or out of reach.
    pub fn is_damage(&self) -> bool {
        let damaged =
            |e: &FormatError| matches!(e, FormatError::Checksum { .. } | FormatError::Range { .. });
        match self {
            Self::Format { source, .. } => damaged(source),
            Self::Open(OpenError::TooShort { .. } | OpenError::Recovery { .. }) => true,
            Self::Pool { source, .. } => match source {
                Error::Damaged { .. } | Error::WrongType { .. } | Error::NotAllocated { .. } => {
                    true
                }
                Error::Format(source) => damaged(source),
                _ => false,
            },
            _ => false,
        }
    }
}

fn way_out(error: &FormatError) -> &'static str {
    match error {
        FormatError::NotAPool => "; name a pool, such as `firn load` creates",
        FormatError::Version { .. } => "",
        _ => "; run `firn check` to see the damage, or restore the last copy",
    }
}
