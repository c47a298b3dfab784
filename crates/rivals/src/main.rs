//! A rival heap in a process of its own, measured on request.
//!
//! `firn-rivals libpmemobj --dir DIR` makes a pool in DIR (`lmdb` and `redb` make a database in it) and prints one line
//! of JSON that identifies it. Then it answers each line of JSON on standard input with one line (see [`protocol`]).
//! The bench starts it as a child and alternates its requests with its own blocks, so that both are measured in one run
//! on one machine. Nothing links this crate; libpmemobj is opened at run time, the databases are crates.
//!
//! Exit status: 0 after `quit` or the end of input, [`NOT_INSTALLED`] if the rival's library is not on the machine, 1
//! after any other failure.
#![deny(unsafe_code)]

mod arguments;
mod clock;
mod databases;
mod durable;
mod failure;
mod libpmemobj;
mod measure;
mod phases;
mod protocol;
mod serve;
mod single_step;

use std::process::ExitCode;

use arguments::{Arguments, RivalName, Task};
use failure::Failure;

/// Exit status when the rival's library cannot be opened: the caller skips this rival.
const NOT_INSTALLED: u8 = 2;

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("{problem}\n{}", arguments::USAGE);
            return ExitCode::FAILURE;
        }
    };
    if arguments.rival == RivalName::Libpmemobj
        && let Err(refused) = libpmemobj::environment::settle()
    {
        eprintln!("cannot start again with the environment libpmem needs: {refused}");
        return ExitCode::FAILURE;
    }
    let outcome = match &arguments.task {
        Task::Serve => serve::serve(&arguments),
        Task::Traced(of) => libpmemobj::tracee::run(&arguments, *of),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            match failure {
                Failure::NotInstalled { .. } => ExitCode::from(NOT_INSTALLED),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
