use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: &'static u64,
    text: &'static str,
    bytes: &'static [u8],
}

fn main() {}
