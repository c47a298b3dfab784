use firn_heap::{Bytes, Plain, Ref};

type Link = Ref<Bytes>;

#[derive(Plain)]
#[repr(C)]
struct Point {
    x: u32,
    node: Link,
}

fn main() {}
