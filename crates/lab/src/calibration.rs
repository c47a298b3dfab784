//! FFCCD's phases on any medium, to compare the instructions that a real machine executes with those that a simulated
//! one counts. `docs/decisions/calibrated-work.md` has the figures.

use firn_heap::{Error, OpenError, Pool, PoolOptions};
use firn_media::Medium;
use firn_workloads::{Population, SEED, Shape, Sizes, UnknownWorkload, shuffled};

/// The pool's name for its content.
const LAYOUT: &str = "calibration";
/// How many phases there are.
pub const PHASES: usize = 4;

/// The work to do.
#[derive(Clone, Debug)]
pub struct Phases {
    /// The name of a simulated workload.
    pub workload: String,
    /// Objects that are inserted first.
    pub objects: u64,
    /// The number of phases: all objects are inserted, four of five deleted, inserted and deleted again, one per
    /// transaction.
    pub count: usize,
}

/// Why the work was not done.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum PhasesError {
    /// There is no such workload.
    #[error(transparent)]
    Workload(#[from] UnknownWorkload),
    /// The pool was not made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An operation failed.
    #[error("an operation failed: {0}")]
    Operation(#[from] Error),
}

/// Makes a pool on a medium and runs `plan`. Calls `before` with the number of each phase that begins, and `end` with
/// the pool before it is closed.
///
/// Errors: no such workload, an operation failed, what `end` returns.
pub fn run<M: Medium>(
    medium: M,
    plan: &Phases,
    mut before: impl FnMut(usize),
    end: impl FnOnce(&Pool<M>) -> Result<(), Error>,
) -> Result<(), PhasesError> {
    let shape = Shape::of_workload(&plan.workload)?;
    let pool = Pool::create(medium, &PoolOptions::new(LAYOUT))?;
    let mut population = Population::new(&pool, shape, Sizes::Fixed, plan.objects)?;
    population.take_one_a_transaction();
    let all: Vec<u32> = (0..plan.objects as u32).collect();
    let [first, second] = [SEED, SEED + 1].map(|seed| shuffled(plan.objects, seed).0);
    let changes: [(bool, &[u32]); PHASES] = [
        (true, &all),
        (false, &first),
        (true, &first),
        (false, &second),
    ];
    for (number, (comes, numbers)) in changes.into_iter().enumerate().take(plan.count) {
        before(number);
        match comes {
            true => population.add(numbers)?,
            false => population.remove(numbers)?,
        }
    }
    before(plan.count);
    Ok(end(&pool)?)
}
