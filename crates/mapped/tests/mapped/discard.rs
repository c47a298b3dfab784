//! Does discarding give space back, and does the range then read as zeros?

use firn_mapped::{Backing, Mapped, MappedOptions};
use firn_media::{Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr};

const LEN: u64 = 6 << 20;
const HOLE: VirtAddr = VirtAddr(1 << 20);
/// One whole chunk, and half of each neighbour.
const HOLE_BYTES: u64 = 4 << 20;

fn options() -> MappedOptions {
    crate::support::unlogged().capacity(64 << 20)
}

fn fill(medium: &Mapped) {
    for at in (0..medium.len()).step_by(8) {
        medium.store_u64(VirtAddr(at), at + 1);
    }
}

/// Discards the middle of a filled pool and looks at every word of it.
fn punch_and_check(medium: &Mapped) {
    fill(medium);
    medium.discard(HOLE, HOLE_BYTES).unwrap();
    for at in (0..LEN).step_by(8) {
        let hole = (HOLE.0..HOLE.0 + HOLE_BYTES).contains(&at);
        let expected = if hole { 0 } else { at + 1 };
        assert_eq!(medium.load_u64(VirtAddr(at)), expected, "{at:#x}");
    }
    assert_eq!(medium.len(), LEN);
}

fn check_file(folder: &str, backing: Backing) {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let path = folder.path().join("pool");
    let medium = Mapped::create(&path, LEN, &options()).unwrap();
    medium.publish().unwrap();
    assert_eq!(medium.backing(), backing);
    let full = medium.backed_bytes().unwrap();
    assert!(full >= LEN, "blocks are allocated before use");
    punch_and_check(&medium);
    let given = match backing {
        Backing::Disk => CHUNK_BYTES,
        _ => HOLE_BYTES,
    };
    assert!(
        medium.backed_bytes().unwrap() <= full - given,
        "after loading from it, too"
    );
    medium.reserve(HOLE, HOLE_BYTES).unwrap();
    assert!(medium.backed_bytes().unwrap() >= LEN);
    fill(&medium);
    drop(medium);
    let medium = Mapped::open(&path, &options()).unwrap();
    assert_eq!(
        medium.load_u64(HOLE),
        HOLE.0 + 1,
        "reserved space reaches the file again"
    );
}

#[test]
fn a_disk_gets_its_blocks_back() {
    check_file(std::env::temp_dir().to_str().unwrap(), Backing::Disk);
}

#[test]
fn a_tmpfs_gets_its_pages_back() {
    check_file("/dev/shm", Backing::Tmpfs);
}

#[test]
fn anonymous_memory_reads_zeros_and_can_be_stored_to_again() {
    let medium = Mapped::anonymous(LEN, &options()).unwrap();
    punch_and_check(&medium);
    medium.reserve(HOLE, HOLE_BYTES).unwrap();
    fill(&medium);
}

#[test]
fn reserving_a_part_of_what_was_discarded_leaves_the_rest() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let medium = Mapped::create(folder.path().join("pool"), LEN, &options()).unwrap();
    fill(&medium);
    medium.discard(HOLE, 8 * FRAME_BYTES).unwrap();
    let before = medium.backed_bytes().unwrap();
    let part = HOLE + 3 * FRAME_BYTES;
    medium.reserve(part, 2 * FRAME_BYTES).unwrap();
    medium.store_u64(part, 7);
    assert_eq!(medium.load_u64(part), 7);
    assert_eq!(medium.load_u64(HOLE), 0);
    assert_eq!(medium.load_u64(part + 2 * FRAME_BYTES), 0);
    assert_eq!(medium.backed_bytes().unwrap(), before + 2 * FRAME_BYTES);
}

#[test]
fn a_range_beyond_the_length_is_cut() {
    let medium = Mapped::anonymous(LEN, &options()).unwrap();
    medium.discard(VirtAddr(LEN), LEN).unwrap();
    medium.discard(VirtAddr(1 << 62), FRAME_BYTES).unwrap();
    assert_eq!(medium.len(), LEN);
}
