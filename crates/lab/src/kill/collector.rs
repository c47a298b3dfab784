//! The child's third thread: it collects, over and over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use firn_heap::collector::scheme::{SCHEMES, Scheme};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, Pool};
use firn_mapped::Mapped;

/// Steps in which a cycle's objects are moved, with a pause after each.
const STEPS: u64 = 16;

/// How a child collects.
#[derive(Clone, Copy, Debug)]
pub struct Collecting {
    /// How a copy comes to count.
    pub scheme: &'static Scheme,
    /// Which pages count.
    pub pages: PageSize,
    /// Pause between the steps of a cycle: long, so that most kills fall into a cycle.
    pub pause: Duration,
}

impl Collecting {
    /// Every scheme that keeps what was committed, on pages of both sizes.
    pub fn every_way(pause: Duration) -> Vec<Self> {
        let schemes = SCHEMES
            .iter()
            .filter(|scheme| scheme.is_for_stock_hardware() && scheme.moves);
        let ways = schemes.flat_map(|scheme| {
            [PageSize::Small, PageSize::Huge].map(|pages| Self {
                scheme,
                pages,
                pause,
            })
        });
        ways.collect()
    }

    /// Approximate time for which a cycle is open.
    pub(super) fn cycle_time(&self) -> Duration {
        self.pause * STEPS as u32
    }

    /// Options that pack as densely as possible.
    pub(super) fn options(&self) -> CollectOptions {
        CollectOptions {
            target: 1.0,
            pages: self.pages,
            scheme: self.scheme,
            ..CollectOptions::default()
        }
    }
}

/// Collects until `stop`. In a pool that a crash left untraced, the first collection marks.
pub(super) fn collect_until(
    pool: &Pool<Mapped>,
    how: &Collecting,
    stop: &AtomicBool,
) -> Result<(), Error> {
    while !stop.load(Ordering::Relaxed) {
        let mut collection = pool.collection(&how.options())?;
        let mut planned = 0;
        while collection.begin()? {
            // None in a cycle that a crash interrupted: another program has planned it.
            let of_cycle = collection.collected().planned - planned;
            planned += of_cycle;
            for _ in 0..STEPS {
                collection.compact((of_cycle / STEPS).max(1))?;
                thread::sleep(how.pause);
            }
            collection.finish()?;
        }
        thread::sleep(how.pause);
    }
    Ok(())
}
