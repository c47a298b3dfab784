//! FFCCD's workflow (section 5, figure 13), in which the program's own allocations and frees drive the
//! collector and nothing moves but what the read barrier touches.
//!
//! As printed: an allocation or free that finds the fragmentation ratio above the trigger marks, plans and goes on.
//! From time to time one of them looks at the bitmap of moved objects. If it has not changed since the last look,
//! reachability runs again and ends the cycle; `terminate` does the same at the program's end.
//!
//! Two things differ. The printed looks give a page back as soon as all of its objects have moved. Here every page
//! waits for the end of its cycle, because until then references on media may name it, and a page that is reused
//! meanwhile loses its content (`docs/protocol.md`, X4). Also, *moved* is what the running threads know, not the bitmap
//! on media: a copy may be used before media says that it counts. So a look may find a cycle at rest earlier than the
//! bitmap would show, but never one that still moves objects, and the end of a cycle waits for media. Threads count
//! their copies, so a look is one load instead of one for each object.
//!
//! A cycle that leaves the ratio above the trigger may leave pages that are as full as they can be, and each look would
//! mark everything again. [`WorkflowOptions::worse`] says how much the ratio must rise before another begins.
//!
//! Between two looks no thread holds the right to collect, so the program may collect, trace or close as usual.

use std::sync::atomic::{AtomicU64, Ordering};

use firn_media::{Lock, Medium};

use super::figures::Collected;
use super::options::CollectOptions;
use crate::error::Error;
use crate::pool::Pool;

/// No look has seen the open cycle yet.
const UNSEEN: u64 = u64::MAX;

/// When the program collects, and how.
#[derive(Clone, Copy, Debug)]
pub struct WorkflowOptions {
    /// Ratio of page bytes to live bytes above which a cycle begins; above the target.
    pub trigger: f64,
    /// Allocations and frees between two looks; at least one.
    pub every: u64,
    /// After a cycle that left the ratio above the trigger, the ratio must be this many times what it left before
    /// another begins; zero as printed, where every look above the trigger begins one.
    pub worse: f64,
    /// How each cycle works.
    pub collect: CollectOptions,
}

/// A pool whose program drives its collector. Threads share one.
pub struct Workflow<M: Medium> {
    pool: Pool<M>,
    options: WorkflowOptions,
    /// Allocations and frees so far.
    calls: AtomicU64,
    /// Copies that the open cycle had made at the last look.
    seen: AtomicU64,
    /// The bits of the ratio that the last cycle left, if that was above the trigger; otherwise zero.
    left: AtomicU64,
    collected: Lock<Collected>,
}

impl<M: Medium> Workflow<M> {
    /// Watches the pool (FFCCD's `init`). Takes over a cycle that is open already, after a crash.
    ///
    /// Errors: the trigger is not above the target; as [`Pool::collect`].
    pub fn new(pool: &Pool<M>, options: &WorkflowOptions) -> Result<Self, Error> {
        let (trigger, target) = (options.trigger, options.collect.target);
        if trigger.partial_cmp(&target) != Some(core::cmp::Ordering::Greater) {
            return Err(Error::Trigger { trigger, target });
        }
        // Errors that keep a collection from beginning are reported here, not in the middle of the program.
        drop(pool.collection(&options.collect)?);
        Ok(Self {
            pool: pool.clone(),
            options: *options,
            calls: AtomicU64::new(0),
            seen: AtomicU64::new(UNSEEN),
            left: AtomicU64::new(0),
            collected: Lock::new(Collected::default()),
        })
    }

    /// Counts `calls` allocations and frees of the calling thread, and looks at the cycle when it is time. Called
    /// between operations.
    ///
    /// Errors: as [`Pool::collect`], except that another thread's collection or an operation that stays open only
    /// postpones the work to the next look.
    pub fn count(&self, calls: u64) -> Result<(), Error> {
        let every = self.options.every.max(1);
        let before = self.calls.fetch_add(calls, Ordering::Relaxed);
        match before / every == (before + calls) / every {
            true => Ok(()),
            false => self.look(),
        }
    }

    /// Begins a cycle if none is open and the ratio is above the trigger. Ends the open one if nothing has
    /// moved since the last look.
    ///
    /// Errors: as [`Workflow::count`].
    pub fn look(&self) -> Result<(), Error> {
        let Some(copies) = self.pool.copies() else {
            self.seen.store(UNSEEN, Ordering::Relaxed);
            return match self.is_due() {
                true => later(self.begin()),
                false => Ok(()),
            };
        };
        match self.seen.swap(copies, Ordering::Relaxed) == copies {
            true => later(self.terminate()),
            false => Ok(()),
        }
    }

    /// Ends the open cycle: moves the untouched objects, updates every reference, releases the pages (FFCCD's
    /// `terminate`).
    ///
    /// Errors: as [`Pool::collect`]; the cycle stays open.
    pub fn terminate(&self) -> Result<(), Error> {
        let mut collection = self.pool.collection(&self.options.collect)?;
        collection.finish()?;
        self.seen.store(UNSEEN, Ordering::Relaxed);
        self.add(collection.collected());
        self.note_what_is_left();
        Ok(())
    }

    /// What was done so far.
    pub fn collected(&self) -> Collected {
        *self.collected.lock(self.pool.medium())
    }

    /// Marks and plans; from then on objects move at their first touch.
    fn begin(&self) -> Result<(), Error> {
        let mut collection = self.pool.collection(&self.options.collect)?;
        let begun = collection.begin()?;
        self.add(collection.collected());
        if !begun {
            self.note_what_is_left();
        }
        Ok(())
    }

    fn ratio(&self) -> f64 {
        self.pool.ratio(self.options.collect.pages)
    }

    /// Whether the ratio is above the trigger, and above what the last cycle left, if that was above the trigger.
    fn is_due(&self) -> bool {
        let ratio = self.ratio();
        if ratio <= self.options.trigger {
            self.left.store(0, Ordering::Relaxed);
            return false;
        }
        ratio > f64::from_bits(self.left.load(Ordering::Relaxed)) * self.options.worse
    }

    fn note_what_is_left(&self) {
        let ratio = self.ratio();
        let left = if ratio > self.options.trigger {
            ratio
        } else {
            0.0
        };
        self.left.store(left.to_bits(), Ordering::Relaxed);
    }

    fn add(&self, more: &Collected) {
        self.collected.lock(self.pool.medium()).add(more);
    }
}

/// Another thread collects, or an operation stayed open: the next look tries again.
fn later(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::Collecting | Error::Busy { .. }) => Ok(()),
        done => done,
    }
}
