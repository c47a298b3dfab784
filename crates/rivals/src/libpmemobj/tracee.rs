//! The process that runs operations to be single-stepped, and its start.
//!
//! It has a pool of its own: if it shared the serving process's pool, that process's volatile view of the pool would
//! become out of date.

use std::process::{Command, Stdio};

use nix::sys::{ptrace, signal};

use super::{Countable, Failure, Kind, Library, POOL_BYTES, Pool, Rig, Step, StructureKind, Use};
use crate::arguments::Arguments;
use crate::phases::{Structure, key, value};
use crate::single_step::{self, Tally, WINDOW_END, WINDOW_START};

/// Operations before the first that is counted.
const WARM_UP: u64 = 128;
/// Operations that are counted: few, since a step costs as much as thousands of instructions, but enough, since in the
/// steady state they are alike (the answer gives the least and the most).
const COUNTED: u64 = 4;

/// Entries of a structure before the first change that is counted.
const ENTRIES: u32 = 5000;
/// Changes of a tree that are counted: more, since they differ from each other.
const COUNTED_IN_TREES: u64 = 32;

/// Counts the instructions of single operations, in a process made for it.
pub fn count(arguments: &Arguments, of: Countable) -> Result<Vec<Tally>, Failure> {
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
        .arg(of.name());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(single_step::trace(&mut command)?)
}

/// Runs operations, each between the two signals that mark a window, after an empty window.
///
/// It is called in a process whose parent waits to step it.
pub fn run(arguments: &Arguments, of: Countable) -> Result<(), Failure> {
    let library = Library::open(&arguments.library)?;
    match of {
        Countable::Operation(kind) => {
            let pool = Pool::create_in(&library, &arguments.dir, POOL_BYTES)?;
            operations(&pool, kind)
        }
        Countable::Structure(structure, step) => {
            let counted = match structure {
                StructureKind::List | StructureKind::StringSwap => COUNTED,
                StructureKind::Avl | StructureKind::RedBlack | StructureKind::BTree => {
                    COUNTED_IN_TREES
                }
            };
            let changes = Changes { step, counted };
            structure.with(&library, &arguments.dir, ENTRIES, changes)
        }
    }
}

fn operations(pool: &Pool<'_>, kind: Kind) -> Result<(), Failure> {
    let mut rig = Rig::new(pool, kind)?;
    let counted = COUNTED.min(rig.block());
    for _ in 0..WARM_UP.div_ceil(counted) {
        rig.before(counted)?;
        rig.run(counted)?;
        rig.after(counted)?;
    }
    rig.before(counted)?;
    ptrace::traceme().map_err(Failure::Tracee)?;
    window(|| rig.run(0))?;
    for _ in 0..counted {
        window(|| rig.run(1))?;
    }
    rig.after(counted)
}

/// Steps through changes of a structure that holds many entries.
struct Changes {
    step: Step,
    counted: u64,
}

impl Use for Changes {
    type Output = ();

    fn with<S: Structure + Send>(self, mut structure: S) -> Result<(), Failure> {
        let insert = |structure: &mut S, number| {
            let key = key(number);
            structure.insert(number, key, &value(key))
        };
        let delete = |structure: &mut S, number| structure.delete(number, key(number));
        (0..ENTRIES).try_for_each(|number| insert(&mut structure, number))?;
        // Warm-up entries are deleted before the counted ones. Counted insertions thus go into a structure that lost a
        // fifth at random, as in the phases.
        let mut numbers: Vec<u32> = (0..ENTRIES).collect();
        fastrand::Rng::with_seed(1).shuffle(&mut numbers);
        let (counted, rest) = numbers.split_at(self.counted as usize);
        let warm = &rest[..ENTRIES as usize / 5];
        warm.iter()
            .try_for_each(|number| delete(&mut structure, *number))?;
        if self.step == Step::Insert {
            counted
                .iter()
                .try_for_each(|number| delete(&mut structure, *number))?;
            let back = &warm[..warm.len() / 2];
            back.iter()
                .try_for_each(|number| insert(&mut structure, *number))?;
        }
        ptrace::traceme().map_err(Failure::Tracee)?;
        window(|| Ok(()))?;
        counted.iter().try_for_each(|number| {
            window(|| match self.step {
                Step::Insert => insert(&mut structure, *number),
                Step::Delete => delete(&mut structure, *number),
            })
        })
    }
}

fn window(run: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    signal::raise(WINDOW_START).map_err(Failure::Tracee)?;
    let outcome = run();
    signal::raise(WINDOW_END).map_err(Failure::Tracee)?;
    outcome
}
