//! Is bad input an error that names the file, and is the file left alone?

use std::path::Path;

use crate::support;
use crate::support::small_file_system::SmallFileSystem;
use firn_mapped::{Mapped, MappedError};
use firn_media::{Memory, Space};
use firn_units::{FRAME_BYTES, VirtAddr};

/// Opens `path` in all three ways and returns the errors, each of which names it.
fn errors(path: &Path) -> Vec<MappedError> {
    let options = support::unlogged();
    [
        Mapped::open(path, &options),
        Mapped::open_read_only(path, &options),
        Mapped::peek(path),
    ]
    .map(|opened| {
        let refused = opened.expect_err("a bad path");
        let text = refused.to_string();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        refused
    })
    .into()
}

macro_rules! assert_all {
    ($path:expr, $variant:pat) => {
        for refused in errors($path) {
            assert!(matches!(refused, $variant), "{refused:?}");
        }
    };
}

#[test]
fn a_missing_file_or_folder() {
    let folder = tempfile::tempdir().unwrap();
    assert_all!(&folder.path().join("no"), MappedError::NotFound { .. });
    let nowhere = folder.path().join("no/pool");
    assert_all!(&nowhere, MappedError::NotFound { .. });
    let refused = Mapped::create(&nowhere, 1, &support::unlogged()).unwrap_err();
    assert!(matches!(refused, MappedError::NotFound { .. }), "{refused}");
}

#[test]
fn a_directory() {
    let folder = tempfile::tempdir().unwrap();
    assert_all!(folder.path(), MappedError::IsDirectory { .. });
}

#[test]
fn a_device_or_a_pipe() {
    assert_all!(Path::new("/dev/null"), MappedError::NotRegular { .. });
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert_all!(&pipe, MappedError::NotRegular { .. });
}

#[test]
fn an_empty_or_cut_off_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    for len in [0, 1, FRAME_BYTES - 1] {
        let content = vec![7; len as usize];
        std::fs::write(&path, &content).unwrap();
        assert_all!(&path, MappedError::BadLength { .. });
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
    std::fs::write(&path, vec![7; FRAME_BYTES as usize + 1]).unwrap();
    for refused in [
        Mapped::open(&path, &support::unlogged()),
        Mapped::open_read_only(&path, &support::unlogged()),
    ] {
        assert!(matches!(refused, Err(MappedError::BadLength { .. })));
    }
    let peek = Mapped::peek(&path).unwrap();
    assert_eq!(peek.len(), FRAME_BYTES, "it may be growing just now");
}

#[test]
fn a_file_that_is_there_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    std::fs::write(&path, b"precious").unwrap();
    let refused = Mapped::create(&path, 1, &support::unlogged()).unwrap_err();
    assert!(matches!(refused, MappedError::Exists { .. }), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_length_that_no_window_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    for len in [u64::MAX, 1 << 62, (1 << 46) + 1] {
        assert!(Mapped::create(&path, len, &support::unlogged()).is_err());
        assert!(!path.exists(), "nothing is left behind");
        assert!(Mapped::anonymous(len, &support::unlogged()).is_err());
    }
}

#[test]
fn a_file_system_mounted_read_only_is_a_matter_of_permission() {
    let Some(device) = SmallFileSystem::tmpfs(1 << 10) else {
        return;
    };
    let (path, options) = (device.path().join("pool"), support::unlogged());
    drop(support::named(&path, FRAME_BYTES, &options));
    device.forbid_writing();
    let refused = Mapped::open(&path, &options).unwrap_err();
    assert!(
        matches!(refused, MappedError::Permission { .. }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("read-only"), "{refused}");
    let second = Mapped::create(device.path().join("second"), 1, &options).unwrap_err();
    assert!(
        matches!(second, MappedError::Permission { .. }),
        "{second:?}"
    );
    let reader = Mapped::open_read_only(&path, &options).unwrap();
    assert_eq!(reader.load_u64(VirtAddr(0)), 0);
}

#[test]
fn a_length_that_no_process_has_room_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long");
    let ends = (0..18).map(|i| u64::MAX - i);
    let powers = [1 << 47, 1 << 48, 1 << 63].into_iter();
    let around = powers.flat_map(|power: u64| [power - 1, power, power + 1]);
    for len in ends.chain(around) {
        for capacity in [0, 1 << 40, u64::MAX] {
            let options = support::unlogged().capacity(capacity);
            let refused = Mapped::create(&path, len, &options).unwrap_err();
            assert!(
                matches!(refused, MappedError::NoAddressSpace { .. }),
                "{len:#x}: {refused:?}"
            );
            let told = refused.to_string();
            assert!(told.contains(path.to_str().unwrap()), "{told}");
            assert!(!path.exists(), "a file stays behind");
            assert!(Mapped::anonymous(len, &options).is_err());
        }
    }
    // The capacity is only a wish.
    for capacity in [0, 1, u64::MAX] {
        let options = support::unlogged().capacity(capacity);
        let medium = Mapped::anonymous(FRAME_BYTES, &options).unwrap();
        assert!(medium.capacity() >= FRAME_BYTES && medium.capacity().is_power_of_two());
        medium.prefault(VirtAddr(u64::MAX), u64::MAX);
        medium.set_accessible(VirtAddr(u64::MAX), u64::MAX, true);
        medium.populate(VirtAddr(u64::MAX - 7), u64::MAX);
    }
}
