//! Operations of `firn.h`.

use core::cell::RefCell;
use std::sync::Barrier;
use std::thread;

use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, LogKind, Pool, View};
use firn_mapped::Mapped;

use super::{assert_nobody_is_inside, failure, pool_of, roots, status};
use crate::operation::{Of, Typed, with_view};
use crate::status::{Outcome, Status};

/// Names of locks.
const LOCK: u64 = 2;
const OTHER: u64 = 1;

/// A program with one session. Its pool has another one for the test to look.
struct Program {
    pool: Pool<Mapped>,
    operation: Typed,
}

impl Program {
    fn new() -> Self {
        Self::with(LogKind::Redo)
    }

    fn with(log: LogKind) -> Self {
        let pool = pool_of(log, 2);
        let operation = Typed::new(pool.session().unwrap());
        Self { pool, operation }
    }

    fn begin_read(&self) -> Outcome<()> {
        self.operation.begin_read(|_| ())
    }

    fn begin(&self) -> Outcome<()> {
        self.operation.begin_transaction(|_| ())
    }

    /// Makes a new object a root.
    fn set(&self, name: &str) -> Outcome<()> {
        let set = |tx: firn_heap::Tx<'_, Mapped>| tx.set_root(name, tx.alloc_bytes(b"new")?);
        self.operation.change(|tx| Ok(set(tx)?))
    }

    /// A call that fails in the transaction.
    fn fail(&self, with: Status) {
        let result: Outcome<()> = self.operation.change(|_| Err(failure(with)));
        assert_eq!(status(result), with);
    }

    /// The names of the roots that the operation sees.
    fn seen(&self) -> Outcome<Vec<String>> {
        with_view!(self, |view| Ok(view.root_names()?))
    }

    fn commit_all(&self) -> Status {
        let (ended, outcome) = self.operation.commit();
        assert!(matches!(ended, Of::All));
        assert!(self.operation.is_idle());
        status(outcome)
    }

    fn commit_part(&self) -> Status {
        let (ended, outcome) = self.operation.commit();
        assert!(matches!(ended, Of::Part));
        assert!(self.operation.is_in_transaction());
        status(outcome)
    }

    fn abort_part(&self) {
        assert!(matches!(self.operation.abort(), Ok(Of::Part)));
        assert!(self.operation.is_in_transaction());
    }

    fn end_read(&self) -> Of {
        self.operation.end_read().ok().unwrap()
    }

    /// Whether somebody holds the lock: a session that holds another one does not wait for it without end.
    fn is_locked(&self) -> bool {
        let pool = &self.pool;
        let tries = || {
            let mut session = pool.session().unwrap();
            let refused = session.transaction(|tx| {
                tx.lock_exclusive(OTHER)?;
                let taken = tx.lock_exclusive(LOCK);
                Ok::<_, Error>(matches!(taken, Err(Error::Conflict)))
            });
            refused.unwrap()
        };
        thread::scope(|scope| scope.spawn(tries).join().unwrap())
    }
}

#[test]
fn an_operation_that_reads_ends_with_the_outermost_end() {
    let program = Program::new();
    for _ in 0..3 {
        program.begin_read().unwrap();
    }
    for _ in 0..2 {
        assert!(matches!(program.end_read(), Of::Part));
        assert!(program.seen().is_ok());
    }
    assert!(matches!(program.end_read(), Of::All));
    assert!(program.operation.is_idle());
    assert_nobody_is_inside(&program.pool);
    assert_eq!(status(program.operation.end_read()), Status::Misuse);
}

#[test]
fn a_read_within_a_transaction_does_not_end_it() {
    let program = Program::new();
    program.begin().unwrap();
    program.set("a").unwrap();
    program.begin_read().unwrap();
    assert!(matches!(program.end_read(), Of::Part));
    assert_eq!(status(program.operation.end_read()), Status::Misuse);
    assert_eq!(program.commit_all(), Status::Ok);
    assert_eq!(roots(&program.pool), ["a"]);
}

#[test]
fn a_transaction_does_not_begin_within_a_read() {
    let program = Program::new();
    program.begin_read().unwrap();
    assert_eq!(status(program.begin()), Status::Misuse);
    assert!(program.seen().is_ok());
    assert!(matches!(program.end_read(), Of::All));
}

#[test]
fn only_a_whole_operation_is_told_of_its_begin() {
    let program = Program::new();
    let told = RefCell::new(Vec::new());
    let begin_read = || {
        let begun = |moving| told.borrow_mut().push(moving);
        program.operation.begin_read(begun).unwrap();
    };
    let begin_transaction = || {
        let begun = |moving| told.borrow_mut().push(moving);
        program.operation.begin_transaction(begun).unwrap();
    };
    begin_read();
    begin_read();
    assert_eq!(told.take(), [false]);
    program.end_read();
    program.end_read();
    begin_transaction();
    begin_transaction();
    begin_read();
    assert_eq!(told.take(), [false]);
}

#[test]
fn a_begin_says_whether_objects_are_being_moved() {
    let program = Program::new();
    program.begin().unwrap();
    program.set("a").unwrap();
    assert_eq!(program.commit_all(), Status::Ok);
    let everything = CollectOptions {
        pages: PageSize::Small,
        everything: true,
        ..CollectOptions::default()
    };
    let mut collection = program.pool.collection(&everything).unwrap();
    assert!(collection.begin().unwrap());
    let told = RefCell::new(Vec::new());
    let begun = |moving| told.borrow_mut().push(moving);
    program.operation.begin_read(begun).unwrap();
    program.end_read();
    program.operation.begin_transaction(begun).unwrap();
    assert_eq!(program.commit_all(), Status::Ok);
    collection.finish().unwrap();
    program.operation.begin_read(begun).unwrap();
    program.end_read();
    program.operation.begin_transaction(begun).unwrap();
    assert_eq!(told.take(), [true, true, false, false]);
}

#[test]
fn a_transaction_is_there_once_it_is_committed_and_not_if_it_is_aborted() {
    let program = Program::new();
    program.begin().unwrap();
    program.set("a").unwrap();
    assert_eq!(program.seen().unwrap(), ["a"]);
    assert!(roots(&program.pool).is_empty());
    assert_eq!(program.commit_all(), Status::Ok);
    program.begin().unwrap();
    program.set("b").unwrap();
    assert!(matches!(program.operation.abort(), Ok(Of::All)));
    assert!(program.operation.is_idle());
    assert_eq!(roots(&program.pool), ["a"]);
    assert_nobody_is_inside(&program.pool);
}

#[test]
fn the_depth_is_that_of_transactions_and_parts() {
    let program = Program::new();
    let depth = || program.operation.depth();
    program.begin_read().unwrap();
    assert_eq!(depth(), 0);
    program.end_read();
    for open in 1..4 {
        program.begin().unwrap();
        assert_eq!(depth(), open);
    }
    program.begin_read().unwrap();
    assert_eq!(depth(), 3);
    program.abort_part();
    assert_eq!(depth(), 2);
    assert_eq!(program.commit_part(), Status::Ok);
    assert_eq!(depth(), 1);
    assert_eq!(program.commit_all(), Status::Ok);
    assert_eq!(depth(), 0);
}

#[test]
fn parts_are_kept_or_rolled_back_by_themselves() {
    let program = Program::new();
    program.begin().unwrap();
    program.set("before").unwrap();
    program.begin().unwrap();
    program.set("kept").unwrap();
    assert_eq!(program.commit_part(), Status::Ok);
    program.begin().unwrap();
    program.set("aborted").unwrap();
    // What is kept of a part goes with the part around it.
    program.begin().unwrap();
    program.set("within").unwrap();
    assert_eq!(program.commit_part(), Status::Ok);
    program.abort_part();
    program.set("behind").unwrap();
    assert_eq!(program.commit_all(), Status::Ok);
    assert_eq!(roots(&program.pool), ["before", "behind", "kept"]);
}

#[test]
fn a_transaction_in_which_a_call_failed_is_rolled_back_with_the_first_failure() {
    let program = Program::new();
    program.begin().unwrap();
    program.set("a").unwrap();
    program.fail(Status::NotFound);
    program.fail(Status::Exists);
    program.set("b").unwrap();
    assert_eq!(program.commit_all(), Status::NotFound);
    assert!(roots(&program.pool).is_empty());
    // It is forgotten with the transaction.
    program.begin().unwrap();
    program.set("c").unwrap();
    assert_eq!(program.commit_all(), Status::Ok);
    assert_eq!(roots(&program.pool), ["c"]);
}

#[test]
fn a_call_that_failed_in_a_part_rolls_back_that_part_alone() {
    let program = Program::new();
    program.begin().unwrap();
    program.set("before").unwrap();
    program.begin().unwrap();
    program.set("within").unwrap();
    program.fail(Status::NotFound);
    assert_eq!(program.commit_part(), Status::NotFound);
    program.set("behind").unwrap();
    assert_eq!(program.commit_all(), Status::Ok);
    assert_eq!(roots(&program.pool), ["before", "behind"]);
}

#[test]
fn of_what_could_not_be_read_only_a_conflict_fails_the_transaction() {
    let program = Program::new();
    for (failed, committed) in [
        (Status::NotFound, Status::Ok),
        (Status::Conflict, Status::Conflict),
    ] {
        program.begin().unwrap();
        program.operation.failed_to_read(&failure(failed));
        assert_eq!(program.commit_all(), committed);
    }
}

#[test]
fn a_failure_outside_of_a_transaction_fails_none() {
    let program = Program::new();
    program.operation.fail(&failure(Status::Conflict));
    program.begin_read().unwrap();
    program.operation.fail(&failure(Status::Conflict));
    program.end_read();
    program.begin().unwrap();
    assert_eq!(program.commit_all(), Status::Ok);
}

#[test]
fn a_lock_is_held_to_the_end_of_its_operation() {
    let program = Program::new();
    program.begin_read().unwrap();
    assert!(!program.is_locked());
    program.operation.lock_shared(LOCK).unwrap();
    program.begin_read().unwrap();
    program.end_read();
    assert!(program.is_locked());
    program.end_read();
    assert!(!program.is_locked());
    program.begin().unwrap();
    program.begin().unwrap();
    program.operation.lock_shared(LOCK).unwrap();
    program.abort_part();
    assert!(program.is_locked());
    assert_eq!(program.commit_all(), Status::Ok);
    assert!(!program.is_locked());
}

#[test]
fn a_lock_that_is_refused_fails_its_transaction() {
    let program = Program::new();
    program.begin().unwrap();
    program.operation.lock_shared(OTHER).unwrap();
    let (pool, is_taken, is_refused) = (&program.pool, Barrier::new(2), Barrier::new(2));
    let refused = thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = pool.session().unwrap();
            let taken = other.transaction(|tx| {
                tx.lock_exclusive(LOCK)?;
                is_taken.wait();
                is_refused.wait();
                Ok::<_, Error>(())
            });
            taken.unwrap();
        });
        is_taken.wait();
        let refused = status(program.operation.lock_shared(LOCK));
        is_refused.wait();
        refused
    });
    assert_eq!(refused, Status::Conflict);
    assert_eq!(program.commit_all(), Status::Conflict);
}

#[test]
fn calls_without_the_operation_that_they_need_are_refused() {
    let program = Program::new();
    let operation = &program.operation;
    let commit = || {
        let (ended, outcome) = operation.commit();
        assert!(matches!(ended, Of::Part));
        status(outcome)
    };
    let refused_in_transactions = || status(operation.reading(|_| Ok(())));
    let refused_in_reads = || {
        [
            commit(),
            status(operation.abort()),
            status(program.set("a")),
        ]
    };
    assert_eq!(refused_in_transactions(), Status::Misuse);
    assert_eq!(refused_in_reads(), [Status::Misuse; 3]);
    assert_eq!(status(operation.lock_shared(LOCK)), Status::Misuse);
    assert_eq!(status(program.seen()), Status::Misuse);
    assert!(operation.is_idle());
    program.begin_read().unwrap();
    assert_eq!(refused_in_transactions(), Status::Ok);
    assert_eq!(refused_in_reads(), [Status::Misuse; 3]);
    assert!(matches!(program.end_read(), Of::All));
    program.begin().unwrap();
    assert_eq!(refused_in_transactions(), Status::Misuse);
    assert_eq!(program.commit_all(), Status::Ok);
}

#[test]
fn a_transaction_that_cannot_begin_leaves_nothing_open() {
    // Typed transactions need a redo log.
    let program = Program::with(LogKind::Undo);
    assert_eq!(status(program.begin()), Status::Misuse);
    assert!(program.operation.is_idle());
    assert_nobody_is_inside(&program.pool);
    program.begin_read().unwrap();
    assert!(matches!(program.end_read(), Of::All));
}

#[test]
fn an_operation_goes_on_where_its_owner_moves() {
    let program = Program::new();
    program.begin().unwrap();
    program.set("a").unwrap();
    program.begin().unwrap();
    program.operation.lock_shared(LOCK).unwrap();
    let moved = Box::new(program);
    moved.set("b").unwrap();
    assert_eq!(moved.commit_part(), Status::Ok);
    assert_eq!(moved.commit_all(), Status::Ok);
    assert_eq!(roots(&moved.pool), ["a", "b"]);
}

#[test]
fn closing_rolls_back_what_is_open_and_begins_nothing_anew() {
    let program = Program::new();
    program.begin().unwrap();
    program.set("a").unwrap();
    program.begin().unwrap();
    program.set("b").unwrap();
    program.operation.lock_shared(LOCK).unwrap();
    program.operation.close();
    assert!(program.operation.is_closed());
    assert!(!program.is_locked());
    assert!(roots(&program.pool).is_empty());
    assert_nobody_is_inside(&program.pool);
    let calls = [
        program.begin_read(),
        program.begin(),
        program.operation.end_read().map(drop),
        program.operation.abort().map(drop),
        program.operation.commit().1.map(drop),
        program.operation.lock_shared(LOCK),
    ];
    assert_eq!(calls.map(status), [Status::Misuse; 6]);
    assert!(program.operation.is_closed());
}

#[test]
fn closing_gives_back_the_locks_of_a_read() {
    let program = Program::new();
    program.begin_read().unwrap();
    program.operation.lock_shared(LOCK).unwrap();
    program.operation.close();
    assert!(!program.is_locked());
    assert_nobody_is_inside(&program.pool);
}
