//! Time: thousandths of a core's cycle.

/// Thousandths of a cycle, from the machine's start.
pub type Ticks = u64;

/// Ticks of a cycle.
pub(crate) const CYCLE: Ticks = 1_000;

/// Ticks of `count` cycles.
pub const fn cycles(count: u32) -> Ticks {
    count as Ticks * CYCLE
}

/// Ticks to transfer `bytes` at this rate, on a machine with this clock.
pub(crate) fn transfer(bytes: u64, megabytes_per_s: u32, clock_mhz: u32) -> Ticks {
    (bytes * u64::from(clock_mhz) * CYCLE).div_ceil(u64::from(megabytes_per_s))
}
