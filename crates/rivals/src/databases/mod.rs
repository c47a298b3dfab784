//! Databases in a file, each an ordered map, one commit per operation.
//!
//! Both are durable on return if their file's medium is persistent, as Firn is: neither is told to skip or delay a
//! sync. On tmpfs a sync has nothing to do, so they pay a system call for it; on a disk they would pay far more. Their
//! files lose their names as soon as they are open, and vanish with the process.

mod lmdb;
mod redb;

use std::fs::File;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use self::lmdb::Lmdb;
pub use self::redb::Redb;

use crate::arguments::RivalName;
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

    /// Its version.
    fn version() -> String;

    /// Creates an empty map in `dir` that will hold `n` entries.
    fn make(dir: &Path, n: u32) -> Result<Self, Failure>;
}

/// A database that answers requests. Each request has a file of its own.
pub struct Database<M> {
    dir: PathBuf,
    made: PhantomData<M>,
}

impl<M: Make> Database<M> {
    /// Puts its files in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.into(),
            made: PhantomData,
        }
    }
}

impl<M: Make> Rival for Database<M> {
    fn hello(&self) -> Hello {
        Hello {
            rival: M::RIVAL.name(),
            rivals: RivalName::names(),
            version: M::version(),
            fences_counted: "no: it syncs by system calls",
            operations: Vec::new(),
            structures: vec![MAP],
        }
    }

    fn answer(&mut self, request: Request) -> Result<Answer, Failure> {
        let unknown = |what| {
            let name = M::RIVAL.name();
            let only = format!("{name} has {what}: ask for phases of the structure '{MAP}'");
            Err(Failure::Unknown(only))
        };
        match request {
            Request::Time { .. } => unknown("no single operations"),
            Request::CountFences(_) => unknown("no fences to count"),
            Request::Defrag { .. } => unknown("no references to list"),
            Request::TwoThreads { .. } => unknown("one writer at a time"),
            Request::Phases { structure, .. } if structure != MAP => {
                unknown(format!("no structure '{structure}'").as_str())
            }
            Request::Phases { n, seed, .. } => Ok(Answer::Phased(Phased {
                op: "phases",
                structure: MAP,
                n,
                outcome: phases::run(M::make(&self.dir, n)?, n, seed)?,
                fences: None,
                how: M::HOW,
            })),
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
