//! Watches for the moment at which a collecting child has objects on the move.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use firn_format::geometry::PHASE;
use firn_format::plan::Phase;
use firn_format::sealed::Seal;
use firn_mapped::Mapped;
use firn_media::{Domain, Memory};

/// Pause between two polls: short compared with a step of the child's collector.
const BETWEEN: Duration = Duration::from_micros(300);

/// Waits until the pool's collector has a cycle open, but at most for `limit`. A pool that cannot be looked at is not
/// waited for: opening it will say why.
pub(super) fn wait_for_cycle(pool: &Path, limit: Duration) {
    let (begin, mut medium) = (Instant::now(), Mapped::peek(pool));
    while begin.elapsed() < limit {
        match &medium {
            Ok(seen) if has_open_cycle(seen) => return,
            // Without a log, it is the pool itself that is seen.
            Ok(seen) if seen.domain() != Domain::Logged => {}
            // With one, it is the pool of that moment. A log that is being written may seem to be damaged.
            _ => medium = Mapped::peek(pool),
        }
        thread::sleep(BETWEEN);
    }
}

/// An unreadable phase counts as no cycle: opening the pool will report the fault.
fn has_open_cycle(medium: &Mapped) -> bool {
    let value = Seal::Phase.open_at(medium.load_u64(PHASE), PHASE);
    let phase = value.and_then(|value| Phase::from_value(value, PHASE));
    matches!(phase, Ok(Phase::Active(_) | Phase::Release(_)))
}
