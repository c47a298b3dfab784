//! Does a pool that memory cannot hold have its pages read alone?

use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Space};

/// Whether the system reads the pages around a missing one: of each mapping of the medium's file.
fn reads_around(medium: &Mapped) -> Vec<bool> {
    let window = medium.base_address()..medium.base_address() + medium.len() as usize;
    let (mut inside, mut found) = (false, Vec::new());
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let start = line.split_once('-').map(|(start, _)| start);
        if let Some(start) = start.and_then(|start| usize::from_str_radix(start, 16).ok()) {
            inside = window.contains(&start);
        } else if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
            found.push(!flags.split_whitespace().any(|flag| flag == "rr"));
        }
    }
    found
}

/// Bytes of this computer's memory.
fn memory() -> u64 {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() << 10
}

#[test]
fn pages_are_read_alone_where_memory_cannot_hold_the_pool() {
    let folder = tempfile::tempdir().unwrap();
    let options = MappedOptions::default().domain(Domain::Process);
    let small = Mapped::create(folder.path().join("small"), 4 << 20, &options).unwrap();
    let around = reads_around(&small);
    assert!(!around.is_empty() && around.iter().all(|&around| around));
    // Without blocks: nothing is stored there.
    let bytes = memory().next_multiple_of(2 << 20);
    let large = Mapped::create(folder.path().join("large"), bytes, &options).unwrap();
    let around = reads_around(&large);
    assert!(!around.is_empty() && around.iter().all(|&around| !around));
}
