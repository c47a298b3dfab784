//! PMDK's own example programs, from Debian's package: do they build unchanged, and answer as with libpmemobj?

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{AT_SAFEPOINTS, BESIDE, NEVER};
use support::{command, compile_pmemobj, compile_with_libpmemobj, here};

/// Where Debian's libpmemobj-dev puts them.
const EXAMPLES: &str = "/usr/share/doc/libpmemobj-dev/examples";
/// Files of the program that takes a kind of map as an argument.
const MAPS: [&str; 12] = [
    "map/map.c",
    "map/map_ctree.c",
    "map/map_btree.c",
    "map/map_rbtree.c",
    "map/map_rtree.c",
    "map/map_skiplist.c",
    "map/map_hashmap_tx.c",
    "tree_map/btree_map.c",
    "tree_map/rbtree_map.c",
    "tree_map/rtree_map.c",
    "list_map/skiplist_map.c",
    "hashmap/hashmap_tx.c",
];
/// Without `ctree`: it stores null OIDs and asks for their objects' types, which stops libpmemobj.
const KINDS: [&str; 5] = ["btree", "rbtree", "rtree", "skiplist", "hashmap_tx"];

/// A program with libpmemobj and with Firn; `None` if the examples are not installed.
fn both(main: &str, others: &[&str], into: &Path) -> Option<[PathBuf; 2]> {
    let examples = Path::new(EXAMPLES);
    let source = examples.join(main);
    if !source.exists() {
        eprintln!(
            "{} is not there: apt-get install libpmemobj-dev",
            source.display()
        );
        return None;
    }
    let ours = here("tests/pmemobj/examples");
    let folders = ["", "map", "tree_map", "list_map", "hashmap"].map(|name| examples.join(name));
    let include = |folder: &Path| format!("-I{}", folder.display());
    // Warnings in their code do not matter here.
    let mut flags = vec![
        "-std=gnu99".to_owned(),
        "-O2".into(),
        "-w".into(),
        include(&ours),
    ];
    flags.extend(folders.iter().map(|folder| include(folder)));
    let path = |name: &&str| match *name {
        "left_out.c" => ours.join(name),
        _ => examples.join(name),
    };
    flags.extend(
        others
            .iter()
            .map(path)
            .map(|path| path.display().to_string()),
    );
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let theirs = compile_with_libpmemobj(&source, &flags, into)?;
    Some([theirs, compile_pmemobj("gcc", &source, &flags, into)])
}

/// A program's output on both streams, and how it ends, with this input.
fn answer(mut command: Command, input: &str) -> String {
    command
        .env("FIRN_ASSUME_PERSISTENT", "adr")
        .env("PMEM_IS_PMEM_FORCE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // The pipe is closed if the program reads nothing.
        let _ = to.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{said}{errors}{}", output.status)
}

/// A folder in memory, if the system has one: moves at each command are synced each time.
fn folder_in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    }
    .unwrap()
}

/// Compares the answers of programs in a course: `run` gets a program's path by its number, and a folder for pools.
fn compare(programs: &[[PathBuf; 2]], run: impl Fn(&[&PathBuf], &Path, &str) -> String) {
    let course = |side: usize, collects| {
        let pools = folder_in_memory();
        let programs: Vec<&PathBuf> = programs.iter().map(|both| &both[side]).collect();
        run(&programs, pools.path(), collects)
    };
    let theirs = course(0, NEVER);
    assert!(theirs.ends_with("exit status: 0"), "{theirs}");
    for collects in [NEVER, BESIDE, AT_SAFEPOINTS] {
        assert_eq!(course(1, collects), theirs, "{collects}");
    }
}

#[test]
fn maps_of_pmdk_answer_as_with_libpmemobj() {
    let folder = tempfile::tempdir().unwrap();
    let others = [&MAPS[..], &["tree_map/ctree_map.c", "left_out.c"]].concat();
    let Some(program) = both("map/mapcli.c", &others, folder.path()) else {
        return;
    };
    for kind in KINDS {
        let mut random = fastrand::Rng::with_seed(7);
        let mut commands = String::new();
        for step in 0..1500 {
            let what = match random.u32(..10) {
                _ if step < 40 => 'i',
                0..5 => 'i',
                5..8 => 'r',
                _ => 'c',
            };
            commands += &format!("{what} {}\n", random.u32(1..=500));
        }
        commands += "p\nq\n";
        compare(
            std::slice::from_ref(&program),
            |programs, pools, collects| {
                let mut command = command(programs[0]);
                command.arg(kind).arg(pools.join("pool")).arg("1");
                command.env("FIRN_COLLECT", collects);
                answer(command, &commands)
            },
        );
    }
}

#[test]
fn small_programs_of_pmdk_answer_as_with_libpmemobj() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["btree.c", "linkedlist/fifo.c"];
    let stores = ["string_store", "string_store_tx", "string_store_tx_type"];
    let mut programs = Vec::new();
    for name in names {
        programs.extend(both(name, &[], folder.path()));
    }
    for store in stores {
        for part in ["writer.c", "reader.c"] {
            // Programs lie under their files' names.
            let folder = folder.path().join(store);
            std::fs::create_dir_all(&folder).unwrap();
            programs.extend(both(&format!("{store}/{part}"), &[], &folder));
        }
    }
    if programs.is_empty() {
        return;
    }
    compare(&programs, |programs, pools, collects| {
        let run = |number: usize, pool: &str, arguments: &[&str], input: &str| {
            let mut command = command(programs[number]);
            command.arg(pools.join(pool)).args(arguments);
            command.env("FIRN_COLLECT", collects);
            answer(command, input)
        };
        let mut told = String::new();
        for key in ["5", "3", "9", "1", "7"] {
            told += &run(0, "btree", &["i", key, &format!("value{key}")], "");
        }
        told += &run(0, "btree", &["p"], "");
        told += &run(0, "btree", &["f", "7"], "");
        for letter in ["a", "b", "c", "d", "e"] {
            told += &run(1, "fifo", &["insert", letter], "");
        }
        told += &run(1, "fifo", &["remove"], "");
        told += &run(1, "fifo", &["print"], "");
        for (number, store) in stores.iter().enumerate() {
            told += &run(2 + 2 * number, store, &[], "words\n");
            told += &run(3 + 2 * number, store, &[], "");
        }
        told
    });
}
