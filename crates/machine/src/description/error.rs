//! Errors in the description of a machine.

use std::path::PathBuf;

/// Why a machine cannot be described.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum DescriptionError {
    /// No machine has this name.
    #[error("there is no machine `{name}`; name one of {known}, or a file that ends in .toml")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The known names.
        known: String,
    },
    /// The file cannot be read.
    #[error("{path}: reading the machine's description failed: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The text is not TOML, or a field is missing or unknown.
    #[error("machine `{machine}`: {message}")]
    Syntax {
        /// The machine's name.
        machine: String,
        /// The error and its place.
        message: String,
    },
    /// A number's unit is of another kind.
    #[error("machine `{machine}`: {field} has the unit `{found}`; allowed are {allowed}")]
    Unit {
        /// The machine's name.
        machine: String,
        /// The number, by its path in the file.
        field: String,
        /// Its unit.
        found: String,
        /// The units that it may have.
        allowed: &'static str,
    },
    /// A number has a value that the machine cannot have.
    #[error("machine `{machine}`: {field} is {found}; it must be {allowed}")]
    Value {
        /// The machine's name.
        machine: String,
        /// The number, by its path in the file.
        field: String,
        /// Its value and unit.
        found: String,
        /// The values that it may have.
        allowed: String,
    },
}
