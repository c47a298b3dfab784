//! What libpmemobj's programs are promised of a transaction's stages.

use firn_heap::{LogKind, Pool, PoolKind, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};

use super::*;
use crate::pmemobj::local::local;
use crate::pmemobj::locks::Locks;
use crate::pmemobj::pools::hand_out;
use crate::status::Status;

/// A pool of the test's own.
fn pool() -> Handed<Pobj> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    let options = PoolOptions {
        kind: PoolKind::Explicit,
        log: LogKind::Undo,
        ..PoolOptions::new("stages")
    };
    hand_out(Pool::create(medium, &options).unwrap()).unwrap()
}

/// An address that nobody looks at: what the stages keep for the program.
fn address(number: usize) -> *mut c_void {
    ptr::without_provenance_mut(number)
}

/// For tests that do not ask where an abort jumps to.
const NOWHERE: *mut c_void = ptr::null_mut();

fn status<R>(outcome: Outcome<R>) -> Status {
    outcome.map_or_else(|failure| failure.status(), |_| Status::Ok)
}

/// Begins a transaction or a part of it.
fn begin(stages: &Stages) {
    let begun = stages.begin(Handed::NULL, NOWHERE, None, || Ok(()));
    begun.unwrap();
}

/// A transaction at work, in no pool.
fn at_work() -> Stages {
    let stages = Stages::new();
    begin(&stages);
    stages
}

/// How many parts are open: ends them all.
fn parts(stages: &Stages) -> usize {
    let mut count = 0;
    loop {
        stages.stage.set(Stage::Finally);
        match stages.end() {
            Some(_) => count += 1,
            None => return count,
        }
    }
}

#[test]
fn a_stage_is_followed_by_its_next_one() {
    let stages = at_work();
    for (stage, next) in [
        (Stage::None, Stage::None),
        (Stage::Work, Stage::Work),
        (Stage::OnCommit, Stage::Finally),
        (Stage::OnAbort, Stage::Finally),
        (Stage::Finally, Stage::None),
    ] {
        stages.enter(stage);
        stages.go_on();
        assert_eq!(stages.stage(), next, "behind {stage:?}");
    }
}

#[test]
fn only_the_work_stage_has_a_pool_to_change() {
    let (stages, pool) = (Stages::new(), pool());
    assert_eq!(status(stages.at_work()), Status::Misuse);
    stages.begin(pool, NOWHERE, None, || Ok(())).unwrap();
    assert_eq!(stages.stage(), Stage::Work);
    assert!(stages.at_work().unwrap() == pool);
    for stage in [Stage::OnCommit, Stage::OnAbort, Stage::Finally] {
        stages.enter(stage);
        assert_eq!(status(stages.at_work()), Status::Misuse, "in {stage:?}");
    }
}

#[test]
fn the_outermost_begin_alone_begins_in_the_pool() {
    let (stages, begins) = (Stages::new(), Cell::new(0));
    for _ in 0..3 {
        let count = || {
            begins.set(begins.get() + 1);
            Ok(())
        };
        stages.begin(Handed::NULL, NOWHERE, None, count).unwrap();
    }
    assert_eq!((begins.get(), parts(&stages)), (1, 3));
    begin(&stages);
    assert!(stages.is_outermost());
}

#[test]
fn what_does_not_begin_in_the_pool_leaves_nothing_open() {
    let stages = Stages::new();
    let refuse = || Err(Failure::new(Status::Damaged, "as the test wants"));
    let begun = stages.begin(Handed::NULL, NOWHERE, None, refuse);
    assert_eq!(status(begun), Status::Damaged);
    assert_eq!(stages.stage(), Stage::None);
    assert_eq!(parts(&stages), 0);
}

#[test]
fn a_part_begins_only_in_the_work_stage_of_the_one_around_it() {
    for stage in [Stage::OnCommit, Stage::OnAbort, Stage::Finally] {
        let stages = at_work();
        stages.enter(stage);
        let begun = stages.begin(Handed::NULL, NOWHERE, None, || Ok(()));
        assert_eq!(status(begun), Status::Misuse);
        assert_eq!(stages.stage(), stage);
        assert_eq!(parts(&stages), 1);
    }
}

#[test]
fn a_part_is_in_the_pool_of_its_transaction_and_has_no_callback() {
    extern "C" fn never(_: Handed<Pobj>, _: Stage, _: *mut c_void) {}
    let (stages, its, other) = (Stages::new(), pool(), pool());
    stages.begin(its, NOWHERE, None, || Ok(())).unwrap();
    let elsewhere = stages.begin(other, NOWHERE, None, || Ok(()));
    assert_eq!(status(elsewhere), Status::Invalid);
    let told = stages.begin(its, NOWHERE, Some((never, NOWHERE)), || Ok(()));
    assert_eq!(status(told), Status::Invalid);
    assert_eq!(stages.stage(), Stage::Work);
    stages.begin(its, NOWHERE, None, || Ok(())).unwrap();
    assert_eq!(parts(&stages), 2);
}

#[test]
fn work_does_not_end_before_it_is_committed_or_aborted() {
    let stages = at_work();
    assert!(stages.end().is_none());
    assert_eq!(stages.stage(), Stage::Work);
    assert_eq!(parts(&stages), 1);
}

#[test]
fn where_nothing_is_open_nothing_ends() {
    let stages = Stages::new();
    stages.set_errno(7);
    assert!(stages.end().is_none());
    assert_eq!((stages.stage(), stages.errno()), (Stage::None, 7));
}

#[test]
fn behind_a_part_the_work_around_it_goes_on_and_behind_the_outermost_none() {
    let (stages, pool) = (Stages::new(), pool());
    for _ in 0..2 {
        stages.begin(pool, NOWHERE, None, || Ok(())).unwrap();
    }
    assert!(!stages.is_outermost());
    stages.enter(Stage::OnCommit);
    assert!(stages.end().unwrap().pool.is_none());
    assert_eq!(stages.stage(), Stage::Work);
    assert!(stages.is_outermost());
    stages.enter(Stage::OnCommit);
    assert!(stages.end().unwrap().pool == Some(pool));
    assert_eq!(stages.stage(), Stage::None);
    assert!(!stages.is_outermost());
}

#[test]
fn a_failure_is_that_of_the_innermost_part_and_told_at_its_end() {
    let stages = at_work();
    begin(&stages);
    stages.fail(5);
    assert_eq!(stages.errno(), 5);
    stages.enter(Stage::OnAbort);
    // As a call does that succeeds meanwhile.
    stages.set_errno(0);
    assert_eq!(stages.end().unwrap().failed, 5);
    assert_eq!(stages.errno(), 5);
    stages.enter(Stage::OnCommit);
    assert_eq!(stages.end().unwrap().failed, 0);
    assert_eq!(stages.errno(), 0);
}

#[test]
fn what_is_refused_is_aborted_with_its_failure() {
    let (stages, pool) = (Stages::new(), pool());
    stages.refuse(pool, address(1), 12);
    assert_eq!(stages.stage(), Stage::OnAbort);
    assert_eq!(stages.environment(), address(1));
    stages.go_on();
    assert_eq!(stages.stage(), Stage::Finally);
    let ended = stages.end().unwrap();
    assert_eq!(ended.failed, 12);
    assert!(ended.pool == Some(pool));
    assert_eq!(stages.stage(), Stage::None);
}

#[test]
fn a_part_that_is_refused_leaves_the_one_around_it_at_work() {
    let (stages, its, other) = (Stages::new(), pool(), pool());
    stages.begin(its, address(1), None, || Ok(())).unwrap();
    stages.refuse(other, address(2), 22);
    assert_eq!(stages.stage(), Stage::OnAbort);
    assert_eq!(stages.environment(), address(2));
    let ended = stages.end().unwrap();
    assert_eq!((ended.failed, ended.pool.is_none()), (22, true));
    assert!(stages.at_work().unwrap() == its);
    assert_eq!(stages.environment(), address(1));
}

#[test]
fn an_abort_jumps_to_where_the_innermost_part_says() {
    let stages = Stages::new();
    assert!(stages.environment().is_null());
    for part in 1..4 {
        let begun = stages.begin(Handed::NULL, address(part), None, || Ok(()));
        begun.unwrap();
        assert_eq!(stages.environment(), address(part));
    }
    for part in (0..3).rev() {
        stages.enter(Stage::OnAbort);
        stages.end().unwrap();
        assert_eq!(stages.environment(), address(part));
    }
}

#[test]
fn a_program_is_told_of_each_stage_until_its_transaction_has_ended() {
    thread_local! {
        static TOLD: RefCell<Vec<(*mut Pobj, Stage, Stage, [*mut c_void; 2])>> = RefCell::default();
    }
    extern "C" fn tell(pool: Handed<Pobj>, stage: Stage, argument: *mut c_void) {
        // The program may ask what stage it is, and more.
        let stages = &local().stages;
        let addresses = [argument, stages.environment()];
        let told = (pool.pointer(), stage, stages.stage(), addresses);
        TOLD.with_borrow_mut(|all| all.push(told));
    }
    let (stages, pool) = (&local().stages, pool());
    let callback = Some((tell as Callback, address(9)));
    stages.begin(pool, address(1), callback, || Ok(())).unwrap();
    assert_eq!(TOLD.take(), []);
    stages.call_back();
    stages.enter(Stage::OnCommit);
    let told = |stage| (pool.pointer(), stage, stage, [address(9), address(1)]);
    assert_eq!(TOLD.take(), [Stage::Work, Stage::OnCommit].map(told));
    stages.end().unwrap();
    stages.call_back();
    let end = (
        pool.pointer(),
        Stage::None,
        Stage::None,
        [address(9), NOWHERE],
    );
    assert_eq!(TOLD.take(), [end]);
    let _ = stages.left();
    stages.call_back();
    assert_eq!(TOLD.take(), []);
}

#[test]
fn locks_are_held_to_the_end_of_the_outermost_part_in_their_order() {
    extern "C" fn unlock(_: *mut c_void) {}
    let stages = at_work();
    stages.keep_lock(address(3), unlock);
    begin(&stages);
    stages.keep_lock(address(1), unlock);
    assert!(!stages.holds(address(2)));
    stages.enter(Stage::OnAbort);
    stages.end().unwrap();
    assert!(stages.holds(address(1)) && stages.holds(address(3)));
    stages.enter(Stage::OnCommit);
    stages.end().unwrap();
    let locks = |stages: &Stages| stages.left().0.into_iter().map(|(lock, _)| lock);
    assert!(locks(&stages).eq([address(3), address(1)]));
    assert!(!stages.holds(address(1)) && !stages.holds(address(3)));
    assert!(locks(&stages).next().is_none());
}

#[test]
fn the_locks_of_all_that_is_freed_are_left_and_once() {
    let (stages, locks) = (at_work(), Locks::default());
    let new = || {
        let word = Cell::new(0);
        let place = locks.of_word(|| word.get(), |number| word.set(number));
        (word.get(), place)
    };
    let (first, second, kept) = (new(), new(), new());
    for (number, _) in [first, second] {
        stages.add_orphans(Orphans::among([number].into_iter()));
    }
    stages.enter(Stage::OnCommit);
    stages.end().unwrap();
    locks.forget(stages.left().1);
    let place_of = |number| locks.of_word(|| number, |_| ());
    assert_eq!(place_of(kept.0), kept.1);
    // Each gets the place that was given back last, which was the other's.
    let anew = [first.0, second.0].map(place_of);
    assert_eq!(anew, [second.1, first.1]);
    locks.forget(stages.left().1);
    assert_eq!([first.0, second.0].map(place_of), anew);
}
