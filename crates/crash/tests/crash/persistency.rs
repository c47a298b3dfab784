//! Does a crash leave exactly the images that the domain allows?

use std::collections::BTreeSet;

use firn_crash::{Crash, CrashOptions, Schedule};
use firn_media::{Domain, MediumExt, Memory, Runtime, Space, Words};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr};

const A: VirtAddr = VirtAddr(0);
const A2: VirtAddr = VirtAddr(8);
const B: VirtAddr = VirtAddr(64);

fn medium(domain: Domain) -> Crash {
    Crash::new(
        1 << 16,
        CrashOptions {
            capacity: 1 << 20,
            ..CrashOptions::with_domain(domain)
        },
    )
}

/// What the addresses may hold after a crash now; the count and the enumeration must agree.
fn outcomes<const N: usize>(crash: &Crash, at: [VirtAddr; N]) -> BTreeSet<[u64; N]> {
    let images: Vec<_> = crash.images().collect();
    assert_eq!(images.len() as u128, crash.image_count());
    let hashes: BTreeSet<u128> = images.iter().map(|image| image.hash()).collect();
    assert_eq!(hashes.len(), images.len(), "an image comes twice");
    images
        .iter()
        .map(|image| at.map(|at| image.load_u64(at)))
        .collect()
}

#[test]
fn unfenced_stores_to_two_lines_persist_in_any_combination() {
    let crash = medium(Domain::Adr);
    crash.store_u64(A, 1);
    crash.store_u64(B, 1);
    assert_eq!(
        outcomes(&crash, [A, B]),
        [[0, 0], [0, 1], [1, 0], [1, 1]].into()
    );
}

#[test]
fn stores_to_one_line_persist_as_a_prefix() {
    let crash = medium(Domain::Adr);
    crash.store_u64(A, 1);
    crash.store_u64(A2, 1);
    assert_eq!(outcomes(&crash, [A, A2]), [[0, 0], [1, 0], [1, 1]].into());
}

#[test]
fn a_write_back_without_a_fence_guarantees_nothing() {
    let crash = medium(Domain::Adr);
    crash.store_u64(A, 1);
    crash.write_back(A, 8);
    assert_eq!(outcomes(&crash, [A]), [[0], [1]].into());
}

#[test]
fn a_fence_without_a_write_back_guarantees_nothing() {
    let crash = medium(Domain::Adr);
    crash.store_u64(A, 1);
    crash.fence();
    assert_eq!(outcomes(&crash, [A]), [[0], [1]].into());
}

#[test]
fn a_write_back_and_a_fence_guarantee_what_was_stored_before_it() {
    let crash = medium(Domain::Adr);
    crash.store_u64(A, 1);
    crash.write_back(A, 8);
    crash.store_u64(A, 2);
    crash.fence();
    assert_eq!(outcomes(&crash, [A]), [[1], [2]].into());
}

#[test]
fn a_compare_exchange_is_no_fence() {
    let crash = medium(Domain::Adr);
    crash.store_u64(A, 1);
    crash.write_back(A, 8);
    assert_eq!(crash.compare_exchange_u64(B, 0, 1), Ok(0));
    assert_eq!(outcomes(&crash, [A, B]).len(), 4);
}

#[test]
fn a_write_back_by_another_thread_counts_for_its_own_fence_only() {
    for fencing_thread_issues in [true, false] {
        let crash = medium(Domain::Adr);
        crash.store_u64(A, 1);
        if !fencing_thread_issues {
            crash.write_back(A, 8);
        }
        let other = crash.clone();
        let job = move || {
            if fencing_thread_issues {
                other.write_back(A, 8);
            }
            other.fence();
        };
        crash
            .run(vec![Box::new(job)], Schedule::Sequential)
            .finished()
            .unwrap();
        let expected: BTreeSet<[u64; 1]> = if fencing_thread_issues {
            [[1]].into()
        } else {
            [[0], [1]].into()
        };
        assert_eq!(outcomes(&crash, [A]), expected);
    }
}

#[test]
fn persistent_caches_lose_nothing_visible() {
    let crash = medium(Domain::Eadr);
    crash.store_u64(A, 1);
    assert_eq!(outcomes(&crash, [A, B]), [[1, 0]].into());
    crash.store_u64(B, 1);
    assert_eq!(outcomes(&crash, [A, B]), [[1, 1]].into());
}

#[test]
fn a_content_that_comes_again_is_counted_once() {
    let crash = medium(Domain::Adr);
    for value in [1, 0, 1, 0] {
        crash.store_u64(A, value);
    }
    assert_eq!(outcomes(&crash, [A]), [[0], [1]].into());
}

#[test]
fn the_death_of_the_process_loses_nothing_and_a_sync_makes_all_durable() {
    let crash = medium(Domain::Process);
    crash.store_u64(A, 1);
    crash.store_u64(B, 1);
    assert_eq!(crash.kill_image().load_u64(B), 1);
    assert_eq!(outcomes(&crash, [A, B]).len(), 4);
    crash.sync().unwrap();
    assert_eq!(outcomes(&crash, [A, B]), [[1, 1]].into());
}

#[test]
fn a_random_image_is_one_of_the_legal_ones() {
    for domain in [Domain::Adr, Domain::Process] {
        let crash = medium(domain);
        for at in [A, A2, B, VirtAddr(4096), A] {
            crash.store_u64(at, at.bytes() + 3);
        }
        let legal: BTreeSet<u128> = crash.images().map(|image| image.hash()).collect();
        let drawn: BTreeSet<u128> = (0..500)
            .map(|seed| crash.random_image(seed).hash())
            .collect();
        assert_eq!(drawn, legal);
    }
}

#[test]
fn the_boot_changes_with_a_power_failure_only() {
    let crash = medium(Domain::Adr);
    let reopened = |image| Crash::from_image(&image, crash.options().clone()).boot_id();
    assert_eq!(reopened(crash.kill_image()), crash.boot_id());
    assert_ne!(reopened(crash.random_image(0)), crash.boot_id());
}

#[test]
fn discarded_lines_are_old_or_zero_until_a_sync() {
    let crash = medium(Domain::Adr);
    crash.store_u64(A, 7);
    crash.persist(A, 8);
    crash.discard(A, 4096).unwrap();
    assert_eq!(crash.load_u64(A), 0);
    assert_eq!(outcomes(&crash, [A]), [[0], [7]].into());
    crash.sync().unwrap();
    assert_eq!(outcomes(&crash, [A]), [[0]].into());
}

#[test]
fn space_runs_out_at_the_limit_and_leaves_everything_as_it_was() {
    let options = CrashOptions {
        capacity: 1 << 20,
        space_limit: 12288,
        ..CrashOptions::default()
    };
    let crash = Crash::new(8192, options);
    assert!(crash.reserve(VirtAddr(8192), 8192).is_err());
    assert_eq!((crash.len(), crash.backed_bytes().unwrap()), (8192, 8192));
    crash.reserve(VirtAddr(8192), 4096).unwrap();
    assert_eq!((crash.len(), crash.backed_bytes().unwrap()), (12288, 12288));
    assert!(crash.reserve(VirtAddr(1 << 20), 4096).is_err());
}

#[test]
#[should_panic(expected = "not reserved again")]
fn storing_into_discarded_space_panics() {
    let crash = medium(Domain::Adr);
    crash.discard(VirtAddr(4096), 4096).unwrap();
    crash.store_u64(VirtAddr(4096), 1);
}

#[test]
fn operations_are_counted() {
    let crash = medium(Domain::Adr);
    crash.store_bytes(A, &[1; 20]);
    crash.write_back(VirtAddr(60), 8);
    crash.fence();
    crash.commit();
    let counts = crash.counts();
    assert_eq!(
        (
            counts.stores,
            counts.write_backs,
            counts.fences,
            counts.commits
        ),
        (3, 2, 1, 1)
    );
    assert_eq!(counts.events, 7);
    crash.reset_counts();
    assert_eq!(crash.counts(), Default::default());
}

#[test]
fn a_locked_instruction_on_a_volatile_word_does_what_its_name_says() {
    let words = medium(Domain::Adr).words(2);
    words.store(1, 0b1100);
    let old = [
        words.fetch_and(1, 0b0110),
        words.fetch_or(1, 0b0011),
        words.fetch_add(1, 2),
        words.swap(1, 5),
    ];
    assert_eq!(old, [0b1100, 0b0100, 0b0111, 0b1001]);
    assert_eq!(words.compare_exchange(1, 4, 9), Err(5));
    assert_eq!(words.compare_exchange(1, 5, 9), Ok(5));
    assert_eq!((words.load(0), words.load(1)), (0, 9));
}

/// Lines beyond the end are in no image: they are removed with the tail, and have no blocks.
#[test]
fn a_truncated_tail_is_in_no_image_and_gives_its_blocks_back() {
    let crash = medium(Domain::Adr);
    let tail = VirtAddr(4 * FRAME_BYTES);
    crash.store_u64(A, 1);
    crash.persist(A, 8);
    crash.store_u64(tail, 7);
    assert_eq!(crash.image_count(), 2);
    crash.truncate(4 * FRAME_BYTES).unwrap();
    assert_eq!(outcomes(&crash, [A, tail]), [[1, 0]].into());
    assert_eq!(crash.backed_bytes().unwrap(), 4 * FRAME_BYTES);
    assert!(!crash.is_dirty(tail));
    crash.reserve(tail, FRAME_BYTES).unwrap();
    assert_eq!(crash.backed_bytes().unwrap(), 5 * FRAME_BYTES);
    assert_eq!(outcomes(&crash, [A, tail]), [[1, 0]].into());
}

#[test]
fn an_image_occupies_the_lines_that_hold_anything() {
    let crash = medium(Domain::Eadr);
    assert_eq!(crash.kill_image().occupied_bytes(), 0);
    for at in [A, A2, B, VirtAddr(4096)] {
        crash.store_u64(at, 1);
    }
    assert_eq!(crash.kill_image().occupied_bytes(), 3 * LINE_BYTES);
    crash.store_u64(B, 0);
    assert_eq!(crash.kill_image().occupied_bytes(), 2 * LINE_BYTES);
}

/// A thread that waits until a time keeps reading the clock, and gets there.
#[test]
fn the_clock_goes_on_with_each_look() {
    let crash = medium(Domain::Adr);
    let looks = [crash.now_ns(), crash.now_ns(), crash.now_ns()];
    assert!(looks[0] < looks[1] && looks[1] < looks[2], "{looks:?}");
}
