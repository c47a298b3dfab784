//! Time on the processor, which other programs on the machine do not lengthen.

use core::ops::{AddAssign, Div};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Calls by which the clock's own cost is measured.
const CALIBRATION_CALLS: u32 = 2000;

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// CPU time, of all threads that took part.
    pub(crate) cpu_ns: f64,
    /// Wall time.
    pub(crate) wall_ns: f64,
}

impl AddAssign for Times {
    fn add_assign(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.wall_ns += other.wall_ns;
    }
}

impl Div<f64> for Times {
    type Output = Self;

    fn div(self, by: f64) -> Self {
        Self {
            cpu_ns: self.cpu_ns / by,
            wall_ns: self.wall_ns / by,
        }
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> f64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

fn nanoseconds(time: Timespec) -> f64 {
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_nanos() as f64
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    wall: Instant,
    cpu_ns: f64,
}

impl Moment {
    /// Now, on the calling thread.
    pub(crate) fn now() -> Self {
        Self {
            wall: Instant::now(),
            cpu_ns: thread_cpu_ns(),
        }
    }

    /// The time that has passed on the calling thread since.
    pub(crate) fn elapsed(self) -> Times {
        let cpu_ns = thread_cpu_ns() - self.cpu_ns;
        Times {
            cpu_ns,
            wall_ns: self.wall.elapsed().as_nanos() as f64,
        }
    }
}

/// CPU time between two consecutive readings of the thread's clock: the error of a short measurement.
pub(super) fn thread_clock_cost_ns() -> f64 {
    let mut costs: Vec<f64> = (0..CALIBRATION_CALLS)
        .map(|_| {
            let before = thread_cpu_ns();
            thread_cpu_ns() - before
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}
