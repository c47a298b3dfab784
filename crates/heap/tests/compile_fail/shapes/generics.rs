use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node<T> {
    value: T,
}

fn main() {}
