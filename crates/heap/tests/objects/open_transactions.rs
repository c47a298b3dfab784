//! Transactions that are begun and ended by separate calls.
#![allow(unsafe_code, reason = "each test has one transaction open at a time")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use firn_heap::{Bytes, Error, OpenTransaction, Pool, PoolKind, PoolOptions, Refs, Session, View};
use firn_mapped::{Mapped, MappedOptions};

fn pool(kind: PoolKind) -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    let options = PoolOptions {
        kind,
        ..PoolOptions::new("open transactions")
    };
    Pool::create(medium, &options).unwrap()
}

fn begin(session: &mut Session<Mapped>) -> OpenTransaction<'_, Mapped> {
    // SAFETY: every test ends its transaction before it begins the next.
    unsafe { session.begin() }.unwrap()
}

fn set(open: &OpenTransaction<'_, Mapped>, bytes: &[u8]) {
    let tx = open.tx();
    let new = tx.alloc_bytes(bytes).unwrap();
    tx.set_root("it", new).unwrap();
    let own = tx.root::<Bytes>("it").unwrap();
    assert_eq!(
        own.to_vec().unwrap(),
        bytes,
        "a transaction sees what it stored"
    );
}

fn content(session: &mut Session<Mapped>) -> Option<Vec<u8>> {
    session.read(|view| {
        let found = view.find_root::<Bytes>("it").unwrap();
        found.map(|bytes| bytes.to_vec().unwrap())
    })
}

#[test]
fn what_is_committed_is_there_and_what_is_dropped_is_not() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let pool = pool(kind);
        let mut session = pool.session().unwrap();
        let open = begin(&mut session);
        set(&open, b"never");
        drop(open);
        assert_eq!(content(&mut session), None);
        let open = begin(&mut session);
        set(&open, b"first");
        open.commit().unwrap();
        assert_eq!(content(&mut session).unwrap(), b"first");
        let open = begin(&mut session);
        set(&open, b"second");
        drop(open);
        assert_eq!(content(&mut session).unwrap(), b"first");
        assert_eq!(pool.check().unwrap(), []);
    }
}

#[test]
fn a_transaction_that_cannot_be_logged_is_rolled_back() {
    let pool = pool(PoolKind::Explicit);
    let mut session = pool.session().unwrap();
    let open = begin(&mut session);
    set(&open, b"kept");
    open.commit().unwrap();
    let open = begin(&mut session);
    set(&open, b"not kept");
    let bytes = open.tx().root::<Bytes>("it").unwrap();
    // SAFETY: the transaction fails, so that nothing is freed.
    unsafe {
        open.tx().free(bytes).unwrap();
        open.tx().free(bytes).unwrap();
    }
    let refused = open.commit().unwrap_err();
    assert!(matches!(refused, Error::NotAllocated { .. }), "{refused}");
    assert_eq!(content(&mut session).unwrap(), b"kept");
}

#[test]
fn a_transaction_that_is_committed_in_place_is_over() {
    let pool = pool(PoolKind::Explicit);
    let mut session = pool.session().unwrap();
    let mut open = begin(&mut session);
    set(&open, b"kept");
    open.commit_deferred().unwrap();
    let again = catch_unwind(AssertUnwindSafe(|| open.commit_deferred()));
    assert!(again.is_err(), "it was committed twice");
    let used = catch_unwind(AssertUnwindSafe(|| set(&open, b"too late")));
    assert!(used.is_err(), "it was used after its end");
    drop(open);
    assert_eq!(content(&mut session).unwrap(), b"kept");

    let mut open = begin(&mut session);
    set(&open, b"not kept");
    let bytes = open.tx().root::<Bytes>("it").unwrap();
    // SAFETY: the transaction fails, so that nothing is freed.
    unsafe {
        open.tx().free(bytes).unwrap();
        open.tx().free(bytes).unwrap();
    }
    let refused = open.commit_deferred().unwrap_err();
    assert!(matches!(refused, Error::NotAllocated { .. }), "{refused}");
    let again = catch_unwind(AssertUnwindSafe(|| open.commit_deferred()));
    assert!(again.is_err(), "what was rolled back was committed");
    drop(open);
    assert_eq!(content(&mut session).unwrap(), b"kept");
    assert_eq!(pool.check().unwrap(), []);
}

/// Every way in which parts within parts can end.
#[test]
fn parts_are_kept_or_rolled_back() {
    for outer_keeps in [false, true] {
        for inner_keeps in [false, true] {
            for kind in [PoolKind::Traced, PoolKind::Explicit] {
                let pool = pool(kind);
                let mut session = pool.session().unwrap();
                let open = begin(&mut session);
                set(&open, b"whole");
                let outer = open.tx().savepoint();
                set(&open, b"outer");
                let inner = open.tx().savepoint();
                set(&open, b"inner");
                if inner_keeps {
                    inner.keep();
                } else {
                    drop(inner);
                }
                if outer_keeps {
                    outer.keep();
                } else {
                    drop(outer);
                }
                let seen = open.tx().root::<Bytes>("it").unwrap().to_vec().unwrap();
                open.commit().unwrap();
                let wanted: &[u8] = match (outer_keeps, inner_keeps) {
                    (false, _) => b"whole",
                    (true, false) => b"outer",
                    (true, true) => b"inner",
                };
                assert_eq!(seen, wanted);
                assert_eq!(content(&mut session).unwrap(), wanted);
                assert_eq!(pool.check().unwrap(), []);
            }
        }
    }
}

/// Objects that one table names.
const IN_TABLE: usize = 8_000;

fn table(number: usize) -> String {
    format!("table {number}")
}

/// Fills an explicit pool with byte arrays of each length in turn, until no more fit. A transaction allocates a thousand
/// at first, fewer as the pool fills up. Returns the number of arrays.
fn fill(pool: &Pool<Mapped>, lengths: &[usize]) -> usize {
    let mut session = pool.session().unwrap();
    let mut made = 0;
    for &length in lengths {
        let value = vec![7; length];
        let mut together = 1_000;
        while together > 0 {
            let filled = session.transaction(|tx| {
                for index in made..made + together {
                    let (name, place) = (table(index / IN_TABLE), index % IN_TABLE);
                    if tx.find_root::<Refs<Bytes>>(&name)?.is_none() {
                        tx.set_root(&name, tx.alloc_refs::<Bytes>(IN_TABLE)?)?;
                    }
                    let new = tx.alloc_bytes(&value)?;
                    tx.root::<Refs<Bytes>>(&name)?.set(place, Some(new))?;
                }
                Ok::<_, Error>(())
            });
            match filled {
                Ok(()) => made += together,
                Err(Error::PoolFull { .. }) => together /= 10,
                Err(other) => panic!("{other}"),
            }
        }
    }
    made
}

/// Frees these objects in one transaction. Returns how many were there.
fn free(pool: &Pool<Mapped>, objects: impl Iterator<Item = usize> + Clone) -> usize {
    let freed = pool.session().unwrap().transaction(|tx| {
        let mut freed = 0;
        for index in objects.clone() {
            let table = tx.root::<Refs<Bytes>>(&table(index / IN_TABLE))?;
            let Some(object) = table.get(index % IN_TABLE) else {
                continue;
            };
            table.set(index % IN_TABLE, None)?;
            // SAFETY: only the table named it.
            unsafe { tx.free(object) }?;
            freed += 1;
        }
        Ok::<_, Error>(freed)
    });
    freed.unwrap()
}

/// Frees a few, many, and all at once; the log of all is longer than the space kept free for logs.
#[test]
fn any_number_of_objects_is_freed_in_a_full_pool_with_a_redo_log() {
    const BYTES: u64 = 48 << 20;
    for lengths in [&[20usize][..], &[4_000, 100, 8], &[20_000, 20]] {
        for counts in [&[1, 100, 128, 256, 1_000, 2_000, 10_000, 100_000][..], &[]] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("pool");
            let medium = Mapped::create(&path, 0, &MappedOptions::default()).unwrap();
            let full = PoolOptions {
                kind: PoolKind::Explicit,
                max_bytes: Some(BYTES),
                ..PoolOptions::new("full")
            };
            let pool = Pool::create(medium, &full).unwrap();
            let made = fill(&pool, lengths);
            let mut left = made;
            for (salt, &count) in counts.iter().enumerate() {
                // Spread over the pool.
                let step = (made / count).max(1);
                left -= free(&pool, (salt..made).step_by(step).take(count));
            }
            left -= free(&pool, 0..made);
            assert_eq!(left, 0);
            assert!(pool.check().unwrap().is_empty());
            // The pool takes as many again, and stays within its limit once it is closed.
            let again = fill(&pool, lengths);
            assert!(again >= made * 9 / 10, "{again} of {made}");
            pool.close().unwrap();
            let len = std::fs::metadata(&path).unwrap().len();
            assert!(len <= BYTES, "{len}");
        }
    }
}
