//! redb: a copy-on-write B-tree in a file, in Rust.

use std::fs::{self, File};
use std::path::Path;

use redb::backends::FileBackend;
use redb::{Durability, ReadableDatabase, TableDefinition};

use super::{Make, bytes_on_medium, io, path};
use crate::arguments::RivalName;
use crate::failure::Failure;
use crate::phases::{Structure, VALUE_BYTES, Value};

const MAP: TableDefinition<'_, u64, &[u8; VALUE_BYTES]> = TableDefinition::new("map");

/// The map.
pub struct Redb {
    database: redb::Database,
    file: File,
}

impl Make for Redb {
    const RIVAL: RivalName = RivalName::Redb;
    const HOW: &'static str = "one operation a commit with Durability::Immediate, redb's default: synced before the \
         commit returns; keys are u64, which redb orders as numbers; a get is a read transaction \
         of its own and copies the value out; thread CPU time in chunks of n/200 operations; the \
         file is its blocks, not compacted";

    fn make(dir: &Path, _: u32) -> Result<Self, Failure> {
        let path = path(dir, Self::RIVAL.name());
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        let file = options.open(&path).map_err(io("making the database"))?;
        fs::remove_file(&path).map_err(io("unlinking the database"))?;
        let own = file.try_clone().map_err(io("opening the database"))?;
        let failed = Failure::database("opening redb");
        let backend = FileBackend::new(own).map_err(|e| failed(&e))?;
        let database = redb::Database::builder().create_with_backend(backend);
        let database = database.map_err(|e| failed(&e))?;
        Ok(Self { database, file })
    }
}

impl Structure for Redb {
    fn name(&self) -> &'static str {
        "redb's map"
    }

    fn insert(&mut self, _: u32, key: u64, value: &Value) -> Result<(), Failure> {
        let insert = || -> Result<(), redb::Error> {
            let mut transaction = self.database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            transaction.open_table(MAP)?.insert(key, value)?;
            Ok(transaction.commit()?)
        };
        insert().map_err(|e| Failure::database("inserting")(&e))
    }

    fn delete(&mut self, _: u32, key: u64) -> Result<(), Failure> {
        let delete = || -> Result<bool, redb::Error> {
            let mut transaction = self.database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            let was_there = transaction.open_table(MAP)?.remove(key)?.is_some();
            transaction.commit()?;
            Ok(was_there)
        };
        match delete() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::absent(self.name())),
            Err(error) => Err(Failure::database("deleting")(&error)),
        }
    }

    fn get(&mut self, _: u32, key: u64, into: &mut Value) -> Result<bool, Failure> {
        let mut get = || -> Result<bool, redb::Error> {
            let table = self.database.begin_read()?.open_table(MAP)?;
            let found = redb::ReadableTable::get(&table, key)?;
            Ok(found.map(|found| *into = *found.value()).is_some())
        };
        get().map_err(|e| Failure::database("getting")(&e))
    }

    fn file_bytes(&mut self) -> Result<u64, Failure> {
        bytes_on_medium(&self.file)
    }
}
