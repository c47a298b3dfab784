//! Do undo transactions restore what they logged, whatever the crash?

use firn_crash::{Crash, ExploreOptions, Explorer};
use firn_heap::{Error, LogKind, Pool, PoolKind, PoolOptions, View};
use firn_units::VirtAddr;

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

#[test]
fn every_image_of_two_batches_is_all_or_nothing() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        for abort in [false, true] {
            let crash = Crash::new(16 << 20, Default::default());
            let at = make(&crash, kind);
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
                        tx.log(&[(at, 8)])?;
                        tx.store(at, &3u64.to_le_bytes())?;
                        tx.log(&[(at + 128, 8)])?;
                        tx.store(at + 128, &4u64.to_le_bytes())?;
                        let new = tx.alloc(16)?;
                        tx.store(new, &5u64.to_le_bytes())?;
                        tx.set_root("new", Some(new))?;
                        if abort { Err(Error::ReadOnly) } else { Ok(()) }
                    });
                    assert_eq!(done.is_err(), abort);
                    crash.note(1);
                    pool.abandon();
                },
                |crash, state| {
                    let pool = Pool::open(crash, &options(kind)).map_err(|e| e.to_string())?;
                    pool.medium().end_of_recovery();
                    let word = |at: VirtAddr| firn_media::Medium::load_u64(pool.medium(), at);
                    let found = (word(at), word(at + 128));
                    let mut session = pool.session().map_err(|e| e.to_string())?;
                    let names = session.read(|view| view.root_names()).unwrap();
                    drop(session);
                    let findings = pool.check().map_err(|e| e.to_string())?;
                    pool.abandon();
                    let old = found == (1, 2) && names == ["object"];
                    let new = found == (3, 4) && names == ["object", "new"];
                    let legal = match (abort, state.note(0)) {
                        (true, _) => old,
                        (false, 1) => new,
                        (false, _) => old || new,
                    };
                    match (legal, findings.first()) {
                        (true, None) => Ok(()),
                        (_, Some(finding)) => Err(finding.to_string()),
                        (false, None) => Err(format!("found {found:?} {names:?}")),
                    }
                },
            );
            assert!(explorer.explore().expect_clean().exhaustive());
        }
    }
}
