//! Shared by several suites: the program, a directory, pools, small file systems.
#![allow(dead_code, reason = "each suite uses its part")]

#[path = "../../../mapped/tests/support/small_file_system.rs"]
pub mod small_file_system;
pub mod stepped;
pub mod superblocks;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Entries of a small pool.
pub const ENTRIES: usize = 500;
/// Entries of a fragmented pool, before most of them are deleted.
const LOADED: usize = 20_000;

/// The result of a call of the program.
pub struct Called {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// Calls the program, and asserts that it neither panicked nor died of a signal.
pub fn firn(arguments: &[&str]) -> Called {
    called(command(arguments).output().expect("the program starts"))
}

/// The program's output as JSON.
pub fn json(arguments: &[&str]) -> Value {
    let called = firn(&[arguments, &["--json"]].concat());
    serde_json::from_str(&called.out)
        .unwrap_or_else(|e| panic!("{e}: {}{}", called.out, called.err))
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.args(arguments);
    command
}

pub fn called(output: Output) -> Called {
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), None, "{err}");
    assert!(!err.contains("panicked"), "{err}");
    Called {
        status: output.status.code().expect("no signal"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err,
    }
}

/// A directory and the paths in it.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A path as an argument.
    pub fn arg(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    /// A closed pool of [`ENTRIES`] entries.
    pub fn pool(&self, name: &str) -> String {
        self.pool_of(name, ENTRIES)
    }

    /// A closed pool of many entries of which four fifths were deleted at random.
    pub fn fragmented_pool(&self, name: &str) -> String {
        let pool = self.pool_of(name, LOADED);
        let deleted = firn(&["delete", &pool, "--fraction", "0.8"]);
        assert_eq!(deleted.status, 0, "{}", deleted.err);
        pool
    }

    fn pool_of(&self, name: &str, entries: usize) -> String {
        let pool = self.arg(name);
        let lines = self.path("lines");
        std::fs::write(&lines, lines_of(entries)).expect("written");
        let loaded = firn(&["load", &pool, lines.to_str().expect("text")]);
        assert_eq!(loaded.status, 0, "{}", loaded.err);
        pool
    }
}

/// Lines for `firn load`, with values of many lengths.
pub fn lines_of(entries: usize) -> String {
    (0..entries)
        .map(|i| format!("key-{i:06}\tvalue-{}{i}\n", "x".repeat(i % 300)))
        .collect()
}
