//! Is a full device an error, never a signal?
//!
//! This runs in a process of its own: the signal would end other tests of the process, too.

mod support;

use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use firn_mapped::{FileSystems, Mapped, MappedError, MappedOptions};
use firn_media::{MediumError, Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr};
use support::small_file_system::SmallFileSystem;

const STEP_BYTES: u64 = 256 << 10;
const DEVICE_KIB: u64 = 8 << 10;

fn options() -> MappedOptions {
    support::unlogged().capacity(1 << 30)
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

/// Grows until there is no space, and stores to every word that was granted.
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

/// `device` has room for [`DEVICE_KIB`] besides its own metadata.
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
    // Half of such a small file system is its journal.
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
    let medium = Mapped::create(device.path().join("pool"), 3 * CHUNK_BYTES, &options()).unwrap();
    store_everywhere(&medium, 0);
    medium.discard(VirtAddr(CHUNK_BYTES), CHUNK_BYTES).unwrap();
    let punched = medium.backed_bytes().unwrap();
    let part = VirtAddr(CHUNK_BYTES + 3 * FRAME_BYTES);
    medium.reserve(part, FRAME_BYTES).unwrap();
    assert!(medium.backed_bytes().unwrap() >= punched + CHUNK_BYTES);
    for at in (8..3 * CHUNK_BYTES).step_by(FRAME_BYTES as usize) {
        let zero = (CHUNK_BYTES..2 * CHUNK_BYTES).contains(&at);
        assert_eq!(
            medium.load_u64(VirtAddr(at)),
            if zero { 0 } else { at + 1 },
            "{at:#x}"
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

const CHUNKS: u64 = 16;

/// The smallest devices that xfs and btrfs accept.
fn disk(mkfs: &str) -> Option<SmallFileSystem> {
    let kib = match mkfs {
        "mkfs.xfs" => 300 << 10,
        "mkfs.btrfs" => 128 << 10,
        _ => 64 << 10,
    };
    SmallFileSystem::image(mkfs, kib)
}

/// Every second chunk is discarded, and a part of each other chunk.
fn with_holes(path: &Path) -> Mapped {
    let medium = support::named(path, CHUNKS * CHUNK_BYTES, &options());
    store_everywhere(&medium, 0);
    for chunk in 0..CHUNKS {
        let start = VirtAddr(chunk * CHUNK_BYTES);
        let given = match chunk % 2 {
            0 => medium.discard(start + 16 * FRAME_BYTES, 32 * FRAME_BYTES),
            _ => medium.discard(start, CHUNK_BYTES),
        };
        given.unwrap();
    }
    medium.sync().unwrap();
    medium
}

fn is_given_back(frame: u64) -> bool {
    let frames = CHUNK_BYTES / FRAME_BYTES;
    frame / frames % 2 != 0 || (16..48).contains(&(frame % frames))
}

fn store_to_each_frame(medium: &Mapped) {
    for frame in (0..medium.len() / FRAME_BYTES).filter(|&frame| !is_given_back(frame)) {
        let at = VirtAddr(frame * FRAME_BYTES);
        medium.store_u64(at, at.0 + 1);
    }
    medium.sync().unwrap();
}

/// The kernel reads ahead for a sequential reader, in folios that span blocks and holes. Nobody has the file open.
fn read_as_another_program_does(path: &Path) {
    let mut file = std::fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: the call takes only numbers and changes no content.
    let gone = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(gone, 0);
    std::io::copy(&mut file, &mut std::io::sink()).unwrap();
}

fn stores_to_blocks_take_no_others(mkfs: &str) {
    /// Bytes by which the file's extent tree may grow.
    const TREE_BYTES: u64 = 64 << 10;
    let Some(device) = disk(mkfs) else { return };
    let path = device.path().join("pool");
    let medium = with_holes(&path);
    let held = medium.backed_bytes().unwrap();
    assert!(
        held <= CHUNKS / 2 * CHUNK_BYTES + TREE_BYTES,
        "holes are there"
    );
    store_to_each_frame(&medium);
    drop(medium);
    read_as_another_program_does(&path);
    let medium = Mapped::open(&path, &options()).unwrap();
    store_to_each_frame(&medium);
    let now = medium.backed_bytes().unwrap();
    assert!(now <= held + TREE_BYTES, "{held}, then {now} bytes");
    drop(medium);
    // On a full device these stores raise no signal, and a reservation is refused.
    device.fill();
    read_as_another_program_does(&path);
    let medium = Mapped::open(&path, &options()).unwrap();
    store_to_each_frame(&medium);
    let refused = medium.reserve(VirtAddr(CHUNK_BYTES), FRAME_BYTES);
    assert!(
        matches!(refused, Err(MediumError::NoSpace { .. })),
        "{refused:?}"
    );
    drop(medium);
    store_to_each_frame(&Mapped::open(&path, &options()).unwrap());
}

#[test]
fn stores_to_allocated_blocks_take_no_others_on_ext4() {
    stores_to_blocks_take_no_others("mkfs.ext4");
}

#[test]
fn stores_to_allocated_blocks_take_no_others_on_xfs() {
    stores_to_blocks_take_no_others("mkfs.xfs");
}

/// xfs wants as much space as a range is long, even where it has its blocks.
fn a_range_needs_space_for_its_holes_alone(mkfs: &str) {
    let Some(device) = disk(mkfs) else { return };
    let path = device.path().join("pool");
    let medium = support::named(&path, CHUNKS * CHUNK_BYTES, &options());
    store_everywhere(&medium, 0);
    device.fill();
    let all = || medium.reserve(VirtAddr(0), medium.len());
    all().unwrap();
    medium.discard(VirtAddr(CHUNK_BYTES), CHUNK_BYTES).unwrap();
    all().unwrap();
    store_everywhere(&medium, 0);
    medium.sync().unwrap();
    let more = medium.reserve(VirtAddr(medium.len()), CHUNK_BYTES);
    assert!(matches!(more, Err(MediumError::NoSpace { .. })), "{more:?}");
}

#[test]
fn a_range_needs_space_for_its_holes_alone_on_ext4() {
    a_range_needs_space_for_its_holes_alone("mkfs.ext4");
}

#[test]
fn a_range_needs_space_for_its_holes_alone_on_xfs() {
    a_range_needs_space_for_its_holes_alone("mkfs.xfs");
}

/// Older versions leave such holes, and so do programs that copy sparsely.
fn holes_beside_blocks_are_filled_when_the_file_is_opened(mkfs: &str) {
    use std::os::unix::fs::FileExt;
    let Some(device) = disk(mkfs) else { return };
    let path = device.path().join("pool");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(CHUNKS * CHUNK_BYTES).unwrap();
    for chunk in (0..CHUNKS).step_by(2) {
        for at in [chunk * CHUNK_BYTES, chunk * CHUNK_BYTES + CHUNK_BYTES / 2] {
            file.write_all_at(&[7; 100], at).unwrap();
        }
    }
    file.sync_all().unwrap();
    let ballast = device.path().join("ballast-0");
    drop(file);
    let before = std::fs::read(&path).unwrap();
    // The open is refused if there is no room for the blocks.
    device.fill();
    let refused = Mapped::open(&path, &options()).unwrap_err();
    assert!(
        matches!(refused, MappedError::Space(MediumError::NoSpace { .. })),
        "{refused:?}"
    );
    assert!(std::fs::read(&path).unwrap() == before);
    std::fs::remove_file(ballast).unwrap();
    let medium = Mapped::open(&path, &options()).unwrap();
    let held = medium.backed_bytes().unwrap();
    assert!(held >= CHUNKS / 2 * CHUNK_BYTES && held < CHUNKS * CHUNK_BYTES);
    device.fill();
    for at in (0..CHUNKS).step_by(2).flat_map(|chunk| {
        let start = chunk * CHUNK_BYTES;
        (start..start + CHUNK_BYTES).step_by(FRAME_BYTES as usize)
    }) {
        medium.store_u64(VirtAddr(at), 9);
    }
    medium.sync().unwrap();
}

#[test]
fn holes_beside_blocks_are_filled_on_ext4() {
    holes_beside_blocks_are_filled_when_the_file_is_opened("mkfs.ext4");
}

#[test]
fn holes_beside_blocks_are_filled_on_xfs() {
    holes_beside_blocks_are_filled_when_the_file_is_opened("mkfs.xfs");
}

/// A store to a block that two files share needs a new one.
#[test]
fn blocks_that_a_copy_shares_are_its_own_once_it_is_opened() {
    let Some(device) = disk("mkfs.xfs") else {
        return;
    };
    let (path, copy) = (device.path().join("pool"), device.path().join("copy"));
    drop(with_holes(&path));
    let copied = Command::new("cp")
        .arg("--reflink=always")
        .args([&path, &copy])
        .status();
    assert!(copied.unwrap().success());
    let medium = Mapped::open(&copy, &options()).unwrap();
    device.fill();
    store_to_each_frame(&medium);
    drop(medium);
    store_to_each_frame(&Mapped::open(&path, &options()).unwrap());
}

#[test]
fn a_file_system_that_promises_nothing_is_refused_unless_it_is_asked_for() {
    let Some(device) = disk("mkfs.btrfs") else {
        return;
    };
    let path = device.path().join("pool");
    let refused = Mapped::create(&path, FRAME_BYTES, &options()).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, MappedError::NoPromise { .. }), "{text}");
    for word in ["pool", "btrfs", "new blocks", "SIGBUS", "--any-file-system"] {
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(std::fs::read_dir(device.path()).unwrap().count(), 0);
    let any = options().file_systems(FileSystems::Any);
    let medium = support::named(&path, 2 * CHUNK_BYTES, &any);
    store_everywhere(&medium, 0);
    drop(medium);
    let refused = Mapped::open(&path, &options()).unwrap_err();
    assert!(
        matches!(refused, MappedError::NoPromise { .. }),
        "{refused}"
    );
    assert_content(&Mapped::open(&path, &any).unwrap());
    assert_content(&Mapped::open_read_only(&path, &options()).unwrap());
}
