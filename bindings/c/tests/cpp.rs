//! Does the header for C++ do what it says, with both compilers, and refuse what may not be stored?

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Language, compile, compilers, here, output, run};

fn each(name: &str, more: &[&str], into: &Path) -> Vec<PathBuf> {
    let build = |compiler| compile(compiler, Language::Cpp20, &here(name), more, into);
    compilers(Language::Cpp20).map(build).to_vec()
}

#[test]
fn a_list_is_still_there_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["-O0"][..], &["-O2", "-DNDEBUG"]] {
        for program in each("examples/list.cpp", flags, folder.path()) {
            let folder = tempfile::tempdir().unwrap();
            let pool = folder.path().join("list.firn");
            let pool = pool.to_str().unwrap();
            assert_eq!(run(&program, &[pool, "1", "2", "3"]), "3: 3 2 1\n");
            assert_eq!(run(&program, &[pool, "-4"]), "4: -4 3 2 1\n");
            let refused = output(&program, &["/nowhere/list.firn"]);
            assert_eq!(refused.status.code(), Some(1));
        }
    }
}

#[test]
fn what_is_promised_holds() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["-O0"][..], &["-O2", "-DNDEBUG"]] {
        for program in each("tests/cpp/everything.cpp", flags, folder.path()) {
            assert_eq!(run::<&str>(&program, &[]), "done\n");
        }
    }
    let flags = [
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover",
    ];
    let source = here("tests/cpp/everything.cpp");
    let program = compile("g++", Language::Cpp20, &source, &flags, folder.path());
    assert_eq!(run::<&str>(&program, &[]), "done\n");
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

/// A type, and what the compiler has to say of it.
const REFUSED: [(&str, &str); 5] = [
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
    ("alignas(16) double wide;", "aligned to 8 bytes"),
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
        for (body, wanted) in REFUSED {
            let (accepted, told) = refused(compiler, &format!("{named} {body}"));
            assert!(
                !accepted && told.contains(wanted),
                "{compiler}, {body}: {told}"
            );
        }
        let (accepted, told) = refused(compiler, "int number;");
        assert!(!accepted && told.contains("has no firn_name"), "{told}");
    }
}
