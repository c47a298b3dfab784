//! What recovery does about a cycle that a crash interrupted.
//!
//! The cycle is not ended: that would take as long as the heap is large. Only the objects that valid
//! log entries name are copied, before the entries are replayed; every other unsettled one is unclaimed
//! again and is copied when somebody touches it, found by its source or its destination.

use std::sync::Arc;

use firn_format::geometry::PHASE;
use firn_format::lane::Record;
use firn_format::plan::Phase;
use firn_format::sealed::Seal;
use firn_format::superblock::Superblock;
use firn_media::{Medium, MediumExt};
use firn_units::WORD_BYTES;

use super::cycle::Cycle;
use super::instructions::has_instructions;
use super::release::release_on_media;
use super::scheme::Recovery;
use crate::error::Error;
use crate::inner::keeps_addresses;
use crate::steps;

/// Reads the collector's phase.
///
/// Errors: the word is damaged.
pub(crate) fn phase<M: Medium>(medium: &M) -> Result<Phase, Error> {
    let value = Seal::Phase.open_at(medium.load_u64(PHASE), PHASE)?;
    Ok(Phase::from_value(value, PHASE)?)
}

/// The cycle that the phase word names, with the phase.
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

/// Copies the objects again that entries change and that were not settled, and makes the copies
/// durable: an entry's replay stores the settled word, which may be evicted at once. Returns the
/// units.
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

/// Ends what RELEASE had begun: the work of one plan.
///
/// Errors: the list of kept plans is damaged.
pub(crate) fn end_release<M: Medium>(
    medium: &M,
    cycle: &Cycle<M>,
    superblock: &Superblock,
) -> Result<(), Error> {
    let keeps = keeps_addresses(superblock.kind, superblock.log);
    release_on_media(medium, cycle, superblock.kind, keeps)
}

/// What this open of the pool goes on with.
pub(crate) type Resumed<M> = Option<Arc<Cycle<M>>>;
