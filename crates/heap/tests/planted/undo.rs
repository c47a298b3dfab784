//! Undo transactions, crashed everywhere, again in recovery.

use firn_crash::{Crash, CrashOptions, Explorer, Image, Report};
use firn_heap::{Error, LogKind, Pool, PoolKind, PoolOptions, RawTx, View};
use firn_media::Memory;
use firn_units::VirtAddr;

use crate::pools::{self, LEN, Missing, explore, open};

/// How the second transaction ends, in a pool of this kind.
#[derive(Clone, Copy)]
pub struct Undo {
    pub kind: PoolKind,
    pub aborts: bool,
    /// Whether the pool is recovered first, from the middle of a transaction.
    pub recovers: bool,
}

/// Offset of the second word, in another line.
const FAR: u64 = 128;

fn options(kind: PoolKind) -> PoolOptions {
    PoolOptions {
        kind,
        log: LogKind::Undo,
        lanes: 1,
        publish_every: u32::MAX,
        ..PoolOptions::new("undo")
    }
}

fn store(tx: RawTx<'_, Crash>, at: VirtAddr, word: u64) -> Result<(), Error> {
    tx.log(&[(at, 8)])?;
    tx.store(at, &word.to_le_bytes())
}

/// Stores both words, in a batch each.
fn store_both(tx: RawTx<'_, Crash>, at: VirtAddr, word: u64) -> Result<(), Error> {
    store(tx, at, word)?;
    store(tx, at + FAR, word)
}

impl Undo {
    /// A pool with an object of two words that hold one, and the object's address.
    fn image(&self) -> (Image, VirtAddr) {
        let crash = Crash::new(LEN, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &options(self.kind)).unwrap();
        let mut session = pool.session().unwrap();
        let at = session
            .raw_transaction(|tx| {
                let at = tx.alloc(200)?;
                tx.set_root("object", Some(at))?;
                Ok::<_, Error>(at)
            })
            .unwrap();
        session.raw_transaction(|tx| store_both(tx, at, 1)).unwrap();
        if !self.recovers {
            drop(session);
            pool.close().unwrap();
            return (crash.cache_image(), at);
        }
        let image = session.raw_transaction(|tx| {
            store_both(tx, at, 9)?;
            Ok::<_, Error>(crash.cache_image())
        });
        pool.abandon();
        (image.unwrap(), at)
    }

    fn workload(&self, crash: &Crash, at: VirtAddr) {
        let pool = Pool::open(crash.clone(), &options(self.kind)).unwrap();
        let mut session = pool.session().unwrap();
        let done = session.raw_transaction(|tx| {
            store_both(tx, at, 3)?;
            if self.aborts {
                return Err(Error::ReadOnly);
            }
            let new = tx.alloc(16)?;
            tx.store(new, &5u64.to_le_bytes())?;
            tx.set_root("new", Some(new))
        });
        assert_eq!(done.is_err(), self.aborts);
        crash.note(1);
        pool.abandon();
    }

    fn verify(&self, crash: Crash, at: VirtAddr, done: bool) -> Result<(), String> {
        let pool = open(crash, &options(self.kind))?;
        let words = [at, at + FAR].map(|at| pool.medium().load_u64(at));
        let mut session = pool.session().map_err(|e| e.to_string())?;
        let names = session.read(|view| view.root_names());
        drop(session);
        let names = names.map_err(|e| e.to_string())?;
        let old = words == [1, 1] && names == ["object"];
        let new = words == [3, 3] && names == ["object", "new"];
        let legal = match (self.aborts, done) {
            (true, _) => old,
            (false, true) => new,
            (false, false) => old || new,
        };
        match legal {
            true => pools::check(pool),
            false => Err(format!("found {words:?} and {names:?}")),
        }
    }

    /// Crashes everywhere.
    pub fn explore(&self, missing: Missing) -> Report {
        let (image, at) = self.image();
        let explorer = Explorer::from_image(
            explore(missing, 1),
            &image,
            |crash| self.workload(crash, at),
            |crash, state| self.verify(crash, at, state.note(0) == 1),
        );
        explorer.explore()
    }
}

/// A transaction whose log continues where another lane's transaction with an equal number has continued before.
#[derive(Clone, Copy)]
pub struct Long;

/// Bytes that are logged together, and how often: eight times fill a lane.
const PART: u64 = 3840;
const PARTS: u64 = 10;

impl Long {
    fn options() -> PoolOptions {
        PoolOptions {
            lanes: 3,
            ..options(PoolKind::Explicit)
        }
    }

    /// Logs an object part by part, and stores a word in each part.
    fn change(tx: RawTx<'_, Crash>, at: VirtAddr, word: u64) -> Result<(), Error> {
        for part in 0..PARTS {
            tx.log(&[(at + part * PART, PART)])?;
            tx.store(at + part * PART, &word.to_le_bytes())?;
        }
        Ok(())
    }

    /// A pool with two objects, the first of which was changed.
    fn image() -> (Image, [VirtAddr; 2]) {
        let crash = Crash::new(LEN, CrashOptions::default());
        let pool = Pool::create(crash.clone(), &Self::options()).unwrap();
        // The second lane's first transaction is the long one.
        let [mut first, mut second] = [(); 2].map(|()| pool.session().unwrap());
        let objects = [(); 2].map(|()| {
            let new = first.raw_transaction(|tx| tx.alloc(PARTS * PART));
            new.unwrap()
        });
        second
            .raw_transaction(|tx| Self::change(tx, objects[0], 2))
            .unwrap();
        drop((first, second));
        pool.abandon();
        (crash.cache_image(), objects)
    }

    fn workload(crash: &Crash, objects: [VirtAddr; 2]) {
        let pool = Pool::open(crash.clone(), &Self::options()).unwrap();
        // So is the third lane's.
        let [_first, _second, mut third] = [(); 3].map(|()| pool.session().unwrap());
        third
            .raw_transaction(|tx| Self::change(tx, objects[1], 2))
            .unwrap();
        crash.note(1);
        pool.abandon();
    }

    fn verify(crash: Crash, objects: [VirtAddr; 2], done: bool) -> Result<(), String> {
        let pool = open(crash, &Self::options())?;
        let words = objects.map(|at| {
            let word = |part| pool.medium().load_u64(at + part * PART);
            (0..PARTS).map(word).collect::<Vec<_>>()
        });
        let all = |object: usize, word: u64| words[object].iter().all(|&found| found == word);
        match all(0, 2) && (all(1, 2) || all(1, 0) && !done) {
            true => pools::check(pool),
            false => Err(format!("found {words:?}")),
        }
    }

    /// Crashes everywhere.
    pub fn explore(self, missing: Missing) -> Report {
        let (image, objects) = Self::image();
        let explorer = Explorer::from_image(
            explore(missing, 0),
            &image,
            |crash| Self::workload(crash, objects),
            |crash, state| Self::verify(crash, objects, state.note(0) == 1),
        );
        explorer.explore()
    }
}
