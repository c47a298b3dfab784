//! The reference run: the same changes, one after the other, without crashes, and the objects that live then.
//!
//! The number of objects that a content needs follows from the changes that led to it, in order, and from nothing else:
//! neither from crashes nor from collections. So after a recovery and a collection exactly as many must live as here;
//! one more is a leak.

use firn_crash::Crash;
use firn_heap::{Pool, PoolOptions, Session};

use super::super::fixture::Fixture;
use super::super::oracle::Living;
use super::ledger::Ledger;
use super::mutator::apply;

/// A pool in which the changes of one run are repeated, on demand.
pub(super) struct ReferenceRun {
    fixture: Fixture,
    pool: Pool<Crash>,
    session: Session<Crash>,
    /// After each number of changes.
    living: Vec<Living>,
}

impl Drop for ReferenceRun {
    fn drop(&mut self) {
        self.pool.clone().abandon();
    }
}

impl ReferenceRun {
    /// The reference run of a run that starts from `fixture`.
    pub(super) fn new(fixture: &Fixture) -> Result<Self, String> {
        let options = PoolOptions {
            publish_every: 1,
            ..fixture.pool_options()
        };
        let crash = Crash::from_image(&fixture.image, fixture.medium(None, 0));
        let pool = Pool::open(crash, &options).map_err(|e| e.to_string())?;
        let session = pool.session().map_err(|e| e.to_string())?;
        let living = vec![Living::read(pool.medium())];
        Ok(Self {
            fixture: fixture.clone(),
            pool,
            session,
            living,
        })
    }

    /// The live objects after this many changes of the ledger, which must be the same ledger at each call.
    pub(super) fn after(&mut self, ledger: &Ledger, changes: usize) -> Result<Living, String> {
        let all = ledger.changes();
        while self.living.len() <= changes {
            let next = all[self.living.len() - 1];
            let (fixture, session) = (&self.fixture, &mut self.session);
            session
                .transaction(|tx| apply(fixture, tx, next))
                .map_err(|e| format!("repeating a change: {e}"))?;
            self.living.push(Living::read(self.pool.medium()));
        }
        Ok(self.living[changes])
    }
}
