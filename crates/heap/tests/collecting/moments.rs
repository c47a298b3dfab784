//! Is everything there, exactly once, after an interruption of the collector or a reader at any moment?
//!
//! One thread is interrupted once in each run, a few moments later each time, by another that runs to its end or until
//! it must wait. The staying objects are compared, and slots are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::collect_support::{KINDS, Spine, UNEVEN, collect, options, verify_closed, words_of};
use firn_crash::{Crash, CrashOptions, Schedule};
use firn_heap::collector::scheme::NONE;
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Bytes, Error, Pool, PoolKind, Refs, Session, Tx, View};
use firn_media::Runtime;

/// Moments from one interruption to the next: fewer than it takes to read or copy an object.
const STRIDE: usize = 17;
/// Arrays of references that fill a page, and the length of each.
const TABLES: usize = 8;
const FIELDS: usize = 56;
/// Those whose slots are reused. The others are empty, so they cost no time.
const TURNED: usize = 3;
/// Pages that are taken.
const GROWN: usize = 8;
/// Objects of the pool: those that move, and the arrays.
const OBJECTS: u64 = 14 + 3 + TABLES as u64;

/// Gets the data that only looks like references, and calls its last argument to wait for the other thread to begin.
type Writer = fn(&Pool<Crash>, &mut Session<Crash>, &[u8], &dyn Fn());

/// A thread interrupts another.
struct Case {
    prepare: fn(&Pool<Crash>),
    interrupted: fn(&Pool<Crash>),
    writer: Writer,
    /// The expected object at each place of the spine at the end, as its number in [`UNEVEN`].
    expected: fn(usize) -> Option<usize>,
    objects: u64,
}

fn stays(place: usize) -> Option<usize> {
    (UNEVEN.stays)(place).then_some(place)
}

fn setup(crash: &Crash, kind: PoolKind) {
    let pool = UNEVEN.pool(crash.clone(), kind);
    let make = |tx: Tx<'_, Crash>| {
        let tables = tx.alloc_refs::<Spine>(TABLES)?;
        tx.set_root("tables", tables)?;
        tx.set_root("data", tx.alloc_refs::<Bytes>(TURNED)?)?;
        tx.set_root("grown", tx.alloc_refs::<Bytes>(GROWN)?)?;
        let object = tx.root::<Spine>("spine")?.get(0);
        for place in 0..TABLES {
            let table = tx.alloc_refs(FIELDS)?;
            let used = if place < TURNED { FIELDS } else { 0 };
            (0..used).try_for_each(|i| table.set(i, object))?;
            tables.set(place, Some(table))?;
        }
        Ok::<_, Error>(())
    };
    pool.session().unwrap().transaction(make).unwrap();
    pool.close().unwrap();
}

impl Case {
    fn try_at_all_moments(&self, kind: PoolKind) {
        let crash = Crash::new(16 << 20, CrashOptions::default());
        setup(&crash, kind);
        let image = crash.cache_image();
        for before in (0..).step_by(STRIDE) {
            let crash = Crash::from_image(&image, CrashOptions::default());
            let pool = Pool::open(crash, &options(kind)).unwrap();
            let mut choices = vec![0; before];
            choices.push(1);
            match self.run(pool, Schedule::Chosen { choices, bound: 1 }) {
                Ok(true) => {}
                Ok(false) => return println!("{kind:?}: {before} moments"),
                Err(what) => panic!("{kind:?}, interrupted after {before}: {what}"),
            }
        }
    }

    /// Whether the run lasted as long as the schedule.
    fn run(&self, pool: Pool<Crash>, schedule: Schedule) -> Result<bool, String> {
        let fake = fake(&pool);
        (self.prepare)(&pool);
        let begun = Arc::new(AtomicBool::new(false));
        let (has_begun, data) = (Arc::clone(&begun), fake.clone());
        let (writing, other) = (pool.clone(), pool.clone());
        let (writer, interrupted) = (self.writer, self.interrupted);
        let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![
            Box::new(move || {
                let mut session = writing.session().unwrap();
                writer(&writing, &mut session, &data, &|| {
                    while !has_begun.load(Ordering::Relaxed) {
                        writing.medium().pause(0);
                    }
                });
            }),
            Box::new(move || {
                begun.store(true, Ordering::Relaxed);
                interrupted(&other);
            }),
        ];
        let outcome = pool.medium().run(jobs, schedule);
        outcome.finished()?;
        self.judge(pool, &fake)?;
        Ok(!outcome.choices.is_empty())
    }

    fn judge(&self, pool: Pool<Crash>, fake: &[u8]) -> Result<(), String> {
        if let Some(finding) = pool.check().unwrap().first() {
            return Err(finding.to_string());
        }
        pool.session().unwrap().read(|view| {
            let spine = view.root::<Spine>("spine").unwrap();
            for place in 0..UNEVEN.count {
                let found = spine.get(place).map(|b| b.to_vec().unwrap());
                if found != (self.expected)(place).map(|i| UNEVEN.value(i)) {
                    return Err(format!("object {place} became {found:?}"));
                }
            }
            let data = view.root::<Spine>("data").unwrap();
            for bytes in (0..TURNED).filter_map(|place| data.get(place)) {
                let found = bytes.to_vec().unwrap();
                if found != fake {
                    return Err(format!("data became {found:?}"));
                }
            }
            Ok(())
        })?;
        let medium = pool.medium().clone();
        pool.close().map_err(|e| e.to_string())?;
        verify_closed(&medium, self.objects)
    }
}

fn small() -> CollectOptions {
    collect(PageSize::Small)
}

fn begin(pool: &Pool<Crash>) {
    assert!(pool.collection(&small()).unwrap().begin().unwrap());
}

fn move_all(pool: &Pool<Crash>) {
    let mut collection = pool.collection(&small()).unwrap();
    assert!(collection.begin().unwrap());
    assert!(collection.compact(u64::MAX).unwrap());
}

fn finish(pool: &Pool<Crash>) {
    pool.collection(&small()).unwrap().finish().unwrap();
}

/// Data as long as an array: references to the source of a moving object, and others that would be damage.
fn fake(pool: &Pool<Crash>) -> Vec<u8> {
    let word = words_of::<Bytes, _>(pool, "spine")[0];
    let words = (0..FIELDS).map(|i| word ^ if i % 2 == 0 { 0 } else { 1 << 48 });
    words.flat_map(u64::to_le_bytes).collect()
}

/// Frees arrays, and puts data that only looks like references into their slots: one of them was in an active run when
/// the other thread began, one is freed later.
fn turn(_: &Pool<Crash>, session: &mut Session<Crash>, fake: &[u8], wait: &dyn Fn()) {
    free_tables(session, 0..2);
    fill(session, 0, fake);
    wait();
    fill(session, 1, fake);
    free_tables(session, 2..3);
    fill(session, 2, fake);
}

fn free_tables(session: &mut Session<Crash>, places: core::ops::Range<usize>) {
    let free = |tx: Tx<'_, Crash>| {
        let tables = tx.root::<Refs<Spine>>("tables")?;
        places.clone().try_for_each(|place| {
            // SAFETY: the only reference is removed.
            unsafe { tx.free(tables.get(place).unwrap())? };
            tables.set(place, None)
        })
    };
    session.transaction(free).unwrap();
}

fn fill(session: &mut Session<Crash>, place: usize, fake: &[u8]) {
    let fill = |tx: Tx<'_, Crash>| {
        let new = tx.alloc_bytes(fake)?;
        tx.root::<Spine>("data")?.set(place, Some(new))
    };
    session.transaction(fill).unwrap();
}

/// M7.
#[test]
fn marking_meets_no_later_object_in_a_slot() {
    let case = Case {
        prepare: |_| {},
        interrupted: |pool| {
            let options = CollectOptions {
                scheme: &NONE,
                ..small()
            };
            pool.collect(&options).unwrap();
        },
        writer: turn,
        expected: stays,
        objects: OBJECTS,
    };
    case.try_at_all_moments(PoolKind::Traced);
}

#[test]
fn healing_meets_no_later_object_in_a_slot() {
    let case = Case {
        prepare: move_all,
        interrupted: finish,
        writer: turn,
        expected: stays,
        objects: OBJECTS,
    };
    for kind in KINDS {
        case.try_at_all_moments(kind);
    }
}

/// Puts another object in the first place. The arrays still refer to the old one.
fn replace(_: &Pool<Crash>, session: &mut Session<Crash>, _: &[u8], wait: &dyn Fn()) {
    wait();
    let replace = |tx: Tx<'_, Crash>| {
        let spine = tx.root::<Spine>("spine")?;
        spine.set(0, spine.get(SLOT))
    };
    session.transaction(replace).unwrap();
}

/// First place of the second page.
const SLOT: usize = crate::collect_support::SLOTS;

fn replaced(place: usize) -> Option<usize> {
    stays(if place == 0 { SLOT } else { place })
}

/// T3.
#[test]
fn healing_loses_no_update() {
    let by_sweep = Case {
        prepare: move_all,
        interrupted: finish,
        writer: replace,
        expected: replaced,
        objects: OBJECTS,
    };
    let by_reader = Case {
        prepare: begin,
        interrupted: |pool| {
            let mut session = pool.session().unwrap();
            session.read(|view| view.root::<Spine>("spine").unwrap().get(0).unwrap().len());
        },
        ..by_sweep
    };
    for kind in KINDS {
        by_sweep.try_at_all_moments(kind);
        by_reader.try_at_all_moments(kind);
    }
}

/// An object of the first page, which is emptied.
const FREED: usize = 1;

#[test]
fn what_is_freed_while_it_is_planned_does_not_move() {
    let case = Case {
        prepare: |_| {},
        interrupted: begin,
        writer: |_, session, _, wait| {
            wait();
            let free = |tx: Tx<'_, Crash>| {
                let spine = tx.root::<Spine>("spine")?;
                // SAFETY: the only reference is removed.
                unsafe { tx.free(spine.get(FREED).unwrap())? };
                spine.set(FREED, None)
            };
            session.transaction(free).unwrap();
        },
        expected: |place| stays(place).filter(|&i| i != FREED),
        objects: OBJECTS - 1,
    };
    for kind in KINDS {
        case.try_at_all_moments(kind);
    }
}

/// An object that takes a page: the first one of its class.
fn grown(n: usize) -> Vec<u8> {
    vec![n as u8; 100 + 16 * n]
}

/// T4d: an operation takes an object in a source for one that has moved. It begins before the sources are free, and
/// lets the other thread run.
#[test]
fn sources_are_used_again_only_when_no_operation_knows_them() {
    let case = Case {
        prepare: move_all,
        interrupted: |pool| {
            finish(pool);
            let mut session = pool.session().unwrap();
            for n in 0..GROWN {
                let grow = |tx: Tx<'_, Crash>| {
                    let new = tx.alloc_bytes(&grown(n))?;
                    tx.root::<Spine>("grown")?.set(n, Some(new))
                };
                session.transaction(grow).unwrap();
            }
        },
        writer: |pool, session, _, wait| {
            wait();
            session.read(|view| {
                let all = view.root::<Spine>("grown").unwrap();
                pool.medium().pause(0);
                for n in 0..GROWN {
                    let found = all.get(n).map(|bytes| bytes.to_vec().unwrap());
                    assert!(found.is_none_or(|bytes| bytes == grown(n)));
                }
            });
        },
        expected: stays,
        objects: OBJECTS + GROWN as u64,
    };
    for kind in KINDS {
        case.try_at_all_moments(kind);
    }
}
