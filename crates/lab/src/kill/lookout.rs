//! Looks out for the moment at which a child that collects has objects on the move.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use firn_format::geometry::PHASE;
use firn_format::plan::Phase;
use firn_format::sealed::Seal;
use firn_mapped::Mapped;
use firn_media::Memory;

use crate::LabError;

/// Pause between two looks: short beside a step of the child's collector.
const BETWEEN: Duration = Duration::from_micros(300);

/// Waits until the pool's collector has a cycle open, or for `limit`.
///
/// Errors: the pool cannot be looked at.
pub(super) fn wait_for_cycle(pool: &Path, limit: Duration) -> Result<(), LabError> {
    let (begin, medium) = (Instant::now(), Mapped::peek(pool)?);
    while !has_open_cycle(&medium) && begin.elapsed() < limit {
        thread::sleep(BETWEEN);
    }
    Ok(())
}

/// What cannot be read is no cycle: opening the pool will say what it is.
fn has_open_cycle(medium: &Mapped) -> bool {
    let value = Seal::Phase.open_at(medium.load_u64(PHASE), PHASE);
    let phase = value.and_then(|value| Phase::from_value(value, PHASE));
    matches!(phase, Ok(Phase::Active(_) | Phase::Release(_)))
}
