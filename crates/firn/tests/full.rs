//! Is a full pool or a full disk an error that costs nothing, and can one go on after it?

mod support;

use support::small_file_system::SmallFileSystem;
use support::{Folder, firn, lines_of};

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
    for arguments in [&["load", new, "/dev/null"][..], &["copy", &pool, new]] {
        let refused = firn(arguments);
        assert_eq!(refused.status, ERROR, "{}", refused.out);
        assert!(refused.err.contains("no space left"), "{}", refused.err);
        let left = std::fs::read_dir(device.path()).unwrap().count();
        assert_eq!(left, 0, "{arguments:?} leaves nothing behind");
    }
}
