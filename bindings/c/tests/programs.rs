//! Do the C programs compile with both compilers, without a warning, and do what they say?

mod support;

use std::path::PathBuf;

use support::{Language, compile, compilers, here, output, run};

/// A program compiled by each compiler, with and without optimisation.
fn each(name: &str, test: impl Fn(PathBuf)) {
    let folder = tempfile::tempdir().unwrap();
    let source = here(name);
    for compiler in compilers(Language::C11) {
        for level in ["-O0", "-O2"] {
            test(compile(
                compiler,
                Language::C11,
                &source,
                &[level, "-D_GNU_SOURCE"],
                folder.path(),
            ));
        }
    }
}

#[test]
fn a_list_is_still_there_the_next_time() {
    each("examples/list.c", |program| {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("list.firn");
        let pool = pool.to_str().unwrap();
        assert_eq!(run(&program, &[pool, "1", "2", "3"]), "3: 3 2 1\n");
        assert_eq!(run(&program, &[pool, "-4"]), "4: -4 3 2 1\n");
        let refused = output(&program, &["/nowhere/list.firn"]);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(told.contains("/nowhere/list.firn: not found"), "{told}");
    });
}

#[test]
fn collections_do_what_their_header_says() {
    let done = |program: PathBuf| assert_eq!(run::<&str>(&program, &[]), "done\n");
    each("tests/c/collections.c", done);
    let folder = tempfile::tempdir().unwrap();
    let flags = [
        "-O1",
        "-D_GNU_SOURCE",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover",
    ];
    let source = here("tests/c/collections.c");
    done(compile(
        "gcc",
        Language::C11,
        &source,
        &flags,
        folder.path(),
    ));
}

#[test]
fn the_header_is_c_and_cplusplus() {
    let folder = tempfile::tempdir().unwrap();
    for (language, name) in [
        (Language::C11, "header.c"),
        (Language::Cpp11, "header.cpp"),
        (Language::Cpp20, "header.cpp"),
    ] {
        let source = folder.path().join(name);
        std::fs::write(&source, HEADER_ALONE).unwrap();
        for compiler in compilers(language) {
            let program = compile(compiler, language, &source, &[], folder.path());
            assert_eq!(
                run::<&str>(&program, &[]),
                concat!(env!("CARGO_PKG_VERSION"), "\n")
            );
        }
    }
}

const HEADER_ALONE: &str = r#"
#include <firn/containers.h>
#include <stdio.h>

struct pair { firn_ref left, right[2]; double weight; };
FIRN_TYPE(pair_type, struct pair, "pair", 1, left, right);
struct leaf { double weight; };
FIRN_TYPE_WITHOUT_REFERENCES(leaf_type, struct leaf, "leaf", 1);

int main(void)
{
	printf("%s\n", firn_version());
	return pair_type.field_count == 2 && pair_type.fields[1].bytes == 16 && leaf_type.size == 8 ? 0 : 1;
}
"#;
