//! The checks of a pool after a crash.

use std::hash::{DefaultHasher, Hash, Hasher};

use firn_crash::Crash;
use firn_format::statistics::{BLOCKS, Counter, FIRST_CLASS, FIRST_EVENT, block_at};
use firn_heap::collector::CollectOptions;
use firn_heap::collector::scheme::NONE;
use firn_heap::{Error, Pool, Session};
use firn_media::{MediumExt, Memory};
use firn_units::WORD_BYTES;
use firn_workloads::under_test::Content;

use super::fixture::Fixture;
use super::places::Places;

/// The live objects of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Living {
    pub(super) objects: u64,
    /// Their bytes as requested.
    pub(super) bytes: u64,
}

impl Living {
    /// The counters of a pool, which are exact after a collection.
    pub(super) fn read(crash: &Crash) -> Self {
        let sum = |counter: Counter| {
            let word = counter.word() as u64 * WORD_BYTES;
            let blocks = (0..BLOCKS).map(|block| crash.load_u64(block_at(block) + word));
            blocks.fold(0, u64::wrapping_add)
        };
        Self {
            objects: sum(Counter::Objects),
            bytes: sum(Counter::LiveBytes),
        }
    }

    /// Errors: another number of objects lives than is needed.
    pub(super) fn is_needed(self, needed: Self) -> Result<(), String> {
        match self == needed {
            true => Ok(()),
            false => Err(format!(
                "{} objects of {} bytes live where the content needs {} of {}",
                self.objects, self.bytes, needed.objects, needed.bytes
            )),
        }
    }
}

/// A recovered pool after a crash.
pub(super) struct Survivor<'g> {
    fixture: &'g Fixture,
    pool: Pool<Crash>,
    session: Option<Session<Crash>>,
}

impl Drop for Survivor<'_> {
    fn drop(&mut self) {
        // No more writes are needed: the questions have been answered.
        self.pool.clone().abandon();
        self.session = None;
    }
}

impl<'g> Survivor<'g> {
    /// Recovers a crashed pool. The explorer crashes it up to this point.
    pub(super) fn open(fixture: &'g Fixture, crash: Crash) -> Result<Self, String> {
        let pool = Pool::open(crash, &fixture.pool_options()).map_err(|e| e.to_string())?;
        pool.medium().end_of_recovery();
        Ok(Self {
            fixture,
            pool,
            session: None,
        })
    }

    /// Whether recovery has left a memory that is new to the explorer, and so has to be verified, as identified by
    /// `knows`.
    pub(super) fn goes_on(&self, knows: u64) -> bool {
        let mut all = DefaultHasher::new();
        (knows, self.pool.volatile_digest()).hash(&mut all);
        let goes_on = self.pool.medium().goes_on(all.finish());
        if goes_on {
            forget_events(self.pool.medium());
        }
        goes_on
    }

    /// The structure's content, provided that it, its neighbour and the pool are sound.
    pub(super) fn content(&mut self, when: &str) -> Result<Content, String> {
        let fixture = self.fixture;
        let content = self
            .session()?
            .read(|view| fixture.read(view))
            .map_err(|e| format!("{when}: {e}"))?;
        let findings = self.pool.check().map_err(said(when))?;
        match findings.first() {
            Some(finding) => Err(format!("{when}: {finding}")),
            None => Ok(content),
        }
    }

    /// Ends the cycle that the crash interrupted, if there was one. Returns whether there was.
    pub(super) fn end_cycle(&mut self) -> Result<bool, String> {
        if !self.pool.has_open_cycle() {
            return Ok(false);
        }
        let collect = self.fixture.collect();
        let collection = self.pool.collection(&collect);
        let ended = collection.and_then(|mut collection| collection.finish());
        ended.map_err(said("ending the interrupted cycle"))?;
        Ok(true)
    }

    /// Runs whole cycles until nothing more can be gained.
    pub(super) fn collect(&mut self) -> Result<(), String> {
        let collected = self.pool.collect(&self.fixture.collect());
        collected.map(drop).map_err(said("collecting"))
    }

    /// The live objects; in a traced pool the reachable ones, after all others are reclaimed.
    pub(super) fn living(&mut self) -> Result<Living, String> {
        // A collection and the end of an interrupted cycle have already marked. A collection that moves nothing costs a
        // fraction of a trace on this medium.
        if self.pool.needs_trace() {
            let reclaim = CollectOptions {
                scheme: &NONE,
                ..self.fixture.collect()
            };
            let collection = self.pool.collection(&reclaim);
            let reclaimed = collection.and_then(|mut collection| collection.begin());
            reclaimed.map_err(said("marking"))?;
        }
        if let Some(session) = &mut self.session {
            session.publish_statistics();
        }
        Ok(Living::read(self.pool.medium()))
    }

    pub(super) fn has_open_cycle(&self) -> bool {
        self.pool.has_open_cycle()
    }

    /// The places of an interrupted cycle's objects, which must agree with media. No object has been touched yet.
    pub(super) fn places(&self) -> Result<Places, String> {
        Places::read(&self.pool).map_err(|e| format!("after recovery: {e}"))
    }

    /// Whether the objects, touched since, still have the content that they had there.
    pub(super) fn keeps(&self, places: &Places) -> Result<(), String> {
        places.are_kept(&self.pool)
    }

    /// Lets the program continue.
    pub(super) fn session(&mut self) -> Result<&mut Session<Crash>, String> {
        let session = match self.session.take() {
            Some(session) => session,
            None => self.pool.session().map_err(said("opening a session"))?,
        };
        Ok(self.session.insert(session))
    }
}

fn said(when: &str) -> impl Fn(Error) -> String {
    move |error| format!("{when}: {error}")
}

/// Clears the event counts of the time before the crash from the statistics page. They decide nothing, but collections
/// add to them, which would make images differ.
fn forget_events(crash: &Crash) {
    let words = (FIRST_CLASS - FIRST_EVENT) as u64;
    let first = block_at(0) + FIRST_EVENT as u64 * WORD_BYTES;
    crash.zero(first, words * WORD_BYTES);
}
