use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    count: usize,
    difference: isize,
}

fn main() {}
