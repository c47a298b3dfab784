//! The known machines, by name.

use core::hash::{Hash, Hasher};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use super::Description;
use super::error::DescriptionError;
use super::file::File;
use super::quantity::Number;

/// The machines that come with this crate.
pub const NAMES: [&str; 3] = ["ffccd", "thynvm", "hoop"];

/// The ending that tells a file from a name.
const FILE_ENDS_IN: &str = "toml";

fn built_in(name: &str) -> Option<&'static str> {
    match name {
        "ffccd" => Some(include_str!("../../machines/ffccd.toml")),
        "thynvm" => Some(include_str!("../../machines/thynvm.toml")),
        "hoop" => Some(include_str!("../../machines/hoop.toml")),
        _ => None,
    }
}

impl Description {
    /// The machine with this name, or from the file with this path.
    ///
    /// Errors: there is none, or its description is wrong.
    pub fn of(name: &str) -> Result<Self, DescriptionError> {
        Self::with_numbers(name).map(|(description, _)| description)
    }

    /// A machine, and its numbers as they are written.
    pub fn with_numbers(name: &str) -> Result<(Self, Vec<Number>), DescriptionError> {
        if let Some(text) = built_in(name) {
            return File::parse(name, text)?.resolve();
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|end| end != FILE_ENDS_IN) {
            return Err(DescriptionError::Unknown {
                name: name.to_owned(),
                known: NAMES.map(|name| format!("`{name}`")).join(", "),
            });
        }
        let text = std::fs::read_to_string(path).map_err(|source| DescriptionError::Read {
            path: path.to_path_buf(),
            source,
        })?;
        File::parse(name, &text)?.resolve()
    }

    /// The machine that a text describes.
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        let (description, _) = File::parse("unnamed", text)?.resolve()?;
        Ok(description)
    }

    /// Equal for machines whose results are equal, whatever their names.
    pub fn digest(&self) -> u64 {
        let mut hasher = Xxh3::new();
        let nameless = Self {
            name: String::new(),
            about: String::new(),
            ..self.clone()
        };
        nameless.hash(&mut hasher);
        hasher.finish()
    }
}
