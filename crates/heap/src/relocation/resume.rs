//! How recovery treats a cycle that a crash interrupted.
//!
//! It does not end the cycle: that would take time in proportion to the heap. It copies only the objects that valid log
//! entries name, before it replays the entries. Every other unsettled object is unclaimed again and is copied when a
//! thread touches it, found by its source or its destination.

use firn_format::lane::Record;
use firn_format::plan::Phase;
use firn_media::{Medium, MediumExt};
use firn_units::WORD_BYTES;

use super::cycle::Cycle;
use super::instructions::has_instructions;
use super::media::phase;
use super::scheme::Recovery;
use crate::error::Error;
use crate::steps;

/// The cycle that the phase word names, and the phase.
///
/// Errors: the plan is damaged.
pub(crate) fn interrupted<M: Medium>(medium: &M) -> Result<Option<(Phase, Cycle<M>)>, Error> {
    let phase = phase(medium)?;
    match phase {
        Phase::Idle => Ok(None),
        Phase::Active(plan) | Phase::Release(plan) => {
            let cycle = Cycle::load(medium, plan)?;
            has_instructions(medium, cycle.scheme)?;
            Ok(Some((phase, cycle)))
        }
    }
}

/// Copies again the unsettled objects that entries change, and makes the copies durable: an entry's replay stores the
/// settled word, which may be evicted at once. Returns the units.
pub(crate) fn copy_named<M: Medium>(
    medium: &M,
    cycle: &Cycle<M>,
    payloads: impl Iterator<Item = impl AsRef<[u64]>>,
) -> Vec<u64> {
    if cycle.scheme.recovery == Recovery::CopyDifferent {
        cycle.recover_different(medium);
    }
    let mut homes = Vec::new();
    for payload in payloads {
        let mut rest = payload.as_ref();
        while let Some(record) = Record::take(&mut rest) {
            homes.push(record.home());
        }
    }
    if cycle.scheme.relocates() {
        let bytes = homes.iter().flat_map(|&(home, len)| {
            (0..len)
                .step_by(WORD_BYTES as usize)
                .map(move |at| home + at)
        });
        cycle.complete_reached(medium, bytes);
    }
    let settled = homes.iter().map(|&(home, _)| cycle.unit_settled_at(home));
    let mut units: Vec<u64> = settled.flatten().collect();
    units.sort_unstable();
    units.dedup();
    for &unit in &units {
        cycle.recover_unit(medium, unit);
    }
    medium.fence_for(&steps::RECOVERED_COPY_FENCE);
    units
}
