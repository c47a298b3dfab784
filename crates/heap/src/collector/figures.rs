//! What the collector has done, and how long it stopped the program.

use firn_format::statistics::{Counter, STEPS, WORDS};
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAME_BYTES};

use crate::collector::PageSize;
use crate::inner::Inner;
use crate::stat_shard;
use crate::stops::Stops;

/// Why a collection ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// It has not.
    #[default]
    NotYet,
    /// The target is reached.
    Target,
    /// No page can be won: the objects that could move would fill as many.
    NothingToWin,
    /// The scheme moves nothing.
    NothingMoves,
    /// In a pool whose addresses stay: the plans that forward old ones have reached their limit
    /// (`Pool::drop_forwarding`).
    AddressesKept,
    /// More could be won, but there is no room for a plan and the first objects that it moves: within the pool's limit,
    /// or on the device.
    NoRoom,
}

impl Ended {
    /// The reason in words, for reports.
    pub const fn words(self) -> &'static str {
        match self {
            Ended::NotYet => "it is still running",
            Ended::Target => "the target is reached",
            Ended::NothingToWin => "nothing more can be gained",
            Ended::NothingMoves => "the scheme does not move objects",
            Ended::AddressesKept => "no more old addresses can be kept",
            Ended::NoRoom => "there is no room to move objects",
        }
    }
}

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Cycles that have ended.
    pub cycles: u64,
    /// Unreachable objects that were reclaimed.
    pub reclaimed: u64,
    /// Objects in plans.
    pub planned: u64,
    /// Bytes of blocks of sources that were given back during a cycle.
    pub released_bytes: u64,
    /// Objects that the collector itself moved; the program moved the others when it touched them.
    pub moved: u64,
    /// Frames of the runs that were emptied.
    pub emptied_frames: u64,
    /// Frames of the runs that were filled.
    pub filled_frames: u64,
    /// Nanoseconds of marking and reclaiming.
    pub mark_ns: u64,
    /// Nanoseconds of choosing and planning.
    pub summary_ns: u64,
    /// Nanoseconds of moving objects.
    pub compact_ns: u64,
    /// Nanoseconds of healing references and freeing pages.
    pub finish_ns: u64,
    /// Bytes of the slots of the objects in plans.
    pub planned_bytes: u64,
    /// Nanoseconds of computation of the collecting thread, by step.
    pub cpu_ns: [u64; STEPS],
    /// Bytes of pages that hold objects above 1 MiB, which never move, as of the last survey.
    pub large_bytes: u64,
    /// Bytes of runs that the program has pinned, as of the last survey.
    pub pinned_bytes: u64,
    /// Why it ended.
    pub ended: Ended,
}

/// A part of a collection, for measuring its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CycleStep {
    Mark,
    Summary,
    Compact,
    Finish,
}

impl Collected {
    /// Adds the figures of another collection.
    pub fn add(&mut self, more: &Self) {
        self.cycles += more.cycles;
        self.reclaimed += more.reclaimed;
        self.planned += more.planned;
        self.moved += more.moved;
        self.emptied_frames += more.emptied_frames;
        self.filled_frames += more.filled_frames;
        self.mark_ns += more.mark_ns;
        self.summary_ns += more.summary_ns;
        self.compact_ns += more.compact_ns;
        self.finish_ns += more.finish_ns;
        self.planned_bytes += more.planned_bytes;
        self.released_bytes += more.released_bytes;
        (self.large_bytes, self.pinned_bytes) = (more.large_bytes, more.pinned_bytes);
        self.ended = more.ended;
        for (sum, more) in self.cpu_ns.iter_mut().zip(more.cpu_ns) {
            *sum += more;
        }
    }

    pub(super) fn add_time(&mut self, step: CycleStep, ns: u64, cpu_ns: u64) {
        self.cpu_ns[step as usize] += cpu_ns;
        *match step {
            CycleStep::Mark => &mut self.mark_ns,
            CycleStep::Summary => &mut self.summary_ns,
            CycleStep::Compact => &mut self.compact_ns,
            CycleStep::Finish => &mut self.finish_ns,
        } += ns;
    }
}

/// Adds the work of a collection since `before` to the statistics page.
pub(super) fn publish<M: Medium>(medium: &M, before: &Collected, now: &Collected) {
    let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
    let mut add = |counter: Counter, before: u64, now: u64| {
        change[counter.word()] = now.wrapping_sub(before) as i64;
    };
    add(Counter::Cycles, before.cycles, now.cycles);
    add(Counter::MovedObjects, before.planned, now.planned);
    add(Counter::MovedBytes, before.planned_bytes, now.planned_bytes);
    add(
        Counter::EmptiedFrames,
        before.emptied_frames,
        now.emptied_frames,
    );
    add(
        Counter::FilledFrames,
        before.filled_frames,
        now.filled_frames,
    );
    add(Counter::Reclaimed, before.reclaimed, now.reclaimed);
    let times = |c: &Collected| [c.mark_ns, c.summary_ns, c.compact_ns, c.finish_ns];
    for step in 0..STEPS {
        add(Counter::StepNs(step), times(before)[step], times(now)[step]);
        add(
            Counter::StepCpuNs(step),
            before.cpu_ns[step],
            now.cpu_ns[step],
        );
    }
    stat_shard::add(medium, &change);
}

/// Adds a request to stop the world to the statistics page.
pub(super) fn publish_stops<M: Medium>(inner: &Inner<M>, more: &Stops) {
    let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
    change[Counter::Starved.word()] = more.withdrawn as i64;
    change[Counter::StoodNs.word()] = more.total_ns as i64;
    for (bucket, &stops) in more.buckets.iter().enumerate() {
        change[Counter::StopBucket(bucket).word()] = stops as i64;
    }
    let longest = inner.counter(Counter::LongestStopNs).max(0) as u64;
    let longer = more.longest_ns.saturating_sub(longest);
    change[Counter::LongestStopNs.word()] = longer as i64;
    stat_shard::add(&inner.medium, &change);
}

impl<M: Medium> Inner<M> {
    /// The fragmentation ratio: bytes of pages that hold an object, over live bytes. One in an empty pool.
    pub(crate) fn ratio(&self, pages: PageSize) -> f64 {
        let sum = |counter: Counter| self.counter(counter).max(0) as f64;
        let used = match pages {
            PageSize::Small => sum(Counter::LiveFrames) * FRAME_BYTES as f64,
            PageSize::Huge => sum(Counter::LiveChunks) * CHUNK_BYTES as f64,
        };
        let live = sum(Counter::LiveBytes);
        if live == 0.0 { 1.0 } else { used / live }
    }

    /// Pages that hold objects.
    pub(super) fn footprint_pages(&self, pages: PageSize) -> i64 {
        match pages {
            PageSize::Small => self.counter(Counter::LiveFrames),
            PageSize::Huge => self.counter(Counter::LiveChunks),
        }
    }
}
