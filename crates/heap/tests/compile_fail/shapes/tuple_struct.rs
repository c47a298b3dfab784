use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node(u64, u64);

fn main() {}
