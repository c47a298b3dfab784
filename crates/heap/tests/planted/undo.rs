//! Undo transactions, crashed everywhere, again in recovery.

use firn_crash::{Crash, CrashOptions, Explorer, Image, Report};
use firn_heap::{Error, LogKind, Pool, PoolKind, PoolOptions, RawTx, View};
use firn_media::Medium;
use firn_units::VirtAddr;

use crate::pools::{self, LEN, Missing, explore, open};

/// How the second transaction ends, in a pool of a kind.
#[derive(Clone, Copy)]
pub struct Undo {
    pub kind: PoolKind,
    pub aborts: bool,
    /// Whether it is recovered first, from the middle of a transaction.
    pub recovers: bool,
}

/// Where the second word lies: in another line.
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

/// Stores both words, a batch each.
fn store_both(tx: RawTx<'_, Crash>, at: VirtAddr, word: u64) -> Result<(), Error> {
    store(tx, at, word)?;
    store(tx, at + FAR, word)
}

impl Undo {
    /// A pool with an object of two words, which hold one, and the object's address.
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
