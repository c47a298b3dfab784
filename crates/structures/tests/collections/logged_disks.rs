//! What does a pool whose file is logged do on a disk that is slow, or fails?

use core::ops::Range;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use firn_heap::collector::CollectOptions;
use firn_heap::{Error, Pool, PoolOptions};
use firn_mapped::{Backup, Disk, Durability, Mapped, MappedOptions, Part, SystemDisk};
use firn_media::{Domain, Level, MediumError, Memory, Space};
use firn_structures::Map;

use crate::logged::{create, entries, insert, key, value};

/// A disk whose writes to the log wait while its gate is closed, and which fails after so many calls.
#[derive(Debug)]
struct Doubtful {
    closed: Mutex<bool>,
    opened: Condvar,
    log_writes: AtomicU64,
    /// Writes to the log that are durable by themselves, and syncs of it.
    log_syncs: AtomicU64,
    /// How it refuses to give the log more space.
    refuses_growth: Mutex<Option<io::ErrorKind>>,
    /// Calls that succeed; the next one fails, and all after it.
    succeed: AtomicI64,
    /// Milliseconds that each call takes more than the disk needs.
    slow: AtomicU64,
}

impl Default for Doubtful {
    fn default() -> Self {
        Self {
            closed: Mutex::new(false),
            opened: Condvar::new(),
            log_writes: AtomicU64::new(0),
            log_syncs: AtomicU64::new(0),
            refuses_growth: Mutex::new(None),
            succeed: AtomicI64::new(i64::MAX),
            slow: AtomicU64::new(0),
        }
    }
}

impl Doubtful {
    fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn open(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.opened.notify_all();
    }

    fn call(&self) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(self.slow.load(Ordering::SeqCst)));
        match self.succeed.fetch_sub(1, Ordering::SeqCst) {
            ..=0 => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

impl Disk for Doubtful {
    fn write(
        &self,
        file: (&File, Part),
        at: u64,
        bytes: &[u8],
        durability: Durability,
    ) -> io::Result<usize> {
        self.call()?;
        let refuses = *self
            .refuses_growth
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // At the level `sync` nothing else is written to the log without being durable by itself.
        if let Some(kind) = refuses
            && (file.1, durability) == (Part::Log, Durability::WithNextSync)
        {
            return Err(kind.into());
        }
        if file.1 == Part::Log {
            self.log_writes.fetch_add(1, Ordering::SeqCst);
            let durable = u64::from(durability == Durability::AtOnce);
            self.log_syncs.fetch_add(durable, Ordering::SeqCst);
            let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
            while *closed {
                closed = self
                    .opened
                    .wait(closed)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
        SystemDisk.write(file, at, bytes, durability)
    }

    fn sync(&self, file: (&File, Part)) -> io::Result<()> {
        self.call()?;
        self.log_syncs
            .fetch_add(u64::from(file.1 == Part::Log), Ordering::SeqCst);
        SystemDisk.sync(file)
    }

    fn allocate(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()> {
        self.call()?;
        SystemDisk.allocate(file, range)
    }

    fn punch(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()> {
        self.call()?;
        SystemDisk.punch(file, range)
    }

    fn zero(&self, file: (&File, Part), range: Range<u64>) -> io::Result<()> {
        self.call()?;
        SystemDisk.zero(file, range)
    }

    fn set_len(&self, file: (&File, Part), len: u64) -> io::Result<()> {
        self.call()?;
        SystemDisk.set_len(file, len)
    }
}

fn opened(path: &Path, disk: &Arc<Doubtful>) -> Pool<Mapped> {
    let mut options = MappedOptions::default().domain(Domain::Logged);
    options.log.disk = disk.clone();
    let medium = Mapped::open(path, &options).unwrap();
    Pool::open(medium, &PoolOptions::new("logged")).unwrap()
}

fn insert_deferred(pool: &Pool<Mapped>, number: u64) {
    let mut session = pool.session().unwrap();
    let inserted = session.transaction_deferred(|tx| {
        let mut map = Map::open(tx, "map")?;
        map.insert(&key(number), &value(number)).map(|_| ())
    });
    inserted.unwrap();
}

/// While a transaction waits for the disk, others read what it stored, commit, collect, and open sessions. If any of
/// them waited for the disk, too, this would not end.
#[test]
fn nobody_waits_for_a_disk_but_who_wants_to_be_durable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(create(&path));
    let disk = Arc::new(Doubtful::default());
    let pool = opened(&path, &disk);
    disk.close();
    let before = disk.log_writes.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| insert(&mut pool.session().unwrap(), 0).unwrap());
        while disk.log_writes.load(Ordering::SeqCst) == before {
            std::thread::yield_now();
        }
        let durable = pool.medium().durable();
        (1..300).for_each(|number| insert_deferred(&pool, number));
        assert_eq!(entries(&pool), 300);
        pool.collect(&CollectOptions::default()).unwrap();
        assert_eq!(entries(&pool), 300);
        assert!(!waits.is_finished());
        assert_eq!(pool.medium().durable(), durable);
        disk.open();
        waits.join().unwrap();
    });
    pool.medium().wait_durable(pool.medium().commit()).unwrap();
    pool.abandon();
    assert_eq!(entries(&opened(&path, &disk)), 300);
}

/// Eight transactions that come while a write is under way share the next one.
#[test]
fn commits_that_come_during_a_write_share_the_next() {
    const THREADS: u64 = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(create(&path));
    let disk = Arc::new(Doubtful::default());
    let pool = opened(&path, &disk);
    pool.medium().wait_durable(pool.medium().commit()).unwrap();
    disk.close();
    let before = disk.log_writes.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| insert(&mut pool.session().unwrap(), 0).unwrap());
        while disk.log_writes.load(Ordering::SeqCst) == before {
            std::thread::yield_now();
        }
        let places = Arc::new(AtomicU64::new(0));
        let others: Vec<_> = (1..=THREADS)
            .map(|number| {
                let (pool, places) = (&pool, Arc::clone(&places));
                scope.spawn(move || {
                    let mut session = pool.session().unwrap();
                    let inserted = session.transaction_deferred(|tx| {
                        let mut map = Map::open(tx, "map")?;
                        map.insert(&key(number), &value(number)).map(|_| ())
                    });
                    let ((), ticket): ((), _) = inserted.map_err(|e: Error| e).unwrap();
                    places.fetch_add(1, Ordering::SeqCst);
                    pool.medium().wait_durable(ticket).unwrap();
                })
            })
            .collect();
        while places.load(Ordering::SeqCst) < THREADS {
            std::thread::yield_now();
        }
        disk.open();
        first.join().unwrap();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    assert_eq!(disk.log_writes.load(Ordering::SeqCst) - before, 2);
}

/// At its level each transaction waits for what it asks for and for no more; a ticket tells when it is durable.
#[test]
fn a_transaction_waits_as_far_as_its_level_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(create(&path));
    let disk = Arc::new(Doubtful::default());
    let pool = opened(&path, &disk);
    let mut session = pool.session().unwrap();
    let mut insert_at = |level, number| {
        let inserted = session.transaction_at(level, |tx| {
            let mut map = Map::open(tx, "map")?;
            map.insert(&key(number), &value(number)).map(|_| ())
        });
        inserted.map_err(|e: Error| e).unwrap();
    };
    let counts = || {
        let writes = disk.log_writes.load(Ordering::SeqCst);
        (writes, disk.log_syncs.load(Ordering::SeqCst))
    };
    let (writes, syncs) = counts();
    (0..100).for_each(|number| insert_at(Level::Written, number));
    assert_eq!(
        counts(),
        (writes + 100, syncs),
        "with the system, not synced"
    );
    let durable = pool.medium().durable();
    assert!(durable < pool.medium().commit());
    insert_at(Level::Sync, 100);
    assert_eq!(
        counts().1,
        syncs + 1,
        "one sync makes all durable that came before"
    );
    assert!(pool.medium().durable() > durable);
    disk.close();
    let (writes, _) = counts();
    insert_at(Level::Group(Duration::from_millis(1)), 101);
    let ticket = pool.medium().commit();
    assert!(pool.medium().durable() < ticket);
    while counts().0 == writes {
        std::thread::yield_now();
    }
    disk.open();
    // Nobody waits for it.
    while pool.medium().durable() < ticket {
        std::thread::yield_now();
    }
}

/// A full disk leaves the log as long as it is, and nothing fails; any other failure to grow it counts as one.
#[test]
fn a_log_that_cannot_grow_for_want_of_space_stays_as_it_is() {
    const INSERTS: u64 = 800;
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::TimedOut] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        drop(create(&path));
        let disk = Arc::new(Doubtful::default());
        let mut options = MappedOptions::default().domain(Domain::Logged);
        options.log.disk = disk.clone();
        options.log.initial_bytes = 1;
        let medium = Mapped::open(&path, &options).unwrap();
        let pool = Pool::open(medium, &PoolOptions::new("logged")).unwrap();
        *disk.refuses_growth.lock().unwrap() = Some(kind);
        let mut session = pool.session().unwrap();
        let done = (0..INSERTS).try_for_each(|number| insert(&mut session, number));
        match kind {
            io::ErrorKind::StorageFull => done.unwrap(),
            _ => {
                let failed = done.unwrap_err().to_string();
                assert!(failed.contains("growing the log failed"), "{failed}");
            }
        }
    }
}

/// Whichever call fails, everything fails from then on with the cause, and reopened the pool has what was acknowledged.
#[test]
fn after_a_failure_everything_fails_until_the_pool_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(create(&path));
    let mut acknowledged = 0;
    for succeed in 0..40 {
        let disk = Arc::new(Doubtful::default());
        let pool = opened(&path, &disk);
        assert!(entries(&pool) >= acknowledged);
        acknowledged = entries(&pool);
        disk.succeed.store(succeed, Ordering::SeqCst);
        let mut session = pool.session().unwrap();
        let failed = loop {
            match insert(&mut session, acknowledged) {
                Ok(()) => acknowledged += 1,
                Err(failed) => break failed,
            }
        };
        assert!(failed.to_string().contains("no storage space"), "{failed}");
        let refused = insert(&mut session, acknowledged).unwrap_err();
        assert_eq!(refused.to_string(), failed.to_string());
        let read = session.read(|view| Map::open(view, "map").map(|map| map.len()));
        assert!(read.is_err(), "a read after a failure");
        drop(session);
        drop(pool);
        let again = opened(&path, &Arc::new(Doubtful::default()));
        assert!(entries(&again) >= acknowledged, "{succeed}");
        again.abandon();
    }
    assert!(acknowledged > 40);
}

/// Commits without waiting, and has its number noted when that is durable, or minus its number when it never will be.
fn insert_and_note(pool: &Pool<Mapped>, number: i64, noted: &Arc<Mutex<Vec<i64>>>) {
    let mut session = pool.session().unwrap();
    let inserted = session.transaction_deferred(|tx| {
        let mut map = Map::open(tx, "map")?;
        map.insert(&key(number as u64), &value(number as u64))
            .map(|_| ())
    });
    let ((), ticket) = inserted.unwrap_or_else(|e: Error| panic!("{e}"));
    let noted = Arc::clone(noted);
    let call = move |durable: Result<(), MediumError>| {
        noted
            .lock()
            .unwrap()
            .push(durable.map_or(-number, |()| number));
        assert!(number != 5, "a panic of a call is its own affair");
    };
    pool.medium().when_durable(ticket, Box::new(call));
}

/// A later commit may be durable, and its call asked for, before an earlier one's call has ended.
#[test]
fn a_call_waits_for_those_of_earlier_tickets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(create(&path));
    let pool = opened(&path, &Arc::new(Doubtful::default()));
    let (begun, begins) = std::sync::mpsc::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel();
    let noted: Arc<Mutex<Vec<i64>>> = Arc::default();
    let first = Arc::clone(&noted);
    let call = move |_: Result<(), MediumError>| {
        begun.send(()).unwrap();
        goes_on.recv().unwrap();
        first.lock().unwrap().push(-1);
    };
    let ticket = pool.medium().commit();
    pool.medium().when_durable(ticket, Box::new(call));
    begins.recv().unwrap();
    insert(&mut pool.session().unwrap(), 0).unwrap();
    insert_and_note(&pool, 1, &noted);
    pool.medium().wait_durable(pool.medium().commit()).unwrap();
    insert_and_note(&pool, 2, &noted);
    assert_eq!(*noted.lock().unwrap(), [], "the first has not ended");
    go_on.send(()).unwrap();
    pool.close().unwrap();
    assert_eq!(*noted.lock().unwrap(), [-1, 1, 2]);
}

#[test]
fn calls_come_in_order_when_their_ticket_is_durable_or_never_will_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(create(&path));
    let disk = Arc::new(Doubtful::default());
    let pool = opened(&path, &disk);
    let noted: Arc<Mutex<Vec<i64>>> = Arc::default();
    let all = |count: usize| {
        while noted.lock().unwrap().len() < count {
            std::thread::yield_now();
        }
    };
    insert_and_note(&pool, 0, &noted);
    all(1);
    disk.close();
    (1..10).for_each(|number| insert_and_note(&pool, number, &noted));
    assert_eq!(*noted.lock().unwrap(), [0], "nothing is durable meanwhile");
    disk.open();
    all(10);
    assert_eq!(*noted.lock().unwrap(), (0..10).collect::<Vec<_>>());
    disk.succeed.store(0, Ordering::SeqCst);
    insert_and_note(&pool, 10, &noted);
    all(11);
    assert_eq!(noted.lock().unwrap()[10], -10);
    drop(pool);
    let pool = opened(&path, &Arc::new(Doubtful::default()));
    (10..20).for_each(|number| insert_and_note(&pool, number, &noted));
    pool.close().unwrap();
    assert_eq!(noted.lock().unwrap()[11..], (10..20).collect::<Vec<_>>());
}

/// A disk on which everything takes its time: a backup waits for a checkpoint, and the other way round.
#[test]
fn a_backup_from_a_slow_disk_holds_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(create(&path));
    let disk = Arc::new(Doubtful::default());
    let pool = opened(&path, &disk);
    disk.slow.store(3, Ordering::SeqCst);
    let (inserted, ends) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = pool.session().unwrap();
            while inserted.load(Ordering::SeqCst) < ends.load(Ordering::SeqCst) {
                let number = inserted.load(Ordering::SeqCst);
                insert(&mut session, number).unwrap();
                inserted.store(number + 1, Ordering::SeqCst);
            }
        });
        let medium = pool.medium();
        scope.spawn(|| {
            // Home is written all the time.
            while inserted.load(Ordering::SeqCst) < ends.load(Ordering::SeqCst) {
                medium.sync().unwrap();
            }
        });
        for number in 0..4 {
            let least = inserted.load(Ordering::SeqCst);
            let copy = folder.path().join(format!("copy-{number}"));
            let backup = Backup::begin(&path, &copy, &MappedOptions::default(), &mut |_, _| ());
            let found = backup.and_then(|backup| {
                let copy = Pool::open(backup.open()?, &PoolOptions::new("logged")).unwrap();
                let found = entries(&copy);
                copy.close().unwrap();
                backup.publish().map(|_| found)
            });
            // Whatever it is, the threads end.
            if number == 3 || found.is_err() {
                ends.store(0, Ordering::SeqCst);
            }
            let found = found.unwrap();
            assert!(
                found >= least,
                "{least} were acknowledged, {found} are there"
            );
        }
    });
}
