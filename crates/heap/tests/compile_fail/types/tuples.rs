use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    pair: (u32, u32),
}

fn main() {}
