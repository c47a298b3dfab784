//! The process that runs operations to be single-stepped, and its start.
//!
//! It is a process with a pool of its own: one that shared the serving process's pool would leave
//! that process's volatile view of it out of date.

use std::process::{Command, Stdio};

use nix::sys::{ptrace, signal};

use super::{Failure, Kind, Library, Pool, Rig};
use crate::arguments::Arguments;
use crate::single_step::{self, Tally, WINDOW_END, WINDOW_START};

/// Operations before the first that is counted.
const WARM_UP: u64 = 128;
/// Operations that are counted: few, since a step costs as much as thousands of instructions, and
/// enough, since in the steady state one is like another (the answer tells the least and the most).
const COUNTED: u64 = 4;

/// Counts the instructions of single operations of `kind`, in a process made for it.
pub fn count(arguments: &Arguments, kind: Kind) -> Result<Vec<Tally>, Failure> {
    let program = std::env::current_exe().map_err(|source| Failure::Io {
        doing: "finding this program",
        source,
    })?;
    let mut command = Command::new(program);
    command.arg("libpmemobj").arg("--dir").arg(&arguments.dir);
    command
        .arg("--library")
        .arg(&arguments.library)
        .arg("--traced")
        .arg(kind.name());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(single_step::trace(&mut command)?)
}

/// Runs operations of `kind`, each between the two signals that mark a window, after an empty one.
///
/// It is called in a process whose parent waits to step it.
pub fn run(arguments: &Arguments, kind: Kind) -> Result<(), Failure> {
    let library = Library::open(&arguments.library)?;
    let pool = Pool::create_in(&library, &arguments.dir)?;
    let mut rig = Rig::new(&pool, kind)?;
    let counted = COUNTED.min(rig.block());
    for _ in 0..WARM_UP.div_ceil(counted) {
        rig.before(counted)?;
        rig.run(counted)?;
        rig.after(counted)?;
    }
    rig.before(counted)?;
    ptrace::traceme().map_err(Failure::Tracee)?;
    window(&mut rig, 0)?;
    for _ in 0..counted {
        window(&mut rig, 1)?;
    }
    rig.after(counted)
}

fn window(rig: &mut Rig<'_>, operations: u64) -> Result<(), Failure> {
    signal::raise(WINDOW_START).map_err(Failure::Tracee)?;
    let outcome = rig.run(operations);
    signal::raise(WINDOW_END).map_err(Failure::Tracee)?;
    outcome
}
