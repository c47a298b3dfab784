//! Does a collection stay sound when the pool is full, and can it still be emptied?

use crate::support::limited_pool;
use firn_heap::{Error, Pool, PoolKind, Reading, Session, Tx};
use firn_mapped::Mapped;
use firn_structures::{AvlTree, HashMap, InlineTree, List, Map, Queue, RedBlackTree, Vector};

const KINDS: [PoolKind; 2] = [PoolKind::Traced, PoolKind::Explicit];

type Each = for<'t> fn(Tx<'t, Mapped>, u64) -> Result<(), Error>;
type Whole = for<'t> fn(Tx<'t, Mapped>) -> Result<(), Error>;

/// A structure: making it, inserting and removing an entry, and checking it.
struct Part {
    name: &'static str,
    create: Whole,
    insert: Each,
    /// Removes the entry, which may not exist.
    remove: Each,
    /// Its defects, and its number of entries.
    look: for<'g> fn(Reading<'g, Mapped>) -> Result<(Vec<String>, u64), Error>,
    clear: Whole,
}

/// A structure under its own name. `insert` and `remove` get the structure and a number.
macro_rules! part {
    ($type:ident, |$it:ident, $n:ident| $insert:expr, $remove:expr) => {
        Part {
            name: stringify!($type),
            create: |tx| $type::create(tx, stringify!($type)).map(drop),
            insert: |tx, $n| {
                let mut $it = $type::open(tx, stringify!($type))?;
                let _ = $n;
                $insert.map(drop)
            },
            remove: |tx, $n| {
                let mut $it = $type::open(tx, stringify!($type))?;
                let _ = $n;
                $remove.map(drop)
            },
            look: |view| {
                let it = $type::open(view, stringify!($type))?;
                Ok((it.check()?, it.len()?))
            },
            clear: |tx| $type::open(tx, stringify!($type))?.clear(),
        }
    };
}

/// Keys in no order.
fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Fills a pool with `parts`, each of which gets one entry per transaction, until this many transactions were refused
/// something, and removes the entries again. Returns the pool.
fn crowd((kind, max_bytes): (PoolKind, u64), parts: &[Part], refusals: u64) -> Pool<Mapped> {
    let pool = limited_pool(kind, max_bytes);
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| parts.iter().try_for_each(|part| (part.create)(tx)))
        .unwrap();
    let (mut done, mut refused, mut number) = (vec![0; parts.len()], 0, 0);
    while refused < refusals {
        number += 1;
        let outcome = session.transaction(|tx| {
            // Errors are ignored: a failed operation must have changed nothing.
            let each = parts.iter().map(|part| (part.insert)(tx, number).is_ok());
            Ok::<_, Error>(each.collect::<Vec<_>>())
        });
        let each = outcome.unwrap_or_else(|_| vec![false; parts.len()]);
        refused += u64::from(each.contains(&false));
        for (done, one) in done.iter_mut().zip(each) {
            *done += u64::from(one);
        }
    }
    let findings = pool.check().unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(pool.trace().unwrap().reclaimed, 0);
    assert_holds(&mut session, parts, &done);
    // One by one, because the log of a larger transaction may need room.
    for n in 1..=number {
        session
            .transaction(|tx| parts.iter().try_for_each(|part| (part.remove)(tx, n)))
            .unwrap();
    }
    assert_holds(&mut session, parts, &vec![0; parts.len()]);
    drop(session);
    pool
}

/// Asserts that each of the structures is sound and has its number of entries.
fn assert_holds(session: &mut Session<Mapped>, parts: &[Part], lens: &[u64]) {
    for (part, &len) in parts.iter().zip(lens) {
        let (findings, found) = session.read(|view| (part.look)(view)).unwrap();
        assert_eq!(findings, Vec::<String>::new(), "{}", part.name);
        assert_eq!(found, len, "{}", part.name);
    }
}

/// Long names fill the pool; short ones, of several classes, may still fit when a node does not.
fn name(number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(7919) % 1_000_003;
    let width = match number % 3 {
        0 => 1000,
        _ => 30 + (number % 8) as usize * 16,
    };
    format!("{mixed:0width$}").into_bytes()
}

#[test]
fn an_insert_without_room_changes_nothing() {
    for kind in KINDS {
        let parts = [
            part!(
                Map,
                |map, n| map.insert(&name(n), b""),
                map.remove(&name(n))
            ),
            part!(List, |list, n| list.push_back(n, &[1; 20]), list.remove(n)),
        ];
        let pool = crowd((kind, 24 << 20), &parts, 4_000);
        assert_eq!(pool.trace().unwrap().objects, 2);
    }
}

#[test]
fn an_insert_in_a_tree_without_room_changes_nothing() {
    /// Values of every length that fits a leaf.
    fn value(number: u64) -> Vec<u8> {
        vec![1; number as usize % 128]
    }
    for kind in KINDS {
        for tree in [
            part!(
                AvlTree,
                |tree, n| tree.insert(mixed(n), &value(n)),
                tree.remove(mixed(n))
            ),
            part!(
                RedBlackTree,
                |tree, n| tree.insert(mixed(n), &value(n)),
                tree.remove(mixed(n))
            ),
            part!(
                InlineTree,
                |tree, n| tree.insert(mixed(n), &value(n)),
                tree.remove(mixed(n))
            ),
        ] {
            let pool = crowd((kind, 18 << 20), &[tree], 300);
            assert_eq!(pool.trace().unwrap().objects, 1);
        }
    }
}

#[test]
fn tables_stay_sound_without_room_and_can_be_emptied() {
    /// Values of several classes, some of which still fit when an array or a bucket does not.
    fn bytes(number: u64) -> Vec<u8> {
        let len = match number % 3 {
            0 => 900,
            _ => (number % 9) as usize * 16,
        };
        vec![number as u8; len]
    }
    for kind in KINDS {
        let parts = [
            part!(
                HashMap,
                |hash, n| hash.insert(&n.to_le_bytes(), &bytes(n)),
                hash.remove(&n.to_le_bytes())
            ),
            part!(Vector, |vector, n| vector.push(&bytes(n + 1)), vector.pop()),
            part!(
                Queue,
                |queue, n| queue.push_back(&bytes(n + 2)),
                queue.pop_front()
            ),
        ];
        let pool = crowd((kind, 24 << 20), &parts, 3_000);
        let mut session = pool.session().unwrap();
        session
            .transaction(|tx| parts.iter().try_for_each(|part| (part.clear)(tx)))
            .unwrap();
        assert_eq!(pool.trace().unwrap().objects, 3);
    }
}

const VALUE: [u8; 24] = [7; 24];

/// Asserts that this holds.
fn holds(is_so: bool) -> Result<(), Error> {
    assert!(is_so);
    Ok(())
}

/// A structure whose entries have keys.
macro_rules! keyed {
    ($type:ident, $n:ident => $key:expr) => {
        part!(
            $type,
            |it, $n| it.insert($key, &VALUE),
            holds(it.remove($key)?)
        )
    };
}

fn structures() -> [Part; 8] {
    [
        keyed!(Map, n => &mixed(n).to_le_bytes()),
        keyed!(HashMap, n => &mixed(n).to_le_bytes()),
        keyed!(AvlTree, n => mixed(n)),
        keyed!(RedBlackTree, n => mixed(n)),
        keyed!(InlineTree, n => mixed(n)),
        part!(
            List,
            |list, n| list.push_back(n, &VALUE),
            holds(list.pop_front()?.unwrap().0 == n)
        ),
        part!(
            Queue,
            |queue, n| queue.push_back(&VALUE),
            holds(queue.pop_front()?.is_some())
        ),
        part!(
            Vector,
            |vector, n| vector.push(&VALUE),
            holds(vector.pop()?.is_some())
        ),
    ]
}

/// Inserts until nothing fits, many entries per transaction and then ever fewer. Returns the number of entries.
fn fill(session: &mut Session<Mapped>, of: &Part) -> u64 {
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

/// Entry by entry, all in one transaction, so that the stores and frees of each removal share one log.
#[test]
fn a_full_pool_is_emptied_in_one_transaction() {
    for kind in KINDS {
        for of in structures() {
            let pool = limited_pool(kind, 20 << 20);
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
