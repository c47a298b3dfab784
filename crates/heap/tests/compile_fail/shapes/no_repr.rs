use firn_heap::Stored;

#[derive(Stored)]
struct Node {
    key: u64,
}

fn main() {}
