//! How many fences does a durable transaction cost in steady state?

use firn_crash::{Crash, CrashOptions};
use firn_heap::{Bytes, Error, Pool, PoolOptions, Refs, Session, View};
use firn_media::Domain;

/// Transactions before counting begins: the ring has been around once.
const WARM: usize = 20;
const COUNTED: u64 = 100;

fn pool(domain: Domain) -> (Crash, Pool<Crash>, Session<Crash>) {
    let crash = Crash::new(
        16 << 20,
        CrashOptions {
            domain,
            ..CrashOptions::default()
        },
    );
    let pool = Pool::create(crash.clone(), &PoolOptions::new("fences")).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let spine = tx.alloc_refs::<Bytes>(64)?;
            for i in 0..8 {
                spine.set(i, Some(tx.alloc_bytes(&[0; 120])?))?;
            }
            tx.set_root("spine", spine)
        })
        .unwrap();
    (crash, pool, session)
}

/// Fences of a transaction, exactly equal in each counted one.
fn fences(domain: Domain, mut step: impl FnMut(&mut Session<Crash>, usize)) -> f64 {
    let (crash, _pool, mut session) = pool(domain);
    for i in 0..WARM {
        step(&mut session, i);
    }
    crash.reset_counts();
    for i in 0..COUNTED as usize {
        step(&mut session, i);
    }
    crash.counts().fences as f64 / COUNTED as f64
}

fn change_ranges(session: &mut Session<Crash>, ranges: usize, i: usize) {
    session
        .transaction(|tx| {
            let spine = tx.root::<Refs<Bytes>>("spine")?;
            for range in 0..ranges {
                let bytes = spine.get(range).ok_or(Error::NoRoot {
                    name: "range".into(),
                })?;
                bytes.overwrite(0, &(i as u64).to_le_bytes())?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
}

fn allocate_and_link(session: &mut Session<Crash>, len: usize, i: usize) {
    session
        .transaction(|tx| {
            let spine = tx.root::<Refs<Bytes>>("spine")?;
            let new = tx.alloc_bytes(&vec![i as u8; len])?;
            spine.set(9 + i % 50, Some(new))
        })
        .unwrap();
}

#[test]
fn one_changed_word_costs_one_fence() {
    assert_eq!(fences(Domain::Adr, |s, i| change_ranges(s, 1, i)), 1.0);
}

#[test]
fn eight_ranges_cost_one_fence() {
    assert_eq!(fences(Domain::Adr, |s, i| change_ranges(s, 8, i)), 1.0);
}

#[test]
fn a_small_object_allocated_and_linked_costs_one_fence() {
    assert_eq!(
        fences(Domain::Adr, |s, i| allocate_and_link(s, 120, i)),
        1.0
    );
}

#[test]
fn a_large_object_allocated_and_linked_costs_two_fences() {
    assert_eq!(
        fences(Domain::Adr, |s, i| allocate_and_link(s, 64 << 10, i)),
        2.0
    );
}

#[test]
fn reading_costs_none() {
    let reads = |s: &mut Session<Crash>, _| {
        assert_eq!(s.guard().root::<Refs<Bytes>>("spine").unwrap().len(), 64);
    };
    assert_eq!(fences(Domain::Adr, reads), 0.0);
}

#[test]
fn a_transaction_without_changes_costs_none() {
    assert_eq!(
        fences(Domain::Adr, |s, _| s
            .transaction(|_| Ok::<_, Error>(()))
            .unwrap()),
        0.0
    );
}

#[test]
fn two_sessions_that_take_turns_cost_one_each() {
    let (crash, pool, mut a) = pool(Domain::Adr);
    let mut b = pool.session().unwrap();
    for i in 0..WARM {
        change_ranges(&mut a, 1, i);
        change_ranges(&mut b, 2, i);
    }
    crash.reset_counts();
    for i in 0..COUNTED as usize {
        change_ranges(&mut a, 1, i);
        change_ranges(&mut b, 2, i);
    }
    assert_eq!(crash.counts().fences, 2 * COUNTED);
}

#[test]
fn an_idle_session_costs_its_neighbour_nothing() {
    let (crash, pool, mut a) = pool(Domain::Adr);
    let mut idle = pool.session().unwrap();
    change_ranges(&mut idle, 8, 1);
    for i in 0..WARM {
        change_ranges(&mut a, 1, i);
    }
    crash.reset_counts();
    for i in 0..COUNTED as usize {
        change_ranges(&mut a, 1, i);
    }
    assert_eq!(crash.counts().fences, COUNTED);
}

#[test]
fn sessions_that_come_and_go_leave_no_lane_stuck() {
    let (crash, pool, session) = pool(Domain::Adr);
    drop(session);
    for i in 0..100 {
        change_ranges(&mut pool.session().unwrap(), 2, i);
    }
    crash.reset_counts();
    for i in 0..COUNTED as usize {
        change_ranges(&mut pool.session().unwrap(), 2, i);
    }
    let fences = crash.counts().fences;
    assert!(
        fences <= 2 * COUNTED,
        "{fences} fences for {COUNTED} transactions"
    );
}
