//! Is bad input an error that names the file and the remedy, with the file left as it was?

use std::process::Stdio;

use firn_format::checksum;
use firn_format::geometry::SUPERBLOCKS;
use firn_format::superblock::{OpenState, StoredDomain};

use crate::support::superblocks::{change_superblock_bytes, change_superblocks};
use crate::support::{Called, Folder, called, command, firn, lines_of};

const ERROR: i32 = 2;

/// Every command on `pool`, the checker last; `copy` writes to `copy`.
fn every_command(pool: &str, copy: &str) -> Vec<(&'static str, Called)> {
    let run = |name, arguments: &[&str]| {
        let output = command(arguments).stdin(Stdio::null()).output().unwrap();
        (name, called(output))
    };
    vec![
        run("get", &["get", pool, "key-000001"]),
        run("scan", &["scan", pool, ""]),
        run("load", &["load", pool]),
        run("delete", &["delete", pool, "key-000001"]),
        run("delete", &["delete", pool, "--fraction", "0.5"]),
        run("copy", &["copy", pool, copy]),
        run("stat", &["stat", pool]),
        run("top", &["top", pool, "--once", "--interval", "0.05"]),
        run("map", &["map", pool, "-o", &format!("{copy}.svg")]),
        run("check", &["check", pool]),
    ]
}

/// Asserts that each command except those in `except` refuses the pool with one of `words`, and that none changes it.
fn assert_refused(folder: &Folder, name: &str, words: &[&str], except: &[&str]) {
    let (pool, copy) = (folder.arg(name), folder.arg("copy"));
    let before = std::fs::read(&pool).ok();
    let defrag = ("defrag", firn(&["defrag", &pool]));
    let churn = ("churn", firn(&["churn", &pool, "--n", "10"]));
    let both = [defrag, churn];
    for (command, called) in every_command(&pool, &copy).into_iter().chain(both) {
        if except.contains(&command) {
            continue;
        }
        let said = format!("{command}: {} {}{}", called.status, called.out, called.err);
        let found = command == "check" && called.status == 1;
        assert!(found || called.status == ERROR, "{said}");
        assert!(said.contains(&pool), "names the file: {said}");
        assert!(words.iter().any(|word| said.contains(word)), "{said}");
    }
    assert!(before == std::fs::read(&pool).ok(), "{name} was changed");
    assert!(!std::path::Path::new(&copy).exists());
}

#[test]
fn truncated_pools() {
    let folder = Folder::new();
    let whole = std::fs::read(folder.pool("whole")).unwrap();
    let last_object = whole.iter().rposition(|&byte| byte != 0).unwrap();
    for len in [
        0,
        1,
        4095,
        4096,
        5000,
        8192,
        12 << 10,
        64 << 10,
        1 << 20,
        14 << 20,
        last_object,
    ] {
        std::fs::write(folder.path("cut"), &whole[..len]).unwrap();
        let words = ["restore", "not a Firn pool", "damaged"];
        // The statistics page of a cut pool may be whole.
        assert_refused(&folder, "cut", &words, &["stat", "top", "map"]);
    }
}

#[test]
fn foreign_files() {
    let folder = Folder::new();
    let program = std::fs::read(env!("CARGO_BIN_EXE_firn")).unwrap();
    let whole_frames = program.len() / 4096 * 4096;
    for content in [
        &b"key\tvalue\n"[..],
        &[0; 4096],
        &vec![0; 20 << 20],
        &program[..whole_frames],
        &[0xff; 8192],
    ] {
        std::fs::write(folder.path("foreign"), content).unwrap();
        let words = ["not a Firn pool; name a pool", "whole frames"];
        assert_refused(&folder, "foreign", &words, &[]);
    }
}

#[test]
fn newer_pools() {
    let folder = Folder::new();
    let pool = folder.pool("newer");
    change_superblock_bytes(&pool, |bytes, _| {
        bytes[8..12].copy_from_slice(&7777u32.to_le_bytes());
        let magic = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let body = bytes.len() - 8;
        let check = checksum(&bytes[..body], magic);
        bytes[body..].copy_from_slice(&check.to_le_bytes());
    });
    assert_refused(&folder, "newer", &["version 7777"], &[]);
}

#[test]
fn pools_of_another_program() {
    let folder = Folder::new();
    let pool = folder.pool("other");
    change_superblocks(&pool, |superblock| superblock.layout = "mail".into());
    let before = std::fs::read(&pool).unwrap();
    for (command, called) in every_command(&pool, &folder.arg("copy")) {
        let said = format!("{command}: {} {}", called.status, called.err);
        if ["stat", "top", "map", "check", "copy"].contains(&command) {
            assert_eq!(called.status, 0, "serves any pool: {said}");
        } else {
            assert_eq!(called.status, ERROR, "{said}");
            assert!(said.contains(&pool) && said.contains("`mail`"), "{said}");
        }
    }
    assert!(before == std::fs::read(&pool).unwrap(), "changed");
}

#[test]
fn pools_with_damaged_superblocks() {
    let folder = Folder::new();
    let pool = folder.pool("damaged");
    change_superblock_bytes(&pool, |bytes, at| {
        if at == SUPERBLOCKS[1] {
            bytes[100] ^= 4;
        }
    });
    assert_eq!(firn(&["check", &pool]).status, 0, "one is enough");
    change_superblock_bytes(&pool, |bytes, _| bytes[150] ^= 1);
    assert_refused(&folder, "damaged", &["superblock"], &[]);
}

#[test]
fn a_pool_that_was_open_when_the_machine_died() {
    let folder = Folder::new();
    let pool = folder.pool("torn");
    let content = firn(&["scan", &pool, ""]).out;
    change_superblocks(&pool, |superblock| {
        superblock.state = OpenState::Open;
        superblock.domain = StoredDomain::Process;
        superblock.boot_id = [7; 16];
    });
    assert_refused(
        &folder,
        "torn",
        &["machine went down"],
        &["stat", "top", "map", "check"],
    );
    let before = std::fs::read(&pool).unwrap();
    let checked = firn(&["check", &pool]);
    // A pool that no open accepts is not sound, whatever is found in it.
    assert_eq!(checked.status, 1, "{}{}", checked.out, checked.err);
    assert_eq!(checked.out.lines().count(), 1, "{}", checked.out);
    assert!(
        checked.out.contains("firn copy --salvage"),
        "{}",
        checked.out
    );
    assert!(checked.err.contains("in memory"), "{}", checked.err);
    let saved = folder.arg("saved");
    let copied = firn(&["copy", "--salvage", &pool, &saved]);
    assert_eq!(copied.status, 0, "{}", copied.err);
    assert_eq!(firn(&["scan", &saved, ""]).out, content);
    assert!(before == std::fs::read(&pool).unwrap());
}

#[test]
fn what_is_no_file() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("directory")).unwrap();
    for (path, word) in [
        (folder.arg("directory"), "directory"),
        ("/dev/null".into(), "regular file"),
        (folder.arg("missing/pool"), "not found"),
    ] {
        for (command, called) in every_command(&path, &folder.arg("copy")) {
            assert_eq!(called.status, ERROR, "{command}");
            assert!(called.err.contains(&path), "{}", called.err);
            assert!(called.err.contains(word), "{}", called.err);
        }
    }
    for reading in ["scan", "stat", "top", "check"] {
        let missing = folder.arg("missing");
        let mut arguments = vec![reading, &missing];
        arguments.extend((reading == "scan").then_some(""));
        let called = firn(&arguments);
        assert_eq!(called.status, ERROR);
        assert!(called.err.contains("not found"), "{}", called.err);
        assert!(!folder.path("missing").exists());
    }
}

#[test]
fn parameters_out_of_range() {
    let folder = Folder::new();
    let pool = folder.pool("pool");
    let before = std::fs::read(&pool).unwrap();
    let (new, missing) = (folder.arg("new"), folder.arg("missing"));
    let long_key = "k".repeat(20_000);
    let long_name = "m".repeat(500);
    for arguments in [
        &["delete", &pool, "--fraction", "2"][..],
        &["delete", &pool, "--fraction=-0.1"],
        &["delete", &pool, "--fraction", "nan"],
        &["delete", &pool, "--fraction", "half"],
        &["delete", &pool, "--fraction", "0.5", "key"],
        &["delete", &pool, "--seed", "-1", "key"],
        &["delete", &pool],
        &["get", &pool],
        &["scan", &pool, "", "--limit", "many"],
        &["scan", &pool, "", "--map", "nobody"],
        &["load", &new, "--max-bytes", "5"],
        &["load", &new, &missing],
        &["load", &new, "--tree", &missing],
        &["load", &new, "file", "--tree", "/usr"],
        &["defrag", &pool, "--target", "0.9"],
        &["defrag", &pool, "--target", "nan"],
        &["defrag", &pool, "--target", "inf"],
        &["defrag", &pool, "--map", "picture.jpg"],
        &["defrag", &missing],
        &["demo", "--kills", "0"],
        &["demo", "--seconds", "0"],
        &["demo", &missing],
        &["demo", "--pool", &pool],
        &["unknown"],
        &[],
    ] {
        let called = called(command(arguments).stdin(Stdio::null()).output().unwrap());
        assert_eq!(
            called.status, ERROR,
            "{arguments:?}: {}{}",
            called.out, called.err
        );
        assert!(!called.err.is_empty());
        assert!(!folder.path("new").exists(), "{arguments:?}");
    }
    for (arguments, status) in [
        (&["get", &pool, &long_key][..], 1),
        (&["delete", &pool, &long_key], 1),
    ] {
        assert_eq!(firn(arguments).status, status);
    }
    assert!(before == std::fs::read(&pool).unwrap() || firn(&["check", &pool]).status == 0);
    assert_eq!(
        firn(&["load", &pool, "/dev/null", "--map", &long_name]).status,
        ERROR
    );
    assert_eq!(
        firn(&["load", &pool, "/dev/null", "--map", ""]).status,
        ERROR
    );
}

#[test]
fn pictures_that_cannot_be() {
    let folder = Folder::new();
    let pool = folder.pool("pool.svg");
    let before = std::fs::read(&pool).unwrap();
    std::fs::create_dir(folder.path("directory.png")).unwrap();
    std::os::unix::fs::symlink(&pool, folder.path("link.png")).unwrap();
    for (picture, word) in [
        ("picture.jpg", "must end in .svg or .png"),
        ("picture", "must end in .svg or .png"),
        ("directory.png", "is a directory"),
        ("pool.svg", "is the pool itself"),
        ("link.png", "is the pool itself"),
        ("missing/picture.svg", "writing the picture failed"),
    ] {
        let picture = folder.arg(picture);
        for order in [
            [&pool, &folder.pool("other")],
            [&folder.pool("other"), &pool],
        ] {
            let called = firn(&["map", order[0], "--beside", order[1], "-o", &picture]);
            assert_eq!((called.status, &*called.out), (ERROR, ""));
            let said = called.err;
            assert!(said.contains(&picture) && said.contains(word), "{said}");
        }
    }
    assert!(before == std::fs::read(&pool).unwrap());
    let missing = folder.arg("missing");
    let picture = folder.arg("picture.svg");
    for pools in [
        &["map", &missing][..],
        &["map", &pool, "--beside", &missing],
    ] {
        let called = firn(&[pools, &["-o", &picture]].concat());
        assert_eq!(called.status, ERROR);
        assert!(called.err.contains("not found"), "{}", called.err);
        assert!(!folder.path("picture.svg").exists());
    }
    assert_eq!(firn(&["map", &pool]).status, ERROR);
}

#[test]
fn lines_that_are_none() {
    let folder = Folder::new();
    let (pool, lines) = (folder.arg("pool"), folder.arg("lines"));
    std::fs::write(&lines, format!("{}no tabulator\n", lines_of(300))).unwrap();
    let loaded = firn(&["load", &pool, &lines]);
    assert_eq!(loaded.status, ERROR);
    assert!(
        loaded
            .err
            .contains(&format!("{lines}:301: the line has no tabulator")),
        "{}",
        loaded.err
    );
    assert_eq!(firn(&["scan", &pool, ""]).out, lines_of(300));
    std::fs::write(&lines, format!("{}\tv\n", "k".repeat(20_000))).unwrap();
    let loaded = firn(&["load", &pool, &lines]);
    assert_eq!(loaded.status, ERROR);
    assert!(loaded.err.contains("too large"), "{}", loaded.err);
    assert_eq!(firn(&["scan", &pool, ""]).out, lines_of(300));
}

#[test]
fn a_loader_that_is_killed_leaves_a_pool_that_says_so_and_goes_on() {
    let folder = Folder::new();
    let pool = folder.pool("pool");
    for command_after in [&["load", &pool][..], &["get", &pool, "key-000001"]] {
        let mut writer = command(&["load", &pool])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        while !firn(&["stat", &pool, "--json"])
            .out
            .contains("\"open\": true")
        {}
        writer.kill().unwrap();
        writer.wait().unwrap();
        let output = command(command_after)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let called = called(output);
        assert_eq!(called.status, 0, "{}", called.err);
        assert!(called.err.contains("was not closed"), "{}", called.err);
    }
    let checked = firn(&["check", &pool]);
    assert_eq!(checked.status, 0, "{}", checked.out);
}

#[test]
fn sizes_are_taken_as_people_write_them() {
    let folder = Folder::new();
    let pool = folder.arg("pool");
    for (size, bytes) in [("64M", 64 << 20), ("67108864", 64 << 20), ("1g", 1 << 30)] {
        let limited = firn(&["load", &pool, "/dev/null", "--max-bytes", size]);
        assert_eq!(limited.status, 0, "{size}: {}", limited.err);
        let limit = firn(&["limit", &pool, size]);
        assert_eq!(limit.status, 0, "{size}: {}", limit.err);
        let stat = firn(&["--json", "stat", &pool]).out;
        let stat: serde_json::Value = serde_json::from_str(&stat).expect("JSON");
        assert_eq!(stat["limit_bytes"], bytes, "{size}");
        std::fs::remove_file(&pool).expect("a pool");
    }
    for size in ["64X", "M", "-1", "99999999999999999999"] {
        let refused = firn(&["load", &pool, "/dev/null", "--max-bytes", size]);
        assert_eq!(refused.status, ERROR, "{size}");
        assert!(refused.err.contains(size), "{}", refused.err);
    }
}

#[test]
fn standard_input_is_no_pool() {
    for command in ["load", "stat", "check", "defrag"] {
        let refused = firn(&[command, "-"]);
        assert_eq!(refused.status, ERROR, "{}", refused.out);
        assert!(refused.err.contains("standard input"), "{}", refused.err);
    }
    assert!(!std::path::Path::new("-").exists());
}

/// What is advised can be done.
#[test]
fn advice_fits_what_is_there() {
    let folder = Folder::new();
    let missing = firn(&["stat", &folder.arg("pool")]).err;
    assert!(missing.contains("create the pool first"), "{missing}");
    for command in ["load", "stat"] {
        let missing = firn(&[command, &folder.arg("folder/pool")]).err;
        assert!(missing.contains("make the folder"), "{missing}");
    }
    std::fs::write(folder.path("text"), "no pool").expect("written");
    let foreign = firn(&["stat", &folder.arg("text")]).err;
    assert!(foreign.contains("check the path"), "{foreign}");
}
