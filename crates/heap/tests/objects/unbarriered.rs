//! Do views without the read barrier read the same, and does nothing move while they can exist?

use firn_heap::collector::CollectOptions;
use firn_heap::{Bytes, Error, Pool, PoolOptions, View};
use firn_mapped::{Mapped, MappedOptions};

const POOL_BYTES: u64 = 16 << 20;

fn pool() -> Pool<Mapped> {
    let medium = Mapped::anonymous(POOL_BYTES, &MappedOptions::default()).expect("memory");
    Pool::create(medium, &PoolOptions::new("unbarriered")).expect("a pool")
}

#[test]
fn they_see_what_is_there() {
    let pool = pool();
    let mut session = pool.session().unwrap();
    let put = session.transaction(|tx| tx.set_root("root", tx.alloc_bytes(b"firn")?));
    put.unwrap();
    let still = pool.unbarriered().unwrap();
    let guard = still.guard(&mut session);
    let root = guard.view().root::<Bytes>("root").unwrap();
    assert_eq!(root.to_vec().unwrap(), b"firn");
}

#[test]
fn no_collection_begins_meanwhile() {
    let pool = pool();
    let options = CollectOptions::default();
    let still = pool.unbarriered().unwrap();
    assert!(matches!(pool.collect(&options), Err(Error::Collecting)));
    assert!(matches!(pool.unbarriered(), Err(Error::Collecting)));
    drop(still);
    pool.collect(&options).unwrap();
    let collection = pool.collection(&options).unwrap();
    assert!(matches!(pool.unbarriered(), Err(Error::Collecting)));
    drop(collection);
    pool.unbarriered().unwrap();
}
