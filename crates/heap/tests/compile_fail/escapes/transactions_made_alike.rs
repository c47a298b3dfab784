use firn_heap::{Error, Pool, PoolOptions, Ref, Stored, View};
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
    let mut outer = pool.session().unwrap();
    let mut inner = pool.session().unwrap();
    outer
        .transaction(|a| {
            inner.transaction(|b| {
                let (mut first, second) = (a, b);
                let node = first.root::<Node>("a")?;
                first = second;
                first.root::<Node>("b")?.link(Node::NEXT, Some(node));
                Ok::<_, Error>(())
            })
        })
        .unwrap();
}
