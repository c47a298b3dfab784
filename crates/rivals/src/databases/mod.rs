//! Databases in files, each an ordered map.
//!
//! LMDB and redb go through FFCCD's phases, one commit per operation. They are durable on return if their file's medium is persistent, as Firn is: neither is told to skip or delay a
//! sync. On tmpfs a sync has nothing to do, so they pay a system call for it; on a disk they would pay far more. Their
//! files lose their names as soon as they are open, and vanish with the process. [`crate::durable`] measures all of them on a
//! disk.

mod lmdb;
mod redb;

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use self::lmdb::Lmdb;
pub use self::redb::Redb;

use crate::arguments::RivalName;
use crate::durable::{self, Durably, Store};
use crate::failure::Failure;
use crate::phases::{self, Structure};
use crate::protocol::{Answer, Hello, Phased, Request};
use crate::serve::Rival;

/// The only structure of a database.
const MAP: &str = "map";
/// The unit in which the system counts a file's blocks.
const BLOCK_BYTES: u64 = 512;

/// A database that can be created.
pub trait Make: Structure + Sized {
    /// Its name.
    const RIVAL: RivalName;
    /// How it is measured.
    const HOW: &'static str;

    /// Creates an empty map in `dir` that will hold `n` entries.
    fn make(dir: &Path, n: u32) -> Result<Self, Failure>;
}

/// Runs the phases on a database in this directory, with so many entries and this seed.
type Phases = fn(&Path, u32, u64) -> Result<Phased, Failure>;

/// A database that answers requests. Each request for phases has a file of its own.
pub struct Database<S> {
    dir: PathBuf,
    version: String,
    phases: Option<Phases>,
    durable: Durably<S>,
}

impl<S: Store> Database<S> {
    /// Puts its files in `dir`.
    ///
    /// Errors: its library is not installed.
    pub fn new(dir: &Path) -> Result<Self, Failure> {
        Ok(Self {
            dir: dir.into(),
            version: S::version()?,
            phases: None,
            durable: Durably::new(dir),
        })
    }

    /// With phases on this map.
    pub fn with_phases<M: Make>(self) -> Self {
        let phases = Some(run_phases::<M> as Phases);
        Self { phases, ..self }
    }
}

fn run_phases<M: Make>(dir: &Path, n: u32, seed: u64) -> Result<Phased, Failure> {
    Ok(Phased {
        op: "phases",
        structure: MAP,
        n,
        outcome: phases::run(M::make(dir, n)?, n, seed)?,
        fences: None,
        how: M::HOW,
    })
}

impl<S: Store> Rival for Database<S> {
    fn hello(&self) -> Hello {
        Hello {
            rival: S::RIVAL.name(),
            rivals: RivalName::names(),
            version: self.version.clone(),
            fences_counted: "no: it syncs by system calls",
            operations: durable::OPERATIONS.to_vec(),
            structures: self.phases.map(|_| MAP).into_iter().collect(),
        }
    }

    fn answer(&mut self, request: Request) -> Result<Answer, Failure> {
        let unknown = |what| {
            let (name, durable) = (S::RIVAL.name(), durable::OPERATIONS.join(", "));
            let phases = self
                .phases
                .map(|_| format!("phases of the structure '{MAP}', "));
            let phases = phases.unwrap_or_default();
            let only = format!("{name} has {what}: ask for {phases}{durable}");
            Err(Failure::Unknown(only))
        };
        match request {
            Request::Time { .. } => unknown("no single operations"),
            Request::CountFences(_) => unknown("no fences to count"),
            Request::Defrag { .. } => unknown("no references to list"),
            Request::TwoThreads { .. } => unknown("one writer at a time"),
            Request::Phases { structure, n, seed } => match self.phases {
                Some(phases) if structure == MAP => Ok(Answer::Phased(phases(&self.dir, n, seed)?)),
                _ => unknown(format!("no structure '{structure}'").as_str()),
            },
            Request::Insert(insertions) => Ok(Answer::Inserted(self.durable.insert(insertions)?)),
            Request::Reopen => Ok(Answer::Reopened(self.durable.reopen()?)),
            Request::Volume { n, batch, seed } => {
                Ok(Answer::Volume(self.durable.volume(n, batch, seed)?))
            }
        }
    }
}

/// The path of this process's database until it loses its name.
fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("firn-rivals-{name}-{}", std::process::id()))
}

/// Bytes of a file's blocks.
fn bytes_on_medium(file: &File) -> Result<u64, Failure> {
    let metadata = file.metadata().map_err(io("measuring the file"))?;
    Ok(metadata.blocks() * BLOCK_BYTES)
}

fn io(doing: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |source| Failure::Io { doing, source }
}
