use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: *const u64,
    previous: *mut u64,
    other: core::ptr::NonNull<u64>,
}

fn main() {}
