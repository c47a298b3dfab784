//! Does everything outside the pool read as zeros, however far away?

use std::process::Command;

use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Memory, Place, Space};
use firn_units::{FRAME_BYTES, VirtAddr};

use crate::support;

const CAPACITY: u64 = 1 << 32;

fn medium() -> Mapped {
    let options = support::unlogged().capacity(CAPACITY);
    let medium = Mapped::anonymous(FRAME_BYTES, &options).unwrap();
    for word in 0..FRAME_BYTES / 8 {
        medium.store_u64(VirtAddr(8 * word), u64::MAX);
    }
    medium
}

#[test]
fn words_beyond_the_length_are_zero() {
    let medium = medium();
    let far = [
        FRAME_BYTES,
        CAPACITY / 2,
        CAPACITY - 8,
        CAPACITY,
        1 << 47,
        u64::MAX - 7,
        u64::MAX,
    ];
    for at in far {
        assert_eq!(medium.load_u64(VirtAddr(at)), 0, "{at:#x}");
    }
}

#[test]
fn bytes_beyond_the_length_are_zero() {
    let medium = medium();
    for len in [1, 7, 8, 100, 5000] {
        for at in [
            FRAME_BYTES - 3,
            FRAME_BYTES - 64,
            CAPACITY - 3,
            CAPACITY,
            u64::MAX,
        ] {
            let mut bytes = vec![1; len];
            medium.load_bytes(VirtAddr(at), &mut bytes);
            for (offset, &byte) in bytes.iter().enumerate() {
                let inside = at.saturating_add(offset as u64) < FRAME_BYTES;
                assert_eq!(byte, if inside { 0xff } else { 0 }, "{at:#x} + {offset}");
            }
        }
    }
}

#[test]
fn a_damaged_place_stays_in_the_window() {
    let medium = medium();
    for at in [
        0,
        24,
        CAPACITY - 1,
        CAPACITY + 40,
        u64::MAX,
        0x8000_0000_0000_0001,
    ] {
        let place = medium.place(VirtAddr(at));
        let address = medium.address(place).0;
        assert_eq!(address, at & (CAPACITY - 1) & !15);
        for byte in [0, 8, 4088, 4096, 1 << 31, u32::MAX - 7] {
            let inside = address + u64::from(byte) < FRAME_BYTES;
            let expected = if inside { u64::MAX } else { 0 };
            assert_eq!(place.load_u64(byte), expected, "{at:#x} + {byte}");
        }
        assert_eq!(
            place.load_u64(u32::MAX),
            0,
            "an odd offset is rounded down to a word"
        );
    }
}

#[test]
fn a_limited_address_space_gives_a_smaller_window() {
    const NAME: &str = "zeros::a_limited_address_space_gives_a_smaller_window";
    if support::child_pool().is_some() {
        let medium = Mapped::anonymous(FRAME_BYTES, &support::unlogged()).unwrap();
        assert!(medium.capacity() < MappedOptions::DEFAULT_CAPACITY);
        assert_eq!(medium.load_u64(VirtAddr(medium.capacity() - 8)), 0);
        let large = Mapped::anonymous(1 << 40, &support::unlogged()).unwrap_err();
        assert!(large.to_string().contains("address space"), "{large}");
        return;
    }
    const LIMIT_KIB: u64 = 16 << 20;
    let program = std::env::current_exe().unwrap();
    let script = format!("ulimit -v {LIMIT_KIB} && exec \"$0\" --exact {NAME}");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg(program);
    let unused = support::child(NAME, "".as_ref());
    shell.envs(
        unused
            .get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    let output = shell.output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("1 passed"), "{said}");
}
