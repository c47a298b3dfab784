//! Does only one thread copy an object, in every interleaving?

use crate::collect_support::{UNEVEN, collect, leave_open, options};
use firn_crash::{Crash, CrashOptions, interleavings};
use firn_heap::collector::PageSize;
use firn_heap::{Error, Pool, PoolKind, View};

type Spine = crate::collect_support::Spine;

/// One thread reads the object, the other changes it. A second, late copy would undo the change.
#[test]
fn a_reader_copies_nothing_over_a_change() {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    UNEVEN
        .pool(crash.clone(), PoolKind::Traced)
        .close()
        .unwrap();
    let image = crash.cache_image();
    let found = interleavings(1, 20_000, |schedule| {
        let crash = Crash::from_image(&image, CrashOptions::default());
        let pool = Pool::open(crash.clone(), &options(PoolKind::Traced)).unwrap();
        leave_open(&pool, &collect(PageSize::Small), 0);
        // The array has moved already, so the race is only about the object.
        let mut session = pool.session().unwrap();
        session
            .read(|view| view.root::<Spine>("spine").map(drop))
            .unwrap();
        drop(session);
        let (reader, writer) = (pool.clone(), pool.clone());
        let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![
            Box::new(move || {
                let mut session = reader.session().unwrap();
                session.read(|view| {
                    let spine = view.root::<Spine>("spine").unwrap();
                    assert!(spine.get(0).is_some());
                });
                std::mem::forget(session);
            }),
            Box::new(move || {
                let mut session = writer.session().unwrap();
                let change = session.transaction(|tx| {
                    let object = tx.root::<Spine>("spine")?.get(0).unwrap();
                    object.overwrite(0, &[0xab; 8])?;
                    Ok::<_, Error>(())
                });
                change.unwrap();
                std::mem::forget(session);
            }),
        ];
        let outcome = crash.run(jobs, schedule);
        outcome.finished()?;
        let reading = pool.clone();
        let mut session = reading.session().unwrap();
        let first = session.read(|view| {
            let spine = view.root::<Spine>("spine").unwrap();
            spine.get(0).unwrap().to_vec().unwrap()[..8].to_vec()
        });
        drop(session);
        pool.abandon();
        if first == [0xab; 8] {
            Ok(outcome)
        } else {
            Err(format!("the change became {first:?}"))
        }
    });
    println!("{} executions", found.executions);
    assert_eq!(found.failure, None);
    assert!(found.exhaustive);
}
