//! The limit of a pool.

use firn_media::Domain;

use super::*;

/// Fills a pool with objects of a hundred thousand bytes. Returns how many fitted.
fn fill(pool: &Pool<Mapped>, what: Fill) -> u64 {
    let mut session = pool.session().unwrap();
    for number in 0..10_000 {
        let outcome = match what {
            Fill::Typed => session.transaction(|tx| {
                let spine = tx.root::<Spine>("spine")?;
                let new = tx.alloc_bytes(&[7; 100_000])?;
                let free = (0..1000).find(|&i| spine.get(i).is_none()).unwrap();
                spine.set(free, Some(new))
            }),
            Fill::Raw => session.raw_transaction(|tx| tx.alloc(100_000).map(|_| ())),
        };
        match outcome {
            Ok(()) => {}
            Err(Error::PoolFull { .. }) => return number,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it has no limit");
}

#[derive(Clone, Copy, PartialEq)]
enum Fill {
    Typed,
    Raw,
}

/// A limited pool with a spine, in a file.
fn limited(path: &std::path::Path, kind: PoolKind, max_bytes: Option<u64>) -> Pool<Mapped> {
    let options = PoolOptions {
        kind,
        max_bytes,
        ..PoolOptions::new("limited")
    };
    let medium =
        Mapped::create(path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap();
    let pool = Pool::create(medium, &options).unwrap();
    let make = |tx: firn_heap::Tx<'_, Mapped>| {
        let spine = tx.alloc_refs::<Bytes>(1000)?;
        tx.set_root("spine", spine)
    };
    pool.session().unwrap().transaction(make).unwrap();
    pool
}

#[test]
fn a_pool_keeps_its_limit_when_it_is_opened_again() {
    let ends: [fn(Pool<Mapped>); 2] = [|pool| pool.close().unwrap(), Pool::abandon];
    for (kind, what) in [
        (PoolKind::Traced, Fill::Typed),
        (PoolKind::Explicit, Fill::Typed),
        (PoolKind::Explicit, Fill::Raw),
    ] {
        for end in ends {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("pool");
            let on = MappedOptions::default();
            let limit = 24 << 20;
            let open = |max_bytes| {
                let options = PoolOptions {
                    kind,
                    log: match what {
                        Fill::Typed => firn_heap::LogKind::Redo,
                        Fill::Raw => firn_heap::LogKind::Undo,
                    },
                    max_bytes,
                    ..PoolOptions::new("limited")
                };
                Pool::open(Mapped::open(&path, &on).unwrap(), &options).unwrap()
            };
            let length = || std::fs::metadata(&path).unwrap().len();
            end(limited(&path, kind, Some(limit)));
            let pool = open(None);
            assert_eq!(pool.limit_bytes(), Some(limit));
            let fitted = fill(&pool, what);
            assert!((80..170).contains(&fitted), "{fitted} objects in 24 MiB");
            assert!(length() <= limit);
            end(pool);
            // A full pool is full after every open.
            let pool = open(None);
            assert_eq!((fill(&pool, what), length() <= limit), (0, true));
            assert_eq!(
                Statistics::read(pool.medium()).unwrap().limit_bytes,
                Some(limit)
            );
            end(pool);
            // A limit that is given at opening becomes the pool's.
            end(open(Some(2 * limit)));
            let pool = open(None);
            assert_eq!(pool.limit_bytes(), Some(2 * limit));
            assert!(fill(&pool, what) >= fitted && length() <= 2 * limit);
            end(pool);
            // A limit that no pool reaches removes it.
            end(open(Some(u64::MAX)));
            let pool = open(None);
            assert_eq!(pool.limit_bytes(), None);
            end(pool);
        }
    }
}

#[test]
fn a_copy_has_its_pools_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limit = Some(24 << 20);
    let pool = limited(&folder.path().join("pool"), PoolKind::Traced, limit);
    let copy = pool
        .copy_into(mapped(), firn_heap::CopyIdentity::New, &mut |_| {})
        .unwrap();
    assert_eq!(copy.limit_bytes(), limit);
}
