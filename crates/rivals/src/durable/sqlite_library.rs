//! The distribution's SQLite, opened at run time, and a safe face on it. Its unsafe code rests on this:
//!
//! - the declarations are those of `sqlite3.h`, which promises that they stay;
//! - the library stays open while a [`Connection`] lives, which holds it;
//! - a connection and its statements are used by one thread at a time (`&mut`), which is what SQLite asks for in the
//!   mode `SQLITE_OPEN_NOMUTEX`;
//! - a statement that was prepared is finalized once, when its connection is dropped, before that is closed.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use crate::failure::Failure;

/// The name passed to dlopen, and the package that has it.
const NAME: &str = "libsqlite3.so.0";
const PACKAGE: &str = "libsqlite3-0";

const OK: c_int = 0;
const ROW: c_int = 100;
const DONE: c_int = 101;
/// `SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX`.
const OPEN: c_int = 0x2 | 0x4 | 0x8000;

type Raw = *mut c_void;

macro_rules! calls {
    ($($name:ident: $type:ty,)*) => {
        /// The functions.
        struct Calls { $($name: $type,)* }

        impl Calls {
            fn look_up(library: &libloading::Library) -> Result<Self, Failure> {
                Ok(Self { $(
                    // SAFETY: the type is the declaration of this very name in sqlite3.h.
                    $name: *unsafe { library.get::<$type>(stringify!($name)) }
                        .map_err(|error| Failure::no_function(NAME, stringify!($name), &error))?,
                )* })
            }
        }
    };
}

calls! {
    sqlite3_libversion: extern "C" fn() -> *const c_char,
    sqlite3_open_v2: unsafe extern "C" fn(*const c_char, *mut Raw, c_int, *const c_char) -> c_int,
    sqlite3_close: unsafe extern "C" fn(Raw) -> c_int,
    sqlite3_busy_timeout: unsafe extern "C" fn(Raw, c_int) -> c_int,
    sqlite3_errmsg: unsafe extern "C" fn(Raw) -> *const c_char,
    sqlite3_prepare_v2: unsafe extern "C" fn(Raw, *const c_char, c_int, *mut Raw, *mut *const c_char) -> c_int,
    sqlite3_bind_int64: unsafe extern "C" fn(Raw, c_int, i64) -> c_int,
    sqlite3_bind_blob: unsafe extern "C" fn(Raw, c_int, *const u8, c_int, Raw) -> c_int,
    sqlite3_step: unsafe extern "C" fn(Raw) -> c_int,
    sqlite3_column_blob: unsafe extern "C" fn(Raw, c_int) -> *const u8,
    sqlite3_column_bytes: unsafe extern "C" fn(Raw, c_int) -> c_int,
    sqlite3_reset: unsafe extern "C" fn(Raw) -> c_int,
    sqlite3_finalize: unsafe extern "C" fn(Raw) -> c_int,
}

/// The opened library.
pub struct Library {
    calls: Calls,
    _open: libloading::Library,
}

impl Library {
    /// Opens it as dlopen finds it.
    ///
    /// Errors: it is not installed, or lacks a function.
    pub fn open() -> Result<Arc<Self>, Failure> {
        // SAFETY: SQLite has no initialisers that ask anything of the process that loads it.
        let open = unsafe { libloading::Library::new(NAME) };
        let open = open.map_err(|error| Failure::not_installed(NAME, PACKAGE, &error))?;
        Ok(Arc::new(Self {
            calls: Calls::look_up(&open)?,
            _open: open,
        }))
    }

    /// Its version.
    pub fn version(&self) -> String {
        text((self.calls.sqlite3_libversion)())
    }
}

fn text(string: *const c_char) -> String {
    // SAFETY: both callers pass what SQLite returned for this: a string that ends with NUL and lives until the
    // connection's next call.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_string_lossy().into_owned()
}

/// A connection to a database.
pub struct Connection {
    library: Arc<Library>,
    raw: Raw,
    statements: Vec<Raw>,
}

// SAFETY: a connection may pass from thread to thread; every call takes it exclusively.
unsafe impl Send for Connection {}

/// A prepared statement of a connection.
#[derive(Clone, Copy)]
pub struct Statement(usize);

impl Connection {
    /// Opens a database, or makes it. A call that finds it locked waits up to `busy_ms` milliseconds.
    pub fn open(library: &Arc<Library>, path: &Path, busy_ms: c_int) -> Result<Self, Failure> {
        let name = CString::new(path.as_os_str().as_bytes());
        let name = name.map_err(|_| Failure::Path { path: path.into() })?;
        let mut connection = Self {
            library: Arc::clone(library),
            raw: null_mut(),
            statements: Vec::new(),
        };
        let (calls, raw) = (&library.calls, &mut connection.raw);
        // SAFETY: the name ends with NUL; `raw` is a valid place, and is closed even after a failure.
        let code = unsafe { (calls.sqlite3_open_v2)(name.as_ptr(), raw, OPEN, null()) };
        connection.check("opening", code, OK)?;
        // SAFETY: the connection is open.
        let code = unsafe { (calls.sqlite3_busy_timeout)(connection.raw, busy_ms) };
        connection.check("setting the timeout", code, OK)?;
        Ok(connection)
    }

    fn check(&self, doing: &'static str, code: c_int, wanted: c_int) -> Result<(), Failure> {
        if code == wanted {
            return Ok(());
        }
        let said = match self.raw.is_null() {
            true => "no memory".into(),
            // SAFETY: the connection is not closed.
            false => text(unsafe { (self.library.calls.sqlite3_errmsg)(self.raw) }),
        };
        Err(Failure::Database { doing, said })
    }

    /// Prepares a statement, which lives as long as the connection.
    pub fn prepare(&mut self, sql: &CStr) -> Result<Statement, Failure> {
        let (prepare, mut statement) = (self.library.calls.sqlite3_prepare_v2, null_mut());
        // SAFETY: the connection is open, the text ends with NUL, `statement` is a valid place.
        let code = unsafe { prepare(self.raw, sql.as_ptr(), -1, &mut statement, null_mut()) };
        self.check("preparing a statement", code, OK)?;
        self.statements.push(statement);
        Ok(Statement(self.statements.len() - 1))
    }

    /// Runs a statement with a number and bytes as its parameters, as far as they are given. Returns its first column,
    /// if it has a row, by way of `found`.
    pub fn run(
        &mut self,
        statement: Statement,
        (key, value): (Option<i64>, Option<&[u8]>),
        found: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure> {
        let (calls, statement) = (&self.library.calls, self.statements[statement.0]);
        if let Some(key) = key {
            // SAFETY: the statement was prepared by this connection and is not finalized.
            let code = unsafe { (calls.sqlite3_bind_int64)(statement, 1, key) };
            self.check("binding a key", code, OK)?;
        }
        if let Some(value) = value {
            let (bytes, len) = (value.as_ptr(), value.len() as c_int);
            // SAFETY: a null destructor says that the bytes stay where they are; they outlive this call, and after it
            // the statement is reset and bound anew before it runs again.
            let code = unsafe { (calls.sqlite3_bind_blob)(statement, 2, bytes, len, null_mut()) };
            self.check("binding a value", code, OK)?;
        }
        // SAFETY: the statement is prepared, and its parameters live.
        let mut code = unsafe { (calls.sqlite3_step)(statement) };
        if code == ROW {
            // SAFETY: a row is there; its column's bytes live until the next step, and `found` does not keep them.
            unsafe {
                let bytes = (calls.sqlite3_column_blob)(statement, 0);
                let len = (calls.sqlite3_column_bytes)(statement, 0) as usize;
                found(match len {
                    0 => &[],
                    _ => std::slice::from_raw_parts(bytes, len),
                });
                code = (calls.sqlite3_step)(statement);
            }
        }
        let outcome = self.check("running a statement", code, DONE);
        // SAFETY: the statement is prepared. What a reset returns is the failure of the step, which is known.
        unsafe { (calls.sqlite3_reset)(statement) };
        outcome
    }

    /// Runs a text once. Returns its first column as text.
    pub fn ask(&mut self, sql: &CStr) -> Result<String, Failure> {
        let statement = self.prepare(sql)?;
        let mut said = String::new();
        self.run(statement, (None, None), &mut |bytes| {
            said = String::from_utf8_lossy(bytes).into_owned();
        })?;
        Ok(said)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let calls = &self.library.calls;
        for &statement in &self.statements {
            // SAFETY: each statement is finalized here and nowhere else.
            unsafe { (calls.sqlite3_finalize)(statement) };
        }
        // SAFETY: no statement is left, and nobody uses the connection any more; a null connection is allowed.
        unsafe { (calls.sqlite3_close)(self.raw) };
    }
}
