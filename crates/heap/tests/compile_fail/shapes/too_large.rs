use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    bytes: [u8; 2 << 20],
}

fn main() {}
