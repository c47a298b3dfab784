use firn_heap::{Ref, Stored};

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: Option<Ref<Node>>,
    count: Option<u64>,
}

fn main() {}
