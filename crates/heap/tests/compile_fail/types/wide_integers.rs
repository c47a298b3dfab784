use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    id: u128,
    difference: i128,
}

fn main() {}
