//! Do the C programs compile with both compilers, without a warning, and work as documented?

#[path = "../../../crates/firn/tests/support/superblocks.rs"]
mod superblocks;
mod support;

use std::path::{Path, PathBuf};

use firn_format::superblock::{OpenState, StoredDomain};
use superblocks::change_superblocks;

use support::{AT_SAFEPOINTS, BESIDE, SANITIZED};
use support::{Language, command, compile, compile_pmemobj, compilers};
use support::{here, output, run, run_while};

/// A program compiled by each compiler, with and without optimisation, and with sanitizers; and when objects move.
fn each(name: &str, test: impl Fn(PathBuf, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let source = here(name);
    let plain = compilers(Language::C11)
        .into_iter()
        .flat_map(|compiler| ["-O0", "-O2"].map(|level| (compiler, vec![level])));
    // Clang's sanitizers come in a package of their own.
    for (compiler, mut flags) in plain.chain([("gcc", SANITIZED.to_vec())]) {
        flags.push("-D_GNU_SOURCE");
        let program = compile(compiler, Language::C11, &source, &flags, folder.path());
        for collects in [BESIDE, AT_SAFEPOINTS] {
            test(program.clone(), collects);
        }
    }
}

#[test]
fn a_list_is_still_there_the_next_time() {
    each("examples/list.c", |program, collects| {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("list.firn");
        let pool = pool.to_str().unwrap();
        let run = |arguments: &[&str]| run_while(collects, &program, arguments);
        assert_eq!(run(&[pool, "1", "2", "3"]), "3: 3 2 1\n");
        assert_eq!(run(&[pool, "-4"]), "4: -4 3 2 1\n");
        let refused = output(&program, &["/nowhere/list.firn"]);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(told.contains("/nowhere/list.firn: not found"), "{told}");
    });
}

#[test]
fn a_pool_that_was_open_when_the_machine_died_is_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let list = compile(
        "gcc",
        Language::C11,
        &here("examples/list.c"),
        &["-D_GNU_SOURCE"],
        folder.path(),
    );
    each("tests/c/salvaged.c", |program, _| {
        let folder = tempfile::tempdir().unwrap();
        let [torn, new] = ["torn", "new"].map(|name| folder.path().join(name));
        let [torn, new] = [&torn, &new].map(|path| path.to_str().unwrap());
        assert_eq!(run(&list, &[torn, "1", "2", "3"]), "3: 3 2 1\n");
        change_superblocks(torn, |superblock| {
            superblock.state = OpenState::Open;
            superblock.domain = StoredDomain::Process;
            superblock.boot_id = [7; 16];
        });
        let expected =
            "FIRN_DAMAGED\nnames it\nsalvaged\n4 objects of 64 bytes, 0 losses\nFIRN_EXISTS\n";
        assert_eq!(run(&program, &[torn, new]), expected);
        assert_eq!(run(&list, &[new, "4"]), "4: 4 3 2 1\n");
    });
}

#[test]
fn a_pool_with_a_log_keeps_what_it_has_waited_for() {
    each("tests/c/durable.c", |program, collects| {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("pool");
        let pool = pool.to_str().unwrap();
        assert_eq!(run_while(collects, &program, &[pool]), "done\n");
        assert!(!folder.path().join("pool.firn-log").exists());
    });
}

/// Of a program written for libpmemobj.
#[test]
fn a_pool_has_a_log_where_the_environment_asks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("examples/pmemobj/list.c");
    let program = compile_pmemobj("gcc", &source, &["-O2"], folder.path());
    let pool = folder.path().join("pool");
    let pool = pool.to_str().unwrap();
    let run = |arguments: &[&str], durable: &str| {
        let mut command = command(&program);
        let output = command
            .arg(pool)
            .args(arguments)
            .env("FIRN_DURABLE", durable)
            .output();
        let output = output.unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let told = |lines: &str| (true, lines.to_owned());
    let assert_logged = || {
        let copies = std::cell::RefCell::new(Vec::new());
        change_superblocks(pool, |copy| {
            let read = (copy.generation, copy.domain, copy.state);
            copies.borrow_mut().push(read);
        });
        let newest = copies.into_inner().into_iter().max_by_key(|copy| copy.0);
        let (_, domain, state) = newest.unwrap();
        assert_eq!((domain, state), (StoredDomain::Logged, OpenState::Closed));
        assert!(!folder.path().join("pool.firn-log").exists());
    };
    assert!(!run(&["push", "1"], "yes").0);
    assert_eq!(run(&["push", "1", "2"], "1"), told("2: 2 1\n2 nodes\n"));
    assert_logged();
    // It stays as it was made.
    assert_eq!(run(&["push", "3"], "0"), told("3: 3 2 1\n3 nodes\n"));
    assert_logged();
}

#[test]
fn collections_do_what_their_header_says() {
    each("tests/c/collections.c", |program, collects| {
        assert_eq!(run_while::<&str>(collects, &program, &[]), "done\n");
    });
}

#[test]
fn lengths_offsets_and_positions_at_every_edge_are_refused() {
    each("tests/c/edges.c", |program, collects| {
        assert_eq!(run_while::<&str>(collects, &program, &[]), "done\n");
    });
}

/// Shows that the other tests' programs are really tested in this mode.
#[test]
fn everything_moves_at_the_end_of_an_operation_where_that_is_asked_for() {
    each("tests/c/kept.c", |program, collects| {
        let printed = match collects {
            AT_SAFEPOINTS => "moved\n",
            _ => "stayed\n",
        };
        assert_eq!(run_while::<&str>(collects, &program, &[]), printed);
    });
    let folder = tempfile::tempdir().unwrap();
    let source = here("tests/c/kept.c");
    let program = compile("gcc", Language::C11, &source, &[], folder.path());
    let refused = command(&program).env("FIRN_COLLECT", "often").output();
    let told = String::from_utf8(refused.unwrap().stderr).unwrap();
    assert!(told.contains("`safepoints`, not `often`"), "{told}");
}

/// Versions of one program, by their numbers in its source.
fn versions(folder: &Path, numbers: std::ops::RangeInclusive<u32>) -> Vec<PathBuf> {
    let source = here("tests/c/layouts.c");
    let build = |number| {
        let into = folder.join(format!("{number}"));
        std::fs::create_dir(&into).unwrap();
        let defined = format!("-DPROGRAM={number}");
        compile("gcc", Language::C11, &source, &[&defined, "-O1"], &into)
    };
    numbers.map(build).collect()
}

#[test]
fn a_type_of_another_layout_is_refused_wherever_its_objects_are() {
    let folder = tempfile::tempdir().unwrap();
    let programs = versions(folder.path(), 1..=6);
    let [first, longer, reordered, halves, silent, silent_2] = &programs[..] else {
        panic!("six programs")
    };
    let pool = folder.path().join("pool");
    let pool = pool.to_str().unwrap();
    let with = |program: &PathBuf, what: &str| run(program, &[pool, what]);
    with(first, "write");
    let changed = |said: &str, words: &[&str]| {
        assert!(said.starts_with("FIRN_WRONG_TYPE: "), "{said}");
        for word in words {
            assert!(said.contains(word), "no `{word}` in {said}");
        }
    };
    // In turns: valid calls work after invalid ones.
    for _ in 0..2 {
        let told = ["`item` in version 1", "`seen`", "field `first` of `top`"];
        changed(&with(longer, "read"), &told);
        assert_eq!(with(first, "read"), "45\n");
        changed(&with(reordered, "read"), &["`item` version 1", "`a`"]);
        changed(&with(halves, "read"), &["`item` version 1", "`a`"]);
        changed(&with(halves, "register"), &["`item` version 1", "`a`"]);
        // A reference's type need not be declared; then it is checked when the reference is used.
        assert_eq!(with(silent, "read"), "45\n");
        assert_eq!(with(silent, "register"), "");
        changed(&with(silent_2, "register"), &["`item` in version 1"]);
    }
    assert_eq!(with(longer, "migrate"), "10 10\n");
    assert_eq!(with(longer, "migrate"), "0 0\n");
    assert_eq!(with(longer, "read"), "45\n");
    changed(&with(first, "read"), &["newer than this program's 1"]);
    changed(&with(silent, "register"), &["newer than this program's 1"]);
}

#[test]
fn the_headers_are_c_and_cplusplus() {
    let folder = tempfile::tempdir().unwrap();
    let standards: [(Language, &[&str]); 3] = [
        (
            Language::C11,
            &["-std=c99", "-std=c11", "-std=c17", "-std=gnu17"],
        ),
        (
            Language::Cpp11,
            &["-std=c++11", "-std=c++17", "-std=gnu++17"],
        ),
        (Language::Cpp20, &["-std=c++20"]),
    ];
    // Those for libpmemobj's programs are written as C, whatever language includes them.
    let texts = [
        ("firn", HEADER_ALONE, "-Wold-style-cast"),
        ("pmemobj", PMEMOBJ_ALONE, "-Wno-old-style-cast"),
    ];
    for (name, text, casts) in texts {
        for (language, standards) in standards {
            let (ending, casts) = match language {
                Language::C11 => ("c", None),
                _ => ("cpp", Some(casts)),
            };
            let source = folder.path().join(format!("{name}.{ending}"));
            std::fs::write(&source, text).unwrap();
            let compilers = compilers(language).into_iter();
            for (compiler, standard) in
                compilers.flat_map(|compiler| standards.iter().map(move |it| (compiler, it)))
            {
                let flags: Vec<&str> = [*standard].into_iter().chain(casts).collect();
                let program = compile(compiler, language, &source, &flags, folder.path());
                assert_eq!(
                    run::<&str>(&program, &[]),
                    concat!(env!("CARGO_PKG_VERSION"), "\n")
                );
            }
        }
    }
}

/// Headers that a program may include, in a folder of them.
fn headers(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(here("include").join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).collect()
}

#[test]
fn each_header_can_be_the_first_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let (c, cpp): (Vec<_>, Vec<_>) = [headers(""), headers("firn")]
        .concat()
        .into_iter()
        .partition(|path| path.extension().is_some_and(|ending| ending == "h"));
    assert!(c.len() > 3 && cpp.len() > 2, "{c:?} {cpp:?}");
    for (language, headers, source) in [
        (Language::C11, c, "first.c"),
        (Language::Cpp20, cpp, "first.cpp"),
    ] {
        for header in headers {
            let source = folder.path().join(source);
            let main = "int main(void) { return 0; }";
            let text = format!("#include \"{}\"\n{main}\n", header.display());
            std::fs::write(&source, text).unwrap();
            for compiler in compilers(language) {
                compile(compiler, language, &source, &[], folder.path());
            }
        }
    }
}

const PMEMOBJ_ALONE: &str = r#"
#include <firn/pmemobj.h>
#include <stdio.h>

int main(void)
{
	printf("%s\n", firn_version());
	return OID_IS_NULL(OID_NULL) && pmemobj_check_version(2, 4) == NULL ? 0 : 1;
}
"#;

const HEADER_ALONE: &str = r#"
#include <firn/containers.h>
#include <stdio.h>

struct pair { firn_ref left, right[2]; double weight; };
FIRN_TYPE(pair_type, struct pair, "pair", 1, left, right);
struct leaf { double weight; };
FIRN_TYPE_WITHOUT_REFERENCES(leaf_type, struct leaf, "leaf", 1);
struct a { firn_ref b, any; double weight[2]; };
struct b { firn_ref a, again; };
FIRN_LAYOUT(a_type, struct a, "a", 1, (b, b_type), (any, firn_any), (weight));
FIRN_LAYOUT(b_type, struct b, "b", 1, (a, a_type), (again, b_type));

/* As many members as there may be. */
struct wide {
	uint64_t m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
	m24, m25, m26, m27, m28, m29, m30, m31, m32, m33, m34, m35, m36, m37, m38, m39, m40, m41, m42, m43, m44, m45,
	m46, m47, m48, m49, m50, m51, m52, m53, m54, m55, m56, m57, m58, m59, m60, m61, m62;
	firn_ref last;
};
FIRN_LAYOUT(wide_type, struct wide, "wide", 1, (m0), (m1), (m2), (m3), (m4), (m5), (m6), (m7), (m8), (m9), (m10), (m11), (m12), (m13), (m14), (m15), (m16),
	    (m17), (m18), (m19), (m20), (m21), (m22), (m23), (m24), (m25), (m26), (m27), (m28), (m29), (m30), (m31),
	    (m32), (m33), (m34), (m35), (m36), (m37), (m38), (m39), (m40), (m41), (m42), (m43), (m44), (m45), (m46),
	    (m47), (m48), (m49), (m50), (m51), (m52), (m53), (m54), (m55), (m56), (m57), (m58), (m59), (m60), (m61),
	    (m62),
	    (last, wide_type));

static int is_led_to(void)
{
	const void *first_of_a = a_type.fields, *first_of_b = b_type.fields;
	const firn_member *of_a = FIRN_CAST(const firn_member *, first_of_a), *of_b = FIRN_CAST(const firn_member *, first_of_b);
	return a_type.field_count == FIRN_MEMBERS + 3 && of_a[0].to() == &b_type && of_a[1].to() == NULL &&
	       of_a[2].kind == FIRN_OPAQUE && of_a[2].field.bytes == 16 && of_b[0].to() == &a_type &&
	       of_b[1].to() == &b_type && of_b[1].field.offset == 8;
}

/* Uses each macro once. */
static firn_status use(firn_session *session, const struct a *object)
{
	const struct b *of_b = FIRN_CAST(const struct b *, FIRN_FOLLOW(session, object, b));
	struct leaf leaf;
	firn_ref again = FIRN_LOAD(session, of_b, again);
	leaf.weight = FIRN_LOAD(session, &leaf, weight) + (again.word == 0 ? 1 : 2);
	firn_status stored = FIRN_STORE(session, &leaf, weight, leaf.weight);
	return stored == FIRN_OK ? FIRN_LINK(session, of_b, a, object) : stored;
}

int main(int count, char **arguments)
{
	printf("%s\n", firn_version());
	if (count > 2)
		return use(NULL, NULL) == FIRN_OK && arguments != NULL;
	return pair_type.field_count == 2 && pair_type.fields[1].bytes == 16 && leaf_type.size == 8 &&
			       wide_type.field_count == FIRN_MEMBERS + 64 && is_led_to() ? 0 : 1;
}
"#;
