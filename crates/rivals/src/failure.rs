//! Why this rival could not carry out a request.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use thiserror::Error;

use crate::single_step::TraceError;

/// A rival's failure. After any but [`Failure::Refused`] and [`Failure::Wrong`] its pool is as it
/// was before.
#[derive(Debug, Error)]
pub enum Failure {
    /// The library is not on this machine.
    #[error("{name} not found: apt-get install {package} ({said})")]
    NotInstalled {
        /// The name passed to dlopen.
        name: String,
        /// Debian's package that has it.
        package: &'static str,
        /// The answer of dlopen.
        said: String,
    },
    /// The library lacks a function that every version in use has.
    #[error("{name} has no {function}: {said}")]
    NoFunction {
        /// The name passed to dlopen.
        name: String,
        /// The function.
        function: &'static str,
        /// The answer of dlsym.
        said: String,
    },
    /// The library refused a call.
    #[error("{call} failed: {said}")]
    Refused {
        /// The function.
        call: &'static str,
        /// The answer of `pmemobj_errormsg`.
        said: String,
    },
    /// An earlier transaction of this pool was aborted.
    #[error("the pool is poisoned: an earlier transaction was aborted; start the rival again")]
    Poisoned,
    /// A database refused a call.
    #[error("{doing} failed: {said}")]
    Database {
        /// The action that failed.
        doing: &'static str,
        /// The database's message.
        said: String,
    },
    /// A structure does not hold the entries that were put into it.
    #[error("{structure} is wrong: {said}")]
    Wrong {
        /// The structure.
        structure: &'static str,
        /// The value found, and the one expected.
        said: String,
    },
    /// This rival has no such operation or structure.
    #[error("{0}")]
    Unknown(String),
    /// The path cannot be passed to C.
    #[error("{}: the path holds a NUL byte", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{doing} failed: {source}")]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The thread's clock could not be read.
    #[error("reading the thread's CPU time failed: {0}")]
    Clock(#[source] Errno),
    /// A signal or a trace request was refused in the process that is to be single-stepped.
    #[error("cannot be single-stepped: {0}")]
    Tracee(#[source] Errno),
    /// Fences could not be counted.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Failure {
    /// dlopen could not open `name`, which `package` has.
    pub fn not_installed(name: &str, package: &'static str, error: &libloading::Error) -> Self {
        Self::NotInstalled {
            name: name.into(),
            package,
            said: sentence(error),
        }
    }

    /// A database refused an action.
    pub fn database(doing: &'static str) -> impl Fn(&dyn std::error::Error) -> Self {
        move |error| Self::Database {
            doing,
            said: sentence(error),
        }
    }

    /// A structure was asked to delete an entry that it does not hold.
    #[cold]
    pub fn absent(structure: &'static str) -> Self {
        Self::Wrong {
            structure,
            said: "what is to be deleted is not there".into(),
        }
    }

    /// dlsym did not find `function` in `name`.
    pub fn no_function(name: &str, function: &'static str, error: &libloading::Error) -> Self {
        let said = sentence(error);
        Self::NoFunction {
            name: name.into(),
            function,
            said,
        }
    }
}

/// An error's message, with those of its sources.
fn sentence(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", sentence(source)),
        None => error.to_string(),
    }
}
