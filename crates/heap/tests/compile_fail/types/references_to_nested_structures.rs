use firn_heap::{Plain, Ref, Stored};

#[derive(Plain)]
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Stored)]
#[repr(C)]
struct Node {
    point: Ref<Point>,
}

fn main() {}
