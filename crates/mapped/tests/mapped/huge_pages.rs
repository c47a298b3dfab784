//! Does a pool on tmpfs get huge pages if the kernel has some, and keep its content?

use std::path::Path;

use firn_mapped::{HugePages, Mapped};
use firn_media::{Memory, Space};
use firn_units::{CHUNK_BYTES, VirtAddr};

const CHUNKS: u64 = 16;

fn grown(huge_pages: HugePages) -> (tempfile::TempDir, Mapped) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = crate::support::unlogged()
        .capacity(64 << 20)
        .huge_pages(huge_pages);
    let medium = Mapped::create(folder.path().join("pool"), CHUNK_BYTES, &options).unwrap();
    medium.publish().unwrap();
    for chunk in 1..CHUNKS {
        let at = VirtAddr(chunk * CHUNK_BYTES);
        medium.reserve(at, CHUNK_BYTES).unwrap();
    }
    fill(&medium);
    (folder, medium)
}

fn fill(medium: &Mapped) {
    for at in (0..medium.len()).step_by(512) {
        medium.store_u64(VirtAddr(at), at + 1);
    }
}

fn check(medium: &Mapped, is_zero: impl Fn(u64) -> bool) {
    for at in (0..medium.len()).step_by(512) {
        let expected = if is_zero(at) { 0 } else { at + 1 };
        assert_eq!(medium.load_u64(VirtAddr(at)), expected, "{at:#x}");
    }
}

/// Bytes of the medium that this process has mapped as huge pages.
fn huge_bytes(medium: &Mapped) -> u64 {
    let window = medium.base_address()..medium.base_address() + medium.len() as usize;
    let (mut inside, mut bytes) = (false, 0);
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let start = line.split_once('-').map(|(start, _)| start);
        if let Some(start) = start.and_then(|start| usize::from_str_radix(start, 16).ok()) {
            inside = window.contains(&start);
        } else if inside && let Some(size) = line.strip_prefix("ShmemPmdMapped:") {
            let size = size.trim().trim_end_matches(" kB");
            bytes += size.parse::<u64>().unwrap() << 10;
        }
    }
    bytes
}

/// Whether this kernel gathers pages on demand: Linux 6.1 and later, if built and configured for it.
fn kernel_gathers() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap(), numbers.next().unwrap());
    let setting = Path::new("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    let setting = std::fs::read_to_string(setting).unwrap_or_default();
    version >= (6, 1) && !setting.is_empty() && !setting.contains("[deny]")
}

#[test]
fn a_pool_that_grows_has_huge_pages() {
    let (_folder, medium) = grown(HugePages::Ask);
    let huge = huge_bytes(&medium);
    // Memory may be fragmented, but not all of it at every try.
    assert_eq!(huge > 0, kernel_gathers(), "{huge} bytes");
    check(&medium, |_| false);
}

#[test]
fn none_where_they_are_refused() {
    let (_folder, medium) = grown(HugePages::Refuse);
    assert_eq!(huge_bytes(&medium), 0);
    check(&medium, |_| false);
}

#[test]
fn what_was_discarded_whole_is_huge_again() {
    let (_folder, medium) = grown(HugePages::Ask);
    let half = VirtAddr(CHUNKS / 2 * CHUNK_BYTES);
    medium.discard(half, CHUNKS / 2 * CHUNK_BYTES).unwrap();
    let before = huge_bytes(&medium);
    for chunk in CHUNKS / 2..CHUNKS {
        let at = VirtAddr(chunk * CHUNK_BYTES);
        medium.reserve(at, CHUNK_BYTES).unwrap();
    }
    check(&medium, |at| at >= half.0);
    assert_eq!(huge_bytes(&medium) > before, kernel_gathers());
    fill(&medium);
    check(&medium, |_| false);
}

#[test]
fn a_part_that_has_content_keeps_it() {
    let (_folder, medium) = grown(HugePages::Ask);
    let hole = 3 * CHUNK_BYTES..3 * CHUNK_BYTES + (64 << 10);
    medium.discard(VirtAddr(hole.start), 64 << 10).unwrap();
    medium
        .reserve(VirtAddr(2 * CHUNK_BYTES), 4 * CHUNK_BYTES)
        .unwrap();
    check(&medium, |at| hole.contains(&at));
}

#[test]
fn a_pool_that_is_opened_again_has_them_still() {
    let (folder, medium) = grown(HugePages::Ask);
    drop(medium);
    let options = crate::support::unlogged().capacity(64 << 20);
    let medium = Mapped::open(folder.path().join("pool"), &options).unwrap();
    check(&medium, |_| false);
    assert_eq!(huge_bytes(&medium) > 0, kernel_gathers());
}
