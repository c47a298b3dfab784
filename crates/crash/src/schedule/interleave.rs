//! Every interleaving of a short run, within a bound.

use crate::schedule::policy::Schedule;
use crate::schedule::run::RunOutcome;

/// The coverage of an enumeration of interleavings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interleavings {
    /// Executions made.
    pub executions: u64,
    /// Whether every execution within the bound was made.
    pub exhaustive: bool,
    /// The first failure, with the schedule that shows it again.
    pub failure: Option<(String, Schedule)>,
}

/// Calls `run` with one schedule after the other, until it fails or all executions with at most `bound` preemptions,
/// delayed stores and partial drains were made. `u32::MAX` allows every behaviour of x86-TSO.
///
/// `run` makes a fresh medium, passes the schedule to [`crate::Crash::run`] and judges the result.
pub fn interleavings(
    bound: u32,
    max_executions: u64,
    mut run: impl FnMut(Schedule) -> Result<RunOutcome, String>,
) -> Interleavings {
    let mut executions = 0;
    let mut prefix = Some(Vec::new());
    while let Some(choices) = prefix {
        if executions == max_executions {
            return Interleavings {
                executions,
                exhaustive: false,
                failure: None,
            };
        }
        executions += 1;
        let schedule = Schedule::Chosen { choices, bound };
        match run(schedule.clone()) {
            Ok(outcome) => prefix = outcome.following,
            Err(message) => {
                return Interleavings {
                    executions,
                    exhaustive: false,
                    failure: Some((message, schedule)),
                };
            }
        }
    }
    Interleavings {
        executions,
        exhaustive: true,
        failure: None,
    }
}
