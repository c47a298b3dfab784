//! Does the runs whose outcomes a directory lacks.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, create_dir_all, read_to_string};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use firn_machine::description::Description;
use firn_tools::Progress;

use super::error::ReproductionError;
use super::outcome::Outcome;
use super::run::Run;
use crate::bench::commit;
use crate::simulation::simulate_on;

/// Outcomes, one per line: a run that has one is not repeated.
const FILE: &str = "outcomes.jsonl";

pub(super) type Outcomes = BTreeMap<String, Outcome>;

/// The outcomes of all runs, and how many of them were missing. Reports `matrix`'s description of the runs first.
pub(super) fn complete(
    out: &Path,
    description: &Description,
    runs: &[Run],
    matrix: &[String],
    progress: &mut dyn Progress,
) -> Result<(Outcomes, usize), ReproductionError> {
    let path = out.join(FILE);
    let failed = |what| {
        let path = path.clone();
        move |source| ReproductionError::File { path, what, source }
    };
    create_dir_all(out).map_err(failed("making the directory"))?;
    let mut outcomes = known(&path, &format!("{:016x}", description.digest()))?;
    let missing: Vec<&Run> = runs
        .iter()
        .filter(|run| !outcomes.contains_key(&run.key))
        .collect();
    if !missing.is_empty() {
        matrix.iter().for_each(|line| progress.remark(line));
        let (all, known) = (runs.len(), runs.len() - missing.len());
        progress.remark(&format!(
            "{all} runs in all, each once; {known} of them are known, {} are done now",
            missing.len()
        ));
    }
    let mut file = append_to(&path).map_err(failed("opening it"))?;
    let (commit, mut estimate) = (commit(), Estimate::new(missing.len()));
    progress.begin("simulating", Some(missing.len() as u64));
    let done = run_all(&missing, description, |outcome| {
        let commit = commit.clone();
        let outcome = Outcome { commit, ..outcome };
        append(&mut file, &outcome).map_err(failed("writing an outcome"))?;
        progress.advance(1);
        if let Some(remark) = estimate.one_more() {
            progress.remark(&remark);
        }
        outcomes.insert(outcome.key.clone(), outcome);
        Ok(())
    });
    progress.end();
    done.map(|()| (outcomes, missing.len()))
}

/// Opens a file of lines to append to. Removes an unfinished last line of a killed run.
fn append_to(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).read(true).append(true).open(path)?;
    let mut held = Vec::new();
    file.read_to_end(&mut held)?;
    let whole = held.iter().rposition(|&byte| byte == b'\n');
    file.set_len(whole.map_or(0, |end| end as u64 + 1))?;
    Ok(file)
}

/// Estimates the remaining time. It is reported ten times at most, and only after a minute: a terminal has a bar too.
struct Estimate {
    runs: usize,
    done: usize,
    begun: Instant,
}

/// Remarks at most.
const REMARKS: usize = 10;
/// Seconds before which no estimate is needed.
const PATIENCE_S: u64 = 60;

impl Estimate {
    fn new(runs: usize) -> Self {
        let begun = Instant::now();
        Self {
            runs,
            done: 0,
            begun,
        }
    }

    /// Counts one more run as done. Returns a remark, if it is due.
    fn one_more(&mut self) -> Option<String> {
        self.done += 1;
        let (runs, done, seconds) = (self.runs, self.done, self.begun.elapsed().as_secs());
        let is_time = done < runs && done.is_multiple_of(runs.div_ceil(REMARKS));
        let left = seconds as f64 / done as f64 * (runs - done) as f64;
        (is_time && seconds >= PATIENCE_S).then(|| {
            format!(
                "{done} of {runs} runs in {:.0} min, about {:.0} min left",
                seconds as f64 / 60.0,
                left / 60.0
            )
        })
    }
}

fn append(file: &mut File, outcome: &Outcome) -> std::io::Result<()> {
    let mut line = serde_json::to_string(outcome).map_err(std::io::Error::other)?;
    line.push('\n');
    file.write_all(line.as_bytes())
}

/// Outcomes of this machine. Those of other machines stay in the file, and are ignored.
fn known(path: &Path, digest: &str) -> Result<Outcomes, ReproductionError> {
    let text = match read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Outcomes::new()),
        Err(source) => {
            return Err(ReproductionError::File {
                path: path.to_path_buf(),
                what: "reading it",
                source,
            });
        }
    };
    let mut outcomes = Outcomes::new();
    // The unfinished line of a killed run is ignored.
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    for (number, line) in whole.lines().enumerate() {
        let outcome: Outcome =
            serde_json::from_str(line).map_err(|error| ReproductionError::Outcome {
                path: path.to_path_buf(),
                line: number + 1,
                reason: error.to_string(),
            })?;
        if outcome.digest == digest {
            outcomes.insert(outcome.key.clone(), outcome);
        }
    }
    Ok(outcomes)
}

/// Runs all of them on all processors. The first failure ends the work, after the runs that are under way.
fn run_all(
    runs: &[&Run],
    description: &Description,
    mut take: impl FnMut(Outcome) -> Result<(), ReproductionError>,
) -> Result<(), ReproductionError> {
    let next = &AtomicUsize::new(0);
    let (tell, told) = mpsc::channel();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..workers.min(runs.len()) {
            let tell = tell.clone();
            threads.push(scope.spawn(move || {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if tell.send(one(run, description)).is_err() {
                        break;
                    }
                }
            }));
        }
        drop(tell);
        let mut result = Ok(());
        for outcome in told {
            result = outcome.and_then(&mut take);
            if result.is_err() {
                next.store(runs.len(), Ordering::Relaxed);
                break;
            }
        }
        let ended = threads.into_iter().all(|thread| thread.join().is_ok());
        match (result, ended) {
            (Ok(()), false) => Err(ReproductionError::Runner),
            (result, _) => result,
        }
    })
}

fn one(run: &Run, description: &Description) -> Result<Outcome, ReproductionError> {
    let digest = format!("{:016x}", description.digest());
    let described = run.assumed.on(description.clone());
    let simulated = simulate_on(described, &run.plan).map_err(|source| ReproductionError::Run {
        run: run.key.clone(),
        source: Box::new(source),
    })?;
    Ok(Outcome {
        digest,
        ..Outcome::of(run.key.clone(), &simulated)
    })
}
