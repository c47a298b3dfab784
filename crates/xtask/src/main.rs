//! What this repository does for its developers.
//!
//! ```text
//! packages   what the suites need beyond Rust, and how it gets there
//! suites     which suites there are, and running them
//! ```
#![forbid(unsafe_code)]

mod packages;
mod suites;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of the repository. `cargo xtask test` is the one that decides whether a change is good.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Installs what the suites need beyond Rust, then runs every suite
    ///
    /// As root on Debian, missing packages are installed by apt-get and named before. Elsewhere the
    /// missing ones are named, and the tests that need them say so.
    Test {
        /// Runs the long suites as well: 500 kills instead of 50, and longer swarms
        #[arg(long)]
        long: bool,
    },
}

fn main() -> ExitCode {
    let Task::Test { long } = Arguments::parse().task;
    match packages::provide().and_then(|()| suites::run(long)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
