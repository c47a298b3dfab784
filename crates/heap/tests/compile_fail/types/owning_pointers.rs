use std::rc::Rc;
use std::sync::Arc;

use firn_heap::Stored;

#[derive(Stored)]
#[repr(C)]
struct Node {
    one: Box<u64>,
    two: Rc<u64>,
    three: Arc<u64>,
}

fn main() {}
