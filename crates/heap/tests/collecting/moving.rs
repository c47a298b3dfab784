//! Does a collection keep every object, reclaim unreachable ones, and free pages?

use firn_crash::{Crash, CrashOptions, LookupSizes, RelocateUnit};
use firn_heap::collector::scheme::{PIGGYBACK, SCHEMES, Scheme};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Bytes, Pool, PoolKind, PoolOptions, Refs, Statistics, View};
use firn_media::Domain;

type Spine = Refs<Bytes>;

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        lanes: 2,
        ..PoolOptions::new("collect")
    }
}

fn value(i: usize) -> Vec<u8> {
    // Sizes of several classes, including runs of several frames, and large objects.
    let len = match i % 49 {
        0 => 6000,
        1 => 40_000,
        2 => 1000,
        n => 20 + n % 8 * 16,
    };
    (0..len).map(|k| (i + k) as u8).collect()
}

/// Makes a pool with `count` objects and frees all but every fifth.
fn fragmented(medium: Crash, kind: PoolKind, count: usize) -> Pool<Crash> {
    let pool = Pool::create(medium, &options(kind)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| tx.set_root("spine", tx.alloc_refs::<Bytes>(count)?))
        .unwrap();
    for i in 0..count {
        session
            .transaction(|tx| {
                let new = tx.alloc_bytes(&value(i))?;
                tx.root::<Spine>("spine")?.set(i, Some(new))
            })
            .unwrap();
    }
    for i in (0..count).filter(|i| i % 5 != 0) {
        session
            .transaction(|tx| {
                let spine = tx.root::<Spine>("spine")?;
                if let Some(old) = spine.get(i) {
                    // SAFETY: the only reference is removed.
                    unsafe { tx.free(old)? };
                }
                spine.set(i, None)
            })
            .unwrap();
    }
    pool
}

fn assert_content(pool: &Pool<Crash>, count: usize) {
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let spine = view.root::<Spine>("spine").unwrap();
        for i in 0..count {
            let found = spine.get(i).map(|b| b.to_vec().unwrap());
            let expected = (i % 5 == 0).then(|| value(i));
            assert_eq!(found, expected, "object {i}");
        }
    });
}

fn collect(scheme: &'static Scheme, pages: PageSize) -> CollectOptions {
    CollectOptions {
        target: 1.0,
        scheme,
        pages,
        ..CollectOptions::default()
    }
}

fn keeps_and_frees(kind: PoolKind, domain: Domain, options_of: &CollectOptions, count: usize) {
    let medium = CrashOptions {
        relocate: options_of
            .scheme
            .relocates()
            .then_some(RelocateUnit::Functional),
        lookup: options_of.scheme.checks_lookup().then(LookupSizes::default),
        ..CrashOptions::with_domain(domain)
    };
    let medium = Crash::new(64 << 20, medium);
    let pool = fragmented(medium, kind, count);
    let before = Statistics::read(pool.medium()).unwrap();
    let collected = pool.collect(options_of).unwrap();
    let after = Statistics::read(pool.medium()).unwrap();
    let (scheme, pages) = (options_of.scheme, options_of.pages);
    let name = format!("{kind:?} {domain} {} {pages:?}", scheme.name);
    println!(
        "{name}: {:?} -> {:?}, {:?} -> {:?}, {collected:?}",
        before.ratio_4k(),
        after.ratio_4k(),
        before.ratio_2m(),
        after.ratio_2m()
    );
    assert_eq!(pool.check().unwrap(), [], "{name}");
    assert_content(&pool, count);
    assert_eq!(before.live_bytes, after.live_bytes, "{name}");
    assert_eq!(before.objects, after.objects, "{name}");
    if scheme.moves {
        assert!(collected.cycles > 0 && collected.moved > 0, "{name}");
        assert!(after.ratio_4k() < Some(1.25), "{name}");
    } else {
        assert_eq!(collected.cycles, 0, "{name}");
    }
    if scheme.moves && pages == PageSize::Huge {
        assert!(
            after.footprint_2m_bytes < before.footprint_2m_bytes,
            "{name}"
        );
    }
    // The freed space can be used again, and the pool closes cleanly.
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| tx.alloc_bytes(&[1; 100]).map(|_| ()))
        .unwrap();
    drop(session);
    let medium = pool.medium().clone();
    pool.close().unwrap();
    let closed = Statistics::read(&medium).unwrap();
    // A run of several frames counts as a whole while the pool is open, and page by page when it is closed.
    assert!(
        closed.footprint_4k_bytes <= after.footprint_4k_bytes,
        "{name}"
    );
    assert_eq!(
        closed.footprint_2m_bytes, after.footprint_2m_bytes,
        "{name}"
    );
    let pool = Pool::open(medium, &options(kind)).unwrap();
    assert_eq!(pool.check().unwrap(), [], "{name}");
    assert_content(&pool, count);
}

#[test]
fn every_scheme_keeps_every_object_and_frees_pages() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        for domain in [Domain::Adr, Domain::Process] {
            for scheme in SCHEMES {
                keeps_and_frees(kind, domain, &collect(scheme, PageSize::Small), 4000);
            }
        }
    }
}

#[test]
fn huge_pages_are_freed() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        keeps_and_frees(
            kind,
            Domain::Adr,
            &collect(&PIGGYBACK, PageSize::Huge),
            30_000,
        );
    }
}
