//! A thread of the medium that keeps a pool compact (FFCCD section 5: `init` and `exit`).
//!
//! FFCCD asks for the ratio in every allocation and free. Here the counters are kept where any thread
//! can read them, so a thread of its own looks at them from time to time, and allocation stays what it
//! is. Where nothing changes it looks more and more seldom, and a collection that won nothing is not repeated.

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
    /// Ratio of page bytes to live bytes at which objects begin to move; above the target. Where the
    /// ratio rises, marking begins ahead, at the target at the earliest.
    pub trigger: f64,
    /// How often the ratio is looked at while the program changes something; up to sixteen times as seldom while it
    /// does not.
    pub interval: Duration,
    /// Bytes of pages below which the ratio is let be, however high.
    pub least_bytes: u64,
    /// Whether blocks of pages that became free are given back to the device, during a cycle and after
    /// it: of the pages that count, so that huge ones stay whole ([`CollectOptions::pages`]).
    pub release_blocks: bool,
    /// How each collection works; its target is where it ends.
    pub collect: CollectOptions,
}

impl Default for CollectorOptions {
    /// The paper's normal setting: from 1.5 to 1.25, on pages of 2 MiB.
    fn default() -> Self {
        Self {
            trigger: 1.5,
            interval: Duration::from_millis(10),
            // Two pages: one of them, or what a second one wastes, is nothing to win.
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
    /// One word: not zero once the thread is to stop, and announced.
    bell: M::Words,
    done: Lock<Background>,
    failed: Lock<Option<Error>>,
}

/// A collector at work. Dropped, it ends like with [`BackgroundCollector::stop`], and what went wrong
/// is not told.
pub struct BackgroundCollector<M: Medium> {
    inner: Arc<Inner<M>>,
    shared: Arc<Shared<M>>,
    thread: Option<M::Thread>,
}

impl<M: Medium> Pool<M> {
    /// Starts a thread that collects whenever the ratio is above the trigger. Stop it before the pool
    /// is closed.
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
        // Whatever keeps a collection from beginning is told here, not in the background.
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
    /// What it has done so far; nothing in a forked child.
    pub fn progress(&self) -> Background {
        if !self.inner.medium.is_ours() {
            return Background::default();
        }
        *self.shared.done.lock(&self.inner.medium)
    }

    /// Waits for the collection that is under way, all of its cycles, and ends the thread (FFCCD's
    /// `exit`).
    ///
    /// Errors: what made the collector give up, if it did; the pool goes on without one.
    pub fn stop(mut self) -> Result<Background, Error> {
        self.inner.check_process()?;
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

/// Intervals between two looks at most, as a power of two.
const MOST_DOUBLINGS: u32 = 4;

/// The thread's life.
fn watch<M: Medium>(pool: &Pool<M>, shared: &Shared<M>, options: &CollectorOptions) {
    let medium = &pool.inner.medium;
    let mut foresight = Foresight::default();
    let (mut seen, mut doublings) = (None, 0);
    // What a crash kept from being given back counts for the pool's limit.
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
                // An operation stayed open, or the program collects by itself: later, then.
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

/// What a collection finds depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Changes {
    commits: i64,
    frames: i64,
    chunks: i64,
    /// Of the cycles that are kept, and of objects that may not move.
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

/// When a collection must begin so that objects begin to move as the ratio passes the trigger. What is
/// deleted while it marks and plans would make the ratio rise on.
#[derive(Default)]
struct Foresight {
    /// The ratio when it was last looked at, and when that was.
    seen: Option<(u64, f64)>,
    /// How much the ratio rises in a nanosecond, the mean over the last few looks: it goes in steps of a
    /// page.
    rise: f64,
    /// How long collections took until objects began to move, in nanoseconds for each object that there
    /// was when they began: the next one may begin with many times as many. Of the slowest, which is
    /// forgotten little by little, because an object is marked faster where few are.
    lead_ns: Option<f64>,
    /// What the last collection could not mend: the ratio that it left, and until when another is not
    /// worth it unless the ratio rises. None is if nothing has changed at all.
    left: Option<(f64, u64, Changes)>,
}

/// When a collection began, or ended, how many pages held objects then, and how many objects there were.
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

/// A collection that wins no page and leaves the ratio above the trigger is followed by another only after so many times as
/// long, or when the ratio has risen by so much.
const REST: u64 = 32;
const WORSE: f64 = 1.05;
/// What marking and planning may take for each object, as long as nothing is known better: between a list's and a tree's
/// time (`docs/decisions/a-thread-watches.md`).
const ASSUMED_LEAD_NS: f64 = 250.0;
/// What each collection leaves of the slowest one's time.
const KEPT: f64 = 0.97;
/// Of how many looks the rise of the ratio is the mean.
const LOOKS: f64 = 4.0;

impl Foresight {
    /// Looks at the ratio.
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

    /// Takes in what a collection came to.
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
