//! Do programs written for libpmemobj build unchanged, and behave as they do there, while their objects are moved?

#[path = "pmemobj/fine_print.rs"]
mod fine_print;
mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use support::{AT_SAFEPOINTS, BESIDE, NEVER, SANITIZED};
use support::{Language, command, compile_pmemobj, compile_pmemobj_as};
use support::{compile_with_libpmemobj, compilers};
use support::{here, output, run, run_while};

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
    let mut programs = built("list.c", &["-O2"], folder.path());
    programs.extend(built("list.c", &SANITIZED, folder.path()));
    let while_moving = |program| [(program, BESIDE), (program, AT_SAFEPOINTS)];
    for (program, collects) in programs.iter().flat_map(while_moving) {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("pool");
        let pool = pool.to_str().unwrap();
        let run = |arguments: &[&str]| run_while(collects, program, arguments);
        assert_eq!(run(&[pool, "push", "1", "2"]), "2: 2 1\n2 nodes\n");
        assert_eq!(run(&[pool, "push", "3"]), "3: 3 2 1\n3 nodes\n");
        let aborted = "aborted: Operation canceled\nfinally\n3: 3 2 1\n3 nodes\n";
        assert_eq!(run(&[pool, "abort"]), aborted);
        assert_eq!(run(&[pool, "pop"]), "2: 2 1\n2 nodes\n");
        assert_eq!(run(&[pool, "print"]), "2: 2 1\n2 nodes\n");
        let refused = output(program, &["/nowhere/pool", "print"]);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(told.contains("/nowhere/pool"), "{told}");
    }
}

#[test]
fn oids_in_variables_hold_while_everything_moves() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, collects) in [
        (&["-O0"][..], NEVER),
        (&["-O2"], BESIDE),
        (&SANITIZED, NEVER),
        (&["-O2", "-DITEMS=200"], AT_SAFEPOINTS),
    ] {
        for program in built("variables.c", flags, folder.path()) {
            let folder = tempfile::tempdir().unwrap();
            let pool = folder.path().join("pool");
            let told = run_while(collects, &program, &[pool.as_os_str(), "3".as_ref()]);
            assert_eq!(told, "1\n2\n3\n3 rounds, moved\n", "{}", program.display());
        }
    }
}

/// Programs may keep offsets, distances and pointers: libpmemobj moves only the objects that it is given. With either
/// library the program's output is equal.
#[test]
fn nothing_moves_but_what_the_program_lists() {
    const SAID: &str = "0 collectors\nno list: 0, moved 0\n\
         one object, by two OIDs: 1, the same 1\na list: 18000, more than half moved 1\n";
    let folder = tempfile::tempdir().unwrap();
    let said = |program: &Path, collects: Option<&str>| {
        let pools = tempfile::tempdir().unwrap();
        let mut command = command(program);
        command.arg(pools.path().join("pool"));
        command.env_remove("FIRN_COLLECT");
        command.env("PMEM_IS_PMEM_FORCE", "1");
        let output = command
            .envs(collects.map(|of| ("FIRN_COLLECT", of)))
            .output();
        let output = output.unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {told}", program.display());
        String::from_utf8(output.stdout).unwrap()
    };
    for program in built("unasked.c", &["-O2"], folder.path()) {
        for collects in [None, Some(""), Some(NEVER)] {
            assert_eq!(said(&program, collects), SAID, "{collects:?}");
        }
    }
    let source = here("tests/pmemobj/unasked.c");
    if let Some(theirs) = compile_with_libpmemobj(&source, &["-O2"], folder.path()) {
        assert_eq!(said(&theirs, None), SAID);
    }
}

/// After its objects are listed, a full pool has room for other ones: for nearly as much as was freed, and libpmemobj
/// has room for no more. The share counts: an object's overhead in bytes is another matter.
#[test]
fn a_full_pool_that_is_listed_has_room_for_what_was_freed() {
    /// In percent of what was freed; and how much more libpmemobj may offer.
    const LEAST: u64 = 90;
    const MORE: u64 = 4;
    let folder = tempfile::tempdir().unwrap();
    let room = |program: &Path, bytes: &str, percent: &str| -> u64 {
        let pools = tempfile::tempdir().unwrap();
        let pool = pools.path().join("pool");
        let mut command = command(program);
        command.args([pool.as_os_str(), bytes.as_ref(), percent.as_ref()]);
        command.env("FIRN_ASSUME_PERSISTENT", "adr");
        command.env("PMEM_IS_PMEM_FORCE", "1");
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.is_empty(), "{told}");
        let told = String::from_utf8(output.stdout).unwrap();
        told.trim().parse().unwrap()
    };
    let program = &built("listed.c", &["-O2"], folder.path())[0];
    let source = here("tests/pmemobj/listed.c");
    let theirs = compile_with_libpmemobj(&source, &["-O2"], folder.path());
    for bytes in ["100", "1000", "4000"] {
        for percent in ["80", "100"] {
            let ours = room(program, bytes, percent);
            assert!(ours >= LEAST, "{bytes} at {percent} %: {ours} %");
            if let Some(theirs) = &theirs {
                let theirs = room(theirs, bytes, percent);
                assert!(
                    ours + MORE >= theirs,
                    "{bytes} at {percent} %: {ours}, {theirs} %"
                );
            }
        }
    }
}

/// A call that hands no pointer out keeps no other thread from moving objects. Nor does a thread that holds a pointer
/// keep another waiting at each of its hundreds of safepoints.
#[test]
fn a_thread_without_pointers_is_waited_for_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    for program in built("waits.c", &["-O2"], folder.path()) {
        let pools = tempfile::tempdir().unwrap();
        let pool = |name: &str| pools.path().join(name);
        for collects in [NEVER, BESIDE, AT_SAFEPOINTS] {
            assert_eq!(run_while(collects, &program, &[pool(collects)]), "done\n");
        }
        let holds = [pool("held").into_os_string(), "holds".into()];
        assert_eq!(run_while(AT_SAFEPOINTS, &program, &holds), "done\n");
    }
}

/// A child that uses its parent's pool is refused in every call, stores nothing there, and ends normally; the parent
/// goes on.
#[test]
fn forked_children_are_refused_and_harm_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for program in built("forked.c", &["-O2"], folder.path()) {
        let pools = tempfile::tempdir().unwrap();
        let output = command(&program).arg(pools.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.is_empty(), "{told}");
        assert_eq!(output.stdout, b"forked\n");
    }
}

#[test]
fn what_a_program_may_not_do_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["-O2"][..], &SANITIZED] {
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
        (&["-O2"][..], BESIDE, 2000),
        (&["-O2"], AT_SAFEPOINTS, 100),
        (&SANITIZED, AT_SAFEPOINTS, 50),
        (&["-O1", "-fsanitize=thread"], NEVER, 300),
        (&["-O1", "-fsanitize=thread"], BESIDE, 300),
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
fn a_pool_keeps_the_size_that_it_was_made_with() {
    let folder = tempfile::tempdir().unwrap();
    let program = &built("limit.c", &["-O2"], folder.path())[0];
    let pools = tempfile::tempdir().unwrap();
    let pool = pools.path().join("pool");
    assert_eq!(run(program, &[&pool]), "full, 0 more, 0 more\n");
    let length = std::fs::metadata(&pool).unwrap().len();
    assert!(length <= 40 << 20, "{length} bytes");
}

#[test]
fn any_number_of_objects_is_freed_in_a_full_pool() {
    let folder = tempfile::tempdir().unwrap();
    let program = &built("emptied.c", &["-O2"], folder.path())[0];
    for (collects, rounds) in [(BESIDE, "0"), (NEVER, "12")] {
        let pools = tempfile::tempdir().unwrap();
        let pool = pools.path().join("pool");
        let told = run_while(collects, program, &[rounds.as_ref(), pool.as_os_str()]);
        assert_eq!(told, "empty, full again\n", "{rounds} rounds");
    }
}

#[test]
fn a_pool_that_is_defragmented_over_and_over_is_never_full_of_addresses() {
    let folder = tempfile::tempdir().unwrap();
    for (collects, phases, compact) in [(NEVER, 12, Some(12)), (BESIDE, 18, None)] {
        let program = &built("phases.c", &["-O2"], folder.path())[0];
        let pools = tempfile::tempdir().unwrap();
        let output = command(program)
            .arg(pools.path().join("pool"))
            .arg(phases.to_string())
            .env("FIRN_COLLECT", collects)
            .env("FIRN_ASSUME_PERSISTENT", "adr")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.is_empty(), "{told}");
        let done = String::from_utf8_lossy(&output.stdout);
        if let Some(compact) = compact {
            assert_eq!(done, format!("{compact} phases ended compact\n"));
        }
    }
}

#[test]
fn a_program_in_cplusplus_has_the_same_macros() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("tests/pmemobj/cplusplus.cpp");
    for language in [Language::Cpp11, Language::Cpp20] {
        for compiler in compilers(language) {
            let flags = ["-O2"];
            let program = compile_pmemobj_as(language, compiler, &source, &flags, folder.path());
            let pools = tempfile::tempdir().unwrap();
            assert_eq!(
                run(&program, &[pools.path().join("pool")]),
                "done\ndone\ndone\naborted 3\ndone\ndone\n77 0\n1 0 1\n\
                 5 nodes, 4 in the list: 4 2 1 0\n"
            );
        }
    }
}

/// A program in strict ISO C; with libpmemobj, if that is installed, it answers alike.
#[test]
fn locks_do_what_theirs_do_and_are_gone_with_their_objects() {
    const FEW: &str = "-DFREED=2000";
    const STRICT: &str = "-U_GNU_SOURCE";
    let folder = tempfile::tempdir().unwrap();
    let mut programs = Vec::new();
    let mut build = |flags: &[&str], collects| {
        let built = built("locks.c", flags, folder.path());
        programs.extend(built.into_iter().map(|program| (program, collects)));
    };
    for standard in ["-std=c99", "-std=c11", "-std=c17"] {
        build(&["-O2", STRICT, standard], NEVER);
    }
    build(&["-O2", STRICT], BESIDE);
    build(&["-O2", STRICT, FEW], AT_SAFEPOINTS);
    build(&[&SANITIZED[..], &[STRICT, FEW]].concat(), BESIDE);
    build(&["-O1", "-fsanitize=thread", STRICT, FEW], BESIDE);
    let flags = ["-O2", STRICT, "-lpthread"];
    let theirs = compile_with_libpmemobj(&here("tests/pmemobj/locks.c"), &flags, folder.path());
    programs.extend(theirs.map(|program| (program, NEVER)));
    for (program, collects) in programs {
        let pools = tempfile::tempdir().unwrap();
        let mut command = command(&program);
        command.arg(pools.path().join("pool"));
        // It closes a pool with locks that are held.
        let options = command.get_envs().find_map(|(name, value)| {
            let value = value.filter(|_| name == "TSAN_OPTIONS")?;
            Some(format!("{}:report_destroy_locked=0", value.display()))
        });
        command.env("TSAN_OPTIONS", options.unwrap_or_default());
        command
            .env("FIRN_COLLECT", collects)
            .env("FIRN_ASSUME_PERSISTENT", "adr")
            .env("PMEM_IS_PMEM_FORCE", "1");
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let done = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && done == "locked and unlocked\n" && told.is_empty(),
            "{} {collects}: {told}",
            program.display()
        );
    }
}

#[test]
fn random_calls_leave_what_a_model_has() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, steps) in [(&["-O2"][..], 250), (&SANITIZED, 100)] {
        for program in built("calls.c", flags, folder.path()) {
            for (seed, collects) in [
                (1, NEVER),
                (2, BESIDE),
                (3, AT_SAFEPOINTS),
                (4, AT_SAFEPOINTS),
            ] {
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

/// With libpmemobj, if that is installed, a program answers alike.
fn answer_as_with_libpmemobj(source: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-O2", "-lpthread"];
    let theirs =
        compile_with_libpmemobj(&here("tests/pmemobj").join(source), &flags, folder.path());
    let mut programs: Vec<_> = theirs.map(|program| (program, NEVER)).into_iter().collect();
    for (flags, collects) in [
        (&["-O2"][..], NEVER),
        (&["-O2"], BESIDE),
        (&["-O2"], AT_SAFEPOINTS),
        (&SANITIZED, NEVER),
    ] {
        let built = built(source, flags, folder.path());
        programs.extend(built.into_iter().map(|program| (program, collects)));
    }
    for (program, collects) in programs {
        let pools = tempfile::tempdir().unwrap();
        let output = command(&program)
            .arg(pools.path().join("pool"))
            .env("FIRN_COLLECT", collects)
            .env("FIRN_ASSUME_PERSISTENT", "adr")
            .env("PMEM_IS_PMEM_FORCE", "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let name = program.display();
        assert!(
            output.status.success() && told.is_empty(),
            "{name} {collects}: {told}"
        );
        let done = String::from_utf8_lossy(&output.stdout);
        assert_eq!(done, expected, "{name} {collects}");
    }
}

#[test]
fn fields_that_share_a_word_are_changed_and_restored_each_by_itself() {
    let zeros = "0,0,0,0,0,0,0,0 0,0,0,0,0,0,0,0 0,0,0,0,0,0,0,0";
    let ones = "1,1,1 1,1,1,1,1,1,1,1 1,1,1,1";
    let others = [
        format!("a commit: A 22 {zeros}"),
        format!("an abort: A 0 {zeros}"),
        format!("a copy: A 44 {zeros}"),
    ];
    let mut expected = String::new();
    for a in ["11", "0"] {
        for line in &others {
            expected += &line.replace('A', a);
            expected += "\n";
        }
        let ones = match a {
            "0" => ones.replace('1', "0"),
            _ => ones.to_owned(),
        };
        expected += &format!("bytes added: 0 0 7,7,7,7,7,{ones},0,0,0,0\n");
        expected += &format!("bytes set: 0 0 8,8,8,8,8,{ones},8,8,8,8\n");
    }
    expected += &format!("without a snapshot: 0 55 {zeros}\n");
    expected += &format!("beside a snapshot: 0 77 {zeros}\n");
    answer_as_with_libpmemobj("neighbours.c", &expected);
}

#[test]
fn lengths_and_offsets_at_every_edge_are_refused_as_by_libpmemobj() {
    answer_as_with_libpmemobj("edges.c", "done\n");
}

#[test]
fn a_copy_of_a_pool_is_refused_beside_its_original() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["-O2"][..], &SANITIZED] {
        for program in built("beside.c", flags, folder.path()) {
            for how in ["open", "closed"] {
                let pools = tempfile::tempdir().unwrap();
                let pool = pools.path().join("pool");
                let told = run_while(NEVER, &program, &[pool.as_os_str(), how.as_ref()]);
                assert_eq!(told, "refused\n", "{how}");
            }
        }
    }
}

/// The library orders one thread's accesses to an object before another's to its memory, and tells the sanitizer.
#[test]
fn memory_that_is_handed_on_is_no_race() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-O1", "-fsanitize=thread"];
    for program in built("handed_on.c", &flags, folder.path()) {
        for how in ["free", "abort"] {
            let pools = tempfile::tempdir().unwrap();
            let pool = pools.path().join("pool");
            let told = run_while(NEVER, &program, &[pool.as_os_str(), how.as_ref()]);
            assert_eq!(told, "handed on\n", "{how}");
        }
    }
}

/// The manual's claim about `FIRN_COLLECT=safepoints`: it shows which pointers are kept too long. A store through one
/// is lost; in debug builds, which guard vacated memory, it ends the program, and the message names the type.
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
            (NEVER, "0", "found\n"),
            (NEVER, "1", "found\n"),
            (AT_SAFEPOINTS, "0", "lost\n"),
        ] {
            let output = run(collects, guards);
            assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
        }
        let stopped = run(AT_SAFEPOINTS, "1");
        assert_eq!(stopped.status.signal(), Some(libc::SIGSEGV));
        let told = String::from_utf8_lossy(&stopped.stderr);
        assert!(
            told.contains("byte 0 of an object of type number 1 ") && told.ends_with("again.\n"),
            "{told}"
        );
        assert!(stopped.stdout.is_empty());
    }
}
