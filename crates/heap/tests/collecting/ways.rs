//! Do collections keep everything, with every way of marking and forwarding, crashed anywhere?

use crate::collect_support::{KINDS, MIXED, Objects, SLOTS, UNEVEN, collect, options};
use firn_crash::{Crash, CrashOptions, CrashState, ExploreOptions, Explorer};
use firn_heap::collector::{CollectOptions, Forwarding, Marking, PageSize};
use firn_heap::{Pool, PoolKind};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;

const MARKINGS: [Marking; 2] = [Marking::Concurrent, Marking::StopTheWorld];
const FORWARDINGS: [Forwarding; 2] = [Forwarding::Split, Forwarding::OneDestination];

fn ways(pages: PageSize) -> impl Iterator<Item = CollectOptions> {
    MARKINGS.into_iter().flat_map(move |marking| {
        FORWARDINGS
            .into_iter()
            .map(move |forwarding| CollectOptions {
                marking,
                forwarding,
                ..collect(pages)
            })
    })
}

/// Three pages that hold five each: two pages if one may be split; otherwise nothing is won.
const EVEN: Objects = Objects {
    stays: |i| i % SLOTS < 5,
    ..UNEVEN
};

#[test]
fn a_page_is_split_only_if_that_is_allowed() {
    for kind in KINDS {
        for how in ways(PageSize::Small) {
            let pool = EVEN.pool(Crash::new(16 << 20, CrashOptions::default()), kind);
            let collected = pool.collect(&how).unwrap();
            let name = format!("{kind:?} {:?} {:?}", how.marking, how.forwarding);
            // The spine is alone on a page. If no page may be split, as many pages would be filled as emptied.
            let done = match how.forwarding {
                Forwarding::Split => (16, 3),
                Forwarding::OneDestination => (0, 0),
            };
            assert_eq!(
                (collected.moved, collected.filled_frames),
                done,
                "{name}: {collected:?}"
            );
            EVEN.assert_in(&pool, &name);
        }
    }
}

fn explore(kind: PoolKind, domain: Domain, how: CollectOptions) {
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 1,
            medium: CrashOptions::with_domain(domain),
            ..ExploreOptions::default()
        },
        16 << 20,
        |crash| UNEVEN.pool(crash.clone(), kind).close().unwrap(),
        |crash| {
            let pool = Pool::open(crash.clone(), &options(kind)).unwrap();
            assert!(pool.collect(&how).unwrap().moved > 0);
            crash.note(1);
            pool.abandon();
        },
        |crash, _: &CrashState| {
            let pool = Pool::open(crash, &options(kind)).map_err(|e| e.to_string())?;
            pool.medium().end_of_recovery();
            UNEVEN.verify(&pool)?;
            pool.collect(&how).map_err(|e| e.to_string())?;
            UNEVEN
                .verify(&pool)
                .map_err(|e| format!("collected: {e}"))?;
            pool.abandon();
            Ok(())
        },
    );
    let report = explorer.explore();
    report.expect_clean();
    assert!(report.exhaustive());
    println!(
        "{kind:?} {domain} {:?} {:?}: {} states",
        how.marking, how.forwarding, report.states
    );
}

#[test]
fn a_whole_cycle_survives_a_crash_anywhere() {
    for kind in KINDS {
        for how in ways(PageSize::Small) {
            // Explicit pools do not mark.
            if kind == PoolKind::Traced || how.marking == Marking::Concurrent {
                explore(kind, Domain::Adr, how);
            }
        }
    }
}

#[test]
fn a_mapped_pool_keeps_everything() {
    for kind in KINDS {
        for pages in [PageSize::Small, PageSize::Huge] {
            for how in ways(pages) {
                let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
                let objects = Objects {
                    count: 6000,
                    ..MIXED
                };
                let pool = objects.pool(medium, kind);
                let before = pool.ratio(pages);
                let collected = pool.collect(&how).unwrap();
                let name = format!("{kind:?} {pages:?} {:?} {:?}", how.marking, how.forwarding);
                assert!(collected.moved > 0, "{name}");
                assert!(pool.ratio(pages) < before, "{name}");
                objects.assert_in(&pool, &name);
            }
        }
    }
}

/// Nobody has looked at a chunk's frames when the first thing after a crash is to go on with the cycle.
#[test]
fn a_cycle_goes_on_before_anything_else_is_done() {
    for kind in KINDS {
        for pages in [PageSize::Small, PageSize::Huge] {
            let how = CollectOptions {
                release_blocks: true,
                ..collect(pages)
            };
            let objects = Objects {
                count: 6000,
                ..MIXED
            };
            let medium = Crash::new(64 << 20, CrashOptions::default());
            let pool = objects.pool(medium.clone(), kind);
            let mut collection = pool.collection(&how).unwrap();
            assert!(collection.begin().unwrap());
            assert!(!collection.compact(10).unwrap());
            drop(collection);
            pool.abandon();
            let pool = Pool::open(medium, &options(kind)).unwrap();
            let collected = pool.collect(&how).unwrap();
            assert!(collected.moved > 10, "{collected:?}");
            objects.assert_in(&pool, &format!("{kind:?} {pages:?}"));
        }
    }
}
