//! The state of the machine's cores during the measurement: how far they are from each other, and how fast each of them
//! is.
//!
//! A virtual machine's cores may lie next to each other on one die or on different dies, and are moved while it runs;
//! sharing between threads costs several times as much in one case as in the other. And another tenant may use the
//! other half of a core, which then takes longer for everything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use super::clock::{Moment, Times};

/// The system's name in its figures.
pub(super) const SYSTEM: &str = "machine";
/// Round trips of the line in a burst, which is short, so that few bursts are interrupted.
const ROUNDS: u64 = 100;
/// Bursts, of which the median counts.
const BURSTS: u64 = 51;

/// An odd number without a pattern in its bits.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

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

/// The time of one way between two threads that pass a line to and fro; `None` on a single core.
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

/// Steps of a run in registers: some hundred microseconds.
const STEPS: u64 = 1 << 16;
/// Independent chains of operations: enough to keep all of a core's units busy, so that a tenant on its other half
/// shows.
const CHAINS: usize = 6;

/// The time of a step that needs only the core of the calling thread.
pub(super) fn step() -> Times {
    let mut chains: [u64; CHAINS] = std::hint::black_box([3, 5, 7, 9, 11, 13]);
    let start = Moment::now();
    for step in 0..STEPS {
        for chain in &mut chains {
            *chain = (*chain ^ step).rotate_left(step as u32).wrapping_add(ODD);
        }
    }
    let times = start.elapsed();
    std::hint::black_box(chains);
    times / STEPS as f64
}
