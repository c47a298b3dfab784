//! Marking: which objects are reachable, found while the program runs.
//!
//! Marking takes a snapshot at the beginning (rules M1 to M7): it marks the objects that were reachable when it began,
//! because a transaction remembers each reference before it replaces it. This needs no write barrier beyond the
//! transaction's own log. Objects that are allocated meanwhile count as living and are not scanned; slots that are
//! freed meanwhile are not reused before marking ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_format::reference::RefWord;
use firn_format::statistics::WORDS;
use firn_media::{Medium, MediumExt, Scope};
use firn_units::VirtAddr;

use super::noted::Noted;
use super::options::Marking;
use crate::alloc::{Slot, TakenSlots, locate};
use crate::error::Error;
use crate::finding::Finding;
use crate::inner::Inner;
use crate::steps;
use crate::trace::{InCycle, Trace, Visitor};

/// What a marker knows about changes since it began.
pub(super) struct Beside<'m, M: Medium> {
    /// Slots that sessions have taken into use since (M4: new objects are black).
    taken: Arc<TakenSlots<M>>,
    /// The cycle that a crash interrupted; all of its objects have moved by now.
    cycle: InCycle<'m, M>,
}

impl<M: Medium> Visitor for Beside<'_, M> {
    fn forward(&self, at: VirtAddr) -> VirtAddr {
        self.cycle.forward(at)
    }
    fn skips(&self, slot: &Slot) -> bool {
        self.taken.has(slot.place)
    }
}

/// At most this many replaced references are followed while the world is stopped.
const FEW_REPLACED: usize = 1024;

/// What a finished marking has reached.
pub(super) struct Reached<'p, M: Medium> {
    pub(super) inner: &'p Inner<M>,
    pub(super) trace: Trace<'p, M, Beside<'p, M>>,
    pub(super) taken: Noted<'p, M>,
    /// The pool's counters when marking began, if they are counted anew.
    pub(super) counters: Option<Box<[i64; WORDS]>>,
}

impl<'p, M: Medium> Reached<'p, M> {
    /// Marks what is reachable. After its return freed slots are no longer deferred; slots that come into use are still
    /// noted as taken.
    ///
    /// Errors: an operation stayed open; the pool is damaged. Marking is over then, too.
    pub(super) fn by(inner: &'p Inner<M>, how: Marking) -> Result<Self, Error> {
        let medium = &inner.medium;
        let _scope = medium.scope(Scope::Mark);
        // Done before the world stops, to keep the stop short.
        let taken = Noted::new(inner);
        let beside = Beside {
            taken: Arc::clone(taken.slots()),
            cycle: InCycle::of(inner),
        };
        let mut trace = Trace::new(medium, inner.id, &inner.types, beside);
        let exact = inner.exact.load(Ordering::Acquire);
        trace.passes_leaves = exact;
        // M1: no operation is open. M5: handles are read now; later ones come from live objects.
        let begun = inner.stop_for(&steps::STOP_FOR_MARKING, || {
            inner.allocator.drain_all(medium)?;
            taken.begin();
            // Not earlier: a type may have been registered while this waited for the stop.
            trace.learn(&inner.types);
            let mut handles = inner.handles.strong(medium);
            if medium.leaves_out(&steps::HANDLES_ARE_ROOTS) {
                handles.clear();
            }
            trace.begin(&handles);
            inner.collector.set_marking(true);
            inner.collector.set_deferring(true);
            // Only counters that a crash left behind are counted anew.
            let counters = (!exact).then(|| inner.begin_recount());
            if how == Marking::StopTheWorld {
                trace.drain();
            }
            Ok::<_, Error>(counters)
        });
        let counters = begun??;
        let mut reached = Self {
            inner,
            trace,
            taken,
            counters,
        };
        let ended = reached.mark_to_the_end();
        for place in inner.collector.take_deferred(medium) {
            inner
                .allocator
                .release_one(medium, place, inner.redo.counter());
        }
        ended?;
        match reached.trace.findings.first() {
            Some(Finding { at, .. }) => {
                let what = "a reference or an object";
                Err(Error::Damaged { what, at: *at })
            }
            None => Ok(reached),
        }
    }

    /// M3: marking ends when nothing is left to follow and nothing was replaced since. The end is looked for beside the
    /// program and confirmed while no operation is open. The few references that a busy program has replaced meanwhile
    /// are followed in that stop, or marking might never end.
    fn mark_to_the_end(&mut self) -> Result<(), Error> {
        let inner = self.inner;
        let medium = &inner.medium;
        let mut left = Vec::new();
        loop {
            self.follow_replaced();
            let done = inner.stop_for_cycle(|| {
                left = inner.collector.take_replaced(medium);
                if medium.leaves_out(&steps::MARKING_ENDS_EMPTY) {
                    left.clear();
                }
                if left.len() > FEW_REPLACED {
                    return false;
                }
                left.drain(..)
                    .for_each(|word| self.trace.meet_replaced(word));
                if !self.trace.drain_little() {
                    return false;
                }
                self.clear_weak();
                inner.collector.set_marking(false);
                inner.collector.set_deferring(false);
                true
            });
            match done {
                Ok(true) => return Ok(()),
                Ok(false) => left
                    .drain(..)
                    .for_each(|word| self.trace.meet_replaced(word)),
                Err(error) => {
                    // Given up: sessions that still remember or defer do so in vain, and without harm.
                    inner.collector.set_marking(false);
                    inner.collector.set_deferring(false);
                    inner.collector.take_replaced(medium);
                    return Err(error);
                }
            }
        }
    }

    /// Clears weak handles to objects that were not reached. This runs while no operation is open, and before marking
    /// is over: until now, following such a handle made the transaction remember the object ([`crate::Handle`]); later
    /// that would come too late.
    fn clear_weak(&self) {
        let (inner, trace) = (self.inner, &self.trace);
        let medium = &inner.medium;
        inner.handles.clear_weak(medium, |reference| {
            let at = trace.visitor.forward(reference.address());
            locate(medium, at)
                .is_ok_and(|slot| trace.marks.has(&slot) || trace.visitor.taken.has(slot.place))
        });
    }

    fn follow_replaced(&mut self) {
        let inner = self.inner;
        loop {
            self.trace.drain();
            let replaced: Vec<RefWord> = inner.collector.take_replaced(&inner.medium);
            if replaced.is_empty() {
                return;
            }
            replaced
                .into_iter()
                .for_each(|word| self.trace.meet_replaced(word));
        }
    }
}
