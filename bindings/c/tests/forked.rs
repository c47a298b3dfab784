//! Is a forked child of a Rust program refused, may it drop its parent's objects, and does its parent go on?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use firn_heap::collector::{BackgroundCollector, CollectOptions, CollectorOptions, PageSize};
use firn_heap::{Bytes, Error, Handle, Pool, PoolKind, PoolOptions, Session, View};
use firn_mapped::{Mapped, MappedError, MappedOptions};
use tempfile::TempDir;

/// Forks. Returns zero in the child, which must end by [`exit`] before the test does.
fn fork() -> libc::pid_t {
    // SAFETY: the child uses only its one thread's part of the parent's memory, and waits for no other thread.
    unsafe { libc::fork() }
}

/// Ends a child at once.
fn exit(is_well: bool) -> ! {
    // SAFETY: a process may end at any time; no code of the parent runs.
    unsafe { libc::_exit(if is_well { 0 } else { 1 }) }
}

/// Waits for a child. True if it ended well.
fn ended_well(child: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: `status` belongs to this function.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

/// Runs `body` in a forked child. True if it ended without a panic.
fn in_child(body: impl FnOnce()) -> bool {
    let child = fork();
    if child == 0 {
        exit(catch_unwind(AssertUnwindSafe(body)).is_ok());
    }
    ended_well(child)
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

/// The paths of pools, and how they are opened.
struct Files {
    _folder: TempDir,
    pool: PathBuf,
    other: PathBuf,
    options: PoolOptions,
}

impl Files {
    fn new(kind: PoolKind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [pool, other] = ["pool", "other"].map(|name| folder.path().join(name));
        let options = PoolOptions {
            kind,
            ..PoolOptions::new("")
        };
        Self {
            _folder: folder,
            pool,
            other,
            options,
        }
    }

    fn create(&self, path: &PathBuf) -> Pool<Mapped> {
        let file = Mapped::create(path, 0, &MappedOptions::default()).unwrap();
        Pool::create(file, &self.options).unwrap()
    }

    fn open(&self) -> Pool<Mapped> {
        let file = Mapped::open(&self.pool, &MappedOptions::default()).unwrap();
        Pool::open(file, &self.options).unwrap()
    }
}

/// All objects of a pool that a process may have.
struct Open {
    session: Session<Mapped>,
    handle: Handle<Bytes, Mapped>,
    collector: BackgroundCollector<Mapped>,
    pool: Pool<Mapped>,
}

impl Open {
    fn new(pool: Pool<Mapped>) -> Self {
        let mut session = pool.session().unwrap();
        change(&mut session, "root").unwrap();
        let handle = session.read(|view| {
            view.find_root::<Bytes>("root")
                .map(|o| pool.handle(o.unwrap()))
        });
        let collector = pool.start_collector(&CollectorOptions {
            trigger: 1.01,
            least_bytes: 0,
            interval: core::time::Duration::from_micros(100),
            collect: CollectOptions {
                target: 1.0,
                pages: PageSize::Small,
                ..CollectOptions::default()
            },
            ..CollectorOptions::default()
        });
        Self {
            session,
            handle: handle.unwrap(),
            collector: collector.unwrap(),
            pool,
        }
    }
}

/// In the child: each call with the parent's objects is refused, and they are dropped.
fn is_refused(of_parent: Open, files: &Files) {
    let Open {
        mut session,
        handle,
        collector,
        pool,
    } = of_parent;
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
    let taken = Mapped::open(&files.pool, &MappedOptions::default());
    assert!(matches!(taken, Err(MappedError::InUse { .. })));
    drop((handle, session, pool));
}

/// Changes a pool, and closes it.
fn change_and_close(pool: Pool<Mapped>, name: &str) {
    let mut session = pool.session().unwrap();
    change(&mut session, name).unwrap();
    drop(session);
    pool.close().unwrap();
}

/// The child of a transaction's body cannot commit it; its parent can.
fn fork_within_a_transaction(session: &mut Session<Mapped>) {
    let mut child = None;
    let committed = session.transaction(|tx| {
        let object = tx.alloc_bytes(&[8; 100])?;
        tx.set_root("inside", object)?;
        child = Some(fork());
        Ok::<_, Error>(())
    });
    if child == Some(0) {
        exit(is_forked(committed));
    }
    committed.unwrap();
    assert!(ended_well(child.unwrap()));
}

#[test]
fn a_forked_child_is_refused_and_drops_what_it_has() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let files = Files::new(kind);
        let mut shared = Some(Open::new(files.create(&files.pool)));
        assert!(in_child(|| {
            is_refused(shared.take().unwrap(), &files);
            change_and_close(files.create(&files.other), "mine");
        }));
        let Open {
            mut session,
            handle,
            collector,
            pool,
        } = shared.take().unwrap();
        assert!(pool.is_ours());
        fork_within_a_transaction(&mut session);
        change(&mut session, "after").unwrap();
        collector.stop().unwrap();
        drop((handle, session));
        assert_eq!(pool.check().unwrap(), []);
        pool.close().unwrap();
        // Now the child may have it.
        assert!(in_child(|| change_and_close(files.open(), "child")));
        let pool = files.open();
        let mut session = pool.session().unwrap();
        for name in ["root", "inside", "after", "child"] {
            session
                .read(|view| assert!(view.find_root::<Bytes>(name).unwrap().is_some(), "{name}"));
        }
    }
}
