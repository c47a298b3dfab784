//! What the collector has done, and how long the program stood for it.

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Cycles that were ended.
    pub cycles: u64,
    /// Unreachable objects that were reclaimed.
    pub reclaimed: u64,
    /// Objects that plans said to move.
    pub planned: u64,
    /// Objects that the collector itself moved; the others the program moved when it touched them.
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
}

/// A part of a collection, for the time it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Mark,
    Summary,
    Compact,
    Finish,
}

impl Collected {
    /// Adds what another collection did.
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
    }

    pub(super) fn add_time(&mut self, step: Step, ns: u64) {
        *match step {
            Step::Mark => &mut self.mark_ns,
            Step::Summary => &mut self.summary_ns,
            Step::Compact => &mut self.compact_ns,
            Step::Finish => &mut self.finish_ns,
        } += ns;
    }
}

/// Buckets of a histogram of stops: one a power of two of nanoseconds.
pub const STOP_BUCKETS: usize = 40;

/// How long the program stood, stop by stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stops {
    /// Number of stops.
    pub count: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
    /// All together, in nanoseconds.
    pub total_ns: u64,
    /// Bucket i counts stops of at least 2^i nanoseconds and less than twice that.
    pub buckets: [u64; STOP_BUCKETS],
}

impl Default for Stops {
    fn default() -> Self {
        Self {
            count: 0,
            longest_ns: 0,
            total_ns: 0,
            buckets: [0; STOP_BUCKETS],
        }
    }
}

impl Stops {
    pub(super) fn add(&mut self, ns: u64) {
        self.count += 1;
        self.longest_ns = self.longest_ns.max(ns);
        self.total_ns += ns;
        let bucket = ns.max(1).ilog2() as usize;
        self.buckets[bucket.min(STOP_BUCKETS - 1)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_fall_into_their_bucket() {
        let mut stops = Stops::default();
        for ns in [0, 1, 1023, 1024, u64::MAX >> 1] {
            stops.add(ns);
        }
        assert_eq!(
            (stops.buckets[0], stops.buckets[9], stops.buckets[10]),
            (2, 1, 1)
        );
        assert_eq!((stops.count, stops.longest_ns), (5, u64::MAX >> 1));
    }
}
