//! Does the medium's `checklookup` answer from what was installed, for every thread, and forget it all in a crash?

use firn_crash::{
    Crash, CrashOptions, ExploreOptions, Explorer, Job, LookupCounts, LookupSizes, Schedule,
};
use firn_media::{CheckLookup, Hardware, Lookup, MediumExt, Memory, Move, Relocate};
use firn_units::{FRAME_BYTES, VirtAddr};

fn lookups(crash: &Crash) -> &dyn CheckLookup {
    crash.offers().expect()
}

const LEN: u64 = 1 << 20;

fn with_lookup(sizes: LookupSizes) -> CrashOptions {
    CrashOptions {
        lookup: Some(sizes),
        ..CrashOptions::default()
    }
}

/// A move of one object at the start of a page.
fn one_of(page: u64, to: u64) -> Move {
    let (from, to) = (VirtAddr(page * FRAME_BYTES), VirtAddr(to));
    Move { from, to }
}

#[test]
fn it_is_refused_where_the_options_have_none() {
    let crash = Crash::new(LEN, CrashOptions::default());
    assert!(crash.offers().get::<dyn CheckLookup>().is_none());
    assert!(crash.offers().get::<dyn Relocate>().is_none());
}

#[test]
fn objects_move_from_the_installation_to_the_retirement() {
    let crash = Crash::new(LEN, with_lookup(LookupSizes::default()));
    let ask = |at| lookups(&crash).check_lookup(at);
    let one = one_of(1, 64);
    assert_eq!(ask(one.from), Lookup::Stays);
    lookups(&crash).install_lookup(&mut [one].into_iter());
    assert_eq!(ask(one.from), Lookup::MovesTo(one.to));
    assert_eq!(ask(one.from + 16), Lookup::Stays);
    assert_eq!(ask(one.from + FRAME_BYTES), Lookup::Stays);
    lookups(&crash).retire_lookup();
    assert_eq!(ask(one.from), Lookup::Stays);
}

#[test]
fn each_thread_has_buffers_of_its_own() {
    let sizes = LookupSizes {
        entries: 1,
        ..LookupSizes::default()
    };
    let crash = Crash::new(LEN, with_lookup(sizes));
    let (one, other) = (one_of(1, 64), one_of(2, 128));
    lookups(&crash).install_lookup(&mut [one, other].into_iter());
    let asks = |object: Move| {
        let crash = crash.clone();
        let job: Job = Box::new(move || {
            for _ in 0..4 {
                let found = lookups(&crash).check_lookup(object.from);
                assert_eq!(found, Lookup::MovesTo(object.to));
                crash.fence();
            }
        });
        job
    };
    let run = crash.run(vec![asks(one), asks(other)], Schedule::Random { seed: 1 });
    run.finished().unwrap();
    let expected = LookupCounts {
        asked: 8,
        filters_fetched: 2,
        misses: 2,
        hits: 6,
        ..LookupCounts::default()
    };
    assert_eq!(crash.lookup_counts(), expected);
}

/// The filters are in memory, the table too, and the rest on the chip.
#[test]
fn a_crash_leaves_nothing_of_it() {
    let options = ExploreOptions {
        medium: with_lookup(LookupSizes::default()),
        ..ExploreOptions::default()
    };
    let one = one_of(1, 64);
    let workload = move |crash: &Crash| {
        lookups(crash).install_lookup(&mut [one].into_iter());
        assert_eq!(
            lookups(crash).check_lookup(one.from),
            Lookup::MovesTo(one.to)
        );
        crash.store_u64(VirtAddr(0), 1);
        crash.persist(VirtAddr(0), 8);
    };
    let check = move |crash: Crash, _: &_| {
        // The entries that recovery installs are lost at the next crash, too.
        let found = lookups(&crash).check_lookup(one.from);
        lookups(&crash).install_lookup(&mut [one].into_iter());
        crash.store_u64(VirtAddr(64), crash.load_u64(VirtAddr(0)));
        crash.persist(VirtAddr(64), 8);
        crash.end_of_recovery();
        match found {
            Lookup::Stays => Ok(()),
            Lookup::MovesTo(_) => Err("the hardware remembers".into()),
        }
    };
    let report = Explorer::new(options, LEN, |_| {}, workload, check).explore();
    report.expect_clean();
}
