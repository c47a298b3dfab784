//! A thread of the medium that keeps a pool compact (FFCCD section 5: `init` and `exit`).
//!
//! FFCCD checks the ratio in every allocation and free. Here any thread can read the counters, so a separate thread
//! checks them from time to time, and allocation pays nothing. While nothing changes it checks less and less often, and
//! it does not repeat a collection that won nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_format::statistics::Counter;
use firn_media::{Lock, Medium, Words};

use super::figures::Collected;
use super::options::CollectOptions;
use crate::error::Error;
use crate::inner::Inner;
use crate::pool::Pool;

/// How a pool is kept compact.
#[derive(Clone, Copy, Debug)]
pub struct CollectorOptions {
    /// Ratio of page bytes to live bytes at which objects begin to move; above the target. When the ratio rises,
    /// marking begins earlier, but not below the target.
    pub trigger: f64,
    /// How often the ratio is checked while the program changes something. While nothing changes, the interval grows up
    /// to sixteenfold.
    pub interval: Duration,
    /// Below this many bytes of pages the ratio is ignored, however high.
    pub least_bytes: u64,
    /// Whether blocks of free pages are given back to the device, during a cycle and after it. Blocks go back by pages
    /// of the size that counts, so that huge pages stay whole ([`CollectOptions::pages`]).
    pub release_blocks: bool,
    /// How each collection works; it ends at its target.
    pub collect: CollectOptions,
}

impl Default for CollectorOptions {
    /// The paper's normal setting: from 1.5 to 1.25, on pages of 2 MiB.
    fn default() -> Self {
        Self {
            trigger: 1.5,
            interval: Duration::from_millis(10),
            // At two pages there is nothing to win: one is needed, and a second one that is wasted costs little.
            least_bytes: 4 << 20,
            release_blocks: true,
            collect: CollectOptions::default(),
        }
    }
}

/// What a background collector has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// Collections that were begun.
    pub collections: u64,
    /// Bytes of blocks that were given back to the device.
    pub released_bytes: u64,
    /// What the collections did together.
    pub collected: Collected,
}

struct Shared<M: Medium> {
    stop: AtomicBool,
    /// One word, announced: not zero once the thread must stop.
    bell: M::Words,
    done: Lock<Background>,
    failed: Lock<Option<Error>>,
}

/// A collector at work. Dropping it ends it like [`BackgroundCollector::stop`], but does not report errors.
pub struct BackgroundCollector<M: Medium> {
    inner: Arc<Inner<M>>,
    shared: Arc<Shared<M>>,
    thread: Option<M::Thread>,
}

impl<M: Medium> Pool<M> {
    /// Starts a thread that collects whenever the ratio is above the trigger. Stop it before closing the pool.
    ///
    /// Errors: the trigger is not above the target, the thread cannot be started; as
    /// [`Pool::collect`].
    pub fn start_collector(
        &self,
        options: &CollectorOptions,
    ) -> Result<BackgroundCollector<M>, Error> {
        if options.trigger.partial_cmp(&options.collect.target)
            != Some(core::cmp::Ordering::Greater)
        {
            return Err(Error::Trigger {
                trigger: options.trigger,
                target: options.collect.target,
            });
        }
        // Errors that keep a collection from beginning are reported here, not in the background.
        drop(self.collection(&options.collect)?);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            bell: self.inner.medium.words(1),
            done: Lock::new(Background::default()),
            failed: Lock::new(None),
        });
        let (pool, options) = (self.clone(), *options);
        let theirs = Arc::clone(&shared);
        let thread = self.inner.medium.spawn(
            "firn-collector",
            Box::new(move || watch(&pool, &theirs, &options)),
        )?;
        Ok(BackgroundCollector {
            inner: Arc::clone(&self.inner),
            shared,
            thread: Some(thread),
        })
    }
}

impl<M: Medium> BackgroundCollector<M> {
    /// What the collector has done so far; nothing in a forked child.
    pub fn progress(&self) -> Background {
        if !self.inner.medium.is_ours() {
            return Background::default();
        }
        *self.shared.done.lock(&self.inner.medium)
    }

    /// Waits until the current collection has ended all of its cycles, and ends the thread (FFCCD's `exit`).
    ///
    /// Errors: the error that made the collector give up, if one did; the pool works on without a collector.
    pub fn stop(mut self) -> Result<Background, Error> {
        self.inner.check_usable()?;
        self.end();
        match self.shared.failed.lock(&self.inner.medium).take() {
            Some(error) => Err(error),
            None => Ok(self.progress()),
        }
    }

    fn end(&mut self) {
        if !self.inner.medium.is_ours() {
            // A forked child has no such thread.
            return core::mem::forget(self.thread.take());
        }
        self.shared.stop.store(true, Ordering::Release);
        self.shared.bell.swap(0, 1);
        self.inner.medium.wake(&self.shared.bell, 0);
        if let Some(thread) = self.thread.take() {
            self.inner.medium.join(thread);
        }
    }
}

impl<M: Medium> Drop for BackgroundCollector<M> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The longest time between two checks, as a power of two of intervals.
const MOST_DOUBLINGS: u32 = 4;

/// The main loop of the thread.
fn watch<M: Medium>(pool: &Pool<M>, shared: &Shared<M>, options: &CollectorOptions) {
    let medium = &pool.inner.medium;
    let mut foresight = Foresight::default();
    let (mut seen, mut doublings) = (None, 0);
    // Frames whose blocks a crash kept from being given back count towards the pool's limit.
    if options.release_blocks
        && let Err(error) = pool.inner.release_retained(options.collect.pages, false)
    {
        *shared.failed.lock(medium) = Some(error);
        return;
    }
    while !shared.stop.load(Ordering::Acquire) {
        if foresight.is_due(&pool.inner, options) {
            let begin = Moment::of(&pool.inner, options);
            match collect_once(pool, options) {
                Ok(done) => {
                    foresight.learn(&pool.inner, options, &done.collected, &begin);
                    shared.done.lock(medium).add(&done);
                }
                // An operation stayed open, or the program collects by itself: try again later.
                Err(Error::Busy { .. } | Error::Collecting) => {}
                Err(error) => {
                    *shared.failed.lock(medium) = Some(error);
                    return;
                }
            }
        }
        let now = Some(Changes::of(&pool.inner));
        doublings = match seen == now {
            true => MOST_DOUBLINGS.min(doublings + 1),
            false => 0,
        };
        seen = now;
        wait(medium, shared, options.interval * (1 << doublings));
    }
}

fn collect_once<M: Medium>(
    pool: &Pool<M>,
    options: &CollectorOptions,
) -> Result<Background, Error> {
    let collect = CollectOptions {
        release_blocks: options.release_blocks,
        ..options.collect
    };
    let collected = pool.collect(&collect)?;
    let mut released_bytes = collected.released_bytes;
    if options.release_blocks {
        released_bytes += pool.inner.release_free_space(options.collect.pages)?;
    }
    Ok(Background {
        collections: 1,
        released_bytes,
        collected,
    })
}

fn wait<M: Medium>(medium: &M, shared: &Shared<M>, time: Duration) {
    let until = medium.now_ns().saturating_add(time.as_nanos() as u64);
    while medium.now_ns() < until && shared.bell.load(0) == 0 {
        medium.wait_while(&shared.bell, 0, 0, until);
    }
}

/// The state on which the outcome of a collection depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Changes {
    commits: i64,
    frames: i64,
    chunks: i64,
    /// The version of the retained cycles. The next field counts the pinned runs.
    kept: u64,
    pinned: usize,
}

impl Changes {
    fn of<M: Medium>(inner: &Inner<M>) -> Self {
        Self {
            commits: inner.counter(Counter::Commits),
            frames: inner.counter(Counter::LiveFrames),
            chunks: inner.counter(Counter::LiveChunks),
            kept: inner.collector.retained.version(),
            pinned: inner.collector.pinned.lock(&inner.medium).len(),
        }
    }
}

/// When a collection must begin so that objects begin to move as the ratio passes the trigger: deletions during marking
/// and planning raise the ratio further.
#[derive(Default)]
struct Foresight {
    /// When the ratio was last checked, and its value.
    seen: Option<(u64, f64)>,
    /// How much the ratio rises in a nanosecond. It rises in steps of a page, so this is a mean over the last few
    /// checks.
    rise: f64,
    /// How long collections took until objects began to move, in nanoseconds per object that the pool held when they
    /// began: the next collection may begin with many times as many objects. This is the slowest one's time; it fades
    /// slowly, because marking an object takes less time where there are few.
    lead_ns: Option<f64>,
    /// After a collection that could not mend the ratio: the ratio that it left, the time until which another is not
    /// worth it unless the ratio rises, and the state of the pool. While that state is unchanged, no collection is due.
    left: Option<(f64, u64, Changes)>,
}

/// A moment at which a collection began or ended, with the number of pages that held objects and the number of objects.
struct Moment {
    ns: u64,
    pages: i64,
    objects: u64,
}

impl Moment {
    fn of<M: Medium>(inner: &Inner<M>, options: &CollectorOptions) -> Self {
        Self {
            ns: inner.medium.now_ns(),
            pages: inner.footprint_pages(options.collect.pages),
            objects: objects(inner),
        }
    }
}

fn objects<M: Medium>(inner: &Inner<M>) -> u64 {
    inner.counter(Counter::Objects).max(0) as u64
}

/// After a collection that wins no page and leaves the ratio above the trigger, the next one waits this many times as
/// long as that one took, or until the ratio has risen by this factor.
const REST: u64 = 32;
const WORSE: f64 = 1.05;
/// Assumed time of marking and planning for each object, until it is measured: between the times of a list and of a
/// tree (`docs/decisions/a-thread-watches.md`).
const ASSUMED_LEAD_NS: f64 = 250.0;
/// The factor by which each collection reduces the time of the slowest one.
const KEPT: f64 = 0.97;
/// The rise of the ratio is the mean over this many checks.
const LOOKS: f64 = 4.0;

impl Foresight {
    /// Checks the ratio, and says whether a collection is due.
    fn is_due<M: Medium>(&mut self, inner: &Inner<M>, options: &CollectorOptions) -> bool {
        let pages = options.collect.pages;
        let bytes = inner.footprint_pages(pages).max(0) as u64 * pages.bytes();
        if bytes < options.least_bytes {
            return false;
        }
        let (now, ratio) = (inner.medium.now_ns(), inner.ratio(pages));
        if let Some((then, last)) = self.seen.replace((now, ratio)) {
            let rise = (ratio - last) / now.saturating_sub(then).max(1) as f64;
            self.rise += (rise - self.rise) / LOOKS;
        }
        let lead_ns = objects(inner) as f64 * self.lead_ns.unwrap_or(ASSUMED_LEAD_NS);
        let ahead_ns = lead_ns + options.interval.as_nanos() as f64;
        if self.left.is_some_and(|(left, until, changes)| {
            changes == Changes::of(inner) || now < until && ratio <= left * WORSE
        }) {
            return false;
        }
        ratio > options.trigger
            || ratio > options.collect.target && ratio + self.rise * ahead_ns > options.trigger
    }

    /// Learns from a collection that has ended.
    fn learn<M: Medium>(
        &mut self,
        inner: &Inner<M>,
        options: &CollectorOptions,
        done: &Collected,
        begin: &Moment,
    ) {
        let lead_ns = done.mark_ns + done.summary_ns / done.cycles.max(1);
        let lead_ns = lead_ns as f64 / begin.objects.max(1) as f64;
        let slowest = self.lead_ns.map_or(0.0, |slowest| slowest * KEPT);
        self.lead_ns = Some(lead_ns.max(slowest));
        (self.seen, self.rise) = (None, 0.0);
        let end = Moment::of(inner, options);
        let until = end.ns + REST * end.ns.saturating_sub(begin.ns);
        let ratio = inner.ratio(options.collect.pages);
        let in_vain = ratio > options.trigger && end.pages >= begin.pages;
        self.left = in_vain.then(|| (ratio, until, Changes::of(inner)));
    }
}

impl Background {
    fn add(&mut self, more: &Self) {
        self.collections += more.collections;
        self.released_bytes += more.released_bytes;
        self.collected.add(&more.collected);
    }
}
