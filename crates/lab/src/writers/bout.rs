//! The writers at work in this process.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use firn_heap::Pool;
use firn_mapped::Mapped;

use super::{Ledger, Script, Writer, together};
use crate::LabError;

/// When writers stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// All entries were inserted once.
    Filled,
    /// Ebb has turned to flood: both tides have passed since the last time.
    LowTide,
}

/// The work of the writers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bout {
    /// Transactions of all of them.
    pub operations: u64,
    /// Time until the last of them was done.
    pub time: Duration,
    /// The longest time of one writer's operation and the reads before it.
    pub longest: Duration,
}

/// Lets the ledger's writers work on the pool, each in a thread of its own; they read before each operation and
/// compare.
///
/// Errors: the pool cannot be written, a writer read an entry that it had not written.
pub fn work(
    pool: &Pool<Mapped>,
    path: &Path,
    ledger: &mut Ledger,
    until: Until,
) -> Result<Bout, LabError> {
    let (seed, life) = (ledger.seed(), ledger.next_life());
    let (input, scripts) = ledger.parts();
    let start = Instant::now();
    let write = |script: &mut Script, stop: &AtomicBool| {
        let low_tides = script.low_tides();
        let mut writer = Writer::new(pool, path, input, script)?;
        writer.read_too(seed ^ life);
        let goes_on = |script: &Script| {
            let enough = match until {
                Until::Filled => !script.is_filling(),
                Until::LowTide => script.low_tides() > low_tides,
            };
            !enough && !stop.load(Ordering::Relaxed)
        };
        let (mut bout, mut last) = (Bout::default(), Instant::now());
        writer.run(goes_on, |_| {
            let now = Instant::now();
            bout.operations += 1;
            bout.longest = bout.longest.max(now - last);
            last = now;
            Ok(())
        })?;
        Ok(bout)
    };
    let bouts = together(scripts, write, |_| Ok(()))?;
    Ok(Bout {
        operations: bouts.iter().map(|bout| bout.operations).sum(),
        time: start.elapsed(),
        longest: bouts.iter().map(|b| b.longest).max().unwrap_or_default(),
    })
}
