//! fjall: a log-structured merge tree in files, in Rust.

use std::path::Path;
use std::thread;
use std::time::Duration;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::workload::Value;
use super::{Entry, Store, Writer};
use crate::arguments::RivalName;
use crate::failure::Failure;

/// How often is looked whether compactions have come to an end, and how often they must have.
const LOOK: Duration = Duration::from_millis(20);
const QUIET_LOOKS: u32 = 10;

/// The database and its only keyspace; each thread has a clone.
#[derive(Clone)]
pub struct Fjall {
    database: Database,
    map: Keyspace,
}

impl Store for Fjall {
    const RIVAL: RivalName = RivalName::Fjall;
    // Source: docs.rs/fjall, section Durability: by default an operation reaches the system's buffers only, and
    // persisting the journal makes it durable; enum PersistMode: SyncData uses fdatasync, to be chosen where that is
    // sufficient. On Linux it is: it writes whatever metadata is needed to read the data back, and it is the faster one.
    const HOW: &'static str = "each commit a batch with PersistMode::SyncData";
    type Writer = Self;

    fn version() -> Result<String, Failure> {
        Ok(super::locked::version("fjall").expect("this program is built with it"))
    }

    fn open(dir: &Path) -> Result<Self, Failure> {
        let failed = Failure::database("opening fjall");
        let database = Database::builder(dir).open().map_err(|e| failed(&e))?;
        let map = database.keyspace("map", KeyspaceCreateOptions::default);
        let map = map.map_err(|e| failed(&e))?;
        Ok(Self { database, map })
    }

    fn writer(&self) -> Result<Self, Failure> {
        Ok(self.clone())
    }

    /// Writes the newest entries, which only the journal has, to tables, and waits until no compaction is left that the
    /// database itself finds worth while. Not a major compaction, which would write everything again.
    fn settle(&self) -> Result<(), Failure> {
        let flushed = self.map.rotate_memtable_and_wait();
        flushed.map_err(|e| Failure::database("flushing")(&e))?;
        let mut quiet = 0;
        while quiet < QUIET_LOOKS {
            let database = &self.database;
            let busy = database.outstanding_flushes() > 0 || database.active_compactions() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Writer for Fjall {
    fn commit(&mut self, entries: &[Entry]) -> Result<(), Failure> {
        let mut batch = self.database.batch();
        batch = batch.durability(Some(PersistMode::SyncData));
        for (key, value) in entries {
            batch.insert(&self.map, key.to_be_bytes(), *value);
        }
        let committed = batch.commit();
        committed.map_err(|e| Failure::database("inserting")(&e))
    }

    fn get(&mut self, key: u64, into: &mut Value) -> Result<bool, Failure> {
        let found = self.map.get(key.to_be_bytes());
        let found = found.map_err(|e| Failure::database("getting")(&e))?;
        Ok(found.map(|found| into.copy_from_slice(&found)).is_some())
    }
}
