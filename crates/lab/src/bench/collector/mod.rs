//! The cost of compaction, and its benefit.
//!
//! ```text
//! density      how dense a pool becomes, and the cost of moving an object with no other thread at work
//! full         what fits into a full pool after half was freed and it was collected
//! moving       what it costs beside a program, by scheme
//! reduction    how far a collector in the background keeps a pool from fragmenting
//! idle         what the read barrier costs while nothing moves
//! stops        how long the program is stopped
//! bars, page   the bars of the figures, and their section of docs/performance.md
//! ```

mod bars;
mod density;
mod full;
mod idle;
mod moving;
mod page;
mod reduction;
mod stops;

use std::sync::atomic::{AtomicBool, Ordering};

use firn_heap::Error;
use firn_tools::Progress;

pub(super) use page::section;

use super::figure::Figure;
use super::rival::Rival;
use super::{BenchError, Options, reopen};

/// The name of this part of the bench.
pub(super) const SECTION: &str = "collector";
/// The system that these figures are of.
const SYSTEM: &str = "firn";
/// Further passes over this many objects add nothing.
const MOST_PASSES: usize = 5;

/// Names of all its figures.
pub(super) fn names() -> impl Iterator<Item = String> {
    let cases = density::cases().map(|case| case.name());
    cases
        .chain(full::cases().map(|case| case.name()))
        .chain(moving::names())
        .chain(reduction::names())
        .chain(
            [
                stops::NAME,
                idle::WITH,
                idle::WITHOUT,
                reopen::COMPACTING.operation,
            ]
            .map(str::to_owned),
        )
}

/// Measures the selected parts.
pub(super) fn measure(
    options: &Options,
    rival: Option<&mut Rival>,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let mut figures = density::measure(options, progress)?;
    figures.extend(full::measure(options, progress)?);
    figures.extend(moving::measure(options, rival, progress)?);
    figures.extend(reduction::measure(options, progress)?);
    figures.extend(stops::measure(options, progress)?);
    figures.extend(idle::measure(options, progress)?);
    figures.extend(reopen::measure(options, &reopen::COMPACTING, progress)?);
    Ok(figures)
}

/// A thread's work in the program, until it is told to stop.
type Work<'w> = &'w (dyn Fn(&AtomicBool) -> Result<(), Error> + Sync);

/// Runs `what` beside threads of the program.
fn beside<R, const N: usize>(
    program: [Work<'_>; N],
    run: impl FnOnce() -> Result<R, Error>,
) -> Result<R, Error> {
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads = program.map(|work| scope.spawn(move || work(stop)));
        let result = run();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        result
    })
}
