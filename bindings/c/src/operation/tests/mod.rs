//! What operations promise, whatever a program calls and in whichever order.

mod raw;
mod typed;

use core::cell::Cell;
use std::rc::Rc;
use std::sync::Barrier;
use std::thread;

use firn_heap::{LogKind, Pool, PoolKind, PoolOptions, View};
use firn_mapped::MappedOptions;

use super::*;
use crate::status::{Failure, Status};

/// A pool in memory with this many lanes.
fn pool_of(log: LogKind, lanes: usize) -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    let kind = match log {
        LogKind::Redo => PoolKind::Traced,
        LogKind::Undo => PoolKind::Explicit,
    };
    let options = PoolOptions {
        kind,
        log,
        lanes,
        ..PoolOptions::new("operations")
    };
    Pool::create(medium, &options).unwrap()
}

/// The names of all roots, as another session sees them.
fn roots(pool: &Pool<Mapped>) -> Vec<String> {
    let mut session = pool.session().unwrap();
    let mut names = session.read(|view| view.root_names()).unwrap();
    names.sort_unstable();
    names
}

/// Fails after ten seconds if a thread is inside an operation.
fn assert_nobody_is_inside(pool: &Pool<Mapped>) {
    let findings = pool.check().unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

fn status<R>(outcome: Outcome<R>) -> Status {
    outcome.map_or_else(|failure| failure.status(), |_| Status::Ok)
}

fn failure(status: Status) -> Failure {
    Failure::new(status, "as the test wants")
}

/// Borrows a session, and notes at its end whether that was still open: its pool has no other.
struct Borrower {
    pool: Pool<Mapped>,
    session_was_open: Rc<Cell<Option<bool>>>,
}

impl Drop for Borrower {
    fn drop(&mut self) {
        let is_open = self.pool.session().is_err();
        self.session_was_open.set(Some(is_open));
    }
}

/// An owner of the only session of a pool.
fn only<R>() -> (Pool<Mapped>, Operated<R, ()>) {
    let pool = pool_of(LogKind::Redo, 1);
    let operated = Operated::new(pool.session().unwrap());
    (pool, operated)
}

#[test]
fn a_session_is_lent_only_while_nothing_is_open() {
    let (_pool, operated) = only::<()>();
    let is_lent = || {
        let open = operated.open.borrow_mut();
        let lent = operated.begin_or(open, |_, _| Ok(true), |_| Ok(false));
        lent.unwrap()
    };
    assert!(is_lent());
    for open in [Open::Reading(()), Open::Transaction(())] {
        *operated.open.borrow_mut() = open;
        assert!(!is_lent());
    }
    *operated.open.borrow_mut() = Open::Idle;
    assert!(is_lent());
    operated.close();
    assert!(!is_lent());
}

#[test]
fn an_operation_ends_before_its_session() {
    let ends: [fn(Operated<Borrower, ()>); 2] = [|operated| operated.close(), drop];
    for end in ends {
        let (pool, operated) = only();
        let session_was_open = Rc::default();
        *operated.open.borrow_mut() = Open::Reading(Borrower {
            pool: pool.clone(),
            session_was_open: Rc::clone(&session_was_open),
        });
        end(operated);
        assert_eq!(session_was_open.get(), Some(true));
    }
}

#[test]
fn a_session_ends_with_its_owner_and_once() {
    let (pool, operated) = only::<()>();
    assert!(pool.session().is_err());
    drop(operated);
    let operated: Operated<(), ()> = Operated::new(pool.session().unwrap());
    operated.close();
    assert!(operated.is_closed());
    let next = pool.session().unwrap();
    operated.close();
    drop(operated);
    // Given back twice, it would be free for a third one.
    assert!(pool.session().is_err());
    drop(next);
    assert!(pool.session().is_ok());
}

#[test]
fn threads_that_live_at_one_time_have_different_numbers() {
    const THREADS: usize = 4;
    let all_live = Barrier::new(THREADS);
    let number = || {
        let number = this_thread();
        all_live.wait();
        assert_eq!(this_thread(), number);
        number
    };
    let mut numbers = thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| scope.spawn(number));
        threads.map(|thread| thread.join().unwrap()).to_vec()
    });
    numbers.push(this_thread());
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), THREADS + 1);
}
