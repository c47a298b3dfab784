//! How long the program was stopped for a change of phase.

use firn_format::statistics::STOP_BUCKETS;

/// How long the program was stopped, stop by stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stops {
    /// Number of stops, including the withdrawn ones.
    pub count: u64,
    /// Number of stops that were withdrawn, because an operation stayed open.
    pub withdrawn: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
    /// The most computing time within one of them, in nanoseconds: the length of that stop where every thread has a
    /// processor of its own.
    pub longest_cpu_ns: u64,
    /// Their total, in nanoseconds.
    pub total_ns: u64,
    /// Bucket i counts stops of at least 2^i nanoseconds and less than twice that.
    pub buckets: [u64; STOP_BUCKETS],
}

impl Default for Stops {
    fn default() -> Self {
        Self {
            count: 0,
            withdrawn: 0,
            longest_ns: 0,
            longest_cpu_ns: 0,
            total_ns: 0,
            buckets: [0; STOP_BUCKETS],
        }
    }
}

impl Stops {
    /// Adds a stop.
    pub(crate) fn add(&mut self, ns: u64, cpu_ns: u64) {
        self.count += 1;
        self.longest_ns = self.longest_ns.max(ns);
        self.longest_cpu_ns = self.longest_cpu_ns.max(cpu_ns);
        self.total_ns += ns;
        let bucket = ns.max(1).ilog2() as usize;
        self.buckets[bucket.min(STOP_BUCKETS - 1)] += 1;
    }

    /// Adds further stops.
    pub(crate) fn add_all(&mut self, more: &Self) {
        self.count += more.count;
        self.withdrawn += more.withdrawn;
        self.longest_ns = self.longest_ns.max(more.longest_ns);
        self.longest_cpu_ns = self.longest_cpu_ns.max(more.longest_cpu_ns);
        self.total_ns += more.total_ns;
        for (sum, more) in self.buckets.iter_mut().zip(more.buckets) {
            *sum += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_fall_into_their_bucket() {
        let mut stops = Stops::default();
        for ns in [0, 1, 1023, 1024, u64::MAX >> 1] {
            stops.add(ns, 0);
        }
        assert_eq!(
            (stops.buckets[0], stops.buckets[9], stops.buckets[10]),
            (2, 1, 1)
        );
        assert_eq!((stops.count, stops.longest_ns), (5, u64::MAX >> 1));
    }
}
