//! How much of an execution is tried.

use crate::explore::frame::Frame;
use crate::explore::walker::Walker;
use crate::memory::event::{Event, NewImages};
use crate::memory::persistence::Persistence;

/// Which images are tried, and at which moments.
pub(crate) enum Plan {
    /// All new images of all moments; drawn at a moment that has more than this many.
    All { images_per_event: u128 },
    /// This many drawn images before each of these events, which ascend.
    At { events: Vec<usize>, images: u32 },
}

impl Plan {
    /// The plan that the options give for a recovery.
    pub(crate) fn of_recovery(walker: &mut Walker<'_>, trace: &[Event]) -> Self {
        if let Some(images) = walker.options.drawn_in_recovery {
            let changes = trace.len();
            let random = &mut walker.random;
            let events = (0..images.min(changes as u32)).map(|_| 1 + random.usize(..changes));
            let mut events: Vec<usize> = events.collect();
            events.sort_unstable();
            return Plan::At { events, images: 1 };
        }
        Self::within(walker, trace, walker.options.states_per_recovery)
    }

    /// Everything, if at most `states` images are new on the way; otherwise the largest number of images per event that
    /// stays within it.
    pub(crate) fn within(walker: &mut Walker<'_>, trace: &[Event], states: u64) -> Self {
        /// So few changes make fewer images than any sensible limit.
        const FEW_CHANGES: usize = 9;
        let changes = trace
            .iter()
            .filter(|event| event.changes().is_some())
            .count();
        if changes <= FEW_CHANGES && trace.len() < states as usize >> FEW_CHANGES {
            return Plan::All {
                images_per_event: u128::MAX,
            };
        }
        let totals = totals(walker, trace);
        let sum = |cap: u128| {
            totals
                .iter()
                .map(|&total| total.min(cap))
                .fold(0, u128::saturating_add)
        };
        if sum(u128::MAX) <= u128::from(states) {
            return Plan::All {
                images_per_event: u128::MAX,
            };
        }
        let (mut fits, mut too_many) = (1u128, u128::from(states));
        while fits + 1 < too_many {
            let cap = fits.midpoint(too_many);
            if sum(cap) <= u128::from(states) {
                fits = cap
            } else {
                too_many = cap
            }
        }
        Plan::All {
            images_per_event: fits,
        }
    }
}

/// Counts the new images at each event without laying them out.
fn totals(walker: &mut Walker<'_>, trace: &[Event]) -> Vec<u128> {
    let start = walker.hash;
    let mut persistence = Persistence::new(walker.domain());
    let mut totals = Vec::with_capacity(trace.len());
    for (index, event) in trace.iter().enumerate() {
        walker.step(event, &mut persistence);
        let new = NewImages::of(trace, index, walker.domain());
        if new != NewImages::No {
            let (memory, hash) = walker.scratch();
            let hash = *hash;
            totals.push(match walker.is_kill() {
                true => 1,
                false => Frame::new(&persistence, 0, new, memory, hash).total(),
            });
        }
    }
    walker.go_back(trace, start);
    totals
}
