//! Do programs that were written for libpmemobj build, unchanged, and do what they did there, while their objects are
//! moved?

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use support::{Language, command, compile_pmemobj, compilers, here, output, run};

/// A program of this folder's, or of the examples.
fn built(name: &str, more: &[&str], into: &Path) -> Vec<PathBuf> {
    // Clang's sanitizers come in a package of their own.
    let sanitizes = more.iter().any(|flag| flag.starts_with("-fsanitize"));
    let compilers = compilers(Language::C11);
    let compilers = compilers
        .into_iter()
        .filter(|&compiler| !sanitizes || compiler == "gcc");
    let folders = ["examples/pmemobj", "tests/pmemobj"].map(here);
    let mut sources = folders.iter().map(|folder| folder.join(name));
    let source = sources.find(|source| source.exists()).expect("a source");
    let build = |compiler| compile_pmemobj(compiler, &source, more, into);
    compilers.map(build).collect()
}

#[test]
fn a_list_is_pushed_popped_and_aborted() {
    let folder = tempfile::tempdir().unwrap();
    for program in built("list.c", &["-O2"], folder.path()) {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("pool");
        let pool = pool.to_str().unwrap();
        assert_eq!(
            run(&program, &[pool, "push", "1", "2"]),
            "2: 2 1\n2 nodes\n"
        );
        assert_eq!(run(&program, &[pool, "push", "3"]), "3: 3 2 1\n3 nodes\n");
        let aborted = "aborted: Operation canceled\nfinally\n3: 3 2 1\n3 nodes\n";
        assert_eq!(run(&program, &[pool, "abort"]), aborted);
        assert_eq!(run(&program, &[pool, "pop"]), "2: 2 1\n2 nodes\n");
        assert_eq!(run(&program, &[pool, "print"]), "2: 2 1\n2 nodes\n");
        let refused = output(&program, &["/nowhere/pool", "print"]);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(told.contains("/nowhere/pool"), "{told}");
    }
}

#[test]
fn oids_in_variables_hold_while_everything_moves() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, collects) in [
        (&["-O0"][..], "0"),
        (&["-O2"], "1"),
        (&["-O1", "-fsanitize=address"], "0"),
    ] {
        for program in built("variables.c", flags, folder.path()) {
            let folder = tempfile::tempdir().unwrap();
            let pool = folder.path().join("pool");
            let output = command(&program)
                .arg(&pool)
                .arg("3")
                .env("FIRN_COLLECT", collects)
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {told}", program.display());
            assert_eq!(output.stdout, b"moved\n", "{}", program.display());
        }
    }
}

#[test]
fn what_a_program_may_not_do_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["-O2"][..], &["-O1", "-fsanitize=address,undefined"]] {
        for program in built("misuse.c", flags, folder.path()) {
            let pools = tempfile::tempdir().unwrap();
            assert_eq!(run(&program, &[pools.path()]), "refused\n");
        }
    }
}

#[test]
fn threads_share_objects_and_locks_while_everything_moves() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, collects, rounds) in [
        (&["-O2"][..], "1", 2000),
        (&["-O2"], "safepoints", 100),
        (&["-O1", "-fsanitize=address,undefined"], "safepoints", 50),
        (&["-O1", "-fsanitize=thread"], "0", 300),
        (&["-O1", "-fsanitize=thread"], "1", 300),
    ] {
        for program in built("threads.c", flags, folder.path()) {
            let pools = tempfile::tempdir().unwrap();
            let output = command(&program)
                .arg(pools.path().join("pool"))
                .arg(rounds.to_string())
                .env("FIRN_COLLECT", collects)
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && told.is_empty(),
                "{}: {told}",
                program.display()
            );
            let handed_over = format!("{} numbers handed over\n", 3 * rounds);
            assert_eq!(String::from_utf8_lossy(&output.stdout), handed_over);
        }
    }
}

#[test]
fn random_calls_leave_what_a_model_has() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, steps) in [
        (&["-O2"][..], 250),
        (
            &[
                "-O1",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover",
            ],
            100,
        ),
    ] {
        for program in built("calls.c", flags, folder.path()) {
            for (seed, collects) in [(1, "0"), (2, "1"), (3, "safepoints"), (4, "safepoints")] {
                let pools = tempfile::tempdir().unwrap();
                let output = command(&program)
                    .arg(pools.path().join("pool"))
                    .args([seed, steps].map(|number| number.to_string()))
                    .env("FIRN_COLLECT", collects)
                    .output()
                    .unwrap();
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.success() && output.stdout == b"done\n",
                    "{} {seed}: {told}",
                    program.display()
                );
            }
        }
    }
}

/// What the manual says of `FIRN_COLLECT=safepoints`: it shows which pointers are kept too long. A store through one
/// is lost; where what objects have left is guarded, as debug builds do, it ends the program, which is told the type.
#[test]
fn a_pointer_that_is_kept_too_long_is_bad_at_once_where_everything_moves() {
    let folder = tempfile::tempdir().unwrap();
    for program in built("kept.c", &["-O2"], folder.path()) {
        let run = |collects, guards| {
            let pools = tempfile::tempdir().unwrap();
            command(&program)
                .arg(pools.path().join("pool"))
                .env("FIRN_COLLECT", collects)
                .env("FIRN_GUARD", guards)
                .output()
                .unwrap()
        };
        for (collects, guards, printed) in [
            ("0", "0", "found\n"),
            ("0", "1", "found\n"),
            ("safepoints", "0", "lost\n"),
        ] {
            let output = run(collects, guards);
            assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
        }
        let stopped = run("safepoints", "1");
        assert_eq!(stopped.status.signal(), Some(libc::SIGSEGV));
        let told = String::from_utf8_lossy(&stopped.stderr);
        assert!(
            told.contains("byte 0 of an object of type number 1 ") && told.ends_with("again.\n"),
            "{told}"
        );
        assert!(stopped.stdout.is_empty());
    }
}
