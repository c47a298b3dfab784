//! Is the pool mapped at the requested address, and at a different one for each seed?
//!
//! This runs in a process of its own: a pool of another test could take addresses that these tests free.

mod support;

use std::collections::BTreeSet;

use firn_mapped::{Mapped, MappedOptions, Placement};
use firn_media::{Memory, Place, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr};

fn at(seed: u64) -> MappedOptions {
    support::unlogged()
        .capacity(1 << 32)
        .placement(Placement::Random(seed))
}

#[test]
fn another_seed_is_another_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let medium = Mapped::create(&path, FRAME_BYTES, &at(0)).unwrap();
    medium.publish().unwrap();
    medium.store_u64(VirtAddr(16), 7);
    let mut seen = BTreeSet::from([medium.base_address()]);
    drop(medium);
    for seed in 1..16 {
        let medium = Mapped::open(&path, &at(seed)).unwrap();
        assert_eq!(medium.place(VirtAddr(16)).load_u64(0), 7);
        assert!(seen.insert(medium.base_address()), "seed {seed}");
        assert_eq!(medium.base_address() as u64 % CHUNK_BYTES, 0);
    }
}

#[test]
fn the_same_seed_is_the_same_address_while_it_is_free() {
    let first = Mapped::anonymous(FRAME_BYTES, &at(3)).unwrap();
    let address = first.base_address();
    let second = Mapped::anonymous(FRAME_BYTES, &at(3)).unwrap();
    assert_ne!(second.base_address(), address);
    drop(first);
    let third = Mapped::anonymous(FRAME_BYTES, &at(3)).unwrap();
    assert_eq!(third.base_address(), address);
}

#[test]
fn windows_are_aligned_to_huge_pages() {
    for _ in 0..4 {
        let medium = Mapped::anonymous(FRAME_BYTES, &support::unlogged()).unwrap();
        assert_eq!(medium.base_address() as u64 % CHUNK_BYTES, 0);
        assert_eq!(medium.capacity(), MappedOptions::DEFAULT_CAPACITY);
    }
}

/// Two threads open pools again and again: neither's window may ever lie in the other's, even when the kernel refuses a
/// kind of mapping.
#[test]
fn windows_of_threads_stay_apart() {
    const OPENS: u64 = 1_000;
    let folder = tempfile::tempdir().unwrap();
    let churn = |name: u64| {
        let path = folder.path().join(name.to_string());
        let options = support::unlogged();
        Mapped::create(&path, 4 * CHUNK_BYTES, &options)
            .unwrap()
            .publish()
            .unwrap();
        for open in 1..=OPENS {
            let medium = Mapped::open(&path, &options).unwrap();
            let words = (0..4 * CHUNK_BYTES).step_by(FRAME_BYTES as usize * 64);
            words
                .clone()
                .for_each(|at| medium.store_u64(VirtAddr(at), name + open));
            std::thread::yield_now();
            for at in words {
                assert_eq!(medium.load_u64(VirtAddr(at)), name + open, "at {at}");
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| churn(1 << 32));
        scope.spawn(|| churn(2 << 32));
    });
}
