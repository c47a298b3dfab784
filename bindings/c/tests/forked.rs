//! Is a forked child of a Rust program refused, may it drop what it has, and does its parent go on?

use std::panic::{AssertUnwindSafe, catch_unwind};

use firn_heap::collector::{CollectOptions, CollectorOptions, PageSize};
use firn_heap::{Bytes, Error, Pool, PoolKind, PoolOptions, Session, View};
use firn_mapped::{Mapped, MappedError, MappedOptions};

/// Runs something in a forked child. True if it ended without a panic.
fn in_child(body: impl FnOnce()) -> bool {
    // SAFETY: the child runs the closure, which uses what it has of its parent's memory, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let ended = catch_unwind(AssertUnwindSafe(body)).is_ok();
        // SAFETY: it is always allowed.
        unsafe { libc::_exit(if ended { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the status is this function's.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

fn is_forked<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Forked { .. }))
}

fn change(session: &mut Session<Mapped>, name: &str) -> Result<(), Error> {
    session.transaction(|tx| {
        let object = tx.alloc_bytes(&[7; 100])?;
        tx.set_root(name, object)
    })
}

#[test]
fn a_forked_child_is_refused_and_drops_what_it_has() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["pool", "other"].map(|name| folder.path().join(name));
        let (on, options) = (
            MappedOptions::default(),
            PoolOptions {
                kind,
                ..PoolOptions::new("")
            },
        );
        let pool = Pool::create(Mapped::create(&path, 0, &on).unwrap(), &options).unwrap();
        let mut session = pool.session().unwrap();
        change(&mut session, "root").unwrap();
        let handle = session.read(|view| {
            view.find_root::<Bytes>("root")
                .map(|o| pool.handle(o.unwrap()))
        });
        let handle = handle.unwrap();
        let collector = pool
            .start_collector(&CollectorOptions {
                trigger: 1.01,
                least_bytes: 0,
                interval: core::time::Duration::from_micros(100),
                collect: CollectOptions {
                    target: 1.0,
                    pages: PageSize::Small,
                    ..CollectOptions::default()
                },
                ..CollectorOptions::default()
            })
            .unwrap();
        let mut shared = Some((session, handle, collector, pool));
        assert!(in_child(|| {
            let (mut session, handle, collector, pool) = shared.take().unwrap();
            assert!(!pool.is_ours());
            assert!(is_forked(change(&mut session, "root")));
            assert!(is_forked(
                session.read(|view| view.find_root::<Bytes>("root").map(|_| ()))
            ));
            assert!(is_forked(pool.session()) && is_forked(pool.sync()) && is_forked(pool.check()));
            assert!(is_forked(pool.collect(&CollectOptions::default())) && is_forked(pool.trace()));
            assert!(is_forked(pool.release_free_space()) && is_forked(pool.occupancy()));
            assert_eq!(collector.progress().collections, 0);
            assert!(is_forked(collector.stop()) && is_forked(pool.clone().close()));
            let taken = Mapped::open(&path, &on);
            assert!(matches!(taken, Err(MappedError::InUse { .. })));
            drop((handle, session, pool));
            let mine = Pool::create(Mapped::create(&other, 0, &on).unwrap(), &options).unwrap();
            let mut session = mine.session().unwrap();
            change(&mut session, "mine").unwrap();
            drop(session);
            mine.close().unwrap();
        }));
        let (mut session, handle, collector, pool) = shared.take().unwrap();
        assert!(pool.is_ours());
        // The child of a transaction's body cannot commit it.
        let mut is_child = false;
        let parent = session.transaction(|tx| {
            let object = tx.alloc_bytes(&[8; 100])?;
            tx.set_root("inside", object)?;
            // SAFETY: the child ends below.
            is_child = unsafe { libc::fork() } == 0;
            Ok::<_, Error>(())
        });
        if is_child {
            // SAFETY: it is always allowed.
            unsafe { libc::_exit(if is_forked(parent) { 0 } else { 1 }) };
        }
        parent.unwrap();
        let mut status = 0;
        // SAFETY: the status is this function's.
        unsafe { libc::wait(&raw mut status) };
        assert_eq!(status, 0);
        change(&mut session, "after").unwrap();
        collector.stop().unwrap();
        drop((handle, session));
        assert_eq!(pool.check().unwrap(), []);
        pool.close().unwrap();
        // Now it may be the child's.
        assert!(in_child(|| {
            let pool = Pool::open(Mapped::open(&path, &on).unwrap(), &options).unwrap();
            let mut session = pool.session().unwrap();
            change(&mut session, "child").unwrap();
            drop(session);
            pool.close().unwrap();
        }));
        let pool = Pool::open(Mapped::open(&path, &on).unwrap(), &options).unwrap();
        let mut session = pool.session().unwrap();
        for name in ["root", "inside", "after", "child"] {
            session
                .read(|view| assert!(view.find_root::<Bytes>(name).unwrap().is_some(), "{name}"));
        }
    }
}
