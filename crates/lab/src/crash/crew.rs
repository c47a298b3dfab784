//! Work that is divided among all processors, and how far it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use firn_tools::Progress;
use firn_tools::figures::count;

use super::error::CrashError;
use super::ticker::Ticker;

/// Name of the threads that explore: what panics there is found, and told as such.
pub const EXPLORER: &str = "crash explorer";
/// How often the progress is told.
const TELLING: Duration = Duration::from_millis(200);

/// Does all works, in their order but several at a time, and hands each one's result to `take` as it
/// comes. Past the deadline no further work is begun. Returns how many were done.
///
/// Errors: the first of a work or of `take`, after the works that were under way; a thread cannot be
/// started.
pub(super) fn do_all<W: Sync, R: Send>(
    works: &[W],
    deadline: Option<Instant>,
    ticker: &Ticker,
    work: impl Fn(&W) -> Result<R, CrashError> + Sync,
    mut take: impl FnMut(usize, R) -> Result<(), CrashError>,
    progress: &mut dyn Progress,
) -> Result<usize, CrashError> {
    let next = &AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (tell, told) = mpsc::channel();
    let work = &work;
    let is_over = move || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    thread::scope(|scope| {
        for _ in 0..workers.min(works.len()) {
            let tell = tell.clone();
            let explorer = thread::Builder::new().name(EXPLORER.to_owned());
            let spawned = explorer.spawn_scoped(scope, move || {
                while !is_over() {
                    let place = next.fetch_add(1, Relaxed);
                    let Some(this) = works.get(place) else {
                        break;
                    };
                    let done = catch_unwind(AssertUnwindSafe(|| work(this)));
                    let done = done.unwrap_or(Err(CrashError::Explorer));
                    if tell.send((place, done)).is_err() {
                        break;
                    }
                }
            });
            spawned.map_err(CrashError::Thread)?;
        }
        drop(tell);
        let mut teller = Teller::new(ticker, progress);
        let mut done = 0;
        loop {
            let taken = match told.recv_timeout(TELLING) {
                Ok((place, result)) => {
                    done += 1;
                    result.and_then(|result| take(place, result))
                }
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break Ok(done),
            };
            if let Err(error) = taken {
                // The others end after what they are at.
                next.store(works.len(), Relaxed);
                break Err(error);
            }
            teller.tell();
        }
    })
}

/// Tells a progress what the ticker counts.
struct Teller<'a> {
    ticker: &'a Ticker,
    progress: &'a mut dyn Progress,
    steps: u64,
    /// When states were looked at last, and how many there were.
    last: (Instant, u64),
}

impl<'a> Teller<'a> {
    fn new(ticker: &'a Ticker, progress: &'a mut dyn Progress) -> Self {
        Self {
            ticker,
            progress,
            steps: 0,
            last: (Instant::now(), 0),
        }
    }

    fn tell(&mut self) {
        let steps = self.ticker.steps();
        self.progress.advance(steps - self.steps);
        self.steps = steps;
        let (then, before) = self.last;
        let passed = then.elapsed();
        if passed >= TELLING {
            let states = self.ticker.states();
            let rate = (states - before) as f64 / passed.as_secs_f64();
            self.progress
                .rename(&format!("exploring, {} states/s", count(rate as u64)));
            self.last = (Instant::now(), states);
        }
    }
}
