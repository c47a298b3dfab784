//! What can be wrong with a description.

use std::path::PathBuf;

/// Why a machine cannot be described.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum DescriptionError {
    /// There is none of this name.
    #[error("there is no machine `{name}`; name one of {known}, or a file that ends in .toml")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The file cannot be read.
    #[error("{path}: reading the machine's description failed: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is no TOML, or has a field too many or too few.
    #[error("machine `{machine}`: {message}")]
    Syntax {
        /// Which one.
        machine: String,
        /// What is wrong, and where.
        message: String,
    },
    /// A number has a unit of another kind.
    #[error("machine `{machine}`: {field} has the unit `{found}`; allowed are {allowed}")]
    Unit {
        /// Which one.
        machine: String,
        /// The number, by its path in the file.
        field: String,
        /// Its unit.
        found: String,
        /// The units that it may have.
        allowed: &'static str,
    },
    /// A number is not one that the machine can have.
    #[error("machine `{machine}`: {field} is {found}; it must be {allowed}")]
    Value {
        /// Which one.
        machine: String,
        /// The number, by its path in the file.
        field: String,
        /// Its value and unit.
        found: String,
        /// What it may be.
        allowed: String,
    },
}
