//! Sessions of one pool: how many there are, and those of one thread.

use std::sync::mpsc;

use firn_heap::{Bytes, Error, Pool, PoolOptions, Session, Tx, View};
use firn_mapped::{Mapped, MappedOptions};

const LOCK: u64 = 7;

fn pool(lanes: usize) -> Pool<Mapped> {
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
    let options = PoolOptions {
        lanes,
        ..PoolOptions::new("sessions")
    };
    Pool::create(medium, &options).unwrap()
}

#[test]
fn a_session_too_many_is_told_what_can_be_done() {
    for (lanes, word) in [(64, "no pool allows more than 64"), (2, "created for 64")] {
        let pool = pool(lanes);
        let mut all: Vec<_> = (0..lanes).map(|_| pool.session().unwrap()).collect();
        let refused = pool.session().err().unwrap();
        let told = refused.to_string();
        assert!(matches!(refused, Error::TooManySessions { .. }), "{told}");
        let all_open = format!("all {lanes} sessions");
        for word in [&*all_open, "end one first", word] {
            assert!(told.contains(word), "{told}");
        }
        all.pop();
        drop(pool.session().expect("one has ended"));
    }
}

#[test]
fn a_pool_with_open_sessions_says_how_many() {
    let pool = pool(64);
    let mut open = vec![pool.session().unwrap(), pool.session().unwrap()];
    for words in ["2 sessions are open", "1 session is open"] {
        let refused = pool.clone().close().unwrap_err();
        let told = refused.to_string();
        assert!(matches!(refused, Error::SessionsOpen { .. }), "{told}");
        assert!(
            told.contains(words) && told.contains("end every session"),
            "{told}"
        );
        open.pop();
    }
    pool.close().unwrap();
}

/// What takes a lock in a session of a thread that holds it in another.
type Take = fn(&mut Session<Mapped>) -> Result<(), Error>;

fn read_in_guard(session: &mut Session<Mapped>) -> Result<(), Error> {
    session.read(|view| view.lock_shared(LOCK).map(drop))
}

fn read(session: &mut Session<Mapped>) -> Result<(), Error> {
    session.transaction(|tx| tx.lock_shared(LOCK).map(drop))
}

fn write(session: &mut Session<Mapped>) -> Result<(), Error> {
    session.transaction(|tx| tx.lock_exclusive(LOCK))
}

fn upgrade(session: &mut Session<Mapped>) -> Result<(), Error> {
    session.transaction(|tx| {
        drop(tx.lock_shared(LOCK)?);
        tx.lock_exclusive(LOCK)
    })
}

fn read_root(session: &mut Session<Mapped>) -> Result<(), Error> {
    session.transaction(|tx| tx.find_root::<Bytes>("root").map(drop))
}

fn set_root(session: &mut Session<Mapped>) -> Result<(), Error> {
    session.transaction(|tx| tx.set_root("root", tx.alloc_bytes(b"new")?))
}

#[track_caller]
fn assert_own(taken: Result<(), Error>) {
    assert!(matches!(taken, Err(Error::OwnLock)), "{taken:?}");
}

#[test]
fn a_thread_does_not_wait_for_a_lock_of_its_own() {
    let pool = pool(64);
    let mut first = pool.session().unwrap();
    let mut second = pool.session().unwrap();
    set_root(&mut first).unwrap();
    // A guard holds the lock.
    let guard = first.guard();
    let held = guard.view().lock_shared(LOCK).unwrap();
    assert_own(write(&mut second));
    assert_own(upgrade(&mut second));
    for shares in [read, read_in_guard] {
        shares(&mut second).expect("readers share it");
    }
    drop(held);
    write(&mut second).expect("it was given back");
    drop(guard);
    // A transaction holds it.
    let (first, second) = (&mut first, &mut second);
    let takers: &[Take] = &[write, read, read_in_guard, upgrade];
    refuse_while(first, second, |tx| tx.lock_exclusive(LOCK), takers);
    let takers: &[Take] = &[write, upgrade];
    refuse_while(first, second, |tx| tx.lock_shared(LOCK).map(drop), takers);
    let reads = |tx: Tx<'_, Mapped>| tx.find_root::<Bytes>("root").map(drop);
    refuse_while(first, second, reads, &[set_root]);
    let sets = |tx: Tx<'_, Mapped>| tx.set_root("root", tx.alloc_bytes(b"newer")?);
    refuse_while(first, second, sets, &[set_root, read_root]);
}

/// Calls `takers` in one session while a transaction of another holds what `hold` takes, and after it has ended.
fn refuse_while(
    first: &mut Session<Mapped>,
    second: &mut Session<Mapped>,
    hold: fn(Tx<'_, Mapped>) -> Result<(), Error>,
    takers: &[Take],
) {
    let held = first.transaction(|tx| {
        hold(tx)?;
        takers.iter().for_each(|take| assert_own(take(second)));
        Ok::<_, Error>(())
    });
    held.unwrap();
    for take in takers {
        take(second).expect("it was given back");
    }
}

#[test]
fn a_thread_waits_for_a_lock_of_another_thread() {
    let pool = pool(64);
    let mut session = pool.session().unwrap();
    let (ready, taken) = mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        let pool = &pool;
        let waiting = scope.spawn(move || {
            let mut other = pool.session().unwrap();
            taken.recv().unwrap();
            write(&mut other).and_then(|()| read_in_guard(&mut other))
        });
        session
            .transaction(|tx| {
                tx.lock_exclusive(LOCK)?;
                ready.send(()).unwrap();
                (0..200).try_for_each(|_| tx.alloc_bytes(&[1; 100]).map(drop))
            })
            .unwrap();
        waiting.join().unwrap().unwrap();
    });
}
