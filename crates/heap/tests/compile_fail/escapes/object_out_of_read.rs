use firn_heap::{Pool, PoolOptions, Ref, Stored, View};
use firn_mapped::{Mapped, MappedOptions};

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: Ref<Node>,
    key: u64,
}

fn pool() -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    Pool::create(medium, &PoolOptions::new("escapes")).unwrap()
}

fn main() {
    let pool = pool();
    let mut session = pool.session().unwrap();
    let node = session.read(|view| view.root::<Node>("node").unwrap());
    println!("{}", node.load(Node::KEY));
}
