//! Does a collection stay sound when the pool is full, and can it still be emptied?

use firn_heap::{Error, Pool, PoolKind, PoolOptions, Session, Tx};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::{AvlTree, HashMap, InlineTree, List, Map, Queue, RedBlackTree, Vector};

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

#[test]
fn tables_stay_sound_without_room_and_can_be_emptied() {
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
                HashMap::create(tx, "hash")?;
                Vector::create(tx, "vector")?;
                Queue::create(tx, "queue").map(|_| ())
            })
            .unwrap();
        // Of several classes, so that some fit in when an array or a bucket does not.
        let bytes = |n: u64| {
            vec![
                n as u8;
                if n.is_multiple_of(3) {
                    900
                } else {
                    (n % 9) as usize * 16
                }
            ]
        };
        let (mut done, mut refused, mut number) = ([0; 3], 0, 0);
        while refused < 3_000 {
            number += 1;
            let mut one = [false; 3];
            let outcome = session.transaction(|tx| {
                // Errors are swallowed: what failed must have changed nothing.
                one = [
                    HashMap::open(tx, "hash")?
                        .insert(&u64::to_le_bytes(number), &bytes(number))
                        .is_ok(),
                    Vector::open(tx, "vector")?.push(&bytes(number + 1)).is_ok(),
                    Queue::open(tx, "queue")?
                        .push_back(&bytes(number + 2))
                        .is_ok(),
                ];
                Ok::<_, Error>(())
            });
            if outcome.is_err() {
                one = [false; 3];
            }
            done.iter_mut()
                .zip(one)
                .for_each(|(sum, one)| *sum += u64::from(one));
            refused += u64::from(one.contains(&false));
        }
        let findings = pool.check().unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(pool.trace().unwrap().reclaimed, 0);
        session.read(|view| {
            let hash = HashMap::open(view, "hash").unwrap();
            let vector = Vector::open(view, "vector").unwrap();
            let queue = Queue::open(view, "queue").unwrap();
            let none = Vec::<String>::new();
            assert_eq!(hash.check().unwrap(), none);
            assert_eq!(vector.check().unwrap(), none);
            assert_eq!(queue.check().unwrap(), none);
            let lens = [&hash.len(), &vector.len(), &queue.len()];
            assert_eq!(lens.map(|len| *len.as_ref().unwrap()), done);
        });
        for n in 1..=number {
            session
                .transaction(|tx| {
                    HashMap::open(tx, "hash")?.remove(&n.to_le_bytes())?;
                    Vector::open(tx, "vector")?.pop()?;
                    Queue::open(tx, "queue")?.pop_front().map(|_| ())
                })
                .unwrap();
        }
        session
            .transaction(|tx| {
                assert_eq!(HashMap::open(tx, "hash")?.len()?, 0);
                HashMap::open(tx, "hash")?.clear()?;
                Vector::open(tx, "vector")?.clear()?;
                Queue::open(tx, "queue")?.clear()
            })
            .unwrap();
        assert_eq!(pool.trace().unwrap().objects, 3);
    }
}

type Each = for<'t> fn(Tx<'t, Mapped>, u64) -> Result<(), Error>;

/// A structure: how it is made, how an entry comes, and how it goes.
struct Emptied {
    name: &'static str,
    create: for<'t> fn(Tx<'t, Mapped>) -> Result<(), Error>,
    insert: Each,
    remove: Each,
}

const VALUE: [u8; 24] = [7; 24];

/// Keys that come in no order.
fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A structure whose entries have keys.
macro_rules! keyed {
    ($type:ident, $n:ident => $key:expr) => {
        Emptied {
            name: stringify!($type),
            create: |tx| $type::create(tx, "it").map(|_| ()),
            insert: |tx, $n| $type::open(tx, "it")?.insert($key, &VALUE).map(|_| ()),
            remove: |tx, $n| {
                assert!($type::open(tx, "it")?.remove($key)?);
                Ok(())
            },
        }
    };
}

fn structures() -> [Emptied; 8] {
    [
        keyed!(Map, n => &mixed(n).to_le_bytes()),
        keyed!(HashMap, n => &mixed(n).to_le_bytes()),
        keyed!(AvlTree, n => mixed(n)),
        keyed!(RedBlackTree, n => mixed(n)),
        keyed!(InlineTree, n => mixed(n)),
        Emptied {
            name: "List",
            create: |tx| List::create(tx, "it").map(|_| ()),
            insert: |tx, n| List::open(tx, "it")?.push_back(n, &VALUE),
            remove: |tx, n| {
                assert_eq!(List::open(tx, "it")?.pop_front()?.unwrap().0, n);
                Ok(())
            },
        },
        Emptied {
            name: "Queue",
            create: |tx| Queue::create(tx, "it").map(|_| ()),
            insert: |tx, _| Queue::open(tx, "it")?.push_back(&VALUE),
            remove: |tx, _| {
                assert!(Queue::open(tx, "it")?.pop_front()?.is_some());
                Ok(())
            },
        },
        Emptied {
            name: "Vector",
            create: |tx| Vector::create(tx, "it").map(|_| ()),
            insert: |tx, _| Vector::open(tx, "it")?.push(&VALUE),
            remove: |tx, _| {
                assert!(Vector::open(tx, "it")?.pop()?.is_some());
                Ok(())
            },
        },
    ]
}

/// Inserts until nothing fits, many entries a transaction and then ever fewer. How many it has then.
fn fill(session: &mut Session<Mapped>, of: &Emptied) -> u64 {
    let (mut entries, mut together) = (0, 1_000);
    while together > 0 {
        let outcome = session
            .transaction(|tx| (entries..entries + together).try_for_each(|n| (of.insert)(tx, n)));
        match outcome {
            Ok(()) => entries += together,
            Err(Error::PoolFull { .. }) => together /= 10,
            Err(other) => panic!("{}: {other}", of.name),
        }
    }
    entries
}

/// Entry by entry, so that what each removal stores and frees is in the one log.
#[test]
fn a_full_pool_is_emptied_in_one_transaction() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        for of in structures() {
            let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
            let options = PoolOptions {
                kind,
                max_bytes: Some(20 << 20),
                ..PoolOptions::new("test")
            };
            let pool = Pool::create(medium, &options).unwrap();
            let mut session = pool.session().unwrap();
            session.transaction(|tx| (of.create)(tx)).unwrap();
            let entries = fill(&mut session, &of);
            assert!(entries > 10_000, "{}: {entries}", of.name);
            let emptied =
                session.transaction(|tx| (0..entries).try_for_each(|n| (of.remove)(tx, n)));
            if let Err(error) = emptied {
                panic!("{kind:?} {}, {entries} entries: {error}", of.name);
            }
            let again = fill(&mut session, &of);
            assert!(
                again >= entries * 9 / 10,
                "{}: {again} of {entries}",
                of.name
            );
            let findings = pool.check().unwrap();
            assert!(findings.is_empty(), "{}: {findings:?}", of.name);
        }
    }
}
