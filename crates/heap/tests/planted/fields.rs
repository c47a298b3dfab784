//! A field that is exchanged and persisted between transactions, crashed everywhere, again in recovery.

use firn_crash::{Crash, Explorer, Report};
use firn_heap::{Error, Pool, PoolOptions, Session, Stored, View};

use crate::pools::{self, LEN, Missing, explore, open};

#[derive(Stored)]
#[firn(name = "counters")]
#[repr(C)]
struct Counters {
    exchanged: u64,
    /// Puts the neighbouring fields into different lines.
    between: [u64; 8],
    /// For transactions.
    stored: u64,
}

/// The acts, one after the other: each increases the sum of both fields by one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Stores the exchanged field in a transaction.
    Store,
    /// Stores the distant field in a transaction.
    StoreFar,
    /// Exchanges, then persists.
    Persist,
}

/// The acts before the pool is abandoned and recovered, and those after.
#[derive(Clone, Copy)]
pub struct Acts {
    pub before: &'static [Act],
    pub acts: &'static [Act],
}

fn options() -> PoolOptions {
    PoolOptions {
        lanes: 1,
        publish_every: u32::MAX,
        ..PoolOptions::new("fields")
    }
}

fn act(session: &mut Session<Crash>, act: Act) {
    if act == Act::Persist {
        let guard = session.guard();
        let counters = guard.root::<Counters>("counters").unwrap();
        let held = counters.load(Counters::EXCHANGED);
        let exchanged = counters.compare_exchange(Counters::EXCHANGED, held, held + 1);
        assert_eq!(exchanged.unwrap(), Ok(held));
        counters.persist(Counters::EXCHANGED).unwrap();
        return;
    }
    session
        .transaction(|tx| {
            let counters = tx.root::<Counters>("counters")?;
            let field = match act {
                Act::Store => Counters::EXCHANGED,
                _ => Counters::STORED,
            };
            counters.store(field, counters.load(field) + 1);
            Ok::<_, Error>(())
        })
        .unwrap();
}

fn count(acts: &[Act]) -> [u64; 2] {
    let far = acts.iter().filter(|act| **act == Act::StoreFar).count();
    [acts.len() - far, far].map(|count| count as u64)
}

impl Acts {
    fn setup(&self, crash: &Crash) {
        let pool = Pool::create(crash.clone(), &options()).unwrap();
        let mut session = pool.session().unwrap();
        session
            .transaction(|tx| {
                let (exchanged, between, stored) = (0, [0; 8], 0);
                let counters = Counters {
                    exchanged,
                    between,
                    stored,
                };
                tx.set_root("counters", tx.alloc(counters)?)
            })
            .unwrap();
        drop(session);
        pool.close().unwrap();
        if !self.before.is_empty() {
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            self.before.iter().for_each(|&one| act(&mut session, one));
            pool.abandon();
        }
    }

    fn verify(&self, crash: Crash, done: usize) -> Result<(), String> {
        let pool = open(crash, &options())?;
        let mut session = pool.session().map_err(|e| e.to_string())?;
        let found = session.read(|view| {
            let counters = view.root::<Counters>("counters")?;
            Ok::<_, Error>([Counters::EXCHANGED, Counters::STORED].map(|f| counters.load(f)))
        });
        let found = found.map_err(|e| e.to_string())?;
        drop(session);
        let all = [self.before, self.acts].concat();
        let after = |acts| count(&all[..all.len().min(self.before.len() + acts)]);
        match [after(done), after(done + 1)].contains(&found) {
            true => pools::check(pool),
            false => Err(format!("after {done}: {found:?}")),
        }
    }

    /// Crashes everywhere.
    pub fn explore(&self, missing: Missing) -> Report {
        let explorer = Explorer::new(
            explore(missing, 1),
            LEN,
            |crash| self.setup(crash),
            |crash| {
                let pool = Pool::open(crash.clone(), &options()).unwrap();
                let mut session = pool.session().unwrap();
                for (n, &one) in (1..).zip(self.acts) {
                    act(&mut session, one);
                    crash.note(n);
                }
                pool.abandon();
            },
            |crash, state| self.verify(crash, state.note(0) as usize),
        );
        explorer.explore()
    }
}
