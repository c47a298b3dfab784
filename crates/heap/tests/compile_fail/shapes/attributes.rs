use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
#[firn(size = 8)]
struct UnknownKey {
    key: u64,
}

#[derive(Stored)]
#[repr(C)]
#[firn(version = 0)]
struct VersionZero {
    key: u64,
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "")]
struct NoName {
    key: u64,
}

#[derive(Stored)]
#[repr(C)]
struct Bytes {
    key: u64,
}

#[derive(Stored)]
#[repr(C)]
struct OnField {
    #[firn(name = "k")]
    key: u64,
}

fn main() {}
