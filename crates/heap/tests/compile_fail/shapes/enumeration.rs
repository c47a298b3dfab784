use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
enum Color {
    Red,
    Blue,
}

fn main() {}
