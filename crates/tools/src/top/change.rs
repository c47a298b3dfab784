//! Changes between two looks.

use std::time::Duration;

use serde::Serialize;

use crate::Stat;

/// What happened between two looks at a pool. A counter that went back, as it may if the pool was reopened after a
/// crash, counts as unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// Time between them.
    pub seconds: f64,
    /// Committed transactions in a second.
    pub commits_per_second: f64,
    /// Aborted transactions in a second.
    pub aborts_per_second: f64,
    /// Writes of the log in a second; none without a log.
    pub log_writes_per_second: f64,
    /// Growth of the live bytes per second; negative if they shrink.
    pub live_bytes_per_second: f64,
    /// Cycles of the collector that ended.
    pub cycles: u64,
    /// Objects that were moved, in a second.
    pub moved_objects_per_second: f64,
    /// Bytes of their slots, in a second.
    pub moved_bytes_per_second: f64,
    /// Bytes of free space that went back to the device, in a second.
    pub released_bytes_per_second: f64,
    /// Processor time of the collector, in processors.
    pub collector_processors: f64,
    /// Stops of the program for the collector.
    pub stops: u64,
    /// How long the program stood still.
    pub stood_ms: f64,
}

impl Change {
    /// The change from `before` to `after`, within `time`.
    pub fn between(before: &Stat, after: &Stat, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        let rate = |before: u64, after: u64| a_second(after.saturating_sub(before) as f64, seconds);
        let (was, is) = (&before.collector, &after.collector);
        let cpu_ms = |of: &Stat| {
            of.collector
                .steps()
                .map(|(_, step)| step.cpu_ms)
                .sum::<f64>()
        };
        let computed = (cpu_ms(after) - cpu_ms(before)).max(0.0) / 1e3;
        Self {
            seconds,
            commits_per_second: rate(before.commits, after.commits),
            aborts_per_second: rate(before.aborts, after.aborts),
            log_writes_per_second: match (&before.log, &after.log) {
                (Some(before), Some(after)) => rate(before.writes, after.writes),
                _ => 0.0,
            },
            live_bytes_per_second: a_second(
                after.live_bytes as f64 - before.live_bytes as f64,
                seconds,
            ),
            cycles: is.cycles.saturating_sub(was.cycles),
            moved_objects_per_second: rate(was.moved_objects, is.moved_objects),
            moved_bytes_per_second: rate(was.moved_bytes, is.moved_bytes),
            released_bytes_per_second: rate(was.released_bytes, is.released_bytes),
            collector_processors: a_second(computed, seconds),
            stops: is.stops.count.saturating_sub(was.stops.count),
            stood_ms: (is.stops.total_ms - was.stops.total_ms).max(0.0),
        }
    }

    /// Whether a program or a collector did anything that is counted.
    pub fn is_any(&self) -> bool {
        let rates = [
            self.commits_per_second,
            self.aborts_per_second,
            self.live_bytes_per_second,
            self.moved_objects_per_second,
            self.collector_processors,
        ];
        self.cycles + self.stops > 0 || rates.iter().any(|&rate| rate != 0.0)
    }
}

/// Whether counters that only grow are lower than before: it is another pool, or a crash has set this one back.
pub(super) fn went_back(before: &Stat, after: &Stat) -> bool {
    let growing = |of: &Stat| [of.commits, of.aborts, of.collector.cycles];
    let pairs = growing(before).into_iter().zip(growing(after));
    pairs.into_iter().any(|(before, after)| after < before)
}

fn a_second(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogFigures;

    fn stat(commits: u64) -> Stat {
        Stat {
            commits,
            live_bytes: 1000 - commits,
            ..Stat::default()
        }
    }

    fn collected(cycles: u64, cpu_ms: f64) -> Stat {
        let mut stat = Stat::default();
        stat.collector.cycles = cycles;
        stat.collector.moved_objects = cycles * 10;
        stat.collector.moved_bytes = cycles * 1000;
        stat.collector.compact.cpu_ms = cpu_ms;
        stat.collector.stops.count = cycles * 7;
        stat.collector.stops.total_ms = cycles as f64;
        stat
    }

    const TWO_SECONDS: Duration = Duration::from_secs(2);

    #[test]
    fn writes_of_the_log_are_counted_where_there_is_one() {
        let with_log = |writes| Stat {
            log: Some(LogFigures {
                writes,
                ..LogFigures::default()
            }),
            ..Stat::default()
        };
        let rate = |before: &Stat, after: &Stat| {
            Change::between(before, after, TWO_SECONDS).log_writes_per_second
        };
        assert_eq!(rate(&with_log(100), &with_log(500)), 200.0);
        assert_eq!(rate(&with_log(500), &with_log(100)), 0.0, "opened again");
        assert_eq!(rate(&Stat::default(), &with_log(100)), 0.0);
    }

    #[test]
    fn rates_are_differences_over_time() {
        let change = Change::between(&stat(100), &stat(300), TWO_SECONDS);
        assert_eq!(change.commits_per_second, 100.0);
        assert_eq!(change.live_bytes_per_second, -100.0);
        assert!(change.is_any());
        let change = Change::between(&collected(1, 500.0), &collected(3, 1500.0), TWO_SECONDS);
        assert_eq!((change.cycles, change.stops), (2, 14));
        assert_eq!(change.moved_objects_per_second, 10.0);
        assert_eq!(change.moved_bytes_per_second, 1000.0);
        assert_eq!((change.collector_processors, change.stood_ms), (0.5, 2.0));
    }

    #[test]
    fn counters_that_go_back_count_as_standing() {
        let change = Change::between(&stat(300), &stat(100), TWO_SECONDS);
        assert_eq!(change.commits_per_second, 0.0);
        let change = Change::between(&collected(9, 90.0), &collected(2, 1.0), TWO_SECONDS);
        let seconds = TWO_SECONDS.as_secs_f64();
        let nothing = Change {
            seconds,
            ..Change::default()
        };
        assert_eq!(change, nothing);
        assert!(!change.is_any());
        assert!(went_back(&stat(300), &stat(100)) && !went_back(&stat(1), &stat(1)));
    }

    #[test]
    fn no_time_is_no_rate() {
        let change = Change::between(&stat(0), &stat(100), Duration::ZERO);
        assert_eq!(change.commits_per_second, 0.0);
    }
}
