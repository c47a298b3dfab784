//! Common parts of the workloads.

use firn_crash::{Crash, CrashOptions, ExploreOptions};
use firn_heap::{Pool, PoolOptions};
use firn_media::Step;

/// The step that the heap leaves out, if any.
pub type Missing = Option<&'static Step>;

/// Bytes of a pool.
pub const LEN: u64 = 16 << 20;

/// A run is given up after this many scheduling points: many times more than any workload takes.
const MAX_STEPS: u64 = 1_000_000;

/// A medium on which the heap leaves a step out.
pub fn medium(missing: Missing) -> CrashOptions {
    CrashOptions {
        leave_out: missing,
        max_steps: MAX_STEPS,
        ..CrashOptions::default()
    }
}

/// Options to explore such a medium, with this many crashes inside recovery.
pub fn explore(missing: Missing, recovery_depth: u32) -> ExploreOptions {
    ExploreOptions {
        recovery_depth,
        medium: medium(missing),
        ..ExploreOptions::default()
    }
}

/// Opens a crashed pool.
pub fn open(crash: Crash, options: &PoolOptions) -> Result<Pool<Crash>, String> {
    let pool = Pool::open(crash, options).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    Ok(pool)
}

/// Whether the pool is sound. It is left as a crash would leave it.
pub fn check(pool: Pool<Crash>) -> Result<(), String> {
    let findings = pool.check().map_err(|e| e.to_string())?;
    pool.abandon();
    findings.first().map_or(Ok(()), |f| Err(f.to_string()))
}
