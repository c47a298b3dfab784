//! How far the cores are from each other: how long a cache line takes from one to the other.
//!
//! A virtual machine's cores come to lie on neighbours of one die or on different ones, and are moved
//! while it runs; what threads share costs several times as much in one case as in the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use super::clock::{Moment, Times};

/// What its figure calls what was measured.
pub(super) const SYSTEM: &str = "machine";
/// Times the line goes there and back in a burst, which is short, so that few are interrupted.
const ROUNDS: u64 = 100;
/// Bursts, of which the median counts.
const BURSTS: u64 = 51;

/// A word on cache lines of its own.
#[repr(align(128))]
struct Line(AtomicU64);

impl Line {
    /// Waits for the other thread to store `before`, and stores the number that follows.
    fn answer(&self, before: u64) {
        while self.0.load(Ordering::Acquire) != before {
            core::hint::spin_loop();
        }
        self.0.store(before + 1, Ordering::Release);
    }
}

/// What one way takes, between two threads that pass a line to and fro; nothing on a single core.
pub(super) fn one_way() -> Option<Times> {
    if available_parallelism().map_or(1, usize::from) < 2 {
        return None;
    }
    let line = Line(AtomicU64::new(0));
    let mut bursts = std::thread::scope(|scope| {
        scope.spawn(|| (0..BURSTS * ROUNDS).for_each(|round| line.answer(2 * round + 1)));
        let burst = |number: u64| {
            let start = Moment::now();
            (number * ROUNDS..(number + 1) * ROUNDS).for_each(|round| line.answer(2 * round));
            start.elapsed() / (2 * ROUNDS) as f64
        };
        (0..BURSTS).map(burst).collect::<Vec<Times>>()
    });
    bursts.sort_by(|a, b| a.wall_ns.total_cmp(&b.wall_ns));
    bursts.get(bursts.len() / 2).copied()
}
