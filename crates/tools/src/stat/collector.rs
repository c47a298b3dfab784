//! The collector's work on a pool since it was made.

use firn_heap::CollectorStatistics;
use serde::Serialize;

use crate::figures::ms;

/// The collector's work on a pool since it was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CollectorFigures {
    /// Cycles: each plans, moves objects, heals references and frees pages.
    pub cycles: u64,
    /// Objects that were moved.
    pub moved_objects: u64,
    /// Bytes of their slots.
    pub moved_bytes: u64,
    /// Bytes of pages that were emptied.
    pub emptied_bytes: u64,
    /// Bytes of pages that were filled.
    pub filled_bytes: u64,
    /// Unreachable objects that were reclaimed.
    pub reclaimed_objects: u64,
    /// Bytes of free space that went back to the device.
    pub released_bytes: u64,
    /// Marking and reclaiming.
    pub mark: StepTime,
    /// Choosing and planning.
    pub summary: StepTime,
    /// Moving objects.
    pub compact: StepTime,
    /// Healing references and freeing pages.
    pub finish: StepTime,
    /// How often and how long the collector stopped programs.
    pub stops: StopFigures,
}

/// How long a step took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StepTime {
    /// Elapsed time.
    pub ms: f64,
    /// Processor time of the collecting thread.
    pub cpu_ms: f64,
}

/// How often and how long the collector stopped programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StopFigures {
    /// Stops.
    pub count: u64,
    /// Their total.
    pub total_ms: f64,
    /// The longest.
    pub longest_ms: f64,
    /// Stops by length, shortest first, without empty buckets.
    pub histogram: Vec<StopBucket>,
}

/// Stops of about one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StopBucket {
    /// Least length in nanoseconds.
    pub from_ns: u64,
    /// Length in nanoseconds below which all lie; the last bucket also counts all longer stops.
    pub below_ns: u64,
    /// Stops.
    pub count: u64,
}

impl CollectorFigures {
    /// The steps of a cycle in order, with their names for people.
    pub fn steps(&self) -> impl Iterator<Item = (&'static str, StepTime)> {
        [
            ("marking", self.mark),
            ("planning", self.summary),
            ("moving", self.compact),
            ("ending", self.finish),
        ]
        .into_iter()
    }
}

impl From<CollectorStatistics> for CollectorFigures {
    fn from(read: CollectorStatistics) -> Self {
        let times = read.step_ns.into_iter().zip(read.step_cpu_ns);
        let mut times = times.map(|(ns, cpu_ns)| StepTime {
            ms: ms(ns),
            cpu_ms: ms(cpu_ns),
        });
        let mut next = || times.next().unwrap_or_default();
        Self {
            mark: next(),
            summary: next(),
            compact: next(),
            finish: next(),
            cycles: read.cycles,
            moved_objects: read.moved_objects,
            moved_bytes: read.moved_bytes,
            emptied_bytes: read.emptied_bytes,
            filled_bytes: read.filled_bytes,
            reclaimed_objects: read.reclaimed_objects,
            released_bytes: read.released_bytes,
            stops: StopFigures {
                count: read.stop_histogram.iter().sum(),
                total_ms: ms(read.stood_ns),
                longest_ms: ms(read.longest_stop_ns),
                histogram: histogram(&read.stop_histogram),
            },
        }
    }
}

/// The buckets that are not empty. Bucket `i` begins at `2^i` nanoseconds, the first at zero.
fn histogram(counts: &[u64]) -> Vec<StopBucket> {
    let buckets = counts.iter().enumerate().map(|(i, &count)| StopBucket {
        from_ns: if i == 0 { 0 } else { 1 << i },
        below_ns: 2 << i,
        count,
    });
    buckets.filter(|bucket| bucket.count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_buckets_are_left_out() {
        let bucket = |from_ns, below_ns, count| StopBucket {
            from_ns,
            below_ns,
            count,
        };
        assert_eq!(
            histogram(&[2, 0, 0, 7]),
            [bucket(0, 2, 2), bucket(8, 16, 7)]
        );
    }
}
