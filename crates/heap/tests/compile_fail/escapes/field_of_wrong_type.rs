use firn_heap::{Pool, PoolOptions, Ref, Stored};
use firn_mapped::{Mapped, MappedOptions};

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: Ref<Node>,
    key: u64,
}

#[derive(Stored)]
#[repr(C)]
struct Other {
    key: u64,
}

fn pool() -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    Pool::create(medium, &PoolOptions::new("escapes")).unwrap()
}

fn main() {
    let pool = pool();
    let mut session = pool.session().unwrap();
    let guard = session.guard();
    let other = guard.root::<Other>("other").unwrap();
    println!("{}", other.load(Node::KEY));
}
