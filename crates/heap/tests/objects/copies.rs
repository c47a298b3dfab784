//! Is a copy of a pool distinguished from its original, and by what identity?

use std::path::Path;

use firn_heap::{Bytes, CopyIdentity, Error, OpenError, Pool, PoolOptions, Ref, Refs, Stored};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, MediumError};

/// A pool in a file of its own, with a root that holds `text`, closed.
fn written(path: &Path, text: &str) {
    let file = Mapped::create(path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap();
    let pool = Pool::create(file, &PoolOptions::new("copied")).unwrap();
    put(&pool, text);
    pool.close().unwrap();
}

fn put(pool: &Pool<Mapped>, text: &str) {
    let put = pool.session().unwrap().transaction(|tx| {
        let text = tx.alloc_bytes(text.as_bytes())?;
        tx.set_root("text", text)
    });
    put.unwrap();
}

fn opened(path: &Path) -> Result<Pool<Mapped>, OpenError> {
    let file = Mapped::open(path, &MappedOptions::default()).unwrap();
    Pool::open(file, &PoolOptions::new("copied"))
}

fn read_only(path: &Path) -> Pool<Mapped> {
    let file = Mapped::open_read_only(path, &MappedOptions::default()).unwrap();
    Pool::open_read_only(file, "copied").unwrap()
}

fn text(pool: &Pool<Mapped>) -> String {
    let mut session = pool.session().unwrap();
    let guard = session.guard();
    let text = guard.root::<Bytes>("text").unwrap().to_vec();
    String::from_utf8(text.unwrap()).unwrap()
}

#[test]
fn a_copied_file_is_refused_beside_its_original_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let [original, copy] = ["original", "copy"].map(|name| folder.path().join(name));
    written(&original, "first");
    let pool = opened(&original).unwrap();
    put(&pool, "second");
    // It is copied while it is open, so the copy needs recovery.
    std::fs::copy(&original, &copy).unwrap();
    let before = std::fs::read(&copy).unwrap();
    for _ in 0..2 {
        let refused = opened(&copy).err().unwrap();
        let is_copy = matches!(refused, OpenError::Medium(MediumError::CopyIsOpen { .. }));
        let told = refused.to_string();
        let names = [&original, &copy].map(|path| path.to_str().unwrap());
        assert!(
            is_copy && names.iter().all(|name| told.contains(name)),
            "{told}"
        );
    }
    assert!(
        std::fs::read(&copy).unwrap() == before,
        "the copy was changed"
    );
    assert_eq!(text(&pool), "second");
    pool.close().unwrap();
    // Opened one after the other, they are two pools, in either order.
    let pool = opened(&copy).unwrap();
    assert_eq!(text(&pool), "second");
    put(&pool, "third");
    assert!(opened(&original).is_err());
    pool.close().unwrap();
    assert_eq!(text(&opened(&original).unwrap()), "second");
    assert_eq!(text(&opened(&copy).unwrap()), "third");
}

#[test]
fn a_pool_that_was_just_created_is_known_too() {
    let folder = tempfile::tempdir().unwrap();
    let [original, copy] = ["original", "copy"].map(|name| folder.path().join(name));
    let file = Mapped::create(
        &original,
        0,
        &MappedOptions::default().domain(Domain::Process),
    )
    .unwrap();
    let pool = Pool::create(file, &PoolOptions::new("copied")).unwrap();
    std::fs::copy(&original, &copy).unwrap();
    assert!(opened(&copy).is_err());
    pool.close().unwrap();
    opened(&copy).unwrap().close().unwrap();
}

#[test]
fn copies_are_read_beside_their_original() {
    let folder = tempfile::tempdir().unwrap();
    let [original, copy, last] = ["original", "copy", "last"].map(|name| folder.path().join(name));
    written(&original, "first");
    std::fs::copy(&original, &copy).unwrap();
    std::fs::copy(&original, &last).unwrap();
    let pools = [&original, &copy, &copy].map(|path| read_only(path));
    assert_eq!(pools.each_ref().map(text), ["first"; 3]);
    let writer = opened(&last).unwrap();
    put(&writer, "second");
    assert_eq!(pools.each_ref().map(text), ["first"; 3]);
    assert_eq!(text(&writer), "second");
}

/// A pool that was refused for another reason does not count as open.
#[test]
fn what_could_not_be_opened_is_no_pool_that_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    written(&path, "first");
    for _ in 0..2 {
        let file = Mapped::open(&path, &MappedOptions::default()).unwrap();
        assert!(Pool::open(file, &PoolOptions::new("another")).is_err());
        let sessions = PoolOptions {
            lanes: 1 << 20,
            ..PoolOptions::new("copied")
        };
        let file = Mapped::open(&path, &MappedOptions::default()).unwrap();
        assert!(Pool::open(file, &sessions).is_err());
    }
    assert_eq!(text(&opened(&path).unwrap()), "first");
}

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: Ref<Node>,
    number: u64,
}

/// Objects that refer to each other by every kind of reference: roots, arrays, fields with tags, cycles.
fn referring(pool: &Pool<Mapped>) {
    let mut session = pool.session().unwrap();
    let done = session.transaction(|tx| {
        let all = tx.alloc_refs::<Node>(20)?;
        for i in 0..20 {
            let node = tx.alloc(Node {
                next: Ref::NULL,
                number: i,
            })?;
            all.set(i as usize, Some(node))?;
        }
        for i in 0..20 {
            let node = all.get(i).ok_or(Error::ReadOnly)?;
            node.link_tagged(Node::NEXT, all.get((i + 7) % 20), (i % 16) as u8);
        }
        tx.set_root("first", all.get(0).ok_or(Error::ReadOnly)?)?;
        tx.set_root("all", all)
    });
    done.unwrap();
}

/// The numbers and tags on the way around, and the bits in each reference besides an address.
fn way_around(pool: &Pool<Mapped>) -> Vec<(u64, u8)> {
    let mut session = pool.session().unwrap();
    let guard = session.guard();
    let all = guard.root::<Refs<Node>>("all").unwrap();
    let mut node = guard.root::<Node>("first").unwrap();
    (0..20)
        .map(|i| {
            let bits = pool.reference_bits();
            let named = all.get(i).unwrap().untyped().reference_word();
            assert_eq!(named & !((1 << 48) - 1), bits);
            let seen = (node.load(Node::NUMBER), node.tag(Node::NEXT));
            node = node.follow(Node::NEXT).unwrap();
            seen
        })
        .collect()
}

#[test]
fn a_copy_is_the_same_pool_or_one_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        Mapped::create(
            folder.path().join(name),
            0,
            &MappedOptions::default().domain(Domain::Process),
        )
    };
    let options = PoolOptions::new("copied");
    let original = Pool::create(file("original").unwrap(), &options).unwrap();
    referring(&original);
    let expected = way_around(&original);
    let copy = |name, identity| original.copy_into(file(name).unwrap(), identity, &mut |_| {});
    let kept = copy("kept", CopyIdentity::Kept).unwrap();
    let new = copy("new", CopyIdentity::New).unwrap();
    for pool in [&kept, &new] {
        assert_eq!(way_around(pool), expected);
        assert_eq!(pool.check().unwrap(), []);
    }
    assert_eq!(kept.reference_bits(), original.reference_bits());
    assert_eq!(kept.pair_id(), original.pair_id());
    assert_ne!(new.pair_id(), original.pair_id());
    kept.close().unwrap();
    // The one is refused while the original is open; the other one can be open beside it.
    assert!(opened(&folder.path().join("kept")).is_err());
    new.close().unwrap();
    let new = opened(&folder.path().join("new")).unwrap();
    assert_eq!(way_around(&new), expected);
    original.close().unwrap();
    let kept = opened(&folder.path().join("kept")).unwrap();
    assert_eq!(way_around(&kept), expected);
    assert_eq!(kept.check().unwrap(), []);
}
