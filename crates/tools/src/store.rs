//! A map in a pool file.

mod options;

use std::path::{Path, PathBuf};

use firn_heap::{Error, OpenError, Pool, Session};
use firn_mapped::{Mapped, MappedError};
use firn_structures::Map;
use firn_structures::map::Scan;

use crate::any::tell_conversion;
use crate::{Progress, ToolError};

pub use options::{LAYOUT, StoreOptions};

/// A key and its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// A map in an open pool file.
///
/// Dropping it closes the pool as far as possible; [`Store::close`] reports failures.
pub struct Store {
    // Declared before the pool: sessions end before it closes.
    session: Session<Mapped>,
    pool: Pool<Mapped>,
    path: PathBuf,
    map: String,
}

impl Store {
    /// Opens the pool in `path` for changes, making it if there is none. After an unclean end it is recovered and
    /// traced, so that all its free space can be used.
    ///
    /// Errors: in use, no pool, damaged; an existing file is as it was, a new one is removed.
    pub fn open_or_create(
        path: &Path,
        options: &StoreOptions,
        progress: &mut dyn Progress,
    ) -> Result<Self, ToolError> {
        let medium = match Mapped::open(path, &options.mapped) {
            Err(MappedError::NotFound { .. }) => return Self::create(path, options),
            other => other?,
        };
        let pool = Pool::open(medium, &options.of_pool())?;
        let mut store = Self::on(pool, path, options)?;
        tell_conversion(&store.pool, progress);
        store.trace(progress)?;
        store.make_map()?;
        Ok(store)
    }

    /// Makes a new pool with an empty map. The file appears at `path` only once the map is in it.
    fn create(path: &Path, options: &StoreOptions) -> Result<Self, ToolError> {
        let mut mapped = options.mapped.clone();
        mapped.domain = options.new_domain.or(mapped.domain);
        let medium = Mapped::create(path, 0, &mapped)?;
        let pool = Pool::create_unpublished(medium, &options.of_pool())?;
        let make = || {
            let mut store = Self::on(pool.clone(), path, options)?;
            store.make_map()?;
            Ok(store)
        };
        let made = make().and_then(|store| {
            pool.publish().map_err(ToolError::pool(path))?;
            Ok(store)
        });
        // A file that could not become a pool is not left behind.
        made.inspect_err(|_| pool.abandon())
    }

    /// Opens the pool in `path` for changes. After an unclean end it is recovered and traced.
    ///
    /// Errors: no such file, in use, no pool, damaged; the file is as it was.
    pub fn open(
        path: &Path,
        options: &StoreOptions,
        progress: &mut dyn Progress,
    ) -> Result<Self, ToolError> {
        let mut store = Self::open_untraced(path, options)?;
        tell_conversion(&store.pool, progress);
        store.trace(progress)?;
        Ok(store)
    }

    /// Opens the pool in `path` for changes, recovered but not traced: objects that a crash left allocated stay so, and
    /// space that a crash may have freed is not used.
    ///
    /// Errors: as [`Store::open`].
    pub fn open_untraced(path: &Path, options: &StoreOptions) -> Result<Self, ToolError> {
        let medium = Mapped::open(path, &options.mapped)?;
        Self::on(Pool::open(medium, &options.of_pool())?, path, options)
    }

    /// Opens the pool in `path` for reading, together with other readers. If it was not closed, it is opened for
    /// changes instead and recovered.
    ///
    /// Errors: as [`Store::open`].
    pub fn open_to_read(
        path: &Path,
        options: &StoreOptions,
        progress: &mut dyn Progress,
    ) -> Result<Self, ToolError> {
        let medium = Mapped::open_read_only(path, &options.mapped)?;
        match Pool::open_read_only(medium, LAYOUT) {
            Ok(pool) => Self::on(pool, path, options),
            Err(OpenError::NeedsRecovery { pool }) => {
                progress.remark(&format!("{pool}: was not closed, recovering it"));
                let store = Self::open_untraced(path, options)?;
                tell_conversion(&store.pool, progress);
                Ok(store)
            }
            Err(other) => Err(other.into()),
        }
    }

    /// The map named by the options, in an open pool whose file is `path`; see [`Store::make_map`].
    ///
    /// Errors: there is no session left.
    pub fn on(pool: Pool<Mapped>, path: &Path, options: &StoreOptions) -> Result<Self, ToolError> {
        Ok(Self {
            session: pool.session().map_err(ToolError::pool(path))?,
            pool,
            path: path.to_path_buf(),
            map: options.map.clone(),
        })
    }

    /// Traces the reachable objects, if a crash has left this undone.
    fn trace(&mut self, progress: &mut dyn Progress) -> Result<(), ToolError> {
        if !self.pool.needs_trace() {
            return Ok(());
        }
        let path = self.path.display();
        progress.remark(&format!("{path}: was not closed; recovered, tracing it"));
        progress.begin("tracing", None);
        let traced = self.pool.trace().map_err(ToolError::pool(&self.path));
        progress.end();
        let traced = traced?;
        progress.remark(&format!(
            "{path}: {} objects are reachable, {} others were reclaimed",
            traced.objects, traced.reclaimed
        ));
        Ok(())
    }

    /// Makes the map if the pool has none.
    ///
    /// Errors: its root is something else, the pool is full.
    pub fn make_map(&mut self) -> Result<(), ToolError> {
        let name = self.map.clone();
        self.session
            .transaction(|tx| Map::open_or_create(tx, &name).map(|_| ()))
            .map_err(ToolError::pool(&self.path))
    }

    /// The pool below.
    pub fn pool(&self) -> &Pool<Mapped> {
        &self.pool
    }

    /// Number of entries.
    pub fn len(&mut self) -> Result<u64, ToolError> {
        let guard = self.session.guard();
        Map::open(guard.view(), &self.map)
            .and_then(|map| map.len())
            .map_err(ToolError::pool(&self.path))
    }

    /// Whether there are no entries.
    pub fn is_empty(&mut self) -> Result<bool, ToolError> {
        self.len().map(|len| len == 0)
    }

    /// The value of `key`.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, ToolError> {
        let guard = self.session.guard();
        Map::open(guard.view(), &self.map)
            .and_then(|map| map.get(key))
            .map_err(ToolError::pool(&self.path))
    }

    /// Passes every entry whose key begins with `prefix` to `visit`, in the order of the keys, until it returns
    /// `false`. Returns the number passed.
    pub fn scan(
        &mut self,
        prefix: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64, ToolError> {
        let mut scan = Scan::of_root(&self.map).prefix(prefix);
        let mut count = 0;
        while let Some((key, value)) = scan
            .next(&mut self.session)
            .map_err(ToolError::pool(&self.path))?
        {
            count += 1;
            if !visit(key, value) {
                break;
            }
        }
        Ok(count)
    }

    /// A scan of all entries, for [`Store::next_key`].
    pub(crate) fn all(&self) -> Scan<Mapped> {
        Scan::of_root(&self.map)
    }

    /// The next key of a scan. The store can be changed between two calls.
    pub(crate) fn next_key(
        &mut self,
        scan: &mut Scan<Mapped>,
    ) -> Result<Option<Vec<u8>>, ToolError> {
        let next = scan.next(&mut self.session);
        let next = next.map_err(ToolError::pool(&self.path))?;
        Ok(next.map(|(key, _)| key.to_vec()))
    }

    /// A key that does not begin with `prefix`; none if all do.
    pub fn foreign_key(&mut self, prefix: &[u8]) -> Result<Option<Vec<u8>>, ToolError> {
        let guard = self.session.guard();
        let ends = Map::open(guard.view(), &self.map)
            .and_then(|map| Ok([map.first()?, map.last()?]))
            .map_err(ToolError::pool(&self.path))?;
        // Keys with one prefix are adjacent: if the outer ones have it, all have.
        let keys = ends.into_iter().flatten().map(|(key, _)| key);
        Ok(keys.into_iter().find(|key| !key.starts_with(prefix)))
    }

    /// Switches to another map of the pool.
    pub fn select(&mut self, map: &str) {
        map.clone_into(&mut self.map);
    }

    /// Inserts an entry, or replaces its value. Returns whether it replaced one.
    ///
    /// Errors: as [`Store::insert_all`].
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool, ToolError> {
        let name = &self.map;
        self.session
            .transaction(|tx| Map::open(tx, name)?.insert(key, value))
            .map_err(ToolError::pool(&self.path))
    }

    /// Removes an entry. Returns whether it was there.
    ///
    /// Errors: as [`Store::remove_all`].
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, ToolError> {
        let name = &self.map;
        self.session
            .transaction(|tx| Map::open(tx, name)?.remove(key))
            .map_err(ToolError::pool(&self.path))
    }

    /// Inserts all entries in one transaction, or in several if they are too much for one. Returns how many were new.
    ///
    /// Errors: the pool or the device is full, an entry is too large. Entries that an earlier transaction of this call
    /// inserted stay.
    pub fn insert_all(&mut self, entries: &[Entry]) -> Result<u64, ToolError> {
        let name = &self.map;
        let inserted = self.session.transaction(|tx| {
            let mut map = Map::open(tx, name)?;
            let mut new = 0;
            for entry in entries {
                new += u64::from(!map.insert(&entry.key, &entry.value)?);
            }
            Ok(new)
        });
        match inserted {
            Err(Error::TransactionTooLarge { .. }) if entries.len() > 1 => {
                let (front, back) = entries.split_at(entries.len() / 2);
                Ok(self.insert_all(front)? + self.insert_all(back)?)
            }
            other => other.map_err(ToolError::pool(&self.path)),
        }
    }

    /// Removes all keys in one transaction, or in several if they are too much for one. Returns which were there.
    ///
    /// Errors: a damaged pool. Keys that an earlier transaction of this call removed stay removed.
    pub fn remove_all<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<Vec<bool>, ToolError> {
        let name = &self.map;
        let removed = self.session.transaction(|tx| {
            let mut map = Map::open(tx, name)?;
            keys.iter().map(|key| map.remove(key.as_ref())).collect()
        });
        match removed {
            Err(Error::TransactionTooLarge { .. }) if keys.len() > 1 => {
                let (front, back) = keys.split_at(keys.len() / 2);
                let mut there = self.remove_all(front)?;
                there.extend(self.remove_all(back)?);
                Ok(there)
            }
            other => other.map_err(ToolError::pool(&self.path)),
        }
    }

    /// Closes the pool.
    ///
    /// Errors: the medium failed; the next open recovers the pool.
    pub fn close(self) -> Result<(), ToolError> {
        drop(self.session);
        self.pool.close().map_err(ToolError::pool(&self.path))
    }

    /// Leaves the pool as a crash would.
    pub fn abandon(self) {
        self.pool.clone().abandon();
    }
}
