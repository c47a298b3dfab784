//! Does `firn check` examine every collection that a root names, and write to none?

use std::path::Path;

use firn_format::superblock::{OpenState, StoredDomain};
use firn_heap::{Error, Pool, PoolOptions, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Memory};
use firn_structures::{
    AvlTree, HashMap, InlineTree, List, Map, Queue, RedBlackTree, StringArray, Vector,
};
use firn_units::VirtAddr;

use crate::support::superblocks::change_superblocks;
use crate::support::{Called, Folder, firn};

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

/// What is stored past the heap reaches the file only of a pool without a log.
fn unlogged() -> MappedOptions {
    MappedOptions::default().domain(Domain::Process)
}

/// A pool without any map: a root that is a list, and one that is no collection.
fn make(path: &str) -> Pool<Mapped> {
    let medium = Mapped::create(Path::new(path), 0, &unlogged()).unwrap();
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

/// The address of the object that the reference at `at` names.
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

/// Elements of each collection; no root object holds this number for another reason.
const FEW: u64 = 7;
/// Words of a root object in which its number of elements is searched.
const ROOT_WORDS: u64 = 8;

/// A pool with every collection. Returns their names and the addresses of their root objects.
fn each_collection(path: &str) -> Vec<(&'static str, u64)> {
    let medium = Mapped::create(Path::new(path), 0, &unlogged()).unwrap();
    let pool = Pool::create(medium, &PoolOptions::new("each")).unwrap();
    let mut session = pool.session().unwrap();
    let roots = session.transaction(|tx| {
        let (mut map, mut list) = (Map::create(tx, "map")?, List::create(tx, "list")?);
        let mut avl = AvlTree::create(tx, "avl")?;
        let mut red_black = RedBlackTree::create(tx, "red_black")?;
        let mut inline = InlineTree::create(tx, "inline")?;
        let mut hash = HashMap::create(tx, "hash")?;
        let (mut vector, mut queue) = (Vector::create(tx, "vector")?, Queue::create(tx, "queue")?);
        let mut strings = StringArray::create(tx, "strings", FEW)?;
        for number in 0..FEW {
            let key = number.to_be_bytes();
            map.insert(&key, b"v")?;
            list.push_back(number, b"v")?;
            avl.insert(number, b"v")?;
            red_black.insert(number, b"v")?;
            inline.insert(number, b"v")?;
            hash.insert(&key, b"v")?;
            vector.push(b"v")?;
            queue.push_back(b"v")?;
            strings.set(number, b"v")?;
        }
        Ok::<_, Error>(vec![
            ("map", map.object().address().0),
            ("list", list.object().address().0),
            ("avl", avl.object().address().0),
            ("red_black", red_black.object().address().0),
            ("inline", inline.object().address().0),
            ("hash", hash.object().address().0),
            ("vector", vector.object().address().0),
            ("queue", queue.object().address().0),
            ("strings", strings.object().address().0),
        ])
    });
    drop(session);
    pool.close().unwrap();
    roots.unwrap()
}

#[test]
fn a_wrong_number_of_elements_is_found_in_each_collection() {
    let folder = Folder::new();
    let path = folder.arg("pool");
    let roots = each_collection(&path);
    assert_eq!(check(&path).status, 0, "{}", check(&path).out);
    for (name, root) in roots {
        let words = || (1..=ROOT_WORDS).map(|word| root + word * HEADER_BYTES);
        let at = {
            let medium = Mapped::open(Path::new(&path), &MappedOptions::default()).unwrap();
            let at = words().find(|&at| medium.load_u64(VirtAddr(at)) == FEW);
            let at = at.unwrap_or_else(|| panic!("{name} says nowhere how many it has"));
            medium.store_u64(VirtAddr(at), FEW + 1);
            at
        };
        let called = check(&path);
        assert_eq!(called.status, 1, "{name}: {}", called.out);
        let expected = format!("root `{name}`");
        assert!(called.out.contains(&expected), "{}", called.out);
        let medium = Mapped::open(Path::new(&path), &MappedOptions::default()).unwrap();
        medium.store_u64(VirtAddr(at), FEW);
    }
}

#[test]
fn what_a_salvage_loses_is_named_and_the_rest_is_there() {
    let folder = Folder::new();
    let (path, new) = (folder.arg("pool"), folder.arg("new"));
    make(&path).close().unwrap();
    damage(&path, |pool, root| (root, load(pool, root) ^ 0x7fff));
    change_superblocks(&path, |superblock| {
        superblock.state = OpenState::Open;
        superblock.domain = StoredDomain::Process;
        superblock.boot_id = [7; 16];
    });
    let before = std::fs::read(&path).unwrap();
    let called = firn(&["copy", "--salvage", &path, &new]);
    assert_eq!(called.status, 1, "{}{}", called.out, called.err);
    assert!(called.out.contains("root `queue`"), "{}", called.out);
    assert!(
        before == std::fs::read(&path).unwrap(),
        "the pool is only read"
    );
    assert_eq!(check(&new).status, 0, "{}", check(&new).out);
    let medium = Mapped::open_read_only(Path::new(&new), &MappedOptions::default()).unwrap();
    let pool = Pool::open_read_only(medium, "lists").unwrap();
    let mut session = pool.session().unwrap();
    let guard = session.guard();
    assert_eq!(guard.view().root_names().unwrap(), ["words"]);
}
