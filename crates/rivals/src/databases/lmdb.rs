//! LMDB: a copy-on-write B+tree in a mapped file.

use std::fs::{self, File};
use std::path::Path;

use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Env, EnvOpenOptions};

use super::{Make, bytes_on_medium, io, path};
use crate::arguments::RivalName;
use crate::failure::Failure;
use crate::phases::{Structure, Value};

/// Bytes of the map at most, without any entry and for each entry. They are only reserved.
const MAP_BYTES: usize = 1 << 30;
const MAP_BYTES_PER_ENTRY: usize = 4096;

/// The map.
pub struct Lmdb {
    environment: Env,
    map: heed::Database<U64<BigEndian>, Bytes>,
    file: File,
}

impl Make for Lmdb {
    const RIVAL: RivalName = RivalName::Lmdb;
    const HOW: &'static str = "one operation a commit with LMDB's own defaults: written by pwrite and synced before the \
         commit returns; big-endian keys; a get is a read transaction of its own and copies the \
         value out; thread CPU time in chunks of n/200 operations; the file is its blocks";

    fn make(dir: &Path, n: u32) -> Result<Self, Failure> {
        let path = path(dir, Self::RIVAL.name());
        fs::create_dir(&path).map_err(io("making the database's directory"))?;
        let made = open(&path, n);
        // LMDB opens all its files at once; whatever the result, their names are removed.
        let removed = fs::remove_dir_all(&path).map_err(io("unlinking the database"));
        let made = made?;
        removed.map(|()| made)
    }
}

#[allow(unsafe_code)]
fn open(path: &Path, n: u32) -> Result<Lmdb, Failure> {
    let failed = Failure::database("opening LMDB");
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES + n as usize * MAP_BYTES_PER_ENTRY);
    // SAFETY: no other process opens or changes the file: the directory is this process's own, was made just before,
    // and has no name afterwards.
    let environment = unsafe { options.open(path) }.map_err(|e| failed(&e))?;
    let mut transaction = environment.write_txn().map_err(|e| failed(&e))?;
    let map = environment.create_database(&mut transaction, None);
    let map = map.map_err(|e| failed(&e))?;
    transaction.commit().map_err(|e| failed(&e))?;
    let file = File::open(path.join("data.mdb")).map_err(io("opening the database's file"))?;
    Ok(Lmdb {
        environment,
        map,
        file,
    })
}

impl Structure for Lmdb {
    fn name(&self) -> &'static str {
        "lmdb's map"
    }

    fn insert(&mut self, _: u32, key: u64, value: &Value) -> Result<(), Failure> {
        let insert = || {
            let mut transaction = self.environment.write_txn()?;
            self.map.put(&mut transaction, &key, value)?;
            transaction.commit()
        };
        insert().map_err(|e| Failure::database("inserting")(&e))
    }

    fn delete(&mut self, _: u32, key: u64) -> Result<(), Failure> {
        let delete = || {
            let mut transaction = self.environment.write_txn()?;
            let was_there = self.map.delete(&mut transaction, &key)?;
            transaction.commit().map(|()| was_there)
        };
        match delete() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::absent(self.name())),
            Err(error) => Err(Failure::database("deleting")(&error)),
        }
    }

    fn get(&mut self, _: u32, key: u64, into: &mut Value) -> Result<bool, Failure> {
        let mut get = || {
            let transaction = self.environment.read_txn()?;
            let found = self.map.get(&transaction, &key)?;
            Ok(found.map(|found| into.copy_from_slice(found)).is_some())
        };
        get().map_err(|e: heed::Error| Failure::database("getting")(&e))
    }

    fn file_bytes(&mut self) -> Result<u64, Failure> {
        bytes_on_medium(&self.file)
    }
}
