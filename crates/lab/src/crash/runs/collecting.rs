//! The collector of a run: a thread beside the program, or the program itself.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use firn_crash::Crash;
use firn_heap::collector::{CollectOptions, Workflow, WorkflowOptions};
use firn_heap::{Error, Pool};
use firn_media::Runtime;

use super::super::fixture::Fixture;
use super::Meeting;

/// Objects that the collector moves between two polls.
const MOVED_TOGETHER: core::ops::Range<u64> = 1..6;
/// Allocations and frees between two polls of a program that collects by itself.
const BETWEEN_LOOKS: core::ops::Range<u64> = 4..40;
/// The ratio above which such a program begins to collect: any pool of a run has pages to gain.
const TRIGGER: f64 = 1.05;

/// FFCCD's workflow, if the run's program collects by itself: half of the runs, by chance, if objects can move.
pub(super) fn workflow(
    fixture: &Fixture,
    pool: &Pool<Crash>,
    mut draw: fastrand::Rng,
) -> Result<Option<Workflow<Crash>>, Error> {
    if !fixture.scheme.moves || draw.bool() {
        return Ok(None);
    }
    let options = WorkflowOptions {
        trigger: TRIGGER,
        every: draw.u64(BETWEEN_LOOKS),
        worse: 0.0,
        collect: fixture.collect(),
    };
    Workflow::new(pool, &options).map(Some)
}

/// The thread that collects beside the program.
pub(super) struct Collecting {
    pub(super) fixture: Fixture,
    pub(super) pool: Pool<Crash>,
    pub(super) draw: fastrand::Rng,
    pub(super) meeting: Arc<Meeting>,
}

impl Collecting {
    /// Collects until the program has ended, at least once.
    pub(super) fn run(mut self) {
        let medium = self.pool.medium().clone();
        loop {
            if let Err(error) = self.collect() {
                panic!("collecting: {error}");
            }
            self.meeting.collections.fetch_add(1, Relaxed);
            if self.meeting.busy.load(Relaxed) == 0 {
                break;
            }
            medium.pause(0);
        }
    }

    /// One collection, as a whole or step by step.
    fn collect(&mut self) -> Result<(), Error> {
        let options = CollectOptions {
            release_blocks: self.draw.bool(),
            ..self.fixture.collect()
        };
        if self.draw.bool() {
            self.pool.collect(&options)?;
            if options.release_blocks {
                self.pool.release_free_space()?;
            }
            return Ok(());
        }
        let mut collection = self.pool.collection(&options)?;
        while collection.begin()? {
            while !collection.compact(self.draw.u64(MOVED_TOGETHER))? {}
            collection.finish()?;
        }
        Ok(())
    }
}
