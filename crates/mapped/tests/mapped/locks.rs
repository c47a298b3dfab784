//! Is a pool never open for stores twice?

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use firn_mapped::{Mapped, MappedError, MappedOptions};
use firn_media::{Memory, Space};
use firn_units::{FRAME_BYTES, VirtAddr};

use crate::support;

fn options() -> MappedOptions {
    support::unlogged().capacity(1 << 30)
}

fn assert_in_use(result: Result<Mapped, MappedError>) {
    let refused = result.expect_err("the pool is open already");
    assert!(matches!(refused, MappedError::InUse { .. }), "{refused}");
    assert!(
        refused.to_string().contains("peek"),
        "names the way out: {refused}"
    );
}

fn new_pool(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("pool");
    drop(support::named(&path, FRAME_BYTES, &options()));
    path
}

#[test]
fn a_second_writer_of_the_same_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let first = support::named(&path, FRAME_BYTES, &options());
    assert_in_use(Mapped::open(&path, &options()));
    assert_in_use(Mapped::open_read_only(&path, &options()));
    drop(first);
    let _again = Mapped::open(&path, &options()).unwrap();
    assert_in_use(Mapped::open(&path, &options()));
}

#[test]
fn readers_share_and_keep_writers_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_pool(folder.path());
    let first = Mapped::open_read_only(&path, &options()).unwrap();
    let second = Mapped::open_read_only(&path, &options()).unwrap();
    assert_in_use(Mapped::open(&path, &options()));
    drop((first, second));
    Mapped::open(&path, &options()).unwrap();
}

#[test]
fn one_may_peek_at_a_pool_that_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_pool(folder.path());
    let writer = Mapped::open(&path, &options()).unwrap();
    let peek = Mapped::peek(&path).unwrap();
    writer.store_u64(VirtAddr(8), 7);
    writer.reserve(VirtAddr(FRAME_BYTES), FRAME_BYTES).unwrap();
    writer.store_u64(VirtAddr(FRAME_BYTES), 9);
    assert_eq!(peek.load_u64(VirtAddr(8)), 7);
    assert_eq!(peek.len(), FRAME_BYTES);
    assert_eq!(peek.load_u64(VirtAddr(FRAME_BYTES)), 0);
    assert_eq!(
        Mapped::peek(&path).unwrap().load_u64(VirtAddr(FRAME_BYTES)),
        9
    );
    assert!(!peek.is_writable());
}

#[test]
fn a_process_holds_the_lock_until_it_is_killed() {
    const NAME: &str = "locks::a_process_holds_the_lock_until_it_is_killed";
    if let Some(path) = support::child_pool() {
        let medium = Mapped::open(path, &options()).unwrap();
        medium.store_u64(VirtAddr(16), 7);
        println!("\nopened");
        std::thread::sleep(std::time::Duration::from_secs(60));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = new_pool(folder.path());
    let mut child = support::start_until(support::child(NAME, &path), "opened");
    assert_in_use(Mapped::open(&path, &options()));
    assert_in_use(Mapped::open_read_only(&path, &options()));
    assert_eq!(Mapped::peek(&path).unwrap().load_u64(VirtAddr(16)), 7);
    child.kill().unwrap();
    child.wait().unwrap();
    let medium = Mapped::open(&path, &options()).unwrap();
    assert_eq!(
        medium.load_u64(VirtAddr(16)),
        7,
        "a killed process loses no store"
    );
}

/// Between its fork and its exec a child shares the parent's descriptors, and so its locks.
#[test]
fn a_pool_that_is_closed_while_a_child_starts_can_be_opened_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_pool(folder.path());
    let medium = Mapped::open(&path, &options()).unwrap();
    let (mut forked, tell_forked) = std::io::pipe().unwrap();
    let (hear_opened, mut opened) = std::io::pipe().unwrap();
    let mut command = Command::new("true");
    let wait_before_exec = move || {
        (&tell_forked).write_all(&[0])?;
        (&hear_opened).read_exact(&mut [0])
    };
    // SAFETY: the code between fork and exec only reads and writes pipes.
    unsafe { command.pre_exec(wait_before_exec) };
    let starter = std::thread::spawn(move || command.status().unwrap());
    forked.read_exact(&mut [0]).unwrap();
    drop(medium);
    let again = Mapped::open(&path, &options());
    opened.write_all(&[0]).unwrap();
    assert!(starter.join().unwrap().success());
    again.unwrap();
}
