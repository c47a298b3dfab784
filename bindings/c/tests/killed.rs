//! Programs in C and C++ are killed at random moments while their objects move: nothing that they said is lost, nothing
//! is half done. Those for libpmemobj are killed in `stores.rs`.

mod support;

use std::path::Path;

use support::{Language, command, compile, here, run, said_until_killed};

const KILLS: u64 = 40;

/// What an audit found of a program: changes that are there, and what else it printed.
type Audit = (u64, Vec<u64>);

fn audit(program: &Path, pool: &Path) -> Audit {
    let printed = run(program, &[pool.to_str().unwrap(), "audit"]);
    let mut numbers = printed.split_whitespace().map(|n| n.parse().unwrap());
    (numbers.next().unwrap(), numbers.collect())
}

/// Kills a program many times. Returns the last audit.
fn killed(program: &Path, pool: &Path, arguments: impl Fn(u64) -> Vec<String>) -> Audit {
    let mut random = fastrand::Rng::with_seed(7);
    let mut last = (0, Vec::new());
    for kill in 0..KILLS {
        let mut running = command(program);
        running.arg(pool).args(arguments(kill));
        let said = said_until_killed(&mut running, random.u64(2_000..60_000));
        let found = audit(program, pool);
        assert!(found.0 >= said, "{} of {said} changes are there", found.0);
        assert!(
            found.0 >= last.0,
            "{} of {} changes are there",
            found.0,
            last.0
        );
        last = found;
    }
    assert!(
        last.0 > 20 * KILLS,
        "{} changes are too few to be killed in",
        last.0
    );
    last
}

#[test]
fn a_bank_keeps_its_books_through_kills() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("examples/bank.c");
    let flags = ["-O2", "-D_GNU_SOURCE"];
    let program = compile("gcc", Language::C11, &source, &flags, folder.path());
    // The other compiler has no complaint either.
    compile("clang", Language::C11, &source, &flags, folder.path());
    let pool = folder.path().join("bank.firn");
    killed(&program, &pool, |kill| vec!["run".into(), kill.to_string()]);
}

#[test]
fn collections_keep_what_was_committed_through_kills() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("tests/cpp/killed.cpp");
    let program = compile("g++", Language::Cpp20, &source, &["-O2"], folder.path());
    compile("clang++", Language::Cpp20, &source, &["-O2"], folder.path());
    let pool = folder.path().join("collections.firn");
    let (_, moved) = killed(&program, &pool, |_| vec!["run".into()]);
    assert!(moved[0] > KILLS, "{} objects were moved", moved[0]);
}
