//! Do undo transactions restore the logged bytes after any crash?

mod freeing;
mod refused;

use firn_crash::{Crash, ExploreOptions, Explorer};
use firn_format::lane::{ENTRY_HEADER_WORDS, EntryHeader, lane_at, undo_done_at};
use firn_format::sealed::{MAX_VALUE, Seal};
use firn_heap::{Error, Gathering, LogKind, Pool, PoolKind, PoolOptions, View};
use firn_media::{Memory, Space};
use firn_units::{VirtAddr, WORD_BYTES};

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        log: LogKind::Undo,
        lanes: 1,
        publish_every: u32::MAX,
        ..PoolOptions::new("undo")
    }
}

/// A pool with an object of two words, 1 and 2, and its address.
fn make(crash: &Crash, kind: PoolKind) -> VirtAddr {
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    let at = session
        .raw_transaction(|tx| {
            let at = tx.alloc(200)?;
            tx.store(at, &1u64.to_le_bytes())?;
            tx.store(at + 128, &2u64.to_le_bytes())?;
            tx.set_root("object", Some(at))?;
            Ok::<_, Error>(at)
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
    at
}

/// Objects that are allocated according to the bits on media.
fn allocated(pool: &Pool<Crash>) -> Result<usize, Error> {
    let mut session = pool.session()?;
    let guard = session.raw_guard()?;
    let (mut count, mut at) = (0, VirtAddr(0));
    while let Some(next) = guard.next_object(at)? {
        (count, at) = (count + 1, next);
    }
    Ok(count)
}

#[test]
fn a_batch_costs_three_fences() {
    let crash = Crash::new(16 << 20, Default::default());
    let at = make(&crash, PoolKind::Traced);
    let pool = Pool::open(crash.clone(), &options(PoolKind::Traced)).unwrap();
    let mut session = pool.session().unwrap();
    crash.reset_counts();
    session
        .raw_transaction(|tx| {
            tx.log(&[(at, 8), (at + 128, 8)])?;
            tx.store(at, &3u64.to_le_bytes())?;
            tx.store(at + 128, &4u64.to_le_bytes())
        })
        .unwrap();
    assert_eq!(crash.counts().fences, 3);
}

/// How to undo an object's bit is logged in the batch after the allocation, or by itself at the end.
#[test]
fn what_is_allocated_in_front_of_a_batch_costs_no_fence() {
    let crash = Crash::new(16 << 20, Default::default());
    let at = make(&crash, PoolKind::Explicit);
    let pool = Pool::open(crash.clone(), &options(PoolKind::Explicit)).unwrap();
    let mut session = pool.session().unwrap();
    let mut fences = |is_first: bool| {
        crash.reset_counts();
        let done = session.raw_transaction(|tx| {
            if is_first {
                tx.alloc(16)?;
            }
            tx.log(&[(at, 8)])?;
            if !is_first {
                tx.alloc(16)?;
            }
            Ok::<_, Error>(())
        });
        done.unwrap();
        crash.counts().fences
    };
    // The first one takes a page.
    fences(true);
    assert_eq!([fences(true), fences(false)], [3, 4]);
}

#[test]
fn stores_that_were_not_logged_are_refused() {
    let crash = Crash::new(16 << 20, Default::default());
    let at = make(&crash, PoolKind::Traced);
    let pool = Pool::open(crash, &options(PoolKind::Traced)).unwrap();
    let mut session = pool.session().unwrap();
    let result: Result<(), Error> = session.raw_transaction(|tx| {
        tx.log(&[(at, 8)])?;
        tx.store(at + 8, &[1; 8])
    });
    assert!(matches!(result, Err(Error::NotLogged { .. })));
    let typed = session.transaction(|tx| tx.alloc_bytes(b"x").map(|_| ()));
    assert!(matches!(typed, Err(Error::WrongKind { .. })));
}

/// Bytes that are logged already are not logged again, and may be stored to together with newly logged ones.
#[test]
fn ranges_that_overlap_are_logged_once() {
    let crash = Crash::new(16 << 20, Default::default());
    let at = make(&crash, PoolKind::Explicit);
    let pool = Pool::open(crash.clone(), &options(PoolKind::Explicit)).unwrap();
    let mut session = pool.session().unwrap();
    let aborted: Result<(), Error> = session.raw_transaction(|tx| {
        tx.log(&[(at + 8, 8)])?;
        tx.store(at + 8, &[7; 8])?;
        tx.log(&[(at, 24)])?;
        tx.store(at, &[9; 24])?;
        crash.reset_counts();
        tx.log(&[(at, 24), (at + 3, 10)])?;
        assert_eq!(crash.counts().fences, 0);
        assert!(matches!(
            tx.store(at, &[9; 25]),
            Err(Error::NotLogged { .. })
        ));
        Err(Error::ReadOnly)
    });
    assert!(aborted.is_err());
    let words = [0, 8, 16].map(|i| pool.medium().load_u64(at + i));
    assert_eq!(words, [1, 0, 0]);
}

/// A pool for two sessions, with an object of 24 bytes, each of which holds its index.
fn numbered_bytes() -> (Pool<Crash>, VirtAddr) {
    let options = PoolOptions {
        lanes: 2,
        ..options(PoolKind::Explicit)
    };
    let pool = Pool::create(Crash::new(16 << 20, Default::default()), &options).unwrap();
    let mut session = pool.session().unwrap();
    let at = session.raw_transaction(|tx| {
        let at = tx.alloc(24)?;
        let numbers: [u8; 24] = core::array::from_fn(|i| i as u8);
        tx.store(at, &numbers)?;
        Ok::<_, Error>(at)
    });
    drop(session);
    (pool, at.unwrap())
}

fn bytes(crash: &Crash, at: VirtAddr) -> [u8; 24] {
    let mut found = [0; 24];
    crash.load_bytes(at, &mut found);
    found
}

/// Every part of three words, in an abort and in recovery.
#[test]
fn a_rollback_restores_the_bytes_that_were_logged_and_none_beside_them() {
    for start in 0..24u64 {
        for len in 1..=24 - start {
            let (pool, at) = numbered_bytes();
            let [mut one, mut other] = [(); 2].map(|()| pool.session().unwrap());
            let range = start as usize..(start + len) as usize;
            let beside: Vec<usize> = (0..24).filter(|i| !range.contains(i)).collect();
            let open = one.raw_guard().unwrap().begin().unwrap();
            open.tx().log(&[(at + start, len)]).unwrap();
            open.tx()
                .store(at + start, &[99; 24][range.clone()])
                .unwrap();
            for &i in &beside {
                let at = at + i as u64;
                let committed = other.raw_transaction(|tx| {
                    tx.log(&[(at, 1)])?;
                    tx.store(at, &[77])
                });
                committed.unwrap();
            }
            let expected: [u8; 24] =
                core::array::from_fn(|i| if range.contains(&i) { i as u8 } else { 77 });
            let crashed = Crash::from_image(&pool.medium().cache_image(), Default::default());
            let options = PoolOptions {
                lanes: 2,
                ..options(PoolKind::Explicit)
            };
            Pool::open(crashed.clone(), &options).unwrap().abandon();
            assert_eq!(bytes(&crashed, at), expected, "recovery of {range:?}");
            drop(open.roll_back());
            assert_eq!(bytes(pool.medium(), at), expected, "abort of {range:?}");
            drop((one, other));
            pool.close().unwrap();
        }
    }
}

/// A store to logged bytes leaves the neighbouring bytes as another thread has stored them, and noted bytes do not
/// count as logged.
#[test]
fn bytes_beside_a_range_are_neither_stored_nor_taken_for_logged() {
    let (pool, at) = numbered_bytes();
    let mut session = pool.session().unwrap();
    let aborted: Result<(), Error> = session.raw_transaction(|tx| {
        tx.note(at + 8, 4)?;
        assert!(matches!(
            tx.store(at + 11, &[1, 1]),
            Err(Error::NotLogged { .. })
        ));
        tx.log(&[(at + 12, 4), (at + 3, 2)])?;
        tx.store(at + 12, &[99; 4])?;
        pool.medium().reset_counts();
        tx.store(at + 3, &[99; 2])?;
        // One of them is byte 3, the other byte 4: no word was stored, and none was read.
        let counts = pool.medium().counts();
        assert_eq!((counts.stores, counts.loads), (2, 0));
        Err(Error::ReadOnly)
    });
    assert!(aborted.is_err());
    let numbers: [u8; 24] = core::array::from_fn(|i| i as u8);
    assert_eq!(bytes(pool.medium(), at), numbers);
}

/// Long ranges that begin and end within a word, in as many records as they need.
#[test]
fn a_long_range_of_bytes_is_restored_whole() {
    let crash = Crash::new(16 << 20, Default::default());
    let pool = Pool::create(crash.clone(), &options(PoolKind::Explicit)).unwrap();
    let mut session = pool.session().unwrap();
    let len = 20_000;
    let old: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    let made = session.raw_transaction(|tx| {
        let at = tx.alloc(len)?;
        tx.store(at, &old)?;
        Ok::<_, Error>(at)
    });
    let at = made.unwrap();
    for (from, to) in [
        (1, len),
        (3, len - 5),
        (8, len - 1),
        (7, 4103),
        (7, 4104),
        (7, 4105),
    ] {
        let aborted: Result<(), Error> = session.raw_transaction(|tx| {
            tx.log(&[(at + from, to - from)])?;
            tx.store(at + from, &vec![99; (to - from) as usize])?;
            Err(Error::ReadOnly)
        });
        assert!(aborted.is_err());
        let mut found = vec![0; len as usize];
        crash.load_bytes(at, &mut found);
        assert!(found == old, "{from} to {to}");
    }
}

#[test]
fn every_image_of_two_batches_is_all_or_nothing() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        for abort in [false, true] {
            let crash = Crash::new(16 << 20, Default::default());
            let at = make(&crash, kind);
            let before = Pool::open(crash, &options(kind)).unwrap();
            let before = allocated(&before).unwrap();
            let explorer = Explorer::new(
                ExploreOptions {
                    recovery_depth: 2,
                    ..Default::default()
                },
                16 << 20,
                |crash| assert_eq!(make(crash, kind), at),
                |crash| {
                    let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
                    let mut session = pool.session().unwrap();
                    let done: Result<(), Error> = session.raw_transaction(|tx| {
                        let gone = tx.alloc(300)?;
                        tx.log(&[(at, 8)])?;
                        tx.store(at, &3u64.to_le_bytes())?;
                        tx.log(&[(at + 128, 8)])?;
                        tx.store(at + 128, &4u64.to_le_bytes())?;
                        let new = tx.alloc(16)?;
                        tx.store(new, &5u64.to_le_bytes())?;
                        tx.set_root("new", Some(new))?;
                        // SAFETY: nothing refers to it.
                        unsafe { tx.free(gone) }?;
                        if abort { Err(Error::ReadOnly) } else { Ok(()) }
                    });
                    assert_eq!(done.is_err(), abort);
                    crash.note(1);
                    pool.abandon();
                },
                |crash, state| {
                    let pool = Pool::open(crash, &options(kind)).map_err(|e| e.to_string())?;
                    pool.medium().end_of_recovery();
                    let word = |at: VirtAddr| pool.medium().load_u64(at);
                    let found = (word(at), word(at + 128));
                    let mut session = pool.session().map_err(|e| e.to_string())?;
                    let names = session.read(|view| view.root_names()).unwrap();
                    drop(session);
                    let findings = pool.check().map_err(|e| e.to_string())?;
                    let more = match kind {
                        PoolKind::Explicit => allocated(&pool).map_err(|e| e.to_string())? - before,
                        PoolKind::Traced => names.len() - 1,
                    };
                    pool.abandon();
                    let old = found == (1, 2) && names == ["object"] && more == 0;
                    let new = found == (3, 4) && names == ["object", "new"] && more == 1;
                    let legal = match (abort, state.note(0)) {
                        (true, _) => old,
                        (false, 1) => new,
                        (false, _) => old || new,
                    };
                    match (legal, findings.first()) {
                        (true, None) => Ok(()),
                        (_, Some(finding)) => Err(finding.to_string()),
                        (false, None) => {
                            Err(format!("found {found:?} {names:?}, {more} objects more"))
                        }
                    }
                },
            );
            assert!(explorer.explore().expect_clean().exhaustive());
        }
    }
}

/// Words that a transaction changes one by one: far more batches than fit into its lane.
const MANY: u64 = 6000;

fn many_words(kind: PoolKind) -> (Crash, VirtAddr) {
    let crash = Crash::new(16 << 20, Default::default());
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    let at = session.raw_transaction(|tx| tx.alloc(MANY * 16));
    drop(session);
    pool.close().unwrap();
    (crash, at.unwrap())
}

#[test]
fn a_log_goes_on_outside_its_lane() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let (crash, at) = many_words(kind);
        let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
        let mut session = pool.session().unwrap();
        let word = |i: u64| crash.load_u64(at + i * 16);
        let change = |tx: firn_heap::RawTx<'_, Crash>, number: u64| {
            for i in 0..MANY {
                tx.log(&[(at + i * 16, 8)])?;
                tx.store(at + i * 16, &(number + i).to_le_bytes())?;
            }
            Ok::<_, Error>(())
        };
        // Repeatedly: the frames of its log come back.
        for round in 1..30 {
            session.raw_transaction(|tx| change(tx, round)).unwrap();
            assert!((0..MANY).all(|i| word(i) == round + i));
            let aborted: Result<(), Error> = session.raw_transaction(|tx| {
                change(tx, 1 << 40)?;
                Err(Error::ReadOnly)
            });
            assert!(aborted.is_err());
            assert!((0..MANY).all(|i| word(i) == round + i));
        }
        let image = session.raw_transaction(|tx| {
            change(tx, 1 << 50)?;
            Ok::<_, Error>(crash.cache_image())
        });
        drop(session);
        pool.abandon();
        let crashed = Crash::from_image(&image.unwrap(), Default::default());
        let pool = Pool::open(crashed.clone(), &options(kind)).unwrap();
        assert!((0..MANY).all(|i| crashed.load_u64(at + i * 16) == 29 + i));
        assert!(pool.check().unwrap().is_empty());
    }
}

/// A rollback by recovery ends the transaction, so its restored bytes are durable then, to the last line of a record.
#[test]
fn a_record_of_many_lines_is_restored_for_good() {
    const BYTES: usize = 1_500;
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let crash = Crash::new(16 << 20, Default::default());
        let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
        let mut session = pool.session().unwrap();
        let made = session.raw_transaction(|tx| {
            let at = tx.alloc(BYTES as u64)?;
            tx.store(at, &[1; BYTES])?;
            tx.set_root("object", Some(at))?;
            Ok::<_, Error>(at)
        });
        let at = made.unwrap();
        drop(session);
        pool.close().unwrap();
        let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
        let mut session = pool.session().unwrap();
        let mut images = Vec::new();
        let aborted: Result<(), Error> = session.raw_transaction(|tx| {
            tx.log(&[(at, BYTES as u64)])?;
            tx.store(at, &[2; BYTES])?;
            images.extend((0..24).map(|seed| crash.random_image(seed)));
            Err(Error::ReadOnly)
        });
        assert!(aborted.is_err());
        for (first, image) in images.iter().enumerate() {
            let recovered = Crash::from_image(image, Default::default());
            let open = |crash: &Crash| Pool::open(crash.clone(), &options(kind)).unwrap();
            open(&recovered).abandon();
            for second in 0..4 {
                let again = Crash::from_image(&recovered.random_image(second), Default::default());
                open(&again).abandon();
                let mut found = [0; BYTES];
                again.load_bytes(at, &mut found);
                assert_eq!(found, [1; BYTES], "draws {first} and {second}");
            }
        }
    }
}

/// In raw transactions: nothing of the range is accepted, and its content stays.
#[test]
fn ranges_and_lengths_at_every_edge_are_refused() {
    let crash = Crash::new(16 << 20, Default::default());
    let at = make(&crash, PoolKind::Explicit);
    let pool = Pool::open(crash.clone(), &options(PoolKind::Explicit)).unwrap();
    let mut session = pool.session().unwrap();
    let end = crash.len();
    let ends = (0..18).map(|i| u64::MAX - i);
    let powers = [1 << 31, 1 << 32, 1 << 48, 1 << 63].into_iter();
    let around = powers.flat_map(|power: u64| [power - 8, power - 1, power, power + 1]);
    for edge in ends.chain(around).chain([end, end + 1, end - at.0 + 1]) {
        let done = session.raw_transaction(|tx| {
            let bad = |error| matches!(error, Err(Error::BadRange { .. }));
            for from in [at, at + 1, at + 8, at + 200] {
                assert!(bad(tx.log(&[(from, edge)])), "{edge:#x} from {from}");
                assert!(bad(tx.note(from, edge)), "{edge:#x} from {from}");
                // A good range is not accepted together with a bad one.
                assert!(bad(tx.log(&[(at, 8), (from, edge)])));
                assert!(matches!(tx.store(at, &[9]), Err(Error::NotLogged { .. })));
            }
            let far = [edge, at.0.wrapping_add(edge)].map(VirtAddr);
            for from in far
                .into_iter()
                .filter(|from| from.0 >= end || from.0 < 4096)
            {
                for len in [1, 8, 4096] {
                    assert!(bad(tx.log(&[(from, len)])), "{len} from {from}");
                    assert!(bad(tx.note(from, len)), "{len} from {from}");
                }
                assert!(matches!(tx.store(from, &[9]), Err(Error::NotLogged { .. })));
            }
            // The pool may grow.
            if edge >= 1 << 31 {
                let large = tx.alloc(edge);
                let refused = matches!(
                    large,
                    Err(Error::ObjectTooLarge { .. } | Error::PoolFull { .. })
                );
                assert!(refused, "{large:?}");
            }
            Ok::<_, Error>(())
        });
        done.unwrap();
    }
    let last = session.raw_transaction(|tx| {
        // The last byte of the pool belongs to it.
        tx.log(&[(VirtAddr(end - 1), 1)])?;
        assert!(tx.log(&[(VirtAddr(end - 1), 2)]).is_err());
        assert!(matches!(tx.log(&[(at, 0)]), Err(Error::BadRange { .. })));
        Ok::<_, Error>(())
    });
    last.unwrap();
    assert_eq!([at, at + 128].map(|at| crash.load_u64(at)), [1, 2]);
    assert_eq!(pool.check().unwrap(), []);
}
