use firn_heap::Checkable;

#[derive(Checkable, Clone, Copy)]
enum Holding {
    Nothing,
    Number(u64),
}

#[derive(Checkable, Clone, Copy)]
enum Nothing {}

#[derive(Checkable, Clone, Copy)]
struct Structure {
    key: u64,
}

#[derive(Checkable, Clone, Copy)]
#[repr(i8)]
enum Negative {
    Below = -1,
}

fn main() {}
