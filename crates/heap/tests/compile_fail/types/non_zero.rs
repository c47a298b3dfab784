use core::num::NonZero;
use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    count: core::num::NonZeroU64,
    other: NonZero<u8>,
}

fn main() {}
