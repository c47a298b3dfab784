use firn_heap::{Bytes, Plain, Ref};

#[derive(Plain)]
#[repr(C)]
struct Point {
    x: u32,
    node: Ref<Bytes>,
}

fn main() {}
