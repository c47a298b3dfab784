//! The collector: it marks the live objects, plans where they go, moves them while the program runs, and gives the
//! emptied pages back (FFCCD sections 2.3, 3.3 and 5).
//!
//! ```text
//! collection        drives one cycle after the other through its states:
//!   marked            live objects are known, others are free       mark, reclaim, recount
//!   planned           sources are closed, destinations are taken    survey, selection, compaction_plan, destinations
//!   active            the plan is in force, objects move            activation, finished
//!   drained           everything has moved, references are healed   heal, pairs, release
//!   released          the results of the cycle
//! options           the goal and the ways of a collection
//! only_one          one collection at a time            stopping      the moments it asks for
//! background        a thread that watches the ratio     workflow      the program's own calls drive it, as FFCCD prints
//! noted             slots that come into use meanwhile
//! retained          the cost of ended cycles in a pool that keeps addresses
//! relocations       the moves of the open cycle         figures       what was done
//! ```
//! The open cycle itself, with the read barrier, is in `relocation`.
//!
//! The world stops briefly, with no operation open, for each step that needs one moment common to all sessions: marking
//! begins (M1) and ends, the sources are closed, the plan comes into force (C1, T2), healing begins, the plan ceases to
//! count (T4). Nothing else waits.

mod activation;
mod active;
mod background;
pub(crate) mod collection;
mod compaction_plan;
mod destinations;
mod drained;
mod figures;
mod finished;
mod heal;
mod mark;
mod marked;
mod noted;
pub(crate) mod only_one;
mod options;
mod pairs;
mod planned;
mod reclaim;
mod recount;
mod release;
mod released;
mod relocations;
mod retained;
mod selection;
mod stopping;
mod survey;
mod workflow;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_format::geometry::Frame;
use firn_format::reference::RefWord;
use firn_media::{Lock, Medium};

use crate::alloc::Place;
use crate::relocation::Cycle;
use crate::relocation::retained::RetainedCycles;

pub use crate::relocation::scheme;
pub use crate::stops::Stops;
pub use background::{Background, BackgroundCollector, CollectorOptions};
pub use collection::Collection;
pub use figures::{Collected, Ended};
pub use firn_format::statistics::STOP_BUCKETS;
pub use options::{CollectOptions, Forwarding, Marking, PageSize};
pub use relocations::Relocation;
pub use workflow::{Workflow, WorkflowOptions};

/// The volatile state of a pool's collector.
pub(crate) struct Collector<M: Medium> {
    /// Whether a cycle moves objects. This and the next two change only while no operation is open. The beginning of an
    /// operation is ordered after such a change, so the operation sees one value until its end.
    moving: AtomicBool,
    marking: AtomicBool,
    deferring: AtomicBool,
    cycle: Lock<Option<Arc<Cycle<M>>>>,
    /// The cycle that has ended while media does not yet say that its sources are free.
    releasing: Lock<Option<Arc<Cycle<M>>>>,
    /// References that transactions replaced while marking goes on.
    replaced: Lock<Vec<RefWord>>,
    /// Slots that were freed while a collector step reads objects by address.
    deferred: Lock<Vec<Place>>,
    /// Whether a collection is under way, or an action that excludes collections.
    pub(crate) busy: AtomicBool,
    /// Counts the cycles that have ended.
    cycles_ended: AtomicU64,
    /// How long the current collection waits for each of its stops.
    patience_ns: AtomicU64,
    stops: Lock<Stops>,
    /// Cycles that have ended and whose old addresses are still forwarded.
    pub(crate) retained: RetainedCycles,
    /// First frames of runs with objects that may not move.
    pub(crate) pinned: Lock<HashSet<Frame>>,
}

impl<M: Medium> Collector<M> {
    pub(crate) fn new(cycle: Option<Arc<Cycle<M>>>, retained: RetainedCycles) -> Self {
        Self {
            moving: AtomicBool::new(cycle.is_some()),
            marking: AtomicBool::new(false),
            deferring: AtomicBool::new(false),
            cycle: Lock::new(cycle),
            releasing: Lock::new(None),
            replaced: Lock::new(Vec::new()),
            deferred: Lock::new(Vec::new()),
            busy: AtomicBool::new(false),
            cycles_ended: AtomicU64::new(0),
            patience_ns: AtomicU64::new(crate::inner::STOP_LIMIT_NS),
            stops: Lock::new(Stops::default()),
            retained,
            pinned: Lock::new(HashSet::new()),
        }
    }

    /// The cycle that moves objects; asked at the beginning of an operation.
    #[inline(always)]
    pub(crate) fn cycle(&self, medium: &M) -> Option<Arc<Cycle<M>>> {
        if !self.moving.load(Ordering::Relaxed) {
            return None;
        }
        self.open_cycle(medium)
    }

    #[cold]
    #[inline(never)]
    fn open_cycle(&self, medium: &M) -> Option<Arc<Cycle<M>>> {
        self.cycle.lock(medium).clone()
    }

    /// Whether a stored reference must be remembered at commit.
    #[inline(always)]
    pub(crate) fn is_marking(&self) -> bool {
        self.marking.load(Ordering::Relaxed)
    }

    /// Whether freed slots must wait.
    #[inline(always)]
    pub(crate) fn defers_frees(&self) -> bool {
        self.deferring.load(Ordering::Relaxed)
    }

    pub(crate) fn remember(&self, medium: &M, replaced: impl Iterator<Item = RefWord>) {
        self.replaced.lock(medium).extend(replaced);
    }

    pub(crate) fn defer(&self, medium: &M, freed: impl Iterator<Item = Place>) {
        self.deferred.lock(medium).extend(freed);
    }

    fn take_replaced(&self, medium: &M) -> Vec<RefWord> {
        core::mem::take(&mut *self.replaced.lock(medium))
    }

    fn take_deferred(&self, medium: &M) -> Vec<Place> {
        core::mem::take(&mut *self.deferred.lock(medium))
    }

    /// The cycle between its last stop, in which its release begins, and the moment when media says so and its pages
    /// are not yet used again. For code that reads tables beside a collector; an operation that finds none here ends
    /// before there is one.
    pub(crate) fn releasing(&self, medium: &M) -> Option<Arc<Cycle<M>>> {
        self.releasing.lock(medium).clone()
    }

    fn set_releasing(&self, medium: &M, cycle: Option<Arc<Cycle<M>>>) {
        *self.releasing.lock(medium) = cycle;
    }

    /// Puts a cycle into force, or takes it out of force. No operation is open.
    fn set_cycle(&self, medium: &M, cycle: Option<Arc<Cycle<M>>>) {
        self.moving.store(cycle.is_some(), Ordering::Relaxed);
        *self.cycle.lock(medium) = cycle;
    }

    /// No operation is open.
    fn set_marking(&self, marking: bool) {
        self.marking.store(marking, Ordering::Relaxed);
    }

    /// No operation is open.
    fn set_deferring(&self, deferring: bool) {
        self.deferring.store(deferring, Ordering::Relaxed);
    }
}
