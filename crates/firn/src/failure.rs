//! Why a command did not run to its end.

use core::fmt;
use std::io;

use firn_lab::LabError;
use firn_tools::ToolError;

/// Why a command did not run to its end.
#[derive(Debug)]
pub enum Failure {
    /// Work on a pool failed.
    Tool(ToolError),
    /// Work of the laboratory failed.
    Lab(LabError),
    /// The result could not be printed.
    Output(io::Error),
    /// The terminal could not be drawn on or read from.
    Terminal(io::Error),
}

impl Failure {
    /// Whether the reader of the output has gone.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(error) => error.fmt(f),
            Self::Lab(error) => error.fmt(f),
            Self::Output(error) => write!(
                f,
                "standard output: writing failed: {error}; redirect it elsewhere"
            ),
            Self::Terminal(error) => write!(
                f,
                "the terminal cannot be used: {error}; `firn top --once` does not need one"
            ),
        }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
