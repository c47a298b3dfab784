//! Are objects of every size moved whole, or left whole, whatever refers to them, and however often the pool crashes?

use crate::collect_support::{KINDS, MIXED, Objects, Spine, collect, options};
use firn_crash::{Crash, CrashOptions};
use firn_format::class::{CLASSES, Class};
use firn_heap::collector::PageSize;
use firn_heap::{Bytes, Error, Pool, PoolKind, Refs, View};
use firn_mapped::{Mapped, MappedOptions, Placement};
use firn_media::{Domain, Medium};

/// Header of an object, and length of its bytes.
const OVERHEAD: u64 = 16;

/// A slot of every class, filled to its end, then large objects of up to 1.2 MiB.
fn len(i: usize) -> usize {
    let kind = i % (CLASSES + 6);
    match Class::from_index(kind) {
        Some(class) => (class.slot_bytes() - OVERHEAD) as usize,
        None => (kind - CLASSES) * 240_000 + 40_000,
    }
}

const EVERY_SIZE: Objects = Objects {
    count: (CLASSES + 6) * 12,
    len,
    // Every third object of each size stays.
    stays: |i| (i / (CLASSES + 6)).is_multiple_of(3),
};

/// Lengths of an array of references that moves, and of one that is too long to move.
const WIDE: [(&str, usize); 2] = [("wide", 100_000), ("wider", 200_000)];

fn place_of(i: usize) -> usize {
    let places = EVERY_SIZE.count / 3;
    let i = i % places;
    let of_size = i % (CLASSES + 6);
    i / (CLASSES + 6) * 3 * (CLASSES + 6) + of_size
}

fn widen<M: Medium>(pool: &Pool<M>) {
    let mut session = pool.session().unwrap();
    for (name, count) in WIDE {
        session
            .transaction(|tx| tx.set_root(name, tx.alloc_refs::<Bytes>(count)?))
            .unwrap();
        for first in (0..count).step_by(4000) {
            session
                .transaction(|tx| {
                    let (wide, spine) = (tx.root::<Spine>(name)?, tx.root::<Spine>("spine")?);
                    (first..count.min(first + 4000))
                        .try_for_each(|i| wide.set(i, spine.get(place_of(i))))
                })
                .unwrap();
        }
    }
}

fn assert_wide<M: Medium>(pool: &Pool<M>, name: &str) {
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let spine = view.root::<Spine>("spine").unwrap();
        for (root, count) in WIDE {
            let wide = view.root::<Spine>(root).unwrap();
            assert_eq!(wide.len(), count);
            for i in 0..count {
                let found = wide.get(i).map(|o| o.address());
                let expected = spine.get(place_of(i)).map(|o| o.address());
                assert!(found.is_some() && found == expected, "{name}: {root} {i}");
            }
        }
    });
}

#[test]
fn every_size_and_wide_arrays_on_a_mapped_pool() {
    for kind in KINDS {
        for pages in [PageSize::Small, PageSize::Huge] {
            let name = format!("{kind:?} {pages:?}");
            let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
            let pool = EVERY_SIZE.pool(medium, kind);
            widen(&pool);
            let before = pool.ratio(pages);
            let collected = pool.collect(&collect(pages)).unwrap();
            assert!(collected.moved > 0 && pool.ratio(pages) < before, "{name}");
            EVERY_SIZE.assert_in(&pool, &name);
            assert_wide(&pool, &name);
        }
    }
}

/// A file that is opened at another address each time, with an open cycle.
#[test]
fn a_cycle_goes_on_at_other_addresses() {
    for kind in KINDS {
        for pages in [PageSize::Small, PageSize::Huge] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("pool");
            let at = |seed| {
                MappedOptions::default()
                    .domain(Domain::Process)
                    .capacity(1 << 32)
                    .placement(Placement::Random(seed))
            };
            let objects = Objects {
                count: 6000,
                ..MIXED
            };
            let pool = objects.pool(Mapped::create(&path, 16 << 20, &at(0)).unwrap(), kind);
            pool.abandon();
            let (mut bases, mut resumed) = (std::collections::HashSet::new(), 0);
            for round in 1..8 {
                let medium = Mapped::open(&path, &at(round)).unwrap();
                bases.insert(medium.base_address());
                let pool = Pool::open(medium, &options(kind)).unwrap();
                resumed += u64::from(pool.has_open_cycle());
                objects.assert_in(&pool, &format!("{kind:?} {pages:?} {round}"));
                let mut collection = pool.collection(&collect(pages)).unwrap();
                assert!(collection.begin().unwrap());
                collection.compact(20).unwrap();
                drop(collection);
                pool.abandon();
            }
            assert!(bases.len() > 1 && resumed == 6, "{bases:?} {resumed}");
            let pool = Pool::open(Mapped::open(&path, &at(9)).unwrap(), &options(kind)).unwrap();
            pool.collect(&collect(pages)).unwrap();
            objects.assert_in(&pool, "in the end");
            pool.close().unwrap();
        }
    }
}

/// Numbers that a chain of crashes changes; each is an object.
const NUMBERS: usize = 8;

fn numbers(pool: &Pool<Crash>) -> Result<Vec<u64>, Error> {
    let mut session = pool.session()?;
    session.read(|view| {
        let spine = view.root::<Refs<Bytes>>("numbers")?;
        let word = |bytes: Vec<u8>| u64::from_le_bytes(bytes[..8].try_into().unwrap());
        (0..NUMBERS)
            .map(|i| spine.get(i).unwrap().to_vec().map(word))
            .collect()
    })
}

fn thin_numbers(kind: PoolKind) -> Crash {
    let crash = Crash::new(16 << 20, CrashOptions::default());
    let pool = Pool::create(crash.clone(), &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let spine = tx.alloc_refs::<Bytes>(NUMBERS)?;
            tx.set_root("numbers", spine)?;
            let mut others = Vec::new();
            for i in 0..NUMBERS {
                spine.set(i, Some(tx.alloc_bytes(&[0; 100])?))?;
                for _ in 0..40 {
                    others.push(tx.alloc_bytes(&[0; 100])?);
                }
            }
            // SAFETY: nothing refers to them.
            others
                .into_iter()
                .try_for_each(|other| unsafe { tx.free(other) })
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
    crash
}

/// The power fails in a cycle, then in the resumed cycle, and so forth.
#[test]
fn a_cycle_that_crashes_again_and_again_loses_nothing() {
    let mut resumed = 0;
    for seed in 0..60u64 {
        let kind = KINDS[(seed % 2) as usize];
        let mut image = thin_numbers(kind).cache_image();
        let mut expected = vec![0; NUMBERS];
        for round in 0..10u64 {
            let crash = Crash::from_image(&image, CrashOptions::default());
            let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
            resumed += u64::from(pool.has_open_cycle());
            assert_eq!(numbers(&pool).unwrap(), expected, "{seed}, {round}");
            let mut collection = pool.collection(&collect(PageSize::Small)).unwrap();
            if collection.begin().unwrap() {
                collection.compact((seed + round) % 3).unwrap();
            }
            let mut session = pool.session().unwrap();
            let place = ((seed * 5 + round * 3) % NUMBERS as u64) as usize;
            expected[place] = round + 1;
            session
                .transaction(|tx| {
                    let spine = tx.root::<Refs<Bytes>>("numbers")?;
                    spine
                        .get(place)
                        .unwrap()
                        .overwrite(0, &(round + 1).to_le_bytes())
                })
                .unwrap();
            if (seed + round) % 5 == 4 {
                collection.finish().unwrap();
            }
            image = crash.random_image(seed * 100 + round);
            drop(collection);
            std::mem::forget(session);
            pool.abandon();
        }
    }
    assert!(resumed > 100, "{resumed}");
}
