use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    flag: bool,
    letter: char,
    flags: [bool; 8],
}

fn main() {}
