use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
union Either {
    a: u64,
    b: f64,
}

fn main() {}
