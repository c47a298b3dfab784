//! Do the derive macros describe and convert types as the heap reads them?

use firn_heap::{Bytes, Checkable, Checked, Field, Plain, Ref, Refs, Stored};

#[derive(Stored)]
#[repr(C)]
pub struct Node {
    next: Ref<Node>,
    pub key: u64,
    data: [u8; 16],
    child: [Ref<Self>; 4],
    leaf: Ref<Leaf>,
    color: Checked<Color>,
    point: Point,
}

#[derive(Stored)]
#[repr(C)]
struct Leaf {
    up: Ref<Node>,
    text: Ref<Bytes>,
    all: Ref<Refs<Node>>,
}

#[derive(Plain, Clone, Copy)]
#[repr(C)]
struct Point {
    x: u8,
    y: f64,
}

#[derive(Checkable, Clone, Copy)]
enum Color {
    Red,
    Blue,
}

#[derive(Stored)]
#[repr(C)]
struct Empty {}

#[test]
fn descr() {
    const N: Field<Node, u64> = Node::KEY;
    println!(
        "{:?} {:?} {:?}",
        Node::DESCRIPTOR,
        Leaf::DESCRIPTOR,
        N.offset()
    );
    let _ = (Color::Red, Color::Blue);
}
