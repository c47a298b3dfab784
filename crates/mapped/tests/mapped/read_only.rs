//! Does a read-only open keep every store away from the file?

use std::panic::{AssertUnwindSafe, catch_unwind};

use firn_mapped::Mapped;
use firn_media::{Domain, MediumError, Memory, Space};
use firn_units::{FRAME_BYTES, VirtAddr};

fn message(refused: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(refused)).expect_err("the store was refused");
    panic.downcast_ref::<String>().unwrap().clone()
}

fn assert_read_only(medium: &Mapped) {
    let at = VirtAddr(8);
    assert!(!medium.is_writable());
    assert!(message(|| medium.store_u64(at, 9)).contains("open for reading"));
    assert!(message(|| medium.store_bytes(at, &[9])).contains("open for reading"));
    assert!(message(|| medium.store_line(at, 1, &[9; 8])).contains("open for reading"));
    assert!(message(|| medium.copy(VirtAddr(0), at, 8)).contains("open for reading"));
    assert!(message(|| medium.add_unshared_u64(at, 9)).contains("open for reading"));
    assert!(message(|| _ = medium.compare_exchange_u64(at, 7, 9)).contains("open for reading"));
    for refused in [
        medium.reserve(VirtAddr(0), FRAME_BYTES),
        medium.discard(VirtAddr(0), FRAME_BYTES),
        medium.truncate(0),
    ] {
        assert!(matches!(refused, Err(MediumError::ReadOnly { .. })));
    }
    medium.sync().unwrap();
    medium.write_back(at, 8);
    medium.fence();
    assert_eq!(medium.load_u64(at), 7);
}

#[test]
fn stores_are_refused_and_the_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = crate::support::unlogged().domain(Domain::Adr);
    let medium = Mapped::create(&path, FRAME_BYTES, &options).unwrap();
    medium.publish().unwrap();
    medium.store_u64(VirtAddr(8), 7);
    drop(medium);
    let before = std::fs::read(&path).unwrap();
    assert_read_only(&Mapped::open_read_only(&path, &options).unwrap());
    assert_read_only(&Mapped::peek(&path).unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn stores_out_of_reach_are_refused() {
    let medium = Mapped::anonymous(FRAME_BYTES, &crate::support::unlogged()).unwrap();
    for at in [FRAME_BYTES, FRAME_BYTES - 4, u64::MAX - 7, u64::MAX, 12] {
        let text = message(|| medium.store_u64(VirtAddr(at), 1));
        assert!(text.contains("no word"), "{text}");
    }
    let at = VirtAddr(FRAME_BYTES - 16);
    medium.store_bytes(at, &[1; 16]);
    assert!(message(|| medium.store_bytes(at, &[2; 17])).contains("no word"));
    assert_eq!(
        medium.load_u64(at),
        0x0101_0101_0101_0101,
        "nothing was stored"
    );
    let persistent = crate::support::unlogged().domain(Domain::Adr);
    let medium = Mapped::anonymous(FRAME_BYTES, &persistent).unwrap();
    assert!(message(|| medium.write_back(at, 17)).contains("write-back"));
}
