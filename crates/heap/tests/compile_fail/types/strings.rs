use firn_heap::{Ref, Stored};

#[derive(Stored)]
#[repr(C)]
struct Node {
    name: String,
    other: std::string::String,
    path: std::path::PathBuf,
    text: Ref<String>,
}

fn main() {}
