use std::collections::HashMap;

use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    map: HashMap<u64, u64>,
}

fn main() {}
