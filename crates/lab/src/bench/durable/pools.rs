//! The pools that are measured. What makes a pool durable on a disk is in this file alone.

use std::path::{Path, PathBuf};

use firn_heap::{Error, Handle, Pool, PoolOptions, Session, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Level, Medium};
use firn_structures::Map;
use firn_structures::map::MapRoot;

use super::super::BenchError;
use super::super::pools::LAYOUT;
use super::workload::Value;

/// The medium of a pool that is durable on a disk.
pub(super) type Durable = Mapped;

const MAP: &str = "map";

/// How a durable pool is made and opened.
fn options(level: Level) -> MappedOptions {
    let mut options = MappedOptions::default().domain(Domain::Logged);
    options.log.level = level;
    options
}

/// Makes a durable pool with an empty map. `log_bytes` is the initial size of its log, which is not brought home before it
/// has grown to twice that.
pub(super) fn create(
    path: &Path,
    level: Level,
    log_bytes: Option<u64>,
) -> Result<Pool<Durable>, BenchError> {
    let mut options = options(level);
    if let Some(bytes) = log_bytes {
        options.log.initial_bytes = bytes;
        options.log.bound_bytes = bytes * 4;
    }
    filled(Mapped::create(path, 0, &options)?)
}

/// Opens it again.
pub(super) fn open(path: &Path, level: Level) -> Result<Pool<Durable>, BenchError> {
    let medium = Mapped::open(path, &options(level))?;
    Ok(Pool::open(medium, &PoolOptions::new(LAYOUT))?)
}

/// The log of a durable pool.
pub(super) fn log(path: &Path) -> PathBuf {
    path.with_added_extension("firn-log")
}

/// Makes a pool in the domain `process`.
pub(super) fn mapped(path: &Path) -> Result<Pool<Mapped>, BenchError> {
    let options = MappedOptions::default().domain(Domain::Process);
    filled(Mapped::create(path, 0, &options)?)
}

fn filled<M: Medium>(medium: M) -> Result<Pool<M>, BenchError> {
    let pool = Pool::create(medium, &PoolOptions::new(LAYOUT))?;
    let mut session = pool.session()?;
    session.transaction(|tx| Map::create(tx, MAP).map(|_| ()))?;
    drop(session);
    Ok(pool)
}

/// A thread's access to a pool's map.
pub(super) struct Writer<M: Medium> {
    pub(super) session: Session<M>,
    map: Handle<MapRoot, M>,
}

const GONE: Error = Error::NotAllocated { at: 0 };

impl<M: Medium> Writer<M> {
    pub(super) fn new(pool: &Pool<M>) -> Result<Self, Error> {
        let mut session = pool.session()?;
        let map = session.read(|view| super::super::map::handle(pool, view, MAP))?;
        Ok(Self { session, map })
    }

    /// Inserts or replaces entries in one transaction, at the pool's level.
    pub(super) fn commit(&mut self, entries: &[(u64, Value)]) -> Result<(), Error> {
        let map = &self.map;
        self.session.transaction(|tx| {
            let mut map = Map::at(tx.deref(map).ok_or(GONE)?);
            entries
                .iter()
                .try_for_each(|(key, value)| map.insert(&key.to_be_bytes(), value).map(|_| ()))
        })
    }

    /// Deletes entries in one transaction, at the pool's level.
    pub(super) fn remove(&mut self, keys: &[u64]) -> Result<(), Error> {
        let map = &self.map;
        self.session.transaction(|tx| {
            let mut map = Map::at(tx.deref(map).ok_or(GONE)?);
            keys.iter()
                .try_for_each(|key| map.remove(&key.to_be_bytes()).map(|_| ()))
        })
    }

    /// Copies a value, in a guard of its own. Returns whether it is there.
    pub(super) fn get(&mut self, key: u64, into: &mut Vec<u8>) -> Result<bool, Error> {
        into.clear();
        let guard = self.session.guard();
        let root = guard.view().deref(&self.map).ok_or(GONE)?;
        Map::at(root).get_into(&key.to_be_bytes(), into)
    }

    /// Copies all values in order. Returns how many there are.
    pub(super) fn scan(&mut self, into: &mut Vec<u8>) -> Result<u64, Error> {
        let (map, mut count) = (&self.map, 0);
        self.session.read(|view| {
            let map = Map::at(view.deref(map).ok_or(GONE)?);
            let reader = map.read()?;
            for item in reader.iter() {
                into.clear();
                item?.value_into(into)?;
                std::hint::black_box(&into);
                count += 1;
            }
            Ok::<_, Error>(())
        })?;
        Ok(count)
    }
}
