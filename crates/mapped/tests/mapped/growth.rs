//! Does growing and shrinking keep content and addresses?

use std::sync::atomic::{AtomicBool, Ordering};

use firn_mapped::{Mapped, MappedOptions};
use firn_media::{MediumError, Memory, Place, Space};
use firn_units::{FRAME_BYTES, VirtAddr};

const CAPACITY: u64 = 64 << 20;

fn options() -> MappedOptions {
    crate::support::unlogged().capacity(CAPACITY)
}

/// Runs `test` on a file on a disk, a file on tmpfs, and anonymous memory.
fn on_every_backing(test: impl Fn(Mapped)) {
    for folder in [std::env::temp_dir(), "/dev/shm".into()] {
        let folder = tempfile::tempdir_in(folder).unwrap();
        test(Mapped::create(folder.path().join("pool"), FRAME_BYTES, &options()).unwrap());
    }
    test(Mapped::anonymous(FRAME_BYTES, &options()).unwrap());
}

#[test]
fn growth_keeps_content_and_addresses() {
    on_every_backing(|medium| {
        let place = medium.place(VirtAddr(64));
        medium.store_u64(VirtAddr(64), 7);
        let mut len = medium.len();
        while len < CAPACITY {
            medium.reserve(VirtAddr(len), len).unwrap();
            assert_eq!(medium.len(), 2 * len);
            assert_eq!(medium.load_u64(VirtAddr(len)), 0);
            medium.store_u64(VirtAddr(2 * len - 8), len);
            len *= 2;
        }
        assert_eq!(place.load_u64(0), 7);
        assert_eq!(medium.address(place), VirtAddr(64));
        let mut len = FRAME_BYTES;
        while len < CAPACITY {
            assert_eq!(medium.load_u64(VirtAddr(2 * len - 8)), len);
            len *= 2;
        }
    });
}

#[test]
fn reserving_again_keeps_content() {
    on_every_backing(|medium| {
        medium.store_u64(VirtAddr(8), 7);
        medium.reserve(VirtAddr(0), 4 * FRAME_BYTES).unwrap();
        medium.reserve(VirtAddr(0), FRAME_BYTES).unwrap();
        assert_eq!(medium.load_u64(VirtAddr(8)), 7);
        assert_eq!(medium.len(), 4 * FRAME_BYTES);
    });
}

#[test]
fn a_range_beyond_the_end_grows_the_medium_to_it() {
    on_every_backing(|medium| {
        medium.reserve(VirtAddr(1 << 20), FRAME_BYTES).unwrap();
        assert_eq!(medium.len(), (1 << 20) + FRAME_BYTES);
        medium.store_u64(VirtAddr(1 << 20), 7);
        assert_eq!(medium.load_u64(VirtAddr(1 << 19)), 0);
        assert_eq!(medium.load_u64(VirtAddr(1 << 20)), 7);
    });
}

#[test]
fn the_window_is_the_end_of_growth() {
    on_every_backing(|medium| {
        assert_eq!(medium.capacity(), CAPACITY);
        for (at, len) in [
            (CAPACITY, FRAME_BYTES),
            (0, 2 * CAPACITY),
            (1 << 63, 1 << 63),
        ] {
            let refused = medium.reserve(VirtAddr(at), len).unwrap_err();
            assert!(
                matches!(refused, MediumError::BeyondCapacity { .. }),
                "{refused}"
            );
        }
        assert_eq!(medium.len(), FRAME_BYTES);
    });
}

#[test]
fn a_truncated_tail_reads_zeros_and_comes_back_as_zeros() {
    on_every_backing(|medium| {
        let tail = VirtAddr(FRAME_BYTES);
        medium.reserve(tail, FRAME_BYTES).unwrap();
        medium.store_u64(VirtAddr(0), 5);
        medium.store_u64(tail, 7);
        medium.truncate(FRAME_BYTES).unwrap();
        assert_eq!((medium.len(), medium.load_u64(tail)), (FRAME_BYTES, 0));
        assert_eq!(medium.load_u64(VirtAddr(0)), 5);
        medium.reserve(tail, FRAME_BYTES).unwrap();
        assert_eq!(medium.load_u64(tail), 0);
        medium.store_u64(tail, 9);
        assert_eq!(medium.load_u64(tail), 9);
        medium.truncate(4 * FRAME_BYTES).unwrap();
        assert_eq!(medium.len(), 2 * FRAME_BYTES, "truncating never grows");
    });
}

#[test]
fn others_load_and_store_while_the_medium_grows_and_shrinks() {
    on_every_backing(|medium| {
        let stop = AtomicBool::new(false);
        let (medium, stop) = (&medium, &stop);
        std::thread::scope(|scope| {
            for word in 0..2 {
                scope.spawn(move || {
                    let at = VirtAddr(8 * word);
                    let mut count = 0;
                    while !stop.load(Ordering::Relaxed) {
                        assert_eq!(medium.load_u64(at), count);
                        count += 1;
                        medium.store_u64(at, count);
                        let beyond = medium.load_u64(VirtAddr(count * 4096 % CAPACITY + 2048));
                        assert_eq!(beyond, 0);
                    }
                });
            }
            let growers = [(1, 32), (33, 32)].map(|(first, count)| {
                scope.spawn(move || {
                    for frame in (first..first + count).cycle().take(400) {
                        let at = VirtAddr(frame * FRAME_BYTES);
                        medium.reserve(at, FRAME_BYTES).unwrap();
                        if frame % 7 == 0 {
                            medium.discard(at, FRAME_BYTES).unwrap();
                        }
                        if frame == 40 {
                            medium.truncate(FRAME_BYTES).unwrap();
                        }
                    }
                })
            });
            growers
                .into_iter()
                .for_each(|grower| grower.join().unwrap());
            stop.store(true, Ordering::Relaxed);
        });
    });
}
