//! The handle.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use firn_hardware::lookup::counts::LookupCounts;
use firn_media::Offers;

use crate::medium::counts::Counts;
use crate::medium::hardware;
use crate::medium::options::CrashOptions;
use crate::medium::shared::Shared;
use crate::medium::state::{Recovered, Stage};
use crate::memory::event::Event;
use crate::memory::image::Image;
use crate::schedule::policy::Schedule;

/// Memory that can crash. A handle: clones refer to one memory, so a test keeps one while the heap owns another.
///
/// Concurrency: simulated threads belong to the OS thread that started them; [`Crash::run`] is called there. Everything
/// else may be called from anywhere.
#[derive(Clone)]
pub struct Crash {
    pub(crate) shared: Arc<Shared>,
    pub(crate) offers: Arc<Offers>,
}

impl Crash {
    /// Makes `len` bytes of zeros, all of them backed and durable.
    pub fn new(len: u64, options: CrashOptions) -> Self {
        Self::of(Shared::new(len, options))
    }

    /// Makes memory from a crash image. Everything in it is durable.
    pub fn from_image(image: &Image, options: CrashOptions) -> Self {
        let shared = Shared::new(image.len, options);
        image.fill(&shared.memory);
        shared.set_base_boots(image.boots);
        Self::of(shared)
    }

    fn of(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        let offers = Arc::new(hardware::offers(&shared));
        Self { shared, offers }
    }

    /// The options it was made with.
    pub fn options(&self) -> &CrashOptions {
        &self.shared.options
    }

    /// How often the device lacked blocks for a reservation.
    pub fn refusals(&self) -> u64 {
        self.shared.refusals.load(Relaxed)
    }

    /// Operations of all threads since the last reset.
    pub fn counts(&self) -> Counts {
        let mut all = Counts {
            loads: self.shared.direct_loads(),
            ..Counts::default()
        };
        for thread in &self.shared.lock().threads {
            all += thread.counts;
        }
        all
    }

    /// Operations of one simulated thread since the last reset; 0 is the context outside all.
    pub fn thread_counts(&self, thread: usize) -> Counts {
        let mut counts = self.shared.lock().threads[thread].counts;
        if thread == 0 {
            counts.loads += self.shared.direct_loads();
        }
        counts
    }

    /// How often each part of `checklookup` gave the answer since the last reset, for all threads.
    pub fn lookup_counts(&self) -> LookupCounts {
        self.shared.lock().lookups.counts
    }

    /// Sets all counts to zero. Event numbers go on.
    pub fn reset_counts(&self) {
        self.shared.reset_loads();
        self.shared.lock().lookups.counts = LookupCounts::default();
        for thread in &mut self.shared.lock().threads {
            thread.counts = Counts::default();
        }
    }

    /// Number of the next event, before which [`Crash::run_until`] can stop.
    pub fn events(&self) -> u64 {
        self.shared.lock().events
    }

    /// Scheduling points of the run so far, of all threads; a [`crate::Turn`] counts these.
    pub fn points(&self) -> u64 {
        self.shared.lock().steps
    }

    /// Hash of all events in their order.
    pub fn execution_hash(&self) -> u64 {
        self.shared.lock().hash
    }

    /// Number of the calling simulated thread; 0 outside all of them.
    pub fn current_thread(&self) -> usize {
        self.shared.lock().current
    }

    /// Records the calling thread's progress at this point of the event stream. A crash state carries the last note of
    /// every thread, so an oracle knows what was acknowledged.
    pub fn note(&self, progress: u64) {
        let mut state = self.shared.lock();
        let thread = state.current;
        self.shared.emit(
            &mut state,
            Event::Note {
                thread: thread as u16,
                progress,
            },
        );
        if !state.dead {
            state.threads[thread].note = progress;
        }
    }

    /// The last note of every thread, by number.
    pub fn notes(&self) -> Vec<u64> {
        self.shared.lock().notes()
    }

    /// Declares recovery complete: the explorer crashes it only at events before this point.
    pub fn end_of_recovery(&self) {
        let mut state = self.shared.lock();
        if state.recovery_end.is_none() {
            state.recovery_end = state.trace.as_ref().map(Vec::len);
        }
    }

    /// Declares recovery complete, as [`Crash::end_of_recovery`] does, and asks whether the check is to continue: if
    /// not, it returns `Ok` at once.
    ///
    /// A lazy exploration verifies a recovered memory once, however many crashes end in it. For that the rest of the
    /// check must depend only on memory and on `knows`: a digest of what was acknowledged, and of everything that
    /// recovery found out and keeps elsewhere.
    pub fn goes_on(&self, knows: u64) -> bool {
        self.end_of_recovery();
        let mut state = self.shared.lock();
        state.recovered = Some(Recovered {
            knows: knows ^ state.marked.digest() ^ state.lookups.digest,
            loads: self.shared.footprint.len(),
            events: state.trace.as_ref().map_or(0, Vec::len),
        });
        self.shared
            .footprint
            .begin_verification(&self.shared.memory);
        state.stage == Stage::Whole
    }

    /// Whether the medium crashed; nothing changes it any more.
    pub fn is_dead(&self) -> bool {
        self.shared.is_dead()
    }

    /// Begins to record events for [`Crash::take_trace`].
    pub fn start_trace(&self) {
        self.shared.lock().trace = Some(Vec::new());
    }

    /// Passes `see` the events since [`Crash::start_trace`], or of the execution that an explorer records. This is no
    /// scheduling point, so that looking changes nothing.
    pub fn see_trace<R>(&self, see: impl FnOnce(&[Event]) -> R) -> R {
        let state = self.shared.lock();
        see(state.trace.as_deref().unwrap_or_default())
    }

    /// Ends recording and returns the events since [`Crash::start_trace`].
    pub fn take_trace(&self) -> Vec<Event> {
        self.shared.lock().trace.take().unwrap_or_default()
    }

    /// Sets the meaning of [`Schedule::Inherited`] from now on.
    pub fn set_schedule(&self, schedule: Schedule) {
        *self
            .shared
            .inherited
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = schedule;
    }

    pub(crate) fn inherited_schedule(&self) -> Schedule {
        let inherited = self.shared.inherited.lock();
        match &*inherited.unwrap_or_else(std::sync::PoisonError::into_inner) {
            Schedule::Inherited => Schedule::Sequential,
            schedule => schedule.clone(),
        }
    }
}
