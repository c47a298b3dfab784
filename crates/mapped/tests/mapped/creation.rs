//! Does a file appear whole or not at all, and can it be created after a killed process left a draft?

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Barrier;

use firn_mapped::{Mapped, MappedError, MappedOptions, write_whole};
use firn_media::{MediumError, Memory, Space};
use firn_units::{FRAME_BYTES, VirtAddr};

use crate::support;

fn options() -> MappedOptions {
    support::unlogged().capacity(1 << 30)
}

fn create(path: &Path) -> Result<Mapped, MappedError> {
    Mapped::create(path, FRAME_BYTES, &options())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_file_has_its_name_when_it_is_published_and_its_lock_all_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let medium = create(&path).unwrap();
    medium.store_u64(VirtAddr(8), 7);
    assert!(!path.exists());
    let second = create(&path).unwrap_err();
    assert!(
        matches!(second, MappedError::BeingCreated { .. }),
        "{second}"
    );
    assert!(second.to_string().contains("exists"), "{second}");
    medium.publish().unwrap();
    assert_eq!(names(folder.path()), ["pool"]);
    let other = Mapped::open(&path, &options()).unwrap_err();
    assert!(matches!(other, MappedError::InUse { .. }), "{other}");
    medium.publish().unwrap();
    drop(medium);
    let medium = Mapped::open(&path, &options()).unwrap();
    assert_eq!(medium.load_u64(VirtAddr(8)), 7);
}

#[test]
fn what_is_dropped_before_it_is_published_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    drop(create(&folder.path().join("pool")).unwrap());
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_file_that_came_meanwhile_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let medium = create(&path).unwrap();
    std::fs::write(&path, b"precious").unwrap();
    let refused = medium.publish().unwrap_err();
    assert!(matches!(refused, MediumError::Exists { .. }), "{refused}");
    drop(medium);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    assert_eq!(names(folder.path()), ["pool"]);
}

#[test]
fn what_a_killed_process_was_making_is_taken_over() {
    const NAME: &str = "creation::what_a_killed_process_was_making_is_taken_over";
    if let Some(path) = support::child_pool() {
        let _medium = create(&path).unwrap();
        println!("\nmaking");
        std::thread::sleep(std::time::Duration::from_secs(60));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let mut child = support::start_until(support::child(NAME, &path), "making");
    let refused = create(&path).unwrap_err();
    assert!(
        matches!(refused, MappedError::BeingCreated { .. }),
        "{refused}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(folder.path()), [".pool.firn-new"], "it was left");
    create(&path).unwrap().publish().unwrap();
    assert_eq!(names(folder.path()), ["pool"]);
}

/// The draft left behind may be the pool itself under a second name, on file systems that cannot rename without
/// replacing.
#[test]
fn a_second_name_of_a_pool_is_removed_and_the_pool_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    create(&path).unwrap().publish().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    std::fs::hard_link(&path, folder.path().join(".pool.firn-new")).unwrap();
    std::fs::rename(&path, &elsewhere).unwrap();
    let before = std::fs::read(&elsewhere).unwrap();
    create(&path).unwrap().publish().unwrap();
    assert_eq!(std::fs::read(&elsewhere).unwrap(), before);
    assert_eq!(names(folder.path()), ["elsewhere", "pool"]);
}

#[test]
fn of_many_that_make_one_file_at_once_one_wins() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 60;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let start = Barrier::new(THREADS);
    let make = || {
        let mut won = 0;
        for _ in 0..ROUNDS {
            start.wait();
            // The winner keeps its pool open until all have tried; a loser drops its own here, and with it the file.
            let _winner = match create(&path) {
                Ok(medium) => match medium.publish() {
                    Ok(()) => {
                        won += 1;
                        Some(medium)
                    }
                    Err(MediumError::Exists { .. }) => None,
                    Err(other) => panic!("{other}"),
                },
                Err(MappedError::Exists { .. } | MappedError::BeingCreated { .. }) => None,
                Err(other) => panic!("{other}"),
            };
            if start.wait().is_leader() {
                std::fs::remove_file(&path).expect("somebody won");
                assert!(names(folder.path()).is_empty(), "nothing else is left");
            }
        }
        won
    };
    let won: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(make)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(won, ROUNDS);
}

#[test]
fn names_of_any_length_that_files_have() {
    let folder = tempfile::tempdir().unwrap();
    let long = |last: &str| folder.path().join("x".repeat(254) + last);
    // The names differ in the part that is cut off.
    let (one, two) = (create(&long("1")).unwrap(), create(&long("2")).unwrap());
    one.publish().unwrap();
    two.publish().unwrap();
    assert_eq!(names(folder.path()).len(), 2);
    let refused = create(&long("34")).unwrap_err().to_string();
    assert!(refused.contains("too long"), "{refused}");
    for bad in ["", ".."] {
        assert!(create(&folder.path().join(bad)).is_err());
    }
    assert!(create(Path::new("")).is_err());
    let as_folder = folder.path().join("new/");
    assert!(matches!(
        create(&as_folder),
        Err(MappedError::IsDirectory { .. })
    ));
}

#[test]
fn a_file_of_zeros_is_replaced_and_any_other_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let over = || Mapped::create_over(&path, FRAME_BYTES, &options().mode(0o640));
    assert!(matches!(over(), Err(MappedError::NotFound { .. })));
    std::fs::File::create(&path)
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let medium = over().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 30);
    assert!(matches!(over(), Err(MappedError::InUse { .. })));
    medium.store_u64(VirtAddr(0), 7);
    medium.publish().unwrap();
    let there = std::fs::metadata(&path).unwrap();
    assert_eq!(there.len(), FRAME_BYTES);
    assert_eq!(there.permissions().mode() & 0o777, 0o640);
    drop(medium);
    assert!(matches!(over(), Err(MappedError::Exists { .. })));
    assert_eq!(names(folder.path()), ["pool"]);
}

#[test]
fn an_ordinary_file_is_replaced_in_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("page"), folder.path().join("link"));
    write_whole(&path, b"old").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("page", &link).unwrap();
    // A program that has the old file open goes on reading it.
    let reader = std::fs::File::open(&path).unwrap();
    // A draft that a killed process left does not get in the way.
    std::fs::write(folder.path().join(".page.firn-new"), b"half").unwrap();
    write_whole(&link, b"new").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(std::io::read_to_string(reader).unwrap(), "old");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(names(folder.path()), ["link", "page"]);
    write_whole(Path::new("/dev/null"), b"x").unwrap();
    assert!(write_whole(folder.path(), b"x").is_err());
}
