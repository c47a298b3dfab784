//! Does `firn check` look into every collection that a root names, and write to none?

mod support;

use std::path::Path;

use firn_heap::{Error, Pool, PoolOptions, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Medium;
use firn_structures::List;
use firn_units::VirtAddr;
use support::{Called, Folder, firn};

const ELEMENTS: u64 = 50;
const HEADER_BYTES: u64 = 8;
/// Fields of a list's root object and of its nodes.
const LEN: u64 = HEADER_BYTES + 8;
const FIRST: u64 = HEADER_BYTES + 16;
const LAST: u64 = HEADER_BYTES + 24;
const NEXT: u64 = HEADER_BYTES;
const PREVIOUS: u64 = HEADER_BYTES + 8;
/// Bits of a reference that are an address.
const ADDRESS_MASK: u64 = (1 << 48) - 16;

/// A pool without any map: a root that is a list, and one that is no collection.
fn make(path: &str) -> Pool<Mapped> {
    let medium = Mapped::create(Path::new(path), 0, &MappedOptions::default()).unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("lists")).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let mut list = List::create(tx, "queue")?;
            (0..ELEMENTS).try_for_each(|key| list.push_back(key, b"element"))?;
            tx.set_root("words", tx.alloc_bytes(b"no collection")?)
        })
        .unwrap();
    drop(session);
    pool
}

/// Opens a closed pool and changes one word, which `change` chooses.
fn damage(path: &str, change: impl FnOnce(&Pool<Mapped>, u64) -> (u64, u64)) -> (u64, u64) {
    let medium = Mapped::open(Path::new(path), &MappedOptions::default()).unwrap();
    let pool = Pool::open(medium, &PoolOptions::new("lists")).unwrap();
    let root = {
        let mut session = pool.session().unwrap();
        let guard = session.guard();
        let list = List::open(guard.view(), "queue").unwrap();
        list.object().address().0
    };
    let (at, word) = change(&pool, root);
    let old = load(&pool, at);
    assert_ne!(old, word);
    pool.medium().store_u64(VirtAddr(at), word);
    pool.close().unwrap();
    (at, old)
}

fn load(pool: &Pool<Mapped>, at: u64) -> u64 {
    pool.medium().load_u64(VirtAddr(at))
}

/// The object that the reference at `at` names.
fn follow(pool: &Pool<Mapped>, at: u64) -> u64 {
    load(pool, at) & ADDRESS_MASK
}

fn check(path: &str) -> Called {
    firn(&["check", path])
}

#[test]
fn a_sound_list_is_sound_and_the_pool_stays_as_it_is() {
    let folder = Folder::new();
    let pool = folder.arg("pool");
    make(&pool).close().unwrap();
    let before = std::fs::read(&pool).unwrap();
    let called = check(&pool);
    assert_eq!((called.status, &*called.err), (0, ""), "{}", called.out);
    assert!(before == std::fs::read(&pool).unwrap());
}

#[test]
fn a_list_that_was_left_open_is_recovered_and_sound() {
    let folder = Folder::new();
    let pool = folder.arg("pool");
    make(&pool).abandon();
    let called = check(&pool);
    assert_eq!(called.status, 0, "{}", called.out);
}

#[test]
fn what_is_wrong_with_a_list_is_found() {
    type Change = fn(&Pool<Mapped>, u64) -> (u64, u64);
    let changes: [(&str, Change); 5] = [
        ("the list says 51 elements, there are 50", |_, root| {
            (root + LEN, ELEMENTS + 1)
        }),
        ("names another before it", |pool, root| {
            let second = follow(pool, follow(pool, root + FIRST) + NEXT);
            (second + PREVIOUS, load(pool, root + LAST))
        }),
        ("names another before it", |pool, root| {
            let first = follow(pool, root + FIRST);
            let second = follow(pool, first + NEXT);
            (first + NEXT, load(pool, second + NEXT))
        }),
        ("the list names another last element", |pool, root| {
            (root + LAST, load(pool, root + FIRST))
        }),
        ("is reached twice", |pool, root| {
            (follow(pool, root + LAST) + NEXT, load(pool, root + FIRST))
        }),
    ];
    let folder = Folder::new();
    let path = folder.arg("pool");
    make(&path).close().unwrap();
    for (finding, change) in changes {
        let (at, old) = damage(&path, change);
        let called = check(&path);
        assert_eq!(called.status, 1, "{finding}: {}", called.err);
        assert!(called.out.contains(finding), "{finding}: {}", called.out);
        assert!(called.out.contains("root `queue`: "), "{}", called.out);
        damage(&path, |_, _| (at, old));
        assert_eq!(check(&path).status, 0);
    }
}

#[test]
fn a_root_says_what_it_is_without_registering_anything() {
    let folder = Folder::new();
    let path = folder.arg("pool");
    make(&path).close().unwrap();
    let medium = Mapped::open_read_only(Path::new(&path), &MappedOptions::default()).unwrap();
    let pool = Pool::open_read_only(medium, "lists").unwrap();
    let mut session = pool.session().unwrap();
    let name = |name: &str| session.read(|view| view.root_type_name(name));
    let names: Result<Vec<_>, Error> = ["queue", "words", "nobody"].into_iter().map(name).collect();
    let expected = [Some("firn.list".into()), Some("Bytes".into()), None];
    assert_eq!(names.unwrap(), expected);
}
