//! Is a full device an error, never a signal?

mod support;

use firn_mapped::{Mapped, MappedError, MappedOptions};
use firn_media::{Medium, MediumError};
use firn_units::{FRAME_BYTES, VirtAddr};
use support::small_file_system::SmallFileSystem;

const STEP_BYTES: u64 = 256 << 10;
const DEVICE_KIB: u64 = 8 << 10;

fn options() -> MappedOptions {
    MappedOptions::default().capacity(1 << 30)
}

fn store_everywhere(medium: &Mapped, from: u64) {
    for at in (from..medium.len()).step_by(8) {
        medium.store_u64(VirtAddr(at), at + 1);
    }
}

fn assert_content(medium: &Mapped) {
    for at in (0..medium.len()).step_by(8) {
        assert_eq!(medium.load_u64(VirtAddr(at)), at + 1, "{at:#x}");
    }
}

/// Grows until there is no space, storing to every word that was granted.
fn fill_up(medium: &Mapped) -> u64 {
    loop {
        let len = medium.len();
        match medium.reserve(VirtAddr(len), STEP_BYTES) {
            Ok(()) => store_everywhere(medium, len),
            Err(refused) => {
                let text = refused.to_string();
                assert!(
                    matches!(
                        refused,
                        MediumError::NoSpace {
                            bytes: STEP_BYTES,
                            ..
                        }
                    ),
                    "{text}"
                );
                assert!(text.contains("pool"), "names the file: {text}");
                return len;
            }
        }
    }
}

/// `device` has room for [`DEVICE_KIB`] besides what it needs for itself.
fn a_full_device_is_an_error(device: Option<SmallFileSystem>) {
    let Some(device) = device else { return };
    let path = device.path().join("pool");
    let medium = support::named(&path, STEP_BYTES, &options());
    store_everywhere(&medium, 0);
    let len = fill_up(&medium);
    assert!(len > DEVICE_KIB << 9, "most of the device was had: {len}");
    assert_eq!(medium.len(), len);
    assert_eq!(
        std::fs::metadata(&path).unwrap().len(),
        len,
        "the file's length is restored"
    );
    medium.sync().unwrap();
    assert_content(&medium);

    // A new pool does not fit either, and leaves nothing behind.
    let second = device.path().join("second");
    let refused = Mapped::create(&second, 4 * STEP_BYTES, &options()).unwrap_err();
    assert!(
        matches!(refused, MappedError::Space(MediumError::NoSpace { .. })),
        "{refused}"
    );
    assert!(!second.exists());

    // A full pool can still give space back, and use it again.
    medium.discard(VirtAddr(0), STEP_BYTES).unwrap();
    assert_eq!(medium.load_u64(VirtAddr(STEP_BYTES - 8)), 0);
    medium.reserve(VirtAddr(0), STEP_BYTES).unwrap();
    store_everywhere(&medium, 0);
    drop(medium);
    assert_content(&Mapped::open(&path, &options()).unwrap());
}

#[test]
fn on_tmpfs() {
    a_full_device_is_an_error(SmallFileSystem::tmpfs(DEVICE_KIB));
}

#[test]
fn on_ext4() {
    // Half of such a small one is its journal.
    a_full_device_is_an_error(SmallFileSystem::image("mkfs.ext4", 2 * DEVICE_KIB));
}

/// ext2 maps blocks one by one and has no call that allocates them.
#[test]
fn on_ext2_which_cannot_allocate_ahead() {
    a_full_device_is_an_error(SmallFileSystem::image("mkfs.ext2", DEVICE_KIB));
}

#[test]
fn filling_holes_by_hand_keeps_what_lies_between_them() {
    let Some(device) = SmallFileSystem::image("mkfs.ext2", DEVICE_KIB) else {
        return;
    };
    let medium = Mapped::create(device.path().join("pool"), 16 * FRAME_BYTES, &options()).unwrap();
    store_everywhere(&medium, 0);
    for frame in [0, 3, 4, 15] {
        medium
            .discard(VirtAddr(frame * FRAME_BYTES), FRAME_BYTES)
            .unwrap();
    }
    let punched = medium.backed_bytes().unwrap();
    medium.reserve(VirtAddr(0), 20 * FRAME_BYTES).unwrap();
    assert!(medium.backed_bytes().unwrap() >= punched + 8 * FRAME_BYTES);
    for frame in 0..20 {
        let at = frame * FRAME_BYTES + 8;
        let zero = [0, 3, 4].contains(&frame) || frame >= 15;
        assert_eq!(
            medium.load_u64(VirtAddr(at)),
            if zero { 0 } else { at + 1 },
            "{frame}"
        );
    }
}

/// Loading from a hole of a mapped file on tmpfs allocates; the window's zeros do not.
#[test]
fn loading_from_discarded_space_of_a_full_tmpfs_reads_zeros() {
    let Some(device) = SmallFileSystem::tmpfs(DEVICE_KIB) else {
        return;
    };
    let medium = Mapped::create(device.path().join("pool"), STEP_BYTES, &options()).unwrap();
    store_everywhere(&medium, 0);
    medium.discard(VirtAddr(0), STEP_BYTES).unwrap();
    let len = fill_up(&medium);
    let rest = medium.backed_bytes().unwrap();
    let ballast = device.path().join("ballast");
    let _ = std::fs::write(&ballast, vec![1; (DEVICE_KIB << 10) as usize]);
    for at in (0..STEP_BYTES).step_by(8) {
        assert_eq!(medium.load_u64(VirtAddr(at)), 0);
    }
    assert_eq!((medium.len(), medium.backed_bytes().unwrap()), (len, rest));
}
