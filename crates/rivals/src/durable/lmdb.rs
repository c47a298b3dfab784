//! LMDB, durable: no flag at all.

use std::path::Path;

use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, Env, EnvOpenOptions};

use super::workload::Value;
use super::{Entry, MOST_BYTES, Store, Writer};
use crate::arguments::RivalName;
use crate::failure::Failure;

/// The environment and its unnamed map; each thread has a clone.
#[derive(Clone)]
pub struct DurableLmdb {
    environment: Env,
    map: Database<U64<BigEndian>, Bytes>,
}

impl Store for DurableLmdb {
    const RIVAL: RivalName = RivalName::Lmdb;
    // Source: lmdb.h, mdb_env_open: MDB_NOSYNC, MDB_NOMETASYNC and MDB_MAPASYNC say what is lost with them; without
    // any, a commit flushes the pages and then the meta page.
    const HOW: &'static str = "no MDB_NOSYNC, MDB_NOMETASYNC, MDB_MAPASYNC or MDB_WRITEMAP";
    type Writer = Self;

    fn version() -> Result<String, Failure> {
        let version = heed::lmdb_version();
        Ok(format!(
            "{}.{}.{}",
            version.major, version.minor, version.patch
        ))
    }

    #[allow(unsafe_code)]
    fn open(dir: &Path) -> Result<Self, Failure> {
        let failed = Failure::database("opening LMDB");
        let mut options = EnvOpenOptions::new();
        options.map_size(MOST_BYTES);
        // SAFETY: no other process opens or changes the file: the directory was made by this process and has its
        // number in its name.
        let environment = unsafe { options.open(dir) }.map_err(|e| failed(&e))?;
        let mut transaction = environment.write_txn().map_err(|e| failed(&e))?;
        let map = environment.create_database(&mut transaction, None);
        let map = map.map_err(|e| failed(&e))?;
        transaction.commit().map_err(|e| failed(&e))?;
        Ok(Self { environment, map })
    }

    fn writer(&self) -> Result<Self, Failure> {
        Ok(self.clone())
    }

    /// Nothing to do: a commit writes pages to where they stay.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Writer for DurableLmdb {
    fn commit(&mut self, entries: &[Entry]) -> Result<(), Failure> {
        let commit = || {
            let mut transaction = self.environment.write_txn()?;
            for (key, value) in entries {
                self.map.put(&mut transaction, key, value)?;
            }
            transaction.commit()
        };
        commit().map_err(|e: heed::Error| Failure::database("inserting")(&e))
    }

    fn get(&mut self, key: u64, into: &mut Value) -> Result<bool, Failure> {
        let mut get = || {
            let transaction = self.environment.read_txn()?;
            let found = self.map.get(&transaction, &key)?;
            Ok(found.map(|found| into.copy_from_slice(found)).is_some())
        };
        get().map_err(|e: heed::Error| Failure::database("getting")(&e))
    }
}
