//! The two clocks of a timed part.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::failure::Failure;

/// The time of a timed part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// CPU time of the thread, or of all threads.
    pub cpu: Duration,
    /// Wall time, of the slowest thread where there are several.
    pub wall: Duration,
}

impl AddAssign for Times {
    fn add_assign(&mut self, more: Self) {
        self.cpu += more.cpu;
        self.wall += more.wall;
    }
}

/// Runs `part` and measures its time in this thread.
#[inline]
pub fn timed(part: impl FnOnce() -> Result<(), Failure>) -> Result<Times, Failure> {
    let (wall, cpu) = (Instant::now(), thread_cpu()?);
    part()?;
    Ok(Times {
        cpu: thread_cpu()? - cpu,
        wall: wall.elapsed(),
    })
}

fn thread_cpu() -> Result<Duration, Failure> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_err(Failure::Clock)?
        .into())
}
