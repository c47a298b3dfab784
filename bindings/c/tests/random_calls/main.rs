//! Random calls of the C interface, correct and wrong: every call answers as the header says, the effects of correct
//! calls are there, and no others.

mod calls;
mod misuse;
mod program;

use std::collections::BTreeSet;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use firn::*;
use firn_format::geometry::{SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::superblock::{StoredDomain, Superblock};

use calls::{
    NUMBER, SIZE, alloc, close_pool, close_session, drop_handle, expect, kept, message, name, node,
    open_pool, open_session,
};
use program::{Model, Program};

/// The round that failed, to be run alone: its seed is in the message.
const SEEDS: std::ops::Range<u64> = 0..60;
const STEPS: usize = 220;

/// Wrong calls pass handles of pools and sessions that are closed, and the process may have given their places to another
/// test's. So these tests run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn whatever_is_called_is_answered() {
    let _alone = alone();
    for seed in SEEDS {
        let folder = tempfile::tempdir().unwrap();
        let played = std::panic::catch_unwind(|| {
            let mut model = Model::default();
            let mut next_key = 0;
            for round in 0..3 {
                let mut program = Program::new(folder.path(), seed * 3 + round);
                (program.model, program.next_key) = (model, next_key);
                for _ in 0..STEPS {
                    program.step();
                }
                program.close();
                (model, next_key) = (program.model, program.next_key);
            }
        });
        if let Err(payload) = played {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(payload);
        }
    }
}

/// A pool's superblock names the domain that keeps its stores from being lost.
#[test]
fn the_domain_that_a_program_asks_for_is_the_one_that_it_gets() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let asked = [
        (0, StoredDomain::Logged),
        (1, StoredDomain::Adr),
        (2, StoredDomain::Eadr),
        (3, StoredDomain::Process),
        (4, StoredDomain::Logged),
    ];
    for (domain, stored) in asked {
        let path = folder.path().join(format!("{domain}"));
        let text = CString::new(path.to_str().unwrap()).unwrap();
        let options = Options {
            domain,
            ..Options::default()
        };
        let mut pool = Handed::NULL;
        let made = firn_create((&*text).into(), (&options).into(), (&mut pool).into());
        expect(made, Status::Ok);
        expect(close_pool(pool), Status::Ok);
        let file = std::fs::read(&path).unwrap();
        let newest = SUPERBLOCKS
            .into_iter()
            .filter_map(|at| {
                let bytes = &file[at.0 as usize..][..SUPERBLOCK_BYTES as usize];
                Superblock::decode(bytes.try_into().unwrap(), at).ok()
            })
            .max_by_key(|superblock| superblock.generation);
        assert_eq!(newest.unwrap().domain, stored);
    }
    let options = Options {
        domain: 5,
        ..Options::default()
    };
    let mut none = Handed::NULL;
    let refused = firn_create(Text::NULL, (&options).into(), (&mut none).into());
    expect(refused, Status::Invalid);
}

#[test]
fn a_new_lock_is_no_other_structures() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (pool, session) = open_pool(&folder.path().join("pool"));
    let locks: BTreeSet<u64> = (0..1_000).map(|_| firn_new_lock(session)).collect();
    assert_eq!(locks.len(), 1_000);
    assert_eq!(firn_new_lock(Handed::NULL), 0);
    expect(firn_last_status(), Status::Invalid);
    expect(close_session(session), Status::Ok);
    expect(close_pool(pool), Status::Ok);
}

#[test]
fn a_copy_is_in_use_while_its_original_is() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let [path, copy] = ["pool", "copy"].map(|name| folder.path().join(name));
    let close = |(pool, session)| {
        expect(close_session(session), Status::Ok);
        expect(close_pool(pool), Status::Ok);
    };
    close(open_pool(&path));
    std::fs::copy(&path, &copy).unwrap();
    let original = open_pool(&path);
    let text = CString::new(copy.to_str().unwrap()).unwrap();
    let mut none = Handed::NULL;
    let refused = firn_open((&*text).into(), In::NULL, (&mut none).into());
    expect(refused, Status::InUse);
    close(original);
    close(open_pool(&copy));
}

#[test]
fn a_word_that_held_something_else_is_told() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (pool, session) = open_pool(&folder.path().join("pool"));
    let node = kept(node());
    let content = [0_u64, 0, 7, 0, 0, 0, 0, 0].map(u64::to_ne_bytes);
    expect(firn_tx_begin(session), Status::Ok);
    let object = alloc(session, node, content.as_flattened().try_into().unwrap());
    let named = firn_set_root(session, (&*name(0)).into(), object);
    expect(named, Status::Ok);
    expect(firn_tx_commit(session), Status::Ok);
    expect(firn_read_begin(session), Status::Ok);
    let object = firn_root(session, (&*name(0)).into(), node);
    let mut seen = 6;
    let mut exchange =
        |desired| firn_compare_exchange(session, object, NUMBER, (&mut seen).into(), desired);
    expect(exchange(8), Status::Conflict);
    expect(exchange(9), Status::Ok);
    expect(exchange(10), Status::Conflict);
    assert_eq!(seen, 9);
    expect(firn_read_end(session), Status::Ok);
    expect(close_session(session), Status::Ok);
    expect(close_pool(pool), Status::Ok);
}

#[test]
fn a_pool_in_use_says_how_often_and_what_to_do() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (pool, session) = open_pool(&folder.path().join("pool"));
    let others: Vec<_> = (1..64).map(|_| open_session(pool)).collect();
    let mut none = Handed::NULL;
    let refused = firn_session_open(pool, (&mut none).into());
    expect(refused, Status::TooLarge);
    let told = message();
    for word in ["all 64 sessions", "end one first", "no pool allows more"] {
        assert!(told.contains(word), "{told}");
    }
    let says = |words: &[&str]| {
        expect(close_pool(pool), Status::Busy);
        let told = message();
        for word in words {
            assert!(told.contains(word), "{told}");
        }
    };
    says(&["64 sessions of the pool are open", "firn_session_close"]);
    for other in others {
        expect(close_session(other), Status::Ok);
    }
    expect(firn_tx_begin(session), Status::Ok);
    let object = alloc(session, kept(node()), &[0; SIZE]);
    let handle = firn_handle_strong(session, object);
    expect(firn_tx_commit(session), Status::Ok);
    says(&["1 session of the pool is open", "1 handle of the pool is"]);
    expect(close_session(session), Status::Ok);
    says(&["1 handle of the pool is", "firn_handle_drop"]);
    drop_handle(handle);
    expect(close_pool(pool), Status::Ok);
}

#[test]
fn a_thread_does_not_wait_for_a_lock_of_its_own() {
    let _alone = alone();
    const LOCK: u64 = 5;
    let folder = tempfile::tempdir().unwrap();
    let (pool, session) = open_pool(&folder.path().join("pool"));
    let other = open_session(pool);
    expect(firn_tx_begin(session), Status::Ok);
    expect(firn_lock_exclusive(session, LOCK), Status::Ok);
    expect(firn_read_begin(other), Status::Ok);
    expect(firn_lock_shared(other, LOCK), Status::Misuse);
    assert!(message().contains("another session of this thread"));
    expect(firn_read_end(other), Status::Ok);
    expect(firn_tx_begin(other), Status::Ok);
    expect(firn_lock_exclusive(other, LOCK), Status::Misuse);
    expect(firn_tx_abort(other), Status::Ok);
    expect(firn_tx_commit(session), Status::Ok);
    for session in [session, other] {
        expect(close_session(session), Status::Ok);
    }
    expect(close_pool(pool), Status::Ok);
}

/// Two transactions may hold a lock for reading; then neither gets it for writing.
#[test]
fn a_lock_that_a_transaction_has_taken_for_reading_keeps_writers_out() {
    let _alone = alone();
    const LOCK: u64 = 5;
    let folder = tempfile::tempdir().unwrap();
    let (pool, session) = open_pool(&folder.path().join("pool"));
    expect(firn_tx_begin(session), Status::Ok);
    expect(firn_lock_shared(session, LOCK), Status::Ok);
    let other = std::thread::spawn(move || {
        let session = open_session(pool);
        expect(firn_tx_begin(session), Status::Ok);
        expect(firn_lock_shared(session, LOCK), Status::Ok);
        expect(firn_lock_exclusive(session, LOCK), Status::Conflict);
        expect(firn_tx_abort(session), Status::Ok);
        expect(close_session(session), Status::Ok);
    });
    other.join().unwrap();
    expect(firn_lock_exclusive(session, LOCK), Status::Ok);
    expect(firn_tx_commit(session), Status::Ok);
    expect(close_session(session), Status::Ok);
    expect(close_pool(pool), Status::Ok);
}
