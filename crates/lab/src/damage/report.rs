//! The report of a campaign, and damage as files.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::DamageError;
use super::mutation::Mutation;
use super::sample::Condition;

/// The format of the files.
const FORMAT: &str = "damage of firn damage, 1";

/// The work and findings of a campaign.
#[derive(Clone, Debug, Serialize)]
pub struct DamageReport {
    /// Whether nothing was found.
    pub ok: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Pools that were damaged and used.
    pub runs: u64,
    /// Those of them whose damage went unnoticed.
    pub unnoticed: u64,
    /// Distinct answers.
    pub answers: usize,
    /// Damage that is kept because it led to a new answer.
    pub corpus: usize,
    /// Structures and conditions.
    pub rows: Vec<DamageRow>,
    /// Failures, one of each kind.
    pub findings: Vec<DamageFinding>,
    /// Total time.
    pub seconds: f64,
}

impl DamageReport {
    /// Pools a second.
    pub fn per_second(&self) -> f64 {
        self.runs as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// One structure in one condition.
#[derive(Clone, Debug, Serialize)]
pub struct DamageRow {
    /// The structure.
    pub structure: &'static str,
    /// How its pool was left.
    pub condition: Condition,
    /// Pools that were damaged and used.
    pub runs: u64,
    /// Those of them that could not be told from sound ones.
    pub unnoticed: u64,
    /// Distinct answers.
    pub answers: usize,
    /// Failures, each kind once.
    pub findings: usize,
}

/// Damage to a pool, and what it led to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DamageFinding {
    /// The structure.
    pub structure: String,
    /// How its pool was left.
    pub condition: Condition,
    /// The failure; in the corpus, the new answer.
    pub message: String,
    /// The damage to the pool, the least that leads there.
    pub mutations: Vec<Mutation>,
}

/// A file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<F> {
    format: String,
    damage: F,
}

impl DamageFinding {
    /// Words that are stored.
    pub fn words(&self) -> usize {
        self.mutations.iter().map(|one| one.stores.len()).sum()
    }

    /// Writes it to the file of this name in the directory, made or replaced.
    ///
    /// Errors: the directory cannot be written.
    pub fn write(&self, directory: &Path, name: &str) -> Result<PathBuf, DamageError> {
        let path = directory.join(format!("{name}.json"));
        let file = File {
            format: FORMAT.to_owned(),
            damage: self,
        };
        let failed = |source| DamageError::File {
            path: path.clone(),
            doing: "writing damage",
            source,
        };
        let text = serde_json::to_string(&file).map_err(|e| failed(e.into()))?;
        firn_mapped::write_whole(&path, (text + "\n").as_bytes()).map_err(failed)?;
        Ok(path)
    }

    /// Reads a finding from a file.
    ///
    /// Errors: the file cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Self, DamageError> {
        let text = std::fs::read_to_string(path).map_err(|source| DamageError::File {
            path: path.to_path_buf(),
            doing: "reading damage",
            source,
        })?;
        let wrong = |what: String| DamageError::NoDamage {
            path: path.to_path_buf(),
            what,
        };
        let file: File<Self> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        match file.format == FORMAT {
            true => Ok(file.damage),
            false => Err(wrong(format!(
                "its format is `{}`, not `{FORMAT}`",
                file.format
            ))),
        }
    }
}
