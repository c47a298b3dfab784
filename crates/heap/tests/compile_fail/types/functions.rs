use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    call: fn(u64) -> u64,
    object: dyn Fn(u64),
}

fn main() {}
