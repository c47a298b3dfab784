//! Do the rest of the contract's operations do what it says?

use std::sync::Arc;

use firn_mapped::{HugePages, Mapped};
use firn_media::{MediumExt, Memory, Runtime, Space, Words};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr};

fn medium() -> Mapped {
    Mapped::anonymous(FRAME_BYTES, &crate::support::unlogged().capacity(1 << 30)).unwrap()
}

#[test]
fn bytes_equal_a_plain_array() {
    let medium = medium();
    let mut model = vec![0u8; FRAME_BYTES as usize];
    for round in 0..4000 {
        let word = medium.random_u64();
        let at = (word % FRAME_BYTES) as usize;
        let len = ((word >> 16) as usize % [16, 300, 4096][round % 3]).min(model.len() - at);
        let range = at..at + len;
        if round % 2 == 0 {
            let mut loaded = vec![1; len];
            medium.load_bytes(VirtAddr(at as u64), &mut loaded);
            assert_eq!(loaded, model[range]);
            let mut appended = vec![2; round % 3];
            medium.append_bytes(VirtAddr(at as u64), len, &mut appended);
            assert_eq!(appended.split_off(round % 3), loaded);
            assert_eq!(appended, vec![2; round % 3]);
        } else {
            let at = at & !7;
            let bytes: Vec<u8> = (0..len).map(|i| (word >> (i % 7 * 8)) as u8).collect();
            medium.store_bytes(VirtAddr(at as u64), &bytes);
            model[at..at + len].copy_from_slice(&bytes);
        }
    }
}

#[test]
fn bytes_that_are_stored_exactly_leave_those_beside_them() {
    let medium = medium();
    for at in 0..24 {
        for len in 0..=24 - at {
            medium.store_bytes(VirtAddr(0), &[7; 24]);
            let stored: Vec<u8> = (1..=len as u8).collect();
            medium.store_exact(VirtAddr(at as u64), &stored);
            let mut model = [7; 24];
            model[at..at + len].copy_from_slice(&stored);
            let mut found = [0; 24];
            medium.load_bytes(VirtAddr(0), &mut found);
            assert_eq!(found, model, "{len} bytes at {at}");
        }
    }
}

/// Each thread counts in its own bytes of one word and loses no count to the others.
#[test]
fn parts_of_a_word_are_stored_beside_each_other() {
    let medium = Arc::new(medium());
    let parts = [(0, 1), (1, 1), (2, 2), (4, 4)];
    std::thread::scope(|scope| {
        for (at, len) in parts {
            let medium = &medium;
            scope.spawn(move || {
                for number in 1..200_000u32 {
                    let stored = &number.to_le_bytes()[..len];
                    medium.store_exact(VirtAddr(at), stored);
                    let mut found = [0; 4];
                    medium.load_bytes(VirtAddr(at), &mut found[..len]);
                    assert_eq!(&found[..len], stored, "byte {at}, number {number}");
                }
            });
        }
    });
}

#[test]
#[should_panic(expected = "no part of a word")]
fn a_part_lies_at_a_multiple_of_its_length() {
    medium().store_part(VirtAddr(6), &[0; 4]);
}

#[test]
fn a_line_takes_the_words_that_are_named() {
    let medium = medium();
    let line = VirtAddr(128);
    let words = core::array::from_fn(|word| word as u64 + 100);
    for mask in 0..=u8::MAX {
        medium.store_bytes(line, &[7; 64]);
        medium.store_line(line, mask, &words);
        for (word, &stored) in words.iter().enumerate() {
            let kept = u64::from_le_bytes([7; 8]);
            let expected = if mask >> word & 1 != 0 { stored } else { kept };
            assert_eq!(
                medium.load_u64(line + word as u64 * 8),
                expected,
                "{mask:#b}"
            );
        }
    }
}

#[test]
fn copies_are_equal_and_end_where_they_should() {
    let medium = medium();
    let source: Vec<u8> = (0..=255).cycle().take(1024).collect();
    medium.store_bytes(VirtAddr(8), &source);
    for words in 0..128 {
        let (to, len) = (VirtAddr(2048), words * 8);
        medium.store_bytes(to, &[7; 1032]);
        medium.copy(VirtAddr(8), to, len);
        let mut copy = [0; 1032];
        medium.load_bytes(to, &mut copy);
        let (copied, behind) = copy.split_at(len as usize);
        assert_eq!(copied, &source[..len as usize]);
        assert!(behind.iter().all(|&byte| byte == 7));
    }
}

#[test]
fn a_word_of_ones_own_is_added_to() {
    let medium = medium();
    let at = VirtAddr(72);
    for (by, expected) in [(5, 5), (u64::MAX, 4), (0, 4)] {
        medium.add_unshared_u64(at, by);
        assert_eq!(medium.load_u64(at), expected);
    }
    assert_eq!(
        (medium.load_u64(VirtAddr(64)), medium.load_u64(VirtAddr(80))),
        (0, 0)
    );
}

#[test]
fn bytes_beyond_the_window_are_zeros() {
    let medium = medium();
    medium.store_bytes(VirtAddr(0), &[7; 64]);
    for at in [medium.capacity() - 20, medium.capacity(), u64::MAX - 5] {
        let (mut loaded, mut appended) = ([1; 40], vec![7]);
        medium.load_bytes(VirtAddr(at), &mut loaded);
        medium.append_bytes(VirtAddr(at), 40, &mut appended);
        assert_eq!(loaded, [0; 40]);
        assert_eq!(appended[1..], [0; 40]);
        assert_eq!(appended[0], 7);
    }
}

#[test]
fn compare_exchange_reports_what_the_word_held() {
    let medium = medium();
    let at = VirtAddr(24);
    assert_eq!(medium.compare_exchange_u64(at, 0, 5), Ok(0));
    assert_eq!(medium.compare_exchange_u64(at, 0, 6), Err(5));
    assert_eq!(medium.update_bits(at, 8, 1), 5);
    assert_eq!(medium.load_u64(at), 12);
}

#[test]
fn words_are_zero_and_do_what_they_say() {
    let medium = medium();
    for count in [0, 1, 7, 8, 1000] {
        let words = medium.words(count);
        assert_eq!(words.len(), count);
        assert!((0..count).all(|index| words.load(index) == 0));
    }
    let words = medium.words(3);
    words.store(2, 6);
    assert_eq!(words.swap(2, 7), 6);
    assert_eq!(words.compare_exchange(2, 6, 8), Err(7));
    assert_eq!(words.compare_exchange(2, 7, 8), Ok(7));
    assert_eq!(words.fetch_add(2, u64::MAX), 8);
    assert_eq!(words.fetch_or(2, 8), 7);
    assert_eq!(words.fetch_and(2, 9), 15);
    assert_eq!((words.load(0), words.load(1), words.load(2)), (0, 0, 9));
    assert!(std::panic::catch_unwind(move || words.load(3)).is_err());
}

#[test]
fn many_words_cost_what_is_used_of_them() {
    const COUNT: usize = 1 << 30;
    let words = medium().words(COUNT);
    words.store(COUNT - 1, 7);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 1 << 20, "{line}");
}

#[test]
fn threads_run_and_report_panics() {
    let medium = Arc::new(medium());
    let inner = Arc::clone(&medium);
    let job = move || {
        assert_eq!(std::thread::current().name(), Some("marker"));
        inner.store_u64(VirtAddr(0), 7);
    };
    let thread = medium.spawn("marker", Box::new(job)).unwrap();
    assert!(medium.join(thread));
    assert_eq!(medium.load_u64(VirtAddr(0)), 7);
    let panics = medium
        .spawn("odd\0name", Box::new(|| panic!("on purpose")))
        .unwrap();
    assert!(!medium.join(panics));
}

#[test]
fn time_goes_on_and_waiting_ends() {
    let medium = medium();
    let start = medium.now_ns();
    for attempt in [0, 63, 64, 255, 256, u32::MAX] {
        medium.pause(attempt);
    }
    assert!(medium.now_ns() > start);
    medium.wait_durable(medium.commit()).unwrap();
}

#[test]
fn the_boot_is_the_same_for_all_and_randomness_is_not() {
    let (one, two) = (medium(), medium());
    assert_eq!(one.boot_id(), two.boot_id());
    assert_ne!(one.boot_id(), [0; 16]);
    assert_ne!(one.random_u64(), two.random_u64());
}

#[test]
fn prefaulting_changes_nothing() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("pool");
    for huge_pages in [HugePages::Ask, HugePages::System, HugePages::Refuse] {
        let options = crate::support::unlogged().huge_pages(huge_pages);
        let medium = Mapped::create(&path, 2 * CHUNK_BYTES, &options).unwrap();
        medium.publish().unwrap();
        medium.store_u64(VirtAddr(8), 7);
        medium.prefault(VirtAddr(0), u64::MAX);
        medium.prefault(VirtAddr(u64::MAX), 1);
        medium.discard(VirtAddr(FRAME_BYTES), FRAME_BYTES).unwrap();
        medium.prefault(VirtAddr(5), 2 * FRAME_BYTES);
        medium.populate(VirtAddr(u64::MAX), 1);
        medium.populate(VirtAddr(5), u64::MAX);
        assert_eq!(medium.load_u64(VirtAddr(8)), 7);
        drop(medium);
        let reader = Mapped::open_read_only(&path, &options).unwrap();
        reader.prefault(VirtAddr(0), reader.len());
        assert_eq!(reader.load_u64(VirtAddr(8)), 7);
        drop(reader);
        std::fs::remove_file(&path).unwrap();
    }
}
