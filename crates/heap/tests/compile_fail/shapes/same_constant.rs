#![allow(non_snake_case)]
use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    key: u64,
    Key: u64,
}

fn main() {}
