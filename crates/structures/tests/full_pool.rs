//! Does a collection stay sound when the pool is full, and can it still be emptied?

mod support;

use firn_heap::{Error, Pool, PoolKind, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::{List, Map};

#[test]
fn an_insert_without_room_changes_nothing() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
        let options = PoolOptions {
            kind,
            max_bytes: Some(24 << 20),
            ..PoolOptions::new("test")
        };
        let pool = Pool::create(medium, &options).unwrap();
        let mut session = pool.session().unwrap();
        session
            .transaction(|tx| {
                Map::create(tx, "map")?;
                List::create(tx, "list").map(|_| ())
            })
            .unwrap();
        // Long ones fill the pool; of the short ones, of several classes, some fit in when a node
        // does not.
        let key = |n: u64| {
            let mixed = n.wrapping_mul(7919) % 1_000_003;
            match n % 3 {
                0 => format!("{mixed:01000}").into_bytes(),
                _ => format!("{mixed:0width$}", width = 30 + (n % 8) as usize * 16).into_bytes(),
            }
        };
        let mut refused = 0;
        let mut number = 0;
        while refused < 4_000 {
            number += 1;
            let full = session
                .transaction(|tx| {
                    // Errors are swallowed: what failed must have changed nothing.
                    let map = Map::open(tx, "map")?.insert(&key(number), b"");
                    let list = List::open(tx, "list")?.push_back(number, &[1; 20]);
                    Ok::<_, Error>(map.is_err() || list.is_err())
                })
                .unwrap_or(true);
            refused += u64::from(full);
        }
        let findings = pool.check().unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(pool.trace().unwrap().reclaimed, 0);
        session.read(|view| {
            let (map, list) = (
                Map::open(view, "map").unwrap(),
                List::open(view, "list").unwrap(),
            );
            assert_eq!(map.check().unwrap(), Vec::<String>::new());
            assert_eq!(list.check().unwrap(), Vec::<String>::new());
        });
        for n in 1..=number {
            session
                .transaction(|tx| {
                    Map::open(tx, "map")?.remove(&key(n))?;
                    List::open(tx, "list")?.remove(n)
                })
                .unwrap();
        }
        session.read(|view| {
            assert!(Map::open(view, "map").unwrap().is_empty().unwrap());
            assert!(List::open(view, "list").unwrap().is_empty().unwrap());
        });
        assert_eq!(pool.trace().unwrap().objects, 2);
    }
}
