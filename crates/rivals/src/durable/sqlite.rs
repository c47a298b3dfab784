//! SQLite: a B-tree in a file with a write-ahead log beside it.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sqlite_library::{Connection, Library, Statement};
use super::workload::Value;
use super::{Entry, Store, Writer};
use crate::arguments::RivalName;
use crate::failure::Failure;

/// How long a thread waits for another one's transaction, in milliseconds.
const BUSY_MS: c_int = 60_000;

/// The database's file.
pub struct Sqlite {
    library: Arc<Library>,
    path: PathBuf,
}

/// A connection and its statements.
pub struct Session {
    connection: Connection,
    begin: Statement,
    put: Statement,
    commit: Statement,
    find: Statement,
}

impl Store for Sqlite {
    const RIVAL: RivalName = RivalName::Sqlite;
    // Source: sqlite.org/pragma.html, synchronous: in WAL mode, FULL syncs the log after each commit, without which
    // (NORMAL) a power failure takes back commits. The page size and the automatic checkpoint are the defaults.
    const HOW: &'static str =
        "journal_mode=WAL, synchronous=FULL, prepared statements, the key is the rowid";
    type Writer = Session;

    fn version() -> Result<String, Failure> {
        Ok(Library::open()?.version())
    }

    fn open(dir: &Path) -> Result<Self, Failure> {
        let (library, path) = (Library::open()?, dir.join("map.sqlite"));
        let sqlite = Self { library, path };
        let mut connection = sqlite.connection()?;
        connection.ask(
            c"CREATE TABLE IF NOT EXISTS map (key INTEGER PRIMARY KEY, value BLOB NOT NULL)",
        )?;
        Ok(sqlite)
    }

    fn writer(&self) -> Result<Session, Failure> {
        let mut connection = self.connection()?;
        Ok(Session {
            begin: connection.prepare(c"BEGIN IMMEDIATE")?,
            put: connection.prepare(c"INSERT OR REPLACE INTO map VALUES (?1, ?2)")?,
            commit: connection.prepare(c"COMMIT")?,
            find: connection.prepare(c"SELECT value FROM map WHERE key = ?1")?,
            connection,
        })
    }

    /// Writes the log's pages to the database's file and makes the log empty.
    ///
    /// Source: sqlite.org/pragma.html, wal_checkpoint: the first column is 1 if it was blocked.
    fn settle(&self) -> Result<(), Failure> {
        let blocked = self.connection()?.ask(c"PRAGMA wal_checkpoint(TRUNCATE)")?;
        expect("the checkpoint's state", &blocked, "0")
    }
}

impl Sqlite {
    /// A connection that commits durably.
    fn connection(&self) -> Result<Connection, Failure> {
        let mut connection = Connection::open(&self.library, &self.path, BUSY_MS)?;
        let mode = connection.ask(c"PRAGMA journal_mode=WAL")?;
        expect("journal_mode", &mode, "wal")?;
        connection.ask(c"PRAGMA synchronous=FULL")?;
        expect("synchronous", &connection.ask(c"PRAGMA synchronous")?, "2")?;
        Ok(connection)
    }
}

fn expect(what: &str, is: &str, wanted: &str) -> Result<(), Failure> {
    if is == wanted {
        return Ok(());
    }
    Err(Failure::Database {
        doing: "configuring SQLite",
        said: format!("{what} is '{is}', not '{wanted}'"),
    })
}

impl Writer for Session {
    fn commit(&mut self, entries: &[Entry]) -> Result<(), Failure> {
        let (connection, nothing) = (&mut self.connection, &mut |_: &[u8]| ());
        connection.run(self.begin, (None, None), nothing)?;
        for (key, value) in entries {
            let key = Some(key.cast_signed());
            connection.run(self.put, (key, Some(value)), nothing)?;
        }
        connection.run(self.commit, (None, None), nothing)
    }

    fn get(&mut self, key: u64, into: &mut Value) -> Result<bool, Failure> {
        let (key, mut there) = (Some(key.cast_signed()), false);
        self.connection.run(self.find, (key, None), &mut |found| {
            there = true;
            into.copy_from_slice(found);
        })?;
        Ok(there)
    }
}
