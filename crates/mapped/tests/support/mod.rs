//! Helpers of several tests: children of the test binary itself, small file systems, and disassembly.
#![allow(dead_code)]

pub mod disassembly;
pub mod small_file_system;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Space};

/// Options of a medium whose stores reach its file: without a log, which only a pool has.
pub fn unlogged() -> MappedOptions {
    MappedOptions::default().domain(Domain::Process)
}

/// A new medium, already published under its name.
pub fn named(path: &Path, len: u64, options: &MappedOptions) -> Mapped {
    let medium = Mapped::create(path, len, options).unwrap();
    medium.publish().unwrap();
    medium
}

/// The variable that tells a child the pool's path.
const CHILD_POOL: &str = "FIRN_TEST_CHILD_POOL";

/// The pool's path in a process that [`child`] started; `None` in the test runner's own process.
pub fn child_pool() -> Option<PathBuf> {
    std::env::var_os(CHILD_POOL).map(PathBuf::from)
}

/// A command that runs the test `name` (its module first) of this test binary in another process, on `pool`.
pub fn child(name: &str, pool: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(CHILD_POOL, pool);
    command.stdout(Stdio::piped());
    command
}

/// Starts the child and waits until it has printed a line that holds `word`.
pub fn start_until(mut command: Command, word: &str) -> Child {
    use std::io::{BufRead, BufReader};
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines.any(|line| line.unwrap().contains(word)),
        "the child ended without saying {word:?}"
    );
    // Keeps reading, so that a full or broken pipe never stops the child.
    std::thread::spawn(move || lines.for_each(drop));
    child
}
