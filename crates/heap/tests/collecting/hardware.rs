//! Is a scheme refused, with nothing changed, where the medium lacks an instruction that it needs?

use firn_crash::{Crash, CrashOptions, LookupSizes, RelocateUnit};
use firn_heap::collector::scheme::{FFCCD, FFCCD_CHECKLOOKUP, SCHEMES, Scheme};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Bytes, Pool, PoolOptions, Refs, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Medium};

/// Objects before three of four are unlinked.
const OBJECTS: usize = 400;
const LEN: u64 = 16 << 20;

const CHECKLOOKUP: &str =
    "a medium with the instruction `checklookup`, which only simulated ones have";
const RELOCATE: &str = "a medium with the instruction `relocate`, which only simulated ones have";

fn options() -> PoolOptions {
    PoolOptions::new("hardware")
}

fn collect(scheme: &'static Scheme) -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        scheme,
        ..CollectOptions::default()
    }
}

/// With both instructions, or without one of them.
fn medium(relocate: bool, lookup: bool) -> CrashOptions {
    CrashOptions {
        relocate: relocate.then_some(RelocateUnit::Functional),
        lookup: lookup.then(LookupSizes::default),
        ..CrashOptions::default()
    }
}

fn fragmented<M: Medium>(medium: M) -> Pool<M> {
    let pool = Pool::create(medium, &options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let all = tx.alloc_refs::<Bytes>(OBJECTS)?;
            for place in 0..OBJECTS {
                let new = tx.alloc_bytes(&[7; 100])?;
                all.set(place, (place % 4 == 0).then_some(new))?;
            }
            tx.set_root("all", all)
        })
        .unwrap();
    drop(session);
    pool
}

fn assert_whole<M: Medium>(pool: &Pool<M>) {
    assert!(pool.check().unwrap().is_empty());
    let mut session = pool.session().unwrap();
    session.read(|view| {
        let all = view.root::<Refs<Bytes>>("all").unwrap();
        let there = (0..OBJECTS).filter_map(|place| all.get(place));
        let found: Vec<_> = there.map(|object| object.to_vec().unwrap()).collect();
        assert_eq!(found, vec![vec![7; 100]; OBJECTS / 4]);
    });
}

fn assert_refused<M: Medium>(pool: &Pool<M>, scheme: &'static Scheme, needs: &str) {
    let refused = pool.collect(&collect(scheme)).unwrap_err().to_string();
    assert!(refused.contains(scheme.name), "{refused}");
    assert!(refused.contains(needs), "{refused}");
    assert!(!pool.has_open_cycle());
    assert_whole(pool);
}

#[test]
fn a_collection_is_refused_where_an_instruction_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pool");
    let mapped =
        Mapped::create(path, LEN, &MappedOptions::default().domain(Domain::Process)).unwrap();
    let mapped = fragmented(mapped);
    assert_refused(&mapped, &FFCCD, RELOCATE);
    assert_refused(&mapped, &FFCCD_CHECKLOOKUP, CHECKLOOKUP);

    let half = fragmented(Crash::new(LEN, medium(true, false)));
    assert_refused(&half, &FFCCD_CHECKLOOKUP, CHECKLOOKUP);
    let half = fragmented(Crash::new(LEN, medium(false, true)));
    assert_refused(&half, &FFCCD_CHECKLOOKUP, RELOCATE);

    let both = fragmented(Crash::new(LEN, medium(true, true)));
    assert!(both.collect(&collect(&FFCCD_CHECKLOOKUP)).unwrap().moved > 0);
    assert_whole(&both);
}

#[test]
fn an_interrupted_cycle_is_refused_where_an_instruction_lacks() {
    let pool = fragmented(Crash::new(LEN, medium(true, true)));
    let mut collection = pool.collection(&collect(&FFCCD_CHECKLOOKUP)).unwrap();
    assert!(collection.begin().unwrap());
    collection.compact(10).unwrap();
    let image = pool.medium().cache_image();
    for (relocate, lookup, needs) in [(true, false, CHECKLOOKUP), (false, true, RELOCATE)] {
        let crash = Crash::from_image(&image, medium(relocate, lookup));
        let refused = Pool::open(crash, &options()).err().unwrap().to_string();
        assert!(refused.contains(needs), "{refused}");
    }
    let pool = Pool::open(Crash::from_image(&image, medium(true, true)), &options()).unwrap();
    assert!(pool.has_open_cycle());
    assert_whole(&pool);
}

#[test]
fn what_needs_such_hardware_is_no_scheme_for_stock_hardware() {
    let names = SCHEMES.iter().filter(|s| !s.is_for_stock_hardware());
    let names: Vec<&str> = names.map(|scheme| scheme.name).collect();
    for name in ["ffccd", "ffccd+checklookup"] {
        assert!(names.contains(&name), "{names:?}");
    }
}
