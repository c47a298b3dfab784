//! A campaign: its settings, what is explored of them, and for how long.

use std::time::Duration;

use firn_crash::Exploration;
use firn_media::{Domain, Step};
use firn_workloads::under_test::Structure;

use super::error::CrashError;
use super::named::stock_schemes;
use super::setting::Setting;

/// Operations of a sequence at most.
pub const MOST_OPS: usize = 3;
/// Threads that a program may have.
const THREADS: [usize; 4] = [1, 2, 4, 8];
const MOST_DEPTH: u32 = 2;
/// Runs of a campaign at most.
const MOST_RUNS: u64 = 1 << 40;

/// The explorations of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every crash of every sequence of up to this many operations.
    Exhaustive(usize),
    /// Crashes at random moments of long random runs.
    Injections {
        /// This many of each setting.
        each: u64,
        /// The number of the first run: campaigns of one seed and different runs continue each other.
        from_run: u64,
    },
}

impl Mode {
    /// This many injections of each setting, from the first run on.
    pub const fn injections(each: u64) -> Self {
        Self::Injections { each, from_run: 0 }
    }
}

/// What is crashed, and how.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The settings to crash.
    pub settings: Vec<Setting>,
    /// The explorations of each setting.
    pub mode: Mode,
    /// Crashes inside recovery.
    pub depth: u32,
    /// How images of sequences are tried.
    pub exploration: Exploration,
    /// Seed of everything random.
    pub seed: u64,
    /// A step that the code leaves out, to check that its absence is found; see [`plant`](super::plant).
    pub plant: Option<&'static Step>,
    /// Time after which no more work is begun.
    pub time: Option<Duration>,
}

impl Default for Campaign {
    /// Every structure under every scheme for existing hardware.
    fn default() -> Self {
        Self {
            settings: Setting::every(&Structure::ALL, &stock_schemes(), &[Domain::Adr]),
            mode: Mode::Exhaustive(1),
            depth: 1,
            exploration: Exploration::Lazy,
            seed: 1,
            plant: None,
            time: None,
        }
    }
}

/// Errors: an unsupported number of threads.
pub(super) fn check_threads(threads: usize) -> Result<(), CrashError> {
    match THREADS.contains(&threads) {
        true => Ok(()),
        false => Err(out_of_range(
            "the number of threads",
            THREADS.map(|n| n.to_string()).join(", "),
            threads,
        )),
    }
}

/// Errors: an unsupported number of crashes inside recovery.
pub(super) fn check_depth(depth: u32) -> Result<(), CrashError> {
    match depth <= MOST_DEPTH {
        true => Ok(()),
        false => Err(out_of_range(
            "the number of crashes inside recovery",
            format!("0 to {MOST_DEPTH}"),
            depth,
        )),
    }
}

pub(super) fn out_of_range(what: &'static str, range: String, found: impl ToString) -> CrashError {
    CrashError::Range {
        what,
        range,
        found: found.to_string(),
    }
}

impl Campaign {
    /// Errors: a setting or a number is out of range.
    pub(super) fn check(&self) -> Result<(), CrashError> {
        check_depth(self.depth)?;
        for setting in &self.settings {
            check_threads(setting.threads)?;
            if setting.survival.domain == Domain::Logged
                && (setting.scheme.relocates() || setting.scheme.checks_lookup())
            {
                return Err(CrashError::Unknown {
                    what: "scheme for a medium with a log",
                    name: setting.scheme.name.to_owned(),
                    known: stock_schemes()
                        .iter()
                        .map(|known| known.name)
                        .collect::<Vec<_>>()
                        .join(", "),
                });
            }
            if let (Mode::Exhaustive(_), 2..) = (self.mode, setting.threads) {
                let one = "1 (more need --injections)".to_owned();
                let what = "the number of threads of a sequence";
                return Err(out_of_range(what, one, setting.threads));
            }
        }
        match self.mode {
            Mode::Exhaustive(ops) if !(1..=MOST_OPS).contains(&ops) => {
                let most = format!("1 to {MOST_OPS}");
                Err(out_of_range("the length of sequences", most, ops))
            }
            Mode::Injections { each, .. } if !(1..=MOST_RUNS).contains(&each) => {
                let range = format!("1 to {MOST_RUNS}");
                Err(out_of_range("the number of injections", range, each))
            }
            Mode::Injections { from_run, .. } if from_run > MOST_RUNS => {
                let range = format!("0 to {MOST_RUNS}");
                Err(out_of_range("the number of the first run", range, from_run))
            }
            _ => Ok(()),
        }
    }
}
