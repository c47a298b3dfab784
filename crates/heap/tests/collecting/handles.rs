//! Do handles keep their objects, and find them after a move?

use crate::collect_support::{KINDS, MIXED, Spine, collect, leave_open};
use firn_crash::{Crash, CrashOptions};
use firn_heap::collector::{CollectOptions, Marking, PageSize};
use firn_heap::{Bytes, Error, Handle, Pool, PoolKind, Session, View};
use firn_units::VirtAddr;

/// Places whose objects get handles.
const PLACES: [usize; 3] = [5, 500, 995];

fn crash() -> Crash {
    Crash::new(32 << 20, CrashOptions::default())
}

fn small() -> CollectOptions {
    collect(PageSize::Small)
}

type ByHandle = Handle<Bytes, Crash>;

fn content(session: &mut Session<Crash>, handle: &ByHandle) -> Option<Vec<u8>> {
    session.read(|view| view.deref(handle).map(|b| b.to_vec().unwrap()))
}

fn address(session: &mut Session<Crash>, handle: &ByHandle) -> VirtAddr {
    session.read(|view| view.deref(handle).unwrap().address())
}

fn at(session: &mut Session<Crash>, place: usize) -> Vec<u8> {
    session.read(|view| {
        let spine = view.root::<Spine>("spine").unwrap();
        spine.get(place).unwrap().to_vec().unwrap()
    })
}

/// Handles to the objects of the places: strong ones and weak ones.
fn handles(pool: &Pool<Crash>, session: &mut Session<Crash>) -> [Vec<ByHandle>; 2] {
    session.read(|view| {
        let spine = view.root::<Spine>("spine").unwrap();
        let of = |place| spine.get(place).unwrap();
        [
            PLACES.map(|place| pool.handle(of(place))).into(),
            PLACES.map(|place| pool.weak_handle(of(place))).into(),
        ]
    })
}

fn unlink(session: &mut Session<Crash>) {
    session
        .transaction(|tx| {
            let spine = tx.root::<Spine>("spine")?;
            PLACES.iter().try_for_each(|&place| spine.set(place, None))
        })
        .unwrap();
}

#[test]
fn handles_follow_what_moves() {
    for kind in KINDS {
        let pool = MIXED.pool(crash(), kind);
        let mut session = pool.session().unwrap();
        let [strong, weak] = handles(&pool, &mut session);
        let expected = PLACES.map(|place| at(&mut session, place));
        let before: Vec<_> = strong.iter().map(|h| address(&mut session, h)).collect();
        for moved in [0, 1, 100] {
            leave_open(&pool, &small(), moved);
            for (i, expected) in expected.iter().enumerate() {
                for handle in [&strong[i], &weak[i]] {
                    assert_eq!(content(&mut session, handle).as_ref(), Some(expected));
                }
                assert_eq!(
                    address(&mut session, &strong[i]),
                    address(&mut session, &weak[i])
                );
            }
            if moved > 0 {
                break;
            }
        }
        pool.collect(&small()).unwrap();
        let after: Vec<_> = strong.iter().map(|h| address(&mut session, h)).collect();
        assert!(before.iter().zip(&after).all(|(a, b)| a != b), "all moved");
        // The old slots hold other objects now.
        for _ in 0..3000 {
            session
                .transaction(|tx| tx.alloc_bytes(&[0xee; 60]).map(drop))
                .unwrap();
        }
        for (i, expected) in expected.iter().enumerate() {
            for handle in [&strong[i], &weak[i]] {
                assert_eq!(content(&mut session, handle).as_ref(), Some(expected));
            }
        }
    }
}

#[test]
fn strong_handles_keep_what_nothing_else_refers_to() {
    for marking in [Marking::Concurrent, Marking::StopTheWorld] {
        let how = CollectOptions { marking, ..small() };
        let pool = MIXED.pool(crash(), PoolKind::Traced);
        let mut session = pool.session().unwrap();
        let [strong, weak] = handles(&pool, &mut session);
        let expected = PLACES.map(|place| at(&mut session, place));
        unlink(&mut session);
        for _ in 0..3 {
            assert_eq!(pool.collect(&how).unwrap().reclaimed, 0);
            for (i, expected) in expected.iter().enumerate() {
                for handle in [&strong[i], &weak[i]] {
                    assert_eq!(content(&mut session, handle).as_ref(), Some(expected));
                }
            }
        }
        drop(strong);
        assert_eq!(pool.collect(&how).unwrap().reclaimed, PLACES.len() as u64);
        for weak in &weak {
            assert_eq!(content(&mut session, weak), None, "{marking:?}");
        }
        assert_eq!(pool.check().unwrap(), []);
    }
}

#[test]
fn what_a_weak_handle_led_to_stays_once_it_is_stored() {
    let pool = MIXED.pool(crash(), PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let [strong, weak] = handles(&pool, &mut session);
    let expected = at(&mut session, PLACES[0]);
    unlink(&mut session);
    drop(strong);
    leave_open(&pool, &small(), 0);
    // Marking is over: the handle is empty, or its object lives on.
    assert_eq!(content(&mut session, &weak[0]), None);
    pool.collect(&small()).unwrap();
    let kept = session
        .transaction(|tx| {
            let new = tx.alloc_bytes(&expected)?;
            Ok::<_, Error>(pool.weak_handle(new))
        })
        .unwrap();
    session
        .transaction(|tx| {
            let found = tx.deref(&kept);
            tx.root::<Spine>("spine")?.set(PLACES[0], found)
        })
        .unwrap();
    assert_eq!(pool.collect(&small()).unwrap().reclaimed, 0);
    assert_eq!(content(&mut session, &kept), Some(expected));
}

/// Collections in a row.
const ROUNDS: usize = 8;

#[test]
fn a_handle_lasts_over_many_cycles() {
    let pool = MIXED.pool(crash(), PoolKind::Traced);
    let mut session = pool.session().unwrap();
    let [strong, _weak] = handles(&pool, &mut session);
    let expected = PLACES.map(|place| at(&mut session, place));
    let mut moves = 0;
    for round in 0..ROUNDS {
        // The pages become sparse again around the objects with handles.
        let goes = |place: &usize| place / 5 % ROUNDS == round && !PLACES.contains(place);
        session
            .transaction(|tx| {
                let spine = tx.root::<Spine>("spine")?;
                let mut going = (0..MIXED.count).step_by(5).filter(goes);
                going.try_for_each(|place| spine.set(place, None))
            })
            .unwrap();
        let before: Vec<_> = strong.iter().map(|h| address(&mut session, h)).collect();
        let everything = CollectOptions {
            everything: true,
            ..small()
        };
        pool.collect(&everything).unwrap();
        for (i, expected) in expected.iter().enumerate() {
            assert_eq!(content(&mut session, &strong[i]).as_ref(), Some(expected));
            moves += u64::from(address(&mut session, &strong[i]) != before[i]);
        }
    }
    assert!(moves > PLACES.len() as u64, "{moves}: some moved twice");
}
