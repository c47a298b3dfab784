//! What libpmemobj's programs are promised of a transaction's stages.

use firn_heap::{LogKind, Pool, PoolKind, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};

use super::*;
use crate::pmemobj::local::local;
use crate::pmemobj::locks::{Locks, Words};
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
    let begun = stages.begin(Handed::NULL, NOWHERE, None, || Ok(Pop::NULL));
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
    stages.begin(pool, NOWHERE, None, || Ok(Pop::NULL)).unwrap();
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
            Ok(Pop::NULL)
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
        let begun = stages.begin(Handed::NULL, NOWHERE, None, || Ok(Pop::NULL));
        assert_eq!(status(begun), Status::Misuse);
        assert_eq!(stages.stage(), stage);
        assert_eq!(parts(&stages), 1);
    }
}

#[test]
fn a_part_is_in_the_pool_of_its_transaction() {
    let (stages, its, other) = (Stages::new(), pool(), pool());
    stages.begin(its, NOWHERE, None, || Ok(Pop::NULL)).unwrap();
    let elsewhere = stages.begin(other, NOWHERE, None, || Ok(Pop::NULL));
    assert_eq!(status(elsewhere), Status::Invalid);
    assert_eq!(stages.stage(), Stage::Work);
    stages.begin(its, NOWHERE, None, || Ok(Pop::NULL)).unwrap();
    assert_eq!(parts(&stages), 2);
}

#[test]
fn a_transaction_has_one_callback_whichever_part_brings_it() {
    extern "C" fn tell(_: Pop, _: Stage, _: *mut c_void) {}
    let stages = at_work();
    let with = |argument| {
        let callback = Some((tell as Callback, address(argument)));
        status(stages.begin(Handed::NULL, NOWHERE, callback, || Ok(Pop::NULL)))
    };
    assert_eq!(
        [1, 1, 2].map(with),
        [Status::Ok, Status::Ok, Status::Misuse]
    );
    assert_eq!(parts(&stages), 3);
    let callback = stages.left().callback;
    assert!(callback.is_some_and(|(_, argument)| argument == address(1)));
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
        stages.begin(pool, NOWHERE, None, || Ok(Pop::NULL)).unwrap();
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
    stages
        .begin(its, address(1), None, || Ok(Pop::NULL))
        .unwrap();
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
        let begun = stages.begin(Handed::NULL, address(part), None, || Ok(Pop::NULL));
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
fn a_program_is_told_of_each_stage_of_the_outermost_part() {
    thread_local! {
        static TOLD: RefCell<Vec<(Pop, Stage, [*mut c_void; 2])>> = RefCell::default();
    }
    extern "C" fn tell(pop: Pop, stage: Stage, argument: *mut c_void) {
        // The program may ask what stage it is, and more.
        let stages = &local().stages;
        assert_eq!(stages.stage(), stage);
        let addresses = [argument, stages.environment()];
        TOLD.with_borrow_mut(|all| all.push((pop, stage, addresses)));
    }
    let (stages, pool) = (&local().stages, pool());
    let pop = pool.open().unwrap().handle();
    let callback = Some((tell as Callback, address(9)));
    stages
        .begin(pool, address(1), callback, || Ok(pop))
        .unwrap();
    assert_eq!(TOLD.take(), []);
    stages.begin(pool, address(2), None, || Ok(pop)).unwrap();
    stages.call_back();
    stages.enter(Stage::OnCommit);
    stages.go_on();
    stages.end().unwrap();
    assert_eq!(TOLD.take(), []);
    stages.call_back();
    stages.enter(Stage::OnCommit);
    stages.go_on();
    let told = |stage| (pop, stage, [address(9), address(1)]);
    let all = [Stage::Work, Stage::OnCommit, Stage::Finally];
    assert_eq!(TOLD.take(), all.map(told));
    stages.end().unwrap();
    assert!(stages.left().callback == callback);
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
    let locks = |stages: &Stages| stages.left().locks.into_iter().map(|(lock, _)| lock);
    assert!(locks(&stages).eq([address(3), address(1)]));
    assert!(!stages.holds(address(1)) && !stages.holds(address(3)));
    assert!(locks(&stages).next().is_none());
}

/// A lock's words outside of any pool. Everything that was at an address is now `further`.
#[derive(Clone, Default)]
struct Alone {
    words: [Cell<u64>; 4],
    at: u64,
    further: u64,
}

impl Words for &Alone {
    fn load(&self, word: usize) -> u64 {
        self.words[word].get()
    }

    fn store(&self, word: usize, content: u64) {
        self.words[word].set(content);
    }

    fn at(&self) -> u64 {
        self.at
    }

    fn now(&self, at: u64) -> Outcome<u64> {
        Ok(at + self.further)
    }
}

fn alone(at: u64) -> Alone {
    Alone {
        at,
        ..Alone::default()
    }
}

#[test]
fn a_lock_moves_with_its_object_and_a_copy_of_it_is_another() {
    let (locks, words) = (Locks::default(), alone(64));
    let lock = locks.of(&&words).unwrap();
    assert_eq!(locks.of(&&words).unwrap(), lock);
    let mut moved = words.clone();
    (moved.at, moved.further) = (4096, 4096 - 64);
    let mut copy = words.clone();
    copy.at = 4096;
    let copied = locks.of(&&copy).unwrap();
    assert!(copied != lock);
    assert_eq!(locks.of(&&copy).unwrap(), copied);
    assert_eq!(locks.of(&&moved).unwrap(), lock);
    moved.further = 0;
    assert_eq!(locks.of(&&moved).unwrap(), lock);
    // A longer object that takes the place of this one.
    let mut longer = words.clone();
    longer.at = 8192;
    locks.follow(&&longer, 64);
    assert_eq!(locks.of(&&longer).unwrap(), lock);
}

#[test]
fn what_another_opening_left_is_a_free_lock() {
    let (locks, others) = (Locks::default(), Locks::default());
    let left = alone(64);
    let taken = locks.of(&&left).unwrap();
    assert!(others.of(&&left).unwrap() != taken);
    for torn in 0..4 {
        let words = alone(64);
        let lock = locks.of(&&words).unwrap();
        words.words[torn].set(words.words[torn].get() ^ 1 << 40);
        assert!(locks.of(&&words).unwrap() != lock, "word {torn}");
    }
}

#[test]
fn the_locks_of_all_that_is_freed_are_left_and_once() {
    let (stages, locks) = (at_work(), Locks::default());
    let words = [64, 128, 192].map(alone);
    let places = [0, 1, 2].map(|lock| locks.of(&&words[lock]).unwrap());
    for freed in &words[..2] {
        stages.add_orphans(locks.among([freed].into_iter()));
    }
    stages.enter(Stage::OnCommit);
    stages.end().unwrap();
    locks.forget(stages.left().orphans);
    assert_eq!(locks.of(&&words[2]).unwrap(), places[2]);
    // New ones get the places that were given back.
    let mut anew = [256, 320].map(|at| locks.of(&&alone(at)).unwrap());
    anew.sort();
    let mut freed = [places[0], places[1]];
    freed.sort();
    assert_eq!(anew, freed);
    locks.forget(stages.left().orphans);
}
