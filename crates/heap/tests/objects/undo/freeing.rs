//! Freeing many objects, and gathering them.

use super::*;

/// Fills an explicit pool with objects of each of these sizes, in transactions of many objects, until none fits; and
/// then with ever smaller ones.
fn fill(pool: &Pool<Crash>, sizes: &[u64]) -> Vec<VirtAddr> {
    let mut session = pool.session().unwrap();
    let mut all = Vec::new();
    for &size in sizes {
        let mut together = 1_000;
        while together > 0 {
            let made = session.raw_transaction(|tx| {
                (0..together)
                    .map(|_| tx.alloc(size))
                    .collect::<Result<Vec<_>, Error>>()
            });
            match made {
                Ok(made) => all.extend(made),
                Err(Error::PoolFull { .. }) => together /= 10,
                Err(other) => panic!("{other}"),
            }
        }
    }
    all
}

/// Frees these objects in one transaction.
fn free_all(pool: &Pool<Crash>, objects: &[VirtAddr]) {
    let freed = pool.session().unwrap().raw_transaction(|tx| {
        for &at in objects {
            // SAFETY: nothing refers to it.
            unsafe { tx.free(at) }?;
        }
        Ok::<_, Error>(())
    });
    assert_eq!(
        freed.map_err(|error| error.to_string()),
        Ok(()),
        "{} objects",
        objects.len()
    );
}

/// Every n-th of them, so that neighbours stay.
fn take_scattered(objects: &mut Vec<VirtAddr>, count: usize) -> Vec<VirtAddr> {
    let step = (objects.len() / count).max(1);
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    for (number, at) in objects.drain(..).enumerate() {
        match number % step == 0 && taken.len() < count {
            true => taken.push(at),
            false => left.push(at),
        }
    }
    *objects = left;
    taken
}

#[test]
fn any_number_of_objects_is_freed_in_a_full_pool() {
    for (sizes, is_limited) in [
        (&[40u64][..], true),
        (&[4_000, 100, 8], true),
        (&[40, 8], false),
    ] {
        // The limit decides when the pool is full, or else the medium's end.
        let crash = Crash::new(20 << 20, Default::default());
        let full = PoolOptions {
            max_bytes: is_limited.then_some(20 << 20),
            ..options(PoolKind::Explicit)
        };
        let pool = Pool::create(crash, &full).unwrap();
        let mut objects = fill(&pool, sizes);
        for count in [1, 100, 128, 256, 1_000, 2_000, 100_000] {
            let freed = take_scattered(&mut objects, count);
            free_all(&pool, &freed);
            // The freed space can be used again, and the pool is as full as before.
            let again = fill(&pool, sizes);
            assert!(
                again.len() >= freed.len() / 2,
                "{} of {}",
                again.len(),
                freed.len()
            );
            objects.extend(again);
        }
        let most = objects.len();
        free_all(&pool, &objects);
        assert_eq!(allocated(&pool).unwrap(), 0);
        let again = fill(&pool, sizes);
        assert!(again.len() >= most * 9 / 10, "{} of {most}", again.len());
        assert!(pool.check().unwrap().is_empty());
    }
}

/// Each object's bit is in a word of its own.
#[test]
fn every_image_of_freeing_many_is_all_or_nothing() {
    const OBJECTS: usize = 6;
    let made = |crash: &Crash| {
        let pool = Pool::create(crash.clone(), &options(PoolKind::Explicit)).unwrap();
        let made = pool.session().unwrap().raw_transaction(|tx| {
            (0..OBJECTS)
                .map(|_| tx.alloc(4_000))
                .collect::<Result<Vec<_>, Error>>()
        });
        pool.close().unwrap();
        made.unwrap()
    };
    let objects = made(&Crash::new(16 << 20, Default::default()));
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 1,
            ..Default::default()
        },
        16 << 20,
        |crash| assert_eq!(made(crash), objects),
        |crash| {
            let pool = Pool::open(crash.clone(), &options(PoolKind::Explicit)).unwrap();
            free_all(&pool, &objects);
            crash.note(1);
            pool.abandon();
        },
        |crash, state| {
            let pool =
                Pool::open(crash, &options(PoolKind::Explicit)).map_err(|e| e.to_string())?;
            pool.medium().end_of_recovery();
            let found = allocated(&pool).map_err(|e| e.to_string())?;
            let findings = pool.check().map_err(|e| e.to_string())?;
            pool.abandon();
            match (found, state.note(0), findings.first()) {
                (_, _, Some(finding)) => Err(finding.to_string()),
                (0, _, None) | (OBJECTS, 0, None) => Ok(()),
                (found, note, None) => Err(format!("{found} objects after {note}")),
            }
        },
    );
    explorer.explore().expect_clean();
}

/// Objects that are moved to the front in one transaction, with a table that names their places.
#[test]
fn every_image_of_gathering_has_each_object_where_its_table_says() {
    const OBJECTS: u64 = 6;
    const BYTES: u64 = 1_000;
    let made = |crash: &Crash| {
        let pool = Pool::create(crash.clone(), &options(PoolKind::Explicit)).unwrap();
        let made = pool.session().unwrap().raw_transaction(|tx| {
            let table = tx.alloc(OBJECTS * 8)?;
            tx.set_root("table", Some(table))?;
            let mut gone = Vec::new();
            for number in 0..2 * OBJECTS {
                let new = tx.alloc(BYTES)?;
                match number < OBJECTS {
                    true => gone.push(new),
                    false => {
                        tx.store(table + (number - OBJECTS) * 8, &new.0.to_le_bytes())?;
                        tx.store(new, &number.to_le_bytes())?;
                        tx.store(new + (BYTES - 8), &(!number).to_le_bytes())?;
                    }
                }
            }
            Ok::<_, Error>((table, gone))
        });
        let (table, gone) = made.unwrap();
        free_all(&pool, &gone);
        pool.close().unwrap();
        table
    };
    let table = made(&Crash::new(16 << 20, Default::default()));
    let places = |pool: &Pool<Crash>| -> Vec<VirtAddr> {
        let place = |number| VirtAddr(pool.medium().load_u64(table + number * 8));
        (0..OBJECTS).map(place).collect()
    };
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 1,
            ..Default::default()
        },
        16 << 20,
        |crash| assert_eq!(made(crash), table),
        |crash| {
            let pool = Pool::open(crash.clone(), &options(PoolKind::Explicit)).unwrap();
            let before = places(&pool);
            let mut session = pool.session().unwrap();
            let mut gathering = Gathering::new(&session.raw_guard().unwrap(), &before).unwrap();
            let moved = session.raw_transaction(|tx| {
                let moved = gathering.step(tx)?.unwrap_or_default();
                for it in &moved {
                    let number = before.iter().position(|at| *at == it.from).unwrap();
                    let place = table + number as u64 * 8;
                    tx.log(&[(place, 8)])?;
                    tx.store(place, &it.to.0.to_le_bytes())?;
                }
                Ok::<_, Error>(moved.len() as u64)
            });
            assert!(moved.unwrap() >= OBJECTS / 2);
            crash.note(1);
            drop(session);
            pool.abandon();
        },
        |crash, _| {
            let pool =
                Pool::open(crash, &options(PoolKind::Explicit)).map_err(|e| e.to_string())?;
            pool.medium().end_of_recovery();
            let holds = places(&pool).iter().zip(OBJECTS..).all(|(at, number)| {
                let ends = [*at, *at + (BYTES - 8)].map(|at| pool.medium().load_u64(at));
                ends == [number, !number]
            });
            let found = allocated(&pool).map_err(|e| e.to_string())?;
            let findings = pool.check().map_err(|e| e.to_string())?;
            pool.abandon();
            match (holds, found as u64, findings.first()) {
                (_, _, Some(finding)) => Err(finding.to_string()),
                // And the table.
                (true, count, None) if count == OBJECTS + 1 => Ok(()),
                (holds, count, None) => Err(format!("{count} objects, in place: {holds}")),
            }
        },
    );
    explorer.explore().expect_clean();
}
