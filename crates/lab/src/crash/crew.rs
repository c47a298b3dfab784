//! Work that is divided among all processors, and its progress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use firn_tools::Progress;
use firn_tools::figures::count;

use super::error::CrashError;
use super::ticker::Ticker;

/// Name of the exploring threads: their panics are findings and are reported as such.
pub const EXPLORER: &str = "crash explorer";
/// Interval between reports of progress.
const TELLING: Duration = Duration::from_millis(200);

/// Does all works, in order but several at a time, and passes each result to `take` as it comes. Past the deadline no
/// further work is begun. Returns how many were done.
///
/// Errors: the first error of a work or of `take`, after the works that were under way; a thread cannot be started.
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
                // The other threads end after their current work.
                next.store(works.len(), Relaxed);
                break Err(error);
            }
            teller.tell();
        }
    })
}

/// Reports the ticker's counts to a progress.
struct Teller<'a> {
    ticker: &'a Ticker,
    progress: &'a mut dyn Progress,
    steps: u64,
    /// When states were last counted, and how many there were.
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
