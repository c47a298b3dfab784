//! The environment that libpmem reads when it is loaded.
//!
//! Without `PMEM_IS_PMEM_FORCE=1` it would take /dev/shm for a plain file and call msync. Other variables of the PMDK
//! (no flushes, other copy thresholds, logs) would silently change the measurement, so all of them are removed.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

const FORCE: &str = "PMEM_IS_PMEM_FORCE";

/// Returns if the environment is right; otherwise restarts this program with one that is.
///
/// Errors: the program could not be restarted.
pub fn settle() -> io::Result<()> {
    let foreign: Vec<OsString> = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.as_encoded_bytes().starts_with(b"PMEM") && name != FORCE)
        .collect();
    if foreign.is_empty() && std::env::var_os(FORCE).is_some_and(|value| value == "1") {
        return Ok(());
    }
    let mut again = Command::new(std::env::current_exe()?);
    again.args(std::env::args_os().skip(1)).env(FORCE, "1");
    for name in foreign {
        again.env_remove(name);
    }
    Err(again.exec())
}
