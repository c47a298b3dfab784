//! Does a descent end where it should: at the object it seeks, at the end, and in a circle; while nothing moves, and
//! while objects do?

use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, Handle, Obj, Pool, PoolOptions, Ref, Stored, View};
use firn_mapped::{Mapped, MappedOptions};

#[derive(Stored)]
#[firn(name = "descend.node")]
#[repr(C)]
struct Node {
    key: u64,
    links: Ref<Node>,
    greater: Ref<Node>,
}

/// Another type of equal size, whose objects lie between the nodes and are garbage at once.
#[derive(Stored)]
#[firn(name = "descend.other")]
#[repr(C)]
struct Other {
    words: [u64; 3],
}

const MOST: usize = 40;
const KEYS: u64 = 1000;

fn node(key: u64) -> Node {
    Node {
        key,
        links: Ref::NULL,
        greater: Ref::NULL,
    }
}

fn find<'g, V: View<'g>>(top: Obj<'g, Node, V>, key: u64) -> Result<Option<u64>, Error> {
    let known = top.view().known_type::<Node>()?;
    let links = [Node::LINKS, Node::GREATER];
    let found = top.descend(known, Node::KEY, links, MOST, |_, here| {
        (here != key).then_some(key > here)
    })?;
    Ok(found.map(|node| node.load(Node::KEY)))
}

/// A tree of the even numbers, linked in random order, with garbage between its nodes.
fn tree() -> (Pool<Mapped>, Handle<Node, Mapped>) {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("test")).unwrap();
    let mut session = pool.session().unwrap();
    let top = session
        .transaction(|tx| {
            let top = tx.alloc(node(KEYS))?;
            tx.set_root("top", top)?;
            Ok::<_, Error>(pool.handle(top))
        })
        .unwrap();
    for i in 0..KEYS {
        // Every number below `KEYS` once, none near the last ones: the depth stays below `MOST`.
        let key = i * 617 % KEYS * 2;
        session
            .transaction(|tx| {
                let mut at = tx.deref(&top).unwrap();
                let _garbage = tx.alloc(Other { words: [key; 3] })?;
                loop {
                    let here = at.load(Node::KEY);
                    if here == key {
                        return Ok::<_, Error>(());
                    }
                    let link = if key > here {
                        Node::GREATER
                    } else {
                        Node::LINKS
                    };
                    match at.follow(link) {
                        Some(next) => at = next,
                        None => {
                            at.link(link, Some(tx.alloc(node(key))?));
                            return Ok(());
                        }
                    }
                }
            })
            .unwrap();
    }
    (pool, top)
}

fn finds_all(pool: &Pool<Mapped>, top: &Handle<Node, Mapped>) {
    let mut session = pool.session().unwrap();
    let guard = session.guard();
    let top = guard.view().deref(top).unwrap();
    for key in 0..2 * KEYS {
        assert_eq!(
            find(top, key).unwrap(),
            key.is_multiple_of(2).then_some(key)
        );
    }
}

#[test]
fn what_is_there_is_found_and_nothing_else() {
    let (pool, top) = tree();
    finds_all(&pool, &top);
}

#[test]
fn what_moves_is_found_too() {
    let (pool, top) = tree();
    let options = CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    };
    let mut collection = pool.collection(&options).unwrap();
    assert!(collection.begin().unwrap(), "nothing is to be moved");
    finds_all(&pool, &top);
    collection.compact(10).unwrap();
    finds_all(&pool, &top);
    collection.finish().unwrap();
    finds_all(&pool, &top);
}

#[test]
fn what_the_transaction_stored_is_found_in_it() {
    let (pool, top) = tree();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let top = tx.deref(&top).unwrap();
            // Between the top and the subtree of the greater keys, whose first key is above it.
            let between = tx.alloc(node(KEYS + 1))?;
            between.link(Node::GREATER, top.follow(Node::GREATER));
            top.link(Node::GREATER, Some(between));
            assert_eq!(find(top, KEYS + 1)?, Some(KEYS + 1));
            assert_eq!(find(top, KEYS + 2)?, Some(KEYS + 2));
            assert_eq!(find(top, KEYS + 3)?, None);
            Ok::<_, Error>(())
        })
        .unwrap();
}

#[test]
fn a_circle_is_refused() {
    let (pool, top) = tree();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let top = tx.deref(&top).unwrap();
            top.link(Node::GREATER, Some(top));
            Ok::<_, Error>(())
        })
        .unwrap();
    let guard = session.guard();
    let top = guard.view().deref(&top).unwrap();
    let error = find(top, 3 * KEYS).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}
