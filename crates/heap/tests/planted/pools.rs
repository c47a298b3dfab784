//! What the workloads share.

use firn_crash::{Crash, CrashOptions, ExploreOptions};
use firn_heap::{Pool, PoolOptions};
use firn_media::Step;

/// The step that the heap leaves out, if it is any.
pub type Missing = Option<&'static Step>;

/// Bytes of a pool.
pub const LEN: u64 = 16 << 20;

/// Scheduling points after which a run is given up: many times what any workload takes.
const MAX_STEPS: u64 = 1_000_000;

/// A medium on which the heap leaves a step out.
pub fn medium(missing: Missing) -> CrashOptions {
    CrashOptions {
        leave_out: missing,
        max_steps: MAX_STEPS,
        ..CrashOptions::default()
    }
}

/// Exploration on such a medium, with so many crashes inside recovery.
pub fn explore(missing: Missing, recovery_depth: u32) -> ExploreOptions {
    ExploreOptions {
        recovery_depth,
        medium: medium(missing),
        ..ExploreOptions::default()
    }
}

/// Opens what a crash left.
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
