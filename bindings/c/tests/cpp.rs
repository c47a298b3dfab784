//! Does the header for C++ work as documented, with both compilers, and refuse types that may not be stored?

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{AT_SAFEPOINTS, BESIDE, SANITIZED};
use support::{Language, command, compile, compilers, here, output, run, run_while};

fn each(name: &str, more: &[&str], into: &Path) -> Vec<PathBuf> {
    let build = |compiler| compile(compiler, Language::Cpp20, &here(name), more, into);
    compilers(Language::Cpp20).map(build).to_vec()
}

/// A program, plain with both compilers and with sanitizers; and when objects move.
fn each_way(name: &str, test: impl Fn(&Path, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let mut built = each(name, &["-O0"], folder.path());
    built.extend(each(name, &["-O2", "-DNDEBUG"], folder.path()));
    // Clang's sanitizers come in a package of their own.
    built.push(compile(
        "g++",
        Language::Cpp20,
        &here(name),
        &SANITIZED,
        folder.path(),
    ));
    for program in built {
        for collects in [BESIDE, AT_SAFEPOINTS] {
            test(&program, collects);
        }
    }
}

#[test]
fn a_list_is_still_there_the_next_time() {
    each_way("examples/list.cpp", |program, collects| {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("list.firn");
        let pool = pool.to_str().unwrap();
        let run = |arguments: &[&str]| run_while(collects, program, arguments);
        assert_eq!(run(&[pool, "1", "2", "3"]), "3: 3 2 1\n");
        assert_eq!(run(&[pool, "-4"]), "4: -4 3 2 1\n");
        let refused = output(program, &["/nowhere/list.firn"]);
        assert_eq!(refused.status.code(), Some(1));
    });
}

#[test]
fn a_type_of_another_layout_is_refused_wherever_its_objects_are() {
    let folder = tempfile::tempdir().unwrap();
    let build = |number: u32| {
        let into = folder.path().join(format!("{number}"));
        std::fs::create_dir(&into).unwrap();
        let source = here("tests/cpp/layouts.cpp");
        let defined = format!("-DPROGRAM={number}");
        compile("g++", Language::Cpp20, &source, &[&defined], &into)
    };
    let [first, longer, of_double, of_halves] = [1, 2, 3, 4].map(build);
    let pool = folder.path().join("pool");
    let pool = pool.to_str().unwrap();
    let with = |program: &PathBuf, what: &str| run(program, &[pool, what]);
    with(&first, "write");
    for _ in 0..2 {
        let said = with(&longer, "read");
        assert!(said.contains("`node` in version 1"), "{said}");
        // Two instances of a template with one name and one size.
        for other in [&of_double, &of_halves] {
            let said = with(other, "read");
            assert!(said.starts_with("FIRN_WRONG_TYPE: "), "{said}");
            assert!(said.contains("type `node` version 1"), "{said}");
        }
        assert_eq!(with(&first, "read"), "one\n");
    }
    assert_eq!(with(&longer, "migrate"), "1\n");
    assert_eq!(with(&longer, "read"), "one\n");
    let said = with(&first, "read");
    assert!(said.contains("newer than this program's 1"), "{said}");
}

#[test]
fn words_are_counted_on_the_next_time() {
    each_way("examples/words.cpp", |program, collects| {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("words.firn");
        let pool = pool.to_str().unwrap();
        let run = |arguments: &[&str]| run_while(collects, program, arguments);
        assert_eq!(
            run(&[pool, "to be or", "not to be"]),
            "2 be, last in: not to be\n1 not, last in: not to be\n1 or, last in: to be or\n\
             2 to, last in: not to be\nlongest: not\n"
        );
        assert_eq!(
            run(&[pool, " that  is"]),
            "2 be, last in: not to be\n1 is, last in:  that  is\n1 not, last in: not to be\n\
             1 or, last in: to be or\n1 that, last in:  that  is\n2 to, last in: not to be\nlongest: that\n"
        );
    });
}

#[test]
fn what_is_promised_holds() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["-O0"][..], &["-O2", "-DNDEBUG"]] {
        for program in each("tests/cpp/everything.cpp", flags, folder.path()) {
            assert_eq!(run::<&str>(&program, &[]), "done\n");
            let pools = tempfile::tempdir().unwrap();
            let pool = pools.path().join("pool");
            assert_eq!(
                run(&program, &["limits".as_ref(), pool.as_os_str()]),
                "done\n"
            );
        }
    }
    let source = here("tests/cpp/everything.cpp");
    let program = compile("g++", Language::Cpp20, &source, &SANITIZED, folder.path());
    assert_eq!(run::<&str>(&program, &[]), "done\n");
}

/// The collections' program, plain with both compilers and with each sanitizer, and the number of transactions to run
/// with it.
fn collections(folder: &Path) -> Vec<(PathBuf, &'static str)> {
    const SOURCE: &str = "tests/cpp/containers.cpp";
    let mut built = Vec::new();
    for (flags, steps) in [(&["-O0"][..], "300"), (&["-O2", "-DNDEBUG"], "600")] {
        built.extend(
            each(SOURCE, flags, folder)
                .into_iter()
                .map(|program| (program, steps)),
        );
    }
    for (sanitized, steps) in [("address,undefined", "150"), ("thread", "100")] {
        let sanitized = format!("-fsanitize={sanitized}");
        let flags = ["-O1", &sanitized, "-fno-sanitize-recover"];
        let program = compile("g++", Language::Cpp20, &here(SOURCE), &flags, folder);
        built.push((program, steps));
    }
    built
}

#[test]
fn collections_equal_the_standards() {
    let folder = tempfile::tempdir().unwrap();
    for (program, steps) in collections(folder.path()) {
        for (seed, collects) in [
            ("1", BESIDE),
            ("2", BESIDE),
            ("3", AT_SAFEPOINTS),
            ("4", AT_SAFEPOINTS),
        ] {
            let pools = tempfile::tempdir().unwrap();
            let pool = pools.path().join("pool");
            let arguments = [pool.to_str().unwrap(), seed, steps];
            assert_eq!(run_while(collects, &program, &arguments), "done\n");
        }
    }
}

#[test]
fn threads_share_collections() {
    let folder = tempfile::tempdir().unwrap();
    for (program, _) in collections(folder.path()) {
        let pools = tempfile::tempdir().unwrap();
        let output = command(&program)
            .arg(pools.path().join("pool"))
            .arg("threads")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && told.is_empty(),
            "{}: {told}",
            program.display()
        );
    }
}

#[test]
fn an_object_that_outlives_its_operation_stops_the_program() {
    let folder = tempfile::tempdir().unwrap();
    for program in each("tests/cpp/everything.cpp", &["-O1"], folder.path()) {
        let stopped = output(&program, &["stale"]);
        assert_eq!(stopped.status.code(), None, "it was stopped by a signal");
        let told = String::from_utf8(stopped.stderr).unwrap();
        assert!(
            told.contains("used after its operation has ended"),
            "{told}"
        );
        assert!(told.contains("everything.cpp, line"), "{told}");
    }
}

/// A type, and the compiler's message for it.
const REFUSED: [(&str, &str); 6] = [
    ("int *pointer;", "a member that means nothing in a pool"),
    (
        "firn::ptr<kind> next; const char *name;",
        "a member that means nothing in a pool",
    ),
    ("std::string name;", "not trivially copyable"),
    (
        "std::array<std::array<void *, 2>, 2> many;",
        "a member that means nothing in a pool",
    ),
    (
        "int few[2]; void *many[2][2];",
        "a member that means nothing in a pool",
    ),
    ("alignas(16) double wide;", "aligned to 8 bytes"),
];

/// A use of a collection, and the compiler's message for it.
const REFUSED_VALUES: [(&str, &str); 4] = [
    (
        "firn::vector<int *>(tx, \"it\").push_back(nullptr)",
        "a member that means nothing in a pool",
    ),
    (
        "firn::vector<firn::ptr<kind>>(tx, \"it\").clear()",
        "values hold no references",
    ),
    (
        "firn::map<int, firn::string>(tx, \"it\").clear()",
        "values hold no references",
    ),
    ("firn::map<double, int>(tx, \"it\").clear()", "constraint"),
];

#[test]
fn what_may_not_be_stored_is_refused_by_the_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |compiler: &str, body: &str| {
        let source = folder.path().join("refused.cpp");
        let text = format!(
            "#include <firn.hpp>\nstruct kind {{ {body} }};\n\
             void make(firn::transaction &tx) {{ tx.make(kind{{}}); }}\n"
        );
        std::fs::write(&source, text).unwrap();
        let output = Command::new(compiler)
            .args(["-std=c++20", "-fsyntax-only"])
            .arg(format!("-I{}", here("include").display()))
            .arg(&source)
            .output()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for compiler in compilers(Language::Cpp20) {
        let named = "static constexpr auto firn_name = \"kind\";";
        let (accepted, told) = refused(
            compiler,
            &format!("{named} firn::ptr<kind> next; int number;"),
        );
        assert!(accepted, "{told}");
        let members = |count: u32| (0..count).map(|i| format!("int m{i};")).collect::<String>();
        let many = (&*members(65), "more than 64 members");
        for (body, wanted) in REFUSED.into_iter().chain([many]) {
            let (accepted, told) = refused(compiler, &format!("{named} {body}"));
            assert!(
                !accepted && told.contains(wanted),
                "{compiler}, {body}: {told}"
            );
        }
        for (used, wanted) in REFUSED_VALUES {
            let used = format!("{named} }}; void use(firn::transaction &tx) {{ {used};");
            let (accepted, told) = refused(compiler, &used);
            assert!(
                !accepted && told.contains(wanted),
                "{compiler}, {used}: {told}"
            );
        }
        let (accepted, told) = refused(compiler, "int number;");
        assert!(!accepted && told.contains("has no firn_name"), "{told}");
    }
}

#[test]
fn a_forked_child_is_refused_and_runs_its_destructors() {
    let folder = tempfile::tempdir().unwrap();
    for program in each("tests/cpp/forked.cpp", &["-O2"], folder.path()) {
        let pools = tempfile::tempdir().unwrap();
        let output = command(&program).arg(pools.path().join("pool")).output();
        let output = output.unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.is_empty(), "{told}");
        assert_eq!(output.stdout, b"forked\n");
    }
}
