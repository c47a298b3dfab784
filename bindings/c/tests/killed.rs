//! Programs in C and C++ are killed at random moments while their objects move: no acknowledged change is lost, and
//! none is half done. The stores for libpmemobj are killed in `stores.rs`.

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use support::{AT_SAFEPOINTS, BESIDE, Kill, SANITIZED};
use support::{Language, command, compile, compile_pmemobj, here, run, said_until_killed};

const KILLS: u64 = 40;
/// Kills of each of the small programs.
const FEW: u64 = 12;

/// An audit of a program: the number of changes present, and the rest of its output.
type Audit = (u64, Vec<u64>);

fn audit(program: &Path, pool: &Path) -> Audit {
    let printed = run(program, &[pool.to_str().unwrap(), "audit"]);
    let mut numbers = printed.split_whitespace().map(|n| n.parse().unwrap());
    (numbers.next().unwrap(), numbers.collect())
}

/// Kills a program many times, as it is and with sanitizers, while objects move beside it and at every safepoint.
/// Returns the last audit.
fn killed(
    kills: u64,
    programs: &[PathBuf; 2],
    pool: &Path,
    arguments: impl Fn(u64) -> Vec<String>,
) -> Audit {
    let mut random = fastrand::Rng::with_seed(7);
    let mut last = (0, Vec::new());
    for kill in 0..kills {
        let program = &programs[kill as usize % 2];
        let mut running = command(program);
        // Moving everything at each safepoint takes long.
        let (collects, most) = [(BESIDE, 150), (AT_SAFEPOINTS, 6)][kill as usize / 2 % 2];
        running.arg(pool).args(arguments(kill));
        running.env("FIRN_COLLECT", collects);
        let said = said_until_killed(&mut running, Kill::within(most, &mut random));
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
        last.0 > 20 * kills,
        "{} changes are too few to be killed in",
        last.0
    );
    last
}

#[test]
fn a_bank_keeps_its_books_through_kills() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("examples/bank.c");
    let build = |compiler, optimised: &[&str]| {
        let flags = [optimised, &["-D_GNU_SOURCE"]].concat();
        compile(compiler, Language::C11, &source, &flags, folder.path())
    };
    let programs = [build("gcc", &["-O2"]), build("gcc", &SANITIZED)];
    // The other compiler must not complain either.
    build("clang", &["-O2"]);
    let pool = folder.path().join("bank.firn");
    killed(KILLS, &programs, &pool, |kill| {
        vec!["run".into(), kill.to_string()]
    });
}

#[test]
fn collections_keep_what_was_committed_through_kills() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("tests/cpp/killed.cpp");
    let build = |compiler, flags: &[&str]| {
        compile(compiler, Language::Cpp20, &source, flags, folder.path())
    };
    let programs = [build("g++", &["-O2"]), build("g++", &SANITIZED)];
    build("clang++", &["-O2"]);
    let pool = folder.path().join("collections.firn");
    let (_, moved) = killed(KILLS, &programs, &pool, |_| vec!["run".into()]);
    assert!(moved[0] > KILLS, "{} objects were moved", moved[0]);
}

#[test]
fn objects_of_many_members_are_whole_through_kills() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("tests/cpp/wide.cpp");
    let build = |compiler, flags: &[&str]| {
        compile(compiler, Language::Cpp20, &source, flags, folder.path())
    };
    let programs = [build("clang++", &["-O2"]), build("g++", &SANITIZED)];
    let pool = folder.path().join("wide.firn");
    let (_, moved) = killed(FEW, &programs, &pool, |_| vec!["run".into()]);
    assert!(moved[0] > FEW, "{} objects were moved", moved[0]);
}

/// Kills a program that makes one change for each of its arguments and prints nothing until all are made. Its later
/// output tells which of them are there.
fn killed_silently(
    program: &Path,
    pool: &Path,
    verb: Option<&str>,
    argument: impl Fn(u64) -> String,
    count: impl Fn(&str) -> u64,
) {
    let mut random = fastrand::Rng::with_seed(5);
    let begun = || {
        let mut command = command(program);
        command.arg(pool).args(verb);
        command
    };
    let audit = || {
        let output = begun().output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {told}", program.display());
        count(&String::from_utf8(output.stdout).unwrap())
    };
    let mut found = audit();
    assert_eq!(found, 0);
    for kill in 0..FEW {
        let collects = [BESIDE, AT_SAFEPOINTS][kill as usize % 2];
        let mut running = begun()
            .args((found + 1..found + 20_000).map(&argument))
            .env("FIRN_COLLECT", collects)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(random.u64(10_000..200_000)));
        running.kill().unwrap();
        running.wait().unwrap();
        let before = found;
        found = audit();
        assert!(found >= before, "{found} of {before} changes are there");
    }
    assert!(
        found > 20 * FEW,
        "{}: {found} changes are too few to be killed in",
        program.display()
    );
}

/// The length of a printed list, which must count down from the last number to the first.
fn whole_list(printed: &str) -> u64 {
    let (length, numbers) = printed.lines().next().unwrap().split_once(':').unwrap();
    let length: u64 = length.parse().unwrap();
    let numbers = numbers.split_whitespace().map(|n| n.parse::<u64>());
    assert!(
        numbers.eq((1..=length).rev().map(Ok)),
        "{length} numbers are not all there"
    );
    length
}

#[test]
fn lists_are_whole_through_kills() {
    let folder = tempfile::tempdir().unwrap();
    let [c, cpp, pmemobj] =
        ["list.c", "list.cpp", "pmemobj/list.c"].map(|name| here(&format!("examples/{name}")));
    let flags = ["-O2", "-D_GNU_SOURCE"];
    for (name, program, verb) in [
        (
            "c",
            compile("gcc", Language::C11, &c, &flags, folder.path()),
            None,
        ),
        (
            "cpp",
            compile("g++", Language::Cpp20, &cpp, &flags, folder.path()),
            None,
        ),
        (
            "pmemobj",
            compile_pmemobj("gcc", &pmemobj, &["-O2"], folder.path()),
            Some("push"),
        ),
    ] {
        let pool = folder.path().join(format!("{name}.firn"));
        killed_silently(&program, &pool, verb, |n| n.to_string(), whole_list);
    }
}

#[test]
fn words_are_counted_wholly_or_not_at_all_through_kills() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("examples/words.cpp");
    let program = compile("g++", Language::Cpp20, &source, &["-O2"], folder.path());
    let pool = folder.path().join("words.firn");
    let line = |_| "ice and snow".to_owned();
    killed_silently(&program, &pool, None, line, |printed| {
        let counts: Vec<u64> = printed
            .lines()
            .filter_map(|line| line.split_once(' ')?.0.parse().ok())
            .collect();
        match counts[..] {
            [] => 0,
            [and, ice, snow] if and == ice && ice == snow => snow,
            _ => panic!("{printed}"),
        }
    });
}

#[test]
fn oids_of_the_last_run_lead_to_what_was_durable() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("examples/pmemobj/variables.c");
    let program = compile_pmemobj("gcc", &source, &["-O2", "-DITEMS=200"], folder.path());
    let pool = folder.path().join("variables.firn");
    let audit = || {
        let printed = run(&program, &[pool.as_os_str(), "0".as_ref()]);
        let rounds = printed.strip_suffix(" rounds, nothing moved\n");
        rounds.expect(&printed).parse::<u64>().unwrap()
    };
    assert_eq!(audit(), 0);
    let mut random = fastrand::Rng::with_seed(3);
    let mut rounds = 0;
    for kill in 0..FEW {
        // A round in which everything moves at each safepoint takes seconds: it is killed within its first one.
        let (collects, kill) = match kill % 2 {
            0 => (BESIDE, Kill::within(9, &mut random)),
            _ => (AT_SAFEPOINTS, Kill::before_a_line(80, &mut random)),
        };
        let mut running = command(&program);
        running
            .arg(&pool)
            .arg("1000000")
            .env("FIRN_COLLECT", collects);
        let said = said_until_killed(&mut running, kill);
        let found = audit();
        assert!(
            found >= said && found >= rounds,
            "{found} of {} rounds are there",
            said.max(rounds)
        );
        rounds = found;
    }
    assert!(rounds > FEW, "{rounds} rounds are too few to be killed in");
}
