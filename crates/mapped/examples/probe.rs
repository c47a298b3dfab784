//! The operations that `tests/assembly.rs` disassembles: they must compile to nothing but themselves.

use std::hint::black_box;

use firn_mapped::{Mapped, MappedOptions, MappedPlace};
use firn_media::{Memory, Place};
use firn_units::VirtAddr;

/// Loads a field.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn probe_field(place: MappedPlace<'_>) -> u64 {
    place.load_u64(24)
}

/// Loads an element of an array of words.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn probe_element(place: MappedPlace<'_>, index: u16) -> u64 {
    place.load_u64(16 + 8 * u32::from(index))
}

/// Resolves an address.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn probe_place(medium: &Mapped, at: u64) -> MappedPlace<'_> {
    medium.place(VirtAddr(at))
}

/// Commits.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn probe_commit(medium: &Mapped) -> u64 {
    medium.commit().0
}

/// Makes a word durable.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn probe_persist(medium: &Mapped, at: u64) {
    medium.write_back(VirtAddr(at), 8);
    medium.fence();
}

fn main() {
    // Opaque to the optimiser, so that it keeps the functions as they are.
    let field = black_box(probe_field as fn(MappedPlace<'_>) -> u64);
    let element = black_box(probe_element as fn(MappedPlace<'_>, u16) -> u64);
    let resolve = black_box(probe_place as fn(&Mapped, u64) -> MappedPlace<'_>);
    let commit = black_box(probe_commit as fn(&Mapped) -> u64);
    let persist = black_box(probe_persist as fn(&Mapped, u64));
    let medium = Mapped::anonymous(1, &MappedOptions::default()).expect("memory");
    let place = resolve(&medium, 64);
    persist(&medium, 64);
    let sum = field(place) + element(place, 3) + commit(&medium);
    std::process::exit(i32::from(sum != 0));
}
