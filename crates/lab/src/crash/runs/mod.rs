//! Long random runs, crashed at drawn moments (FFCCD section 7.1).
//!
//! Threads of the program, each with keys of its own, insert, change, remove and read in one structure, while one more
//! thread collects. In one of two runs they drive the collector themselves instead, as FFCCD prints it (section 5), and
//! only the objects that they touch move. Halfway they wait until a cycle has ended, so that later objects go to pages
//! that it released.
//!
//! The thread that holds the structure's lock records its operation. A commit is durable before its locks are released
//! (R1, R3), so what is durable at any moment is a prefix of that list.
//!
//! ```text
//! ledger         the changes done             mutator      a thread of the program
//! reference_run  how many objects must live   collecting   the collector
//! coverage       what a run went through
//! ```

mod collecting;
mod coverage;
mod ledger;
mod mutator;
mod reference_run;

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use firn_crash::{Crash, CrashState, ExploreOptions, Explorer, Job, Schedule, SwarmOptions};
use firn_heap::Pool;
use firn_heap::collector::Workflow;
use firn_media::{Runtime, Step};
use firn_workloads::under_test::{Content, Key};

use super::error::CrashError;
use super::fixture::Fixture;
use super::oracle::{Living, Survivor};
use super::report::{Part, Program};
use super::setting::Setting;
use super::ticker::Ticker;
use collecting::Collecting;
use coverage::Coverage;
use ledger::{Ledger, Progress};
use mutator::{Mutator, apply};
use reference_run::ReferenceRun;

/// Operations of a run, of all its threads. One thread continues until the program has used a page that a cycle has
/// released.
pub(super) const OPERATIONS: u64 = 500;
/// Crashes injected into a run at most.
pub(super) const CRASHES: u32 = 16;
/// Crashes tried on a shortened run: one of them must fail, or the run counts as passing.
const TRIES: u32 = 128;

/// The first key of the threads; keys of the setup lie below.
const FIRST_KEY: Key = 60;
const KEYS: Key = 96;

/// Runs on one fixture.
pub(super) struct Runs<'a> {
    pub(super) fixture: &'a Fixture,
    pub(super) plant: Option<&'static Step>,
    pub(super) depth: u32,
    /// Threads of the program.
    pub(super) threads: usize,
    /// Operations of all of them.
    pub(super) operations: u64,
    pub(super) ticker: &'a Ticker,
}

/// What the check knows of the crashed run.
#[derive(Default)]
struct Known {
    ledger: Arc<Mutex<Ledger>>,
    /// Made on demand, anew for each run.
    needs: RefCell<Option<ReferenceRun>>,
    /// Its crashes that fell into a cycle.
    in_cycles: Cell<u64>,
}

impl<'a> Runs<'a> {
    /// Errors: the pool cannot be made.
    pub(super) fn fixture(setting: &Setting) -> Result<Fixture, CrashError> {
        Fixture::new(setting, FIRST_KEY + KEYS)
    }

    fn explorer<'e>(&'e self, known: &'e Known) -> Explorer<'e> {
        self.explorer_with(known, move |crash, state| {
            self.ticker.state();
            let survivor = Survivor::open(self.fixture, crash)?;
            self.judge(survivor, state, known)
        })
    }

    fn explorer_with<'e>(
        &'e self,
        known: &'e Known,
        check: impl Fn(Crash, &CrashState) -> Result<(), String> + 'e,
    ) -> Explorer<'e> {
        let options = ExploreOptions {
            medium: self.fixture.medium(self.plant, 0),
            recovery_depth: self.depth,
            ..ExploreOptions::default()
        };
        Explorer::from_image(
            options,
            &self.fixture.image,
            move |crash| {
                if let Err(what) = self.run(crash, known) {
                    // A workload reports failures by panicking.
                    panic!("{what}");
                }
            },
            check,
        )
    }

    /// Injects `crashes` crashes into each of the runs of these seeds, until one fails, and shortens that run as far as
    /// possible.
    pub(super) fn inject(&self, seeds: core::ops::Range<u64>, crashes: u32) -> Part {
        let known = Known::default();
        let explorer = self.explorer(&known);
        let mut whole = firn_crash::Report::default();
        let mut coverage = Coverage::default();
        let mut operations = self.operations;
        for seed in seeds {
            let report = explorer.swarm_seen(&one_run(seed, crashes), |events| {
                coverage += Coverage::of(events, self.fixture.image.len());
            });
            self.ticker.step(u64::from(crashes));
            add(&mut whole, seed, report);
            if !whole.findings.is_empty() {
                operations = self.shorten(seed, &mut whole);
                break;
            }
        }
        Part {
            injections: whole.sampled_events,
            in_cycles: known.in_cycles.get(),
            cycles: coverage.cycles,
            reused: coverage.reused,
            whole_runs: coverage.whole_runs,
            ..Part::of(whole, Program::Operations(operations))
        }
    }

    /// Removes operations from the end of a failing run as long as it still fails. Returns how many are left, and
    /// replaces the longer run's finding by the shorter one's.
    fn shorten(&self, seed: u64, found: &mut firn_crash::Report) -> u64 {
        let mut left = self.operations;
        let mut step = left / 2;
        while step > 0 {
            let fewer = left.saturating_sub(step);
            let runs = Self {
                operations: fewer,
                ..*self
            };
            let known = Known::default();
            let mut report = runs.explorer(&known).swarm(&one_run(seed, TRIES));
            if fewer > 0 && !report.findings.is_empty() {
                left = fewer;
                found.findings = core::mem::take(&mut report.findings);
                step = step.min(left / 2);
            } else {
                step /= 2;
            }
        }
        left
    }

    /// Replays a finding's line.
    pub(super) fn replay(&self, line: &str) -> Result<Result<(), String>, String> {
        self.explorer(&Known::default()).judge(line)
    }

    /// One run: the program's threads, and a collector thread unless the program collects.
    fn run(&self, crash: &Crash, known: &Known) -> Result<(), String> {
        let seed = crash.random_u64();
        lock(&known.ledger).clear();
        known.needs.take();
        let options = self.fixture.pool_options();
        let pool = Pool::open(crash.clone(), &options).map_err(|e| e.to_string())?;
        let workflow = collecting::workflow(self.fixture, &pool, fastrand::Rng::with_seed(seed));
        let meeting = Arc::new(Meeting {
            busy: AtomicU64::new(self.threads as u64),
            collections: AtomicU64::new(0),
            workflow: workflow.map_err(|e| e.to_string())?,
        });
        let mut jobs: Vec<Job> = Vec::new();
        for thread in 0..self.threads {
            let program = Mutator {
                fixture: self.fixture.clone(),
                pool: pool.clone(),
                thread,
                keys: self.keys_of(thread),
                own: Vec::new(),
                draw: fastrand::Rng::with_seed(seed ^ thread as u64),
                ledger: Arc::clone(&known.ledger),
                meeting: Arc::clone(&meeting),
            };
            let operations = self.operations_of(thread);
            // A shortened run need not be whole, and a run in which nothing moves cannot be.
            let can_be_whole = self.fixture.scheme.moves && self.operations >= OPERATIONS;
            let until_whole = thread == 0 && can_be_whole;
            jobs.push(Box::new(move || program.run(operations, until_whole)));
        }
        if meeting.workflow.is_none() {
            let collector = Collecting {
                fixture: self.fixture.clone(),
                pool: pool.clone(),
                draw: fastrand::Rng::with_seed(!seed),
                meeting,
            };
            jobs.push(Box::new(move || collector.run()));
        }
        crash.run(jobs, Schedule::Inherited).finished()?;
        let mut session = pool.session().map_err(|e| e.to_string())?;
        let found = session.read(|view| self.fixture.read(view))?;
        let progress = Progress {
            returned: crash.notes()[1..].to_vec(),
            certain: crash.notes()[1..].to_vec(),
        };
        let checked = self.beginnings(&lock(&known.ledger), &progress, &found);
        pool.abandon();
        drop(session);
        checked.map_err(|e| format!("without a crash: {e}"))?;
        Ok(())
    }

    /// The keys of a thread.
    fn keys_of(&self, thread: usize) -> core::ops::Range<Key> {
        let each = KEYS / self.threads as Key;
        let first = FIRST_KEY + thread as Key * each;
        first..first + each
    }

    /// The operations of a thread.
    fn operations_of(&self, thread: usize) -> u64 {
        let threads = self.threads as u64;
        (self.operations + threads - 1 - thread as u64) / threads
    }

    fn beginnings(
        &self,
        ledger: &Ledger,
        progress: &Progress,
        found: &Content,
    ) -> Result<Vec<usize>, String> {
        let start = (self.fixture.under_test.order(), self.fixture.content());
        ledger.beginnings(start, progress, found)
    }

    /// What is known of the threads' operations at the moment of a crash.
    fn progress(&self, state: &CrashState, ledger: &Ledger) -> Progress {
        let returned: Vec<u64> = (1..=self.threads).map(|t| state.note(t)).collect();
        let of_log = |thread| ledger.last_durable(thread, state.durable);
        Progress {
            certain: match self.fixture.waits() {
                true => returned.clone(),
                false => (0..self.threads).map(of_log).collect(),
            },
            returned,
        }
    }

    /// Checks a recovered pool: acknowledged operations are there, objects are where media says, the program can
    /// continue, the interrupted cycle ends, and after a collection nothing is left beyond what the content needs.
    fn judge(
        &self,
        mut survivor: Survivor<'_>,
        state: &CrashState,
        known: &Known,
    ) -> Result<(), String> {
        let ledger = lock(&known.ledger);
        let progress = self.progress(state, &ledger);
        let places = survivor.places()?;
        if survivor.has_open_cycle() && state.depth == 0 {
            known.in_cycles.set(known.in_cycles.get() + 1);
        }
        let mut expected = survivor.content("after recovery")?;
        survivor.keeps(&places)?;
        let mut done = self.beginnings(&ledger, &progress, &expected)?;
        // If the next operation is known, the program continues with it.
        if let [changes] = done[..]
            && let Some(&next) = ledger.changes().get(changes)
        {
            let session = survivor.session()?;
            let applied = session.transaction(|tx| apply(self.fixture, tx, next));
            applied.map_err(|e| format!("going on after recovery: {e}"))?;
            next.apply(self.fixture.under_test.order(), &mut expected);
            done = vec![changes + 1];
        }
        survivor.end_cycle()?;
        survivor.collect()?;
        let found = survivor.content("after collecting")?;
        if found != expected {
            return Err(format!("after collecting: found {found:?}"));
        }
        self.leaks(survivor.living()?, &done, &ledger, known)
    }

    /// Errors: the live objects match none of these numbers of changes.
    fn leaks(
        &self,
        living: Living,
        done: &[usize],
        ledger: &Ledger,
        known: &Known,
    ) -> Result<(), String> {
        let mut needs = known.needs.borrow_mut();
        let needs = match &mut *needs {
            Some(needs) => needs,
            none => none.insert(ReferenceRun::new(self.fixture)?),
        };
        let mut judged = Ok(());
        for &changes in done {
            judged = living.is_needed(needs.after(ledger, changes)?);
            if judged.is_ok() {
                break;
            }
        }
        judged
    }
}

fn one_run(seed: u64, crashes: u32) -> SwarmOptions {
    SwarmOptions {
        seeds: seed..seed + 1,
        crashes,
        images: 1,
        crashes_in_recovery: 1,
    }
}

/// Adds the report of a run.
fn add(whole: &mut firn_crash::Report, seed: u64, more: firn_crash::Report) {
    whole.states += more.states;
    whole.recovery_states += more.recovery_states;
    whole.images = whole.images.saturating_add(more.images);
    whole.events += more.events;
    whole.executions += more.executions;
    whole.sampled_events += more.sampled_events;
    whole.cut |= more.cut;
    // A sum, so that it does not depend on how runs are divided into pieces.
    let of_run = fastrand::Rng::with_seed(more.hash ^ seed.rotate_left(32)).u64(..);
    whole.hash = whole.hash.wrapping_add(of_run);
    whole.elapsed += more.elapsed;
    whole.findings.extend(more.findings);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State that the threads of a run share.
struct Meeting {
    /// Threads of the program that have not ended.
    busy: AtomicU64,
    /// Collections that have ended.
    collections: AtomicU64,
    /// How the program drives the collector, if it does.
    workflow: Option<Workflow<Crash>>,
}

#[cfg(test)]
mod tests;
