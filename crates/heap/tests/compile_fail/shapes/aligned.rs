use firn_heap::Stored;

#[derive(Stored)]
#[repr(C, align(16))]
struct Node {
    key: u64,
}

fn main() {}
