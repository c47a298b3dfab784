//! Is a full pool or a full disk an error without damage, and can the user continue afterwards?

use crate::support::small_file_system::SmallFileSystem;
use crate::support::{Folder, firn, lines_of};

const ERROR: i32 = 2;

/// Loads until it fails, then deletes, checks, and loads again.
fn fills_up_and_goes_on(folder: &Folder, pool: &str, load: &[&str], word: &str) {
    let lines = folder.arg("many");
    std::fs::write(&lines, lines_of(200_000)).unwrap();
    let loaded = firn(&[&["load", pool, &lines][..], load].concat());
    assert_eq!(loaded.status, ERROR, "{}", loaded.out);
    assert!(
        loaded.err.contains(pool) && loaded.err.contains(word),
        "{}",
        loaded.err
    );
    let content = firn(&["scan", pool, ""]).out;
    assert!(
        lines_of(200_000).starts_with(&content),
        "a prefix, batch by batch"
    );
    assert!(
        content.len() > 1 << 20,
        "most of the space was used: {}",
        content.len()
    );
    assert_eq!(firn(&["check", pool]).status, 0);
    let deleted = firn(&["delete", pool, "--fraction", "0.5"]);
    assert_eq!(deleted.status, 0, "{}", deleted.err);
    std::fs::write(&lines, lines_of(1000)).unwrap();
    let loaded = firn(&[&["load", pool, &lines][..], load].concat());
    assert_eq!(loaded.status, 0, "{}", loaded.err);
    let checked = firn(&["check", pool]);
    assert_eq!(checked.status, 0, "{}{}", checked.out, checked.err);
}

#[test]
fn a_full_pool() {
    let folder = Folder::new();
    let limit = (24 << 20).to_string();
    fills_up_and_goes_on(
        &folder,
        &folder.arg("pool"),
        &["--max-bytes", &limit],
        "full",
    );
}

#[test]
fn a_full_tmpfs() {
    let Some(device) = SmallFileSystem::tmpfs(24 << 10) else {
        return;
    };
    let folder = Folder::new();
    let pool = device.path().join("pool");
    fills_up_and_goes_on(&folder, pool.to_str().unwrap(), &[], "no space left");
}

#[test]
fn a_full_ext4() {
    let Some(device) = SmallFileSystem::image("mkfs.ext4", 40 << 10) else {
        return;
    };
    let folder = Folder::new();
    let pool = device.path().join("pool");
    fills_up_and_goes_on(&folder, pool.to_str().unwrap(), &[], "no space left");
}

#[test]
fn no_room_for_a_new_pool() {
    let Some(device) = SmallFileSystem::tmpfs(1 << 10) else {
        return;
    };
    let folder = Folder::new();
    let (pool, new) = (folder.pool("pool"), device.path().join("new"));
    let new = new.to_str().unwrap();
    let commands: [&[&str]; 3] = [
        &["load", new, "/dev/null"],
        &["copy", &pool, new],
        &["backup", &pool, new],
    ];
    for arguments in commands {
        let refused = firn(arguments);
        assert_eq!(refused.status, ERROR, "{}", refused.out);
        assert!(refused.err.contains("no space left"), "{}", refused.err);
        let left = std::fs::read_dir(device.path()).unwrap().count();
        assert_eq!(left, 0, "{arguments:?} leaves nothing behind");
    }
}

fn blocks_bytes(path: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).expect("a file").blocks() * 512
}

/// The page cache holds the file in pieces larger than a page, and a store to one of them allocates all of it.
fn holes_stay(device: Option<SmallFileSystem>, domain: &str) {
    let Some(device) = device else { return };
    let folder = Folder::new();
    let (path, lines) = (device.path().join("pool"), folder.arg("lines"));
    let pool = path.to_str().expect("text");
    std::fs::write(&lines, lines_of(100_000)).expect("written");
    let run = |arguments: &[&str]| {
        let called = firn(arguments);
        assert_eq!(
            called.status, 0,
            "{arguments:?}: {}{}",
            called.out, called.err
        );
    };
    run(&["load", pool, &lines, "--domain", domain]);
    let loaded = blocks_bytes(&path);
    run(&["delete", pool, "--fraction", "0.9"]);
    run(&["defrag", pool]);
    let packed = blocks_bytes(&path);
    assert!(packed * 2 < loaded, "{loaded} bytes, then {packed}");
    // Another program reads the file, as a backup does.
    std::fs::copy(&path, folder.path("backup")).expect("copied");
    run(&["delete", pool, "--fraction", "0.01"]);
    std::fs::File::open(&path)
        .and_then(|file| file.sync_all())
        .expect("synced");
    let now = blocks_bytes(&path);
    assert!(now <= packed + (4 << 20), "{packed} bytes, then {now}");
    // With no space left on the device every command still ends by itself, and the entries can be read.
    device.fill();
    let before = firn(&["scan", pool, ""]).out;
    for arguments in [
        &["delete", pool, "--fraction", "0.1"][..],
        &["load", pool, &lines],
        &["defrag", pool],
    ] {
        let called = firn(arguments);
        let well = called.status == 0
            || (called.status == ERROR
                && ["no space", "full"]
                    .iter()
                    .any(|word| called.err.contains(word)));
        assert!(well, "{arguments:?}: {} {}", called.status, called.err);
    }
    run(&["check", pool]);
    assert!(!before.is_empty());
}

#[test]
fn holes_that_a_defragmentation_left_stay_on_ext4() {
    holes_stay(SmallFileSystem::image("mkfs.ext4", 160 << 10), "process");
}

#[test]
fn holes_that_a_defragmentation_left_stay_with_a_log() {
    holes_stay(SmallFileSystem::image("mkfs.ext4", 160 << 10), "logged");
}

#[test]
fn holes_that_a_defragmentation_left_stay_on_xfs() {
    holes_stay(SmallFileSystem::image("mkfs.xfs", 400 << 10), "process");
}

#[test]
fn a_file_system_without_a_promise_is_used_where_it_is_asked_for() {
    let Some(device) = SmallFileSystem::image("mkfs.btrfs", 128 << 10) else {
        return;
    };
    let folder = Folder::new();
    let (path, lines) = (device.path().join("pool"), folder.arg("lines"));
    let pool = path.to_str().expect("text");
    std::fs::write(&lines, lines_of(100)).expect("written");
    let refused = firn(&["load", pool, &lines, "--domain", "process"]);
    assert_eq!(refused.status, ERROR, "{}", refused.out);
    assert!(
        refused.err.contains("btrfs") && refused.err.contains("--any-file-system"),
        "{}",
        refused.err
    );
    assert!(!path.exists());
    for arguments in [
        &["load", pool, &lines, "--domain", "process"][..],
        &["delete", pool, "--fraction", "0.5"],
        &["defrag", pool],
    ] {
        let called = firn(&[arguments, &["--any-file-system"]].concat());
        assert_eq!(called.status, 0, "{arguments:?}: {}", called.err);
    }
    let checked = firn(&["check", pool]);
    assert_eq!(
        checked.status, 0,
        "reading needs no promise: {}",
        checked.err
    );
    // No store reaches the file of a pool with a log.
    let durable = device.path().join("durable");
    let loaded = firn(&["load", durable.to_str().expect("text"), &lines]);
    assert_eq!(loaded.status, 0, "{}", loaded.err);
}

/// A disk is full, again and again, while entries are loaded. Whatever a command says, what was there before is there
/// when there is space again, and what it added is a prefix of what it was given.
fn a_disk_fills_up_and_is_emptied(device: Option<SmallFileSystem>) {
    let Some(device) = device else { return };
    let folder = Folder::new();
    let (path, lines) = (device.path().join("pool"), folder.arg("lines"));
    let pool = path.to_str().expect("text");
    let all = lines_of(30_000);
    let mut held = 0;
    let mut refused = 0;
    for round in 1..=6 {
        let give = lines_of(5000 * round);
        std::fs::write(&lines, &give).expect("written");
        if round > 1 {
            device.fill();
        }
        let called = firn(&["load", pool, &lines]);
        let said = called.err.to_lowercase();
        assert!(
            called.status == 0 || (called.status == ERROR && said.contains("no space")),
            "{round}: {} {}",
            called.status,
            called.err
        );
        refused += u64::from(called.status != 0);
        device.empty();
        let checked = firn(&["check", pool]);
        assert_eq!(checked.status, 0, "{}{}", checked.out, checked.err);
        let content = firn(&["scan", pool, ""]).out;
        assert!(all.starts_with(&content), "a prefix of what was given");
        assert!(content.len() >= held, "{round}: something is gone");
        assert!(called.status != 0 || content == give);
        held = content.len();
    }
    assert!(refused > 0 && held > 0, "{refused} refused, {held} bytes");
}

#[test]
fn an_ext4_that_fills_up_loses_nothing() {
    a_disk_fills_up_and_is_emptied(SmallFileSystem::image("mkfs.ext4", 40 << 10));
}

#[test]
fn an_xfs_that_fills_up_loses_nothing() {
    a_disk_fills_up_and_is_emptied(SmallFileSystem::image("mkfs.xfs", 320 << 10));
}

#[test]
fn a_btrfs_that_fills_up_loses_nothing() {
    a_disk_fills_up_and_is_emptied(SmallFileSystem::image("mkfs.btrfs", 128 << 10));
}
