use firn_heap::Stored;

type Flag = bool;

#[derive(Stored)]
#[repr(C)]
struct Node {
    flag: Flag,
}

fn main() {}
