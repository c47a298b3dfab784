//! What this repository does for its developers.
//!
//! ```text
//! install    the library for C and C++
//! reference  pages from the headers' comments
//! packages   what the suites need beyond Rust, and how it gets there
//! suites     which suites there are, and running them
//! times      how long each suite took
//! titles     whether commits are named as they should be
//! ```
#![forbid(unsafe_code)]

mod install;
mod packages;
mod reference;
mod suites;
mod times;
mod titles;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use install::Places;

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
    /// Builds the library for C and C++ and installs it: headers, shared and static library, a file for pkg-config
    Install {
        /// The installation prefix: `include` and `lib` lie there
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
        /// A folder put before the prefix, for packagers
        #[arg(long)]
        destdir: Option<PathBuf>,
    },
    /// Writes the reference pages of the C interface from the comments of its headers
    Reference {
        /// Only checks whether the pages match the headers
        #[arg(long)]
        check: bool,
    },
    /// Looks at the titles of commits: `room: what it does now`, 65 characters at most
    Titles {
        /// The range, in `git log`'s notation
        #[arg(default_value = "HEAD~1..HEAD")]
        range: String,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Test { long } => packages::provide().and_then(|()| suites::run(long)),
        Task::Install { prefix, destdir } => install::install(&Places {
            prefix,
            destination: destdir,
        }),
        Task::Reference { check } => reference::pages(check),
        Task::Titles { range } => titles::check(&range),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
