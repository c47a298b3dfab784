//! Five stores, written for libpmemobj: built from one source, they answer alike with that library and with this one,
//! while nothing moves, while everything does, under sanitizers, and through kills.

mod support;

use std::path::{Path, PathBuf};

use support::{AT_SAFEPOINTS, BESIDE, Kill, NEVER, SANITIZED};
use support::{command, compile_pmemobj, compile_with_libpmemobj, here, said_until_killed};

const KILLS: u64 = 12;

fn source(name: &str) -> PathBuf {
    here("examples/pmemobj/stores").join(format!("{name}.c"))
}

fn built(store: &str, compiler: &str, more: &[&str], into: &Path) -> PathBuf {
    let driver = source("driver");
    let mut flags = vec![driver.to_str().unwrap()];
    flags.extend(more);
    compile_pmemobj(compiler, &source(store), &flags, into)
}

/// A program's output about a pool.
fn told(program: &Path, collects: &str, pool: &Path, arguments: &[&str]) -> String {
    let output = command(program)
        .arg(pool)
        .args(arguments)
        .env("FIRN_COLLECT", collects)
        // libpmemobj writes lines back as on persistent memory, instead of making slow system calls.
        .env("PMEM_IS_PMEM_FORCE", "1")
        .output()
        .unwrap();
    let (program, errors) = (program.display(), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success(),
        "{program} {}: {errors}",
        output.status
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A program's output about a new pool.
fn told_anew(program: &Path, collects: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    told(program, collects, &folder.path().join("pool"), arguments)
}

/// Tests of one store each, so that they share the processors.
macro_rules! of_each_store {
    ($($store:ident),*) => {
        mod answers_are_those_with_libpmemobj {
            $(#[test]
            fn $store() {
                super::answers_are_those_with_libpmemobj(stringify!($store));
            })*
        }
        mod everything_moves_under_sanitizers {
            $(#[test]
            fn $store() {
                super::everything_moves_under_sanitizers(stringify!($store));
            })*
        }
        mod kills_lose_nothing_that_was_said {
            $(#[test]
            fn $store() {
                super::kills_lose_nothing_that_was_said(stringify!($store));
            })*
        }
    };
}

of_each_store!(queue, hash, strings, red_black, btree);

fn answers_are_those_with_libpmemobj(store: &str) {
    let folder = tempfile::tempdir().unwrap();
    let with_gcc = built(store, "gcc", &["-O2"], folder.path());
    let with_clang = built(store, "clang", &["-O2"], folder.path());
    let driver = source("driver");
    let flags = ["-O2", driver.to_str().unwrap()];
    let with_libpmemobj = compile_with_libpmemobj(&source(store), &flags, folder.path());
    for seed in ["1", "2", "3"] {
        let course = ["random", seed, "1500"];
        let answers = told_anew(&with_gcc, NEVER, &course);
        assert!(answers.contains(", sound"), "{store} {seed}: {answers}");
        let mut others = vec![told_anew(&with_clang, BESIDE, &course)];
        // Moving everything at each safepoint takes long; other tests do so with other courses.
        if seed == "1" {
            others.push(told_anew(&with_clang, AT_SAFEPOINTS, &course));
        }
        let theirs = with_libpmemobj.iter();
        let theirs = theirs.map(|program| told_anew(program, NEVER, &course));
        for other in theirs.chain(others) {
            assert_eq!(answers, other, "{store} {seed}");
        }
    }
}

fn everything_moves_under_sanitizers(store: &str) {
    let folder = tempfile::tempdir().unwrap();
    let program = built(store, "gcc", &SANITIZED, folder.path());
    let answers = told_anew(&program, AT_SAFEPOINTS, &["random", "4", "1200"]);
    assert!(answers.contains(", sound"), "{store}: {answers}");
}

fn kills_lose_nothing_that_was_said(store: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let program = built(store, "gcc", &["-O2"], folder.path());
    let pool = folder.path().join(store);
    // Neither library accepts a file as a pool if it was still being made.
    told(&program, NEVER, &pool, &["content"]);
    let mut changes = 0;
    for _ in 0..KILLS {
        let collects = [BESIDE, AT_SAFEPOINTS][random.usize(..2)];
        let mut run = command(&program);
        run.arg(&pool)
            .args(["run", "9"])
            .env("FIRN_COLLECT", collects);
        let said = said_until_killed(&mut run, Kill::within(250, &mut random));
        let content = told(&program, NEVER, &pool, &["content"]);
        let found: u64 = content.split(' ').next().unwrap().parse().unwrap();
        assert!(
            found >= said && found >= changes,
            "{store}: {said} changes were durable, {content}"
        );
        changes = found;
        let replayed = told_anew(&program, NEVER, &["random", "9", &found.to_string()]);
        let expected = replayed.lines().next_back().unwrap();
        assert_eq!(content.trim_end(), expected, "{store}");
    }
    assert!(
        changes > 50 * KILLS,
        "{store}: {changes} changes are too few to be killed in"
    );
}
