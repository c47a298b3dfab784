use firn_heap::{Checked, Ref, Stored};

#[derive(Stored)]
#[repr(C)]
struct Node {
    count: Ref<u64>,
    table: Ref<[u64; 4]>,
    pointer: Ref<Ref<Node>>,
    flag: Ref<Checked<bool>>,
}

fn main() {}
