//! Is a migration that a crash interrupts resumed where it was, and are its objects counted?

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use firn_crash::{Crash, CrashOptions, CrashState, ExploreOptions, Explorer, SwarmOptions};
use firn_heap::{
    Bytes, Error, OpenError, Pool, PoolKind, PoolOptions, Ref, Refs, Statistics, Stored, View,
};
use firn_media::Medium;

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Thing", version = 1)]
struct ThingV1 {
    next: Ref<ThingV1>,
    number: u64,
}

/// Fits into the old one's slot.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Thing", version = 2)]
struct InPlace {
    next: Ref<InPlace>,
    number: u64,
    twice: u64,
}

/// Does not fit.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "Thing", version = 2)]
struct Outgrown {
    next: Ref<Outgrown>,
    number: u64,
    times: [u64; 6],
}

fn in_place(old: ThingV1) -> InPlace {
    InPlace {
        next: old.next.retyped(),
        number: old.number,
        twice: 2 * old.number,
    }
}

fn outgrown(old: ThingV1) -> Outgrown {
    Outgrown {
        next: old.next.retyped(),
        number: old.number,
        times: [old.number; 6],
    }
}

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 2,
        ..PoolOptions::new("migrate")
    }
}

/// Things in a ring, and an object of another type.
fn fill<M: Medium>(pool: &Pool<M>, things: usize) {
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            tx.set_root("other", tx.alloc_bytes(b"other")?)?;
            let all = tx.alloc_refs::<ThingV1>(things)?;
            tx.set_root("things", all)?;
            for i in 0..things {
                let thing = ThingV1 {
                    next: Ref::NULL,
                    number: i as u64,
                };
                all.set(i, Some(tx.alloc(thing)?))?;
            }
            for i in 0..things {
                let next = all.get((i + 1) % things);
                all.get(i).unwrap().link(ThingV1::NEXT, next);
            }
            Ok::<_, Error>(())
        })
        .unwrap();
}

/// Objects and bytes, by name and version of their type.
type ByType = BTreeMap<(String, u32), (u64, u64)>;

/// Objects and bytes by type, and in total.
fn counts<M: Medium>(medium: &M) -> (ByType, u64, u64) {
    let statistics = Statistics::read(medium).unwrap();
    let by_type = |t: firn_heap::TypeStatistics| ((t.name, t.version), (t.objects, t.live_bytes));
    let types = statistics.types.into_iter().map(by_type).collect();
    (types, statistics.objects, statistics.live_bytes)
}

fn assert_counted<New: Stored>(kind: PoolKind, turn: fn(ThingV1) -> New) {
    const THINGS: usize = 200;
    let crash = Crash::new(16 << 20, CrashOptions::default());
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    fill(&pool, THINGS);
    assert_eq!(pool.migrate(turn).unwrap(), THINGS as u64);
    let counted = counts(&crash);
    let size = u64::from(New::DESCRIPTOR.size);
    let (things, size) = (THINGS as u64, THINGS as u64 * size);
    assert_eq!(counted.0[&("Thing".into(), 2)], (things, size));
    assert_eq!(counted.0.len(), 3, "{counted:?}");
    assert_eq!(counted.1, things + 2);
    let sum = |f: fn(&(u64, u64)) -> u64| counted.0.values().map(f).sum::<u64>();
    assert_eq!((counted.1, counted.2), (sum(|c| c.0), sum(|c| c.1)));
    pool.trace().unwrap();
    assert_eq!(counted, counts(&crash));
    pool.close().unwrap();
    assert_eq!(counted, counts(&crash));
}

#[test]
fn objects_count_under_their_new_type() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        assert_counted::<InPlace>(kind, in_place);
        assert_counted::<Outgrown>(kind, outgrown);
    }
}

/// The migrated ring: each thing's number, and the next one's.
fn ring<New: Stored>(
    pool: &Pool<Crash>,
    number: firn_heap::Field<New, u64>,
    next: firn_heap::Field<New, Ref<New>>,
) -> Result<Vec<(u64, u64)>, Error> {
    let mut session = pool.session()?;
    session.read(|view| {
        let all = view.root::<Refs<New>>("things")?;
        let thing = |i: usize| {
            let nobody = || Error::NoRoot {
                name: format!("thing {i}"),
            };
            let thing = all.get(i).ok_or_else(nobody)?.check_type()?;
            let next = thing.follow(next).ok_or_else(nobody)?.check_type()?;
            Ok((thing.load(number), next.load(number)))
        };
        (0..all.len()).map(thing).collect()
    })
}

/// How often a migration was found unfinished.
static UNFINISHED: AtomicUsize = AtomicUsize::new(0);

/// A program that does not migrate is refused, or finds all things in the pool's version.
fn refused_or_whole<New: Stored>(
    pool: &Pool<Crash>,
    things: usize,
    (number, next): (firn_heap::Field<New, u64>, firn_heap::Field<New, Ref<New>>),
) -> Result<(), String> {
    let n = things as u64;
    let whole: Vec<_> = (0..n).map(|i| (i, (i + 1) % n)).collect();
    let (old, new) = (
        ring(pool, ThingV1::NUMBER, ThingV1::NEXT),
        ring(pool, number, next),
    );
    match (old, new) {
        (Err(Error::MigrationUnfinished { .. }), Err(Error::MigrationUnfinished { .. })) => {
            UNFINISHED.fetch_add(1, Ordering::Relaxed);
            match (pool.register::<ThingV1>(), pool.register::<New>()) {
                (Err(Error::MigrationUnfinished { .. }), Err(_)) => Ok(()),
                _ => Err("a type in the middle of its migration was taken".into()),
            }
        }
        (Ok(found), Err(Error::NeedsMigration { .. })) if found == whole => Ok(()),
        (Err(Error::NewerType { .. }), Ok(found)) if found == whole => Ok(()),
        other => Err(format!("the two programs found {other:?}")),
    }
}

/// Crashes the migration of a few things, crashes the next attempt too, finishes it, and checks the result.
fn explorer<'a, New: Stored>(
    kind: PoolKind,
    things: usize,
    turn: fn(ThingV1) -> New,
    number: firn_heap::Field<New, u64>,
    next: firn_heap::Field<New, Ref<New>>,
) -> Explorer<'a> {
    let open =
        move |crash: Crash| -> Result<Pool<Crash>, OpenError> { Pool::open(crash, &options(kind)) };
    let verify = move |crash: Crash, _: &CrashState| -> Result<(), String> {
        let text = |e: Error| e.to_string();
        let pool = open(crash.clone()).map_err(|e| e.to_string())?;
        if pool.needs_trace() {
            pool.trace().map_err(text)?;
        }
        refused_or_whole(&pool, things, (number, next))?;
        pool.migrate(turn).map_err(text)?;
        crash.end_of_recovery();
        let found = ring(&pool, number, next).map_err(text)?;
        let n = things as u64;
        let expected: Vec<_> = (0..n).map(|i| (i, (i + 1) % n)).collect();
        if found != expected {
            return Err(format!("{found:?}"));
        }
        if let Some(finding) = pool.check().map_err(text)?.first() {
            return Err(finding.to_string());
        }
        // In an explicit pool, counts that a crash lost stay lost.
        let before = counts(&crash);
        pool.trace().map_err(text)?;
        let after = counts(&crash);
        pool.abandon();
        if kind == PoolKind::Traced && before != after {
            return Err(format!("counted {before:?}, there are {after:?}"));
        }
        Ok(())
    };
    Explorer::new(
        ExploreOptions {
            recovery_depth: 2,
            ..ExploreOptions::default()
        },
        16 << 20,
        move |crash| {
            let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
            fill(&pool, things);
            pool.close().unwrap();
        },
        move |crash| {
            let pool = open(crash.clone()).unwrap();
            pool.migrate(turn).unwrap();
            pool.abandon();
        },
        verify,
    )
}

const SWARM: SwarmOptions = SwarmOptions {
    seeds: 0..6,
    crashes: 20,
    images: 3,
    crashes_in_recovery: 2,
};

#[test]
fn a_migration_is_taken_up_after_any_crash() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        explorer(kind, 70, in_place, InPlace::NUMBER, InPlace::NEXT)
            .swarm(&SWARM)
            .expect_clean();
        explorer(kind, 70, outgrown, Outgrown::NUMBER, Outgrown::NEXT)
            .swarm(&SWARM)
            .expect_clean();
    }
    assert!(UNFINISHED.load(Ordering::Relaxed) > 100);
}

#[test]
fn nothing_of_the_other_types_is_touched() {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    let pool = Pool::create(crash, &options(PoolKind::Traced)).unwrap();
    fill(&pool, 3);
    pool.migrate(in_place).unwrap();
    let mut session = pool.session().unwrap();
    let other = session.read(|view| view.root::<Bytes>("other")?.to_vec());
    assert_eq!(other.unwrap(), b"other");
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Husband")]
struct Husband {
    wife: Ref<Wife>,
    number: u64,
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Wife")]
struct Wife {
    husband: Ref<Husband>,
    number: u64,
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Husband", version = 2)]
struct LongHusband {
    numbers: [u64; 9],
    wife: Ref<LongWife>,
}

#[derive(Stored)]
#[repr(C)]
#[firn(name = "Wife", version = 2)]
struct LongWife {
    husband: Ref<LongHusband>,
    number: u64,
    twice: u64,
}

fn migrate_couple(pool: &Pool<Crash>) -> Result<(), Error> {
    pool.migrate(|old: Husband| LongHusband {
        numbers: [old.number; 9],
        wife: old.wife.retyped(),
    })?;
    pool.migrate(|old: Wife| LongWife {
        husband: old.husband.retyped(),
        number: old.number,
        twice: 2 * old.number,
    })?;
    Ok(())
}

/// The numbers of the husband, of his wife, and of her husband.
fn couple(pool: &Pool<Crash>) -> Result<[u64; 3], Error> {
    let mut session = pool.session()?;
    session.read(|view| {
        let husband = view.root::<LongHusband>("husband")?;
        let wife = husband.follow(LongHusband::WIFE).unwrap().check_type()?;
        let again = wife.follow(LongWife::HUSBAND).unwrap().check_type()?;
        let [first, last] = [husband, again].map(|h| h.load(LongHusband::NUMBERS)[8]);
        Ok([first, wife.load(LongWife::TWICE), last])
    })
}

#[test]
fn migrations_of_types_that_refer_to_each_other_are_taken_up_after_any_crash() {
    let options = || options(PoolKind::Traced);
    let verify = move |crash: Crash, _: &CrashState| -> Result<(), String> {
        let text = |e: Error| e.to_string();
        let pool = Pool::open(crash.clone(), &options()).map_err(|e| e.to_string())?;
        if pool.needs_trace() {
            pool.trace().map_err(text)?;
        }
        migrate_couple(&pool).map_err(text)?;
        crash.end_of_recovery();
        let found = couple(&pool).map_err(text)?;
        let findings = pool.check().map_err(text)?;
        pool.abandon();
        match (found, findings.first()) {
            ([7, 16, 7], None) => Ok(()),
            (found, finding) => Err(format!("{found:?}, {finding:?}")),
        }
    };
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 2,
            ..ExploreOptions::default()
        },
        16 << 20,
        move |crash| {
            let pool = Pool::create(crash.clone(), &options()).unwrap();
            let married = pool.session().unwrap().transaction(|tx| {
                let (wife, husband) = (Ref::NULL, Ref::NULL);
                let he = tx.alloc(Husband { wife, number: 7 })?;
                let she = tx.alloc(Wife { husband, number: 8 })?;
                he.link(Husband::WIFE, Some(she));
                she.link(Wife::HUSBAND, Some(he));
                tx.set_root("husband", he)
            });
            married.unwrap();
            pool.close().unwrap();
        },
        move |crash| {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            migrate_couple(&pool).unwrap();
            pool.abandon();
        },
        verify,
    );
    explorer.swarm(&SWARM).expect_clean();
}
