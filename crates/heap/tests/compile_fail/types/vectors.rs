use firn_heap::{Ref, Stored};

#[derive(Stored)]
#[repr(C)]
struct Node {
    bytes: Vec<u8>,
    many: Ref<Vec<u8>>,
    slice: Ref<[u8]>,
}

fn main() {}
