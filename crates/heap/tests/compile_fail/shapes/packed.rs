use firn_heap::Stored;

#[derive(Stored)]
#[repr(C, packed)]
struct Node {
    key: u64,
}

fn main() {}
