//! redb, durable: `Durability::Immediate`.

use std::path::Path;
use std::sync::Arc;

use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use super::workload::{VALUE_BYTES, Value};
use super::{Entry, Store, Writer};
use crate::arguments::RivalName;
use crate::failure::Failure;

const MAP: TableDefinition<'_, u64, &[u8; VALUE_BYTES]> = TableDefinition::new("map");

/// The database; each thread has a clone.
#[derive(Clone)]
pub struct DurableRedb(Arc<Database>);

impl Store for DurableRedb {
    const RIVAL: RivalName = RivalName::Redb;
    // Source: docs.rs/redb, enum Durability: commits with Immediate are guaranteed to be persistent as soon as commit
    // returns. Two-phase commit is off, as by default: it guards against an attacker, and would cost a second sync.
    const HOW: &'static str = "Durability::Immediate, commits in one phase";
    type Writer = Self;

    fn version() -> Result<String, Failure> {
        Ok(super::locked::version("redb").expect("this program is built with it"))
    }

    fn open(dir: &Path) -> Result<Self, Failure> {
        let database = Database::create(dir.join("map.redb"));
        let database = database.map_err(|e| Failure::database("opening redb")(&e))?;
        Ok(Self(Arc::new(database)))
    }

    fn writer(&self) -> Result<Self, Failure> {
        Ok(self.clone())
    }

    /// Nothing to do: a commit writes pages to where they stay. `compact` makes the file shorter, and would write more.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Writer for DurableRedb {
    fn commit(&mut self, entries: &[Entry]) -> Result<(), Failure> {
        let commit = || -> Result<(), redb::Error> {
            let mut transaction = self.0.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            let mut table = transaction.open_table(MAP)?;
            for (key, value) in entries {
                table.insert(key, value)?;
            }
            drop(table);
            Ok(transaction.commit()?)
        };
        commit().map_err(|e| Failure::database("inserting")(&e))
    }

    fn get(&mut self, key: u64, into: &mut Value) -> Result<bool, Failure> {
        let mut get = || -> Result<bool, redb::Error> {
            let table = self.0.begin_read()?.open_table(MAP)?;
            let found = redb::ReadableTable::get(&table, key)?;
            Ok(found.map(|found| *into = *found.value()).is_some())
        };
        get().map_err(|e| Failure::database("getting")(&e))
    }
}
