//! Time: thousandths of a core's cycle.

/// Thousandths of a cycle, from the machine's start.
pub type Ticks = u64;

/// Ticks of a cycle.
pub(crate) const CYCLE: Ticks = 1_000;

/// Ticks of so many cycles.
pub const fn cycles(count: u32) -> Ticks {
    count as Ticks * CYCLE
}

/// Ticks that `bytes` take at so many megabytes a second, on a machine of so many megahertz.
pub(crate) fn transfer(bytes: u64, megabytes_per_s: u32, clock_mhz: u32) -> Ticks {
    (bytes * u64::from(clock_mhz) * CYCLE).div_ceil(u64::from(megabytes_per_s))
}
