//! Operations of `firn/pmemobj.h`.

use firn_format::lane::undo_done_at;
use firn_heap::{LogKind, Pool};
use firn_mapped::Mapped;
use firn_media::Memory;

use super::{assert_nobody_is_inside, pool_of, roots, status};
use crate::operation::Raw;
use crate::status::{Outcome, Status};

/// A program with one session. Its pool has another one for the test to look.
struct Program {
    pool: Pool<Mapped>,
    operation: Raw,
    lane: usize,
}

impl Program {
    fn new() -> Self {
        Self::with(LogKind::Undo)
    }

    fn with(log: LogKind) -> Self {
        let pool = pool_of(log, 2);
        let session = pool.session().unwrap();
        let lane = session.lane();
        let operation = Raw::new(session);
        Self {
            pool,
            operation,
            lane,
        }
    }

    /// Uses an object.
    fn look(&self) -> Outcome<()> {
        self.operation.inside(|_| Ok(()))
    }

    /// Makes a new object a root.
    fn set(&self, name: &str) -> Outcome<()> {
        self.operation.in_transaction(|tx| {
            let body = tx.alloc(16)?;
            Ok(tx.set_root(name, Some(body))?)
        })
    }
}

#[test]
fn a_thread_is_inside_from_its_first_use_until_it_leaves() {
    let program = Program::new();
    assert!(program.operation.is_idle());
    for _ in 0..2 {
        program.look().unwrap();
        assert!(program.operation.is_reading());
    }
    program.operation.leave();
    assert!(program.operation.is_idle());
    assert_nobody_is_inside(&program.pool);
}

#[test]
fn transactions_begin_and_end_within_the_operation() {
    let program = Program::new();
    for (name, commits) in [("a", true), ("b", false), ("c", true)] {
        program.operation.begin().unwrap();
        assert!(program.operation.is_in_transaction());
        program.set(name).unwrap();
        program.look().unwrap();
        assert!(program.operation.is_in_transaction());
        program.operation.end(commits).unwrap();
        assert!(program.operation.is_reading());
    }
    assert_eq!(roots(&program.pool), ["a", "c"]);
}

#[test]
fn a_second_begin_is_refused_and_the_transaction_goes_on() {
    let program = Program::new();
    program.operation.begin().unwrap();
    program.set("a").unwrap();
    assert_eq!(status(program.operation.begin()), Status::Misuse);
    program.set("b").unwrap();
    program.operation.end(true).unwrap();
    assert_eq!(roots(&program.pool), ["a", "b"]);
}

#[test]
fn what_needs_a_transaction_is_refused_without_one() {
    let program = Program::new();
    let refused = || {
        [
            program.operation.end(true),
            program.operation.end(false),
            program.set("a"),
        ]
        .map(status)
    };
    assert_eq!(refused(), [Status::Misuse; 3]);
    assert!(program.operation.is_idle());
    program.look().unwrap();
    assert_eq!(refused(), [Status::Misuse; 3]);
    assert!(program.operation.is_reading());
}

#[test]
fn nothing_begins_or_ends_while_the_operation_is_used() {
    let program = Program::new();
    let operation = &program.operation;
    let turns = || {
        operation.inside(|_| {
            program.look()?;
            let turns = [
                operation.begin(),
                operation.end(true),
                operation.end(false),
                operation.check_end(),
            ];
            Ok(turns.map(status))
        })
    };
    assert_eq!(turns().unwrap(), [Status::Misuse; 4]);
    assert!(operation.is_reading());
    operation.begin().unwrap();
    program.set("a").unwrap();
    let [turns @ .., end] = turns().unwrap();
    assert_eq!((turns, end), ([Status::Misuse; 3], Status::Busy));
    operation.end(true).unwrap();
    assert_eq!(roots(&program.pool), ["a"]);
}

#[test]
fn an_operation_can_end_unless_a_transaction_is_open() {
    let program = Program::new();
    let operation = &program.operation;
    let checks = || [operation.check_no_transaction(), operation.check_end()].map(status);
    assert_eq!(checks(), [Status::Ok; 2]);
    program.look().unwrap();
    assert_eq!(checks(), [Status::Ok; 2]);
    operation.begin().unwrap();
    assert_eq!(checks(), [Status::Busy; 2]);
    operation.end(true).unwrap();
    assert_eq!(checks(), [Status::Ok; 2]);
}

#[test]
fn leaving_or_closing_rolls_an_open_transaction_back() {
    let ends: [fn(&Raw); 2] = [Raw::leave, Raw::close];
    for end in ends {
        let program = Program::new();
        program.operation.begin().unwrap();
        program.set("a").unwrap();
        end(&program.operation);
        assert!(roots(&program.pool).is_empty());
        assert_nobody_is_inside(&program.pool);
    }
}

#[test]
fn after_leaving_the_next_use_enters_anew() {
    let program = Program::new();
    program.operation.begin().unwrap();
    program.operation.leave();
    assert!(program.operation.is_idle());
    program.operation.begin().unwrap();
    program.set("a").unwrap();
    program.operation.end(true).unwrap();
    assert_eq!(roots(&program.pool), ["a"]);
}

#[test]
fn what_is_closed_stays_closed() {
    let program = Program::new();
    program.look().unwrap();
    program.operation.close();
    program.operation.leave();
    assert!(program.operation.is_closed());
    let told = format!("{:?}", program.operation.begin().unwrap_err());
    assert!(told.contains("the pool was closed"), "{told}");
    let calls = [
        program.look(),
        program.operation.begin(),
        program.set("a"),
        program.operation.end(true),
    ];
    assert_eq!(calls.map(status), [Status::Misuse; 4]);
    assert!(program.operation.is_closed());
}

#[test]
fn a_begin_that_fails_ends_the_operation() {
    let program = Program::new();
    program.look().unwrap();
    let (medium, at) = (program.pool.medium(), undo_done_at(program.lane));
    let sound = medium.load_u64(at);
    medium.store_u64(at, !sound);
    assert_eq!(status(program.operation.begin()), Status::Damaged);
    assert!(program.operation.is_idle());
    medium.store_u64(at, sound);
    assert_nobody_is_inside(&program.pool);
    program.operation.begin().unwrap();
    assert!(program.operation.is_in_transaction());
}

#[test]
fn a_pool_without_an_undo_log_is_not_entered() {
    let program = Program::with(LogKind::Redo);
    assert_eq!(status(program.look()), Status::Misuse);
    assert_eq!(status(program.operation.begin()), Status::Misuse);
    assert!(program.operation.is_idle());
    assert_nobody_is_inside(&program.pool);
}
