//! Running a campaign: its work in parts, on all processors.

use core::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use firn_tools::Progress;

use super::campaign::{Campaign, Mode};
use super::crew;
use super::error::CrashError;
use super::fixture::Fixture;
use super::log::{Log, Piece};
use super::op::{Op, sequences};
use super::report::{CrashReport, Part};
use super::runs::{CRASHES, OPERATIONS, Runs};
use super::sequences::{FEW_KEYS, Sequences};
use super::ticker::Ticker;
use crate::bench::thread_cpu_ns;

/// Runs that one thread makes before it looks for other work: a setting is divided into this many pieces, within the
/// range.
const PIECES: u64 = 64;
const RUNS_TOGETHER: Range<u64> = 4..256;

/// A part of a setting, explored by one thread.
struct Work {
    /// The setting's index.
    place: usize,
    kind: Kind,
}

enum Kind {
    /// The shortest first, so that a finding's is one of the shortest.
    Sequences(Vec<Vec<Op>>),
    /// Runs of these numbers, with this many crashes each.
    Runs(Range<u64>, u32),
}

impl Work {
    /// Steps that the ticker counts.
    fn steps(&self) -> u64 {
        match &self.kind {
            Kind::Sequences(all) => all.len() as u64,
            Kind::Runs(runs, crashes) => (runs.end - runs.start) * u64::from(*crashes),
        }
    }
}

impl Campaign {
    /// Runs the campaign on all processors.
    ///
    /// Errors: a setting is out of range; a pool to be crashed cannot be made. Findings are no errors, but part of the
    /// report.
    pub fn run(&self, progress: &mut dyn Progress) -> Result<CrashReport, CrashError> {
        self.run_into(None, progress)
    }

    /// Runs the campaign and logs the work done, piece by piece. Work that the log already has is not repeated, but the
    /// report includes it.
    ///
    /// Errors: as [`Campaign::run`]; the log is another campaign's, or cannot be written.
    pub fn run_into(
        &self,
        mut log: Option<&mut Log>,
        progress: &mut dyn Progress,
    ) -> Result<CrashReport, CrashError> {
        self.check()?;
        let started = Instant::now();
        let works = self.works(log.as_deref());
        let ticker = Ticker::default();
        let fixtures: Vec<Mutex<Option<Fixture>>> =
            self.settings.iter().map(|_| Mutex::default()).collect();
        let mut parts: Vec<Option<Part>> = works.iter().map(|_| None).collect();
        progress.begin("exploring", Some(works.iter().map(Work::steps).sum()));
        let done = crew::do_all(
            &works,
            self.time.map(|time| started + time),
            &ticker,
            |work| {
                let before = thread_cpu_ns();
                let part = self.explore(work, &fixtures[work.place], &ticker)?;
                let seconds = (thread_cpu_ns() - before) / 1e9;
                Ok(Part { seconds, ..part })
            },
            |place, part| {
                if let (Some(log), Kind::Runs(runs, crashes)) = (&mut log, &works[place].kind) {
                    // A failure ends a piece.
                    let until = runs.start + part.executions;
                    log.append(Piece {
                        setting: self.settings[works[place].place].to_string(),
                        runs: (runs.start, until),
                        crashes: *crashes,
                        part: part.clone(),
                    })?;
                }
                parts[place] = Some(part);
                Ok(())
            },
            progress,
        );
        progress.end();
        let is_whole = done? == works.len();
        let mut report = CrashReport::of(self, is_whole);
        match log {
            Some(log) => log.report(&self.settings, &mut report)?,
            None => {
                for (work, part) in works.iter().zip(&parts) {
                    if let Some(part) = part {
                        report.add(work.place, &self.settings[work.place], part);
                    }
                }
            }
        }
        report.seconds = started.elapsed().as_secs_f64();
        Ok(report)
    }

    /// The work to do. Of runs, one piece of each setting precedes the next piece of any, so settings that share a time
    /// limit progress equally.
    fn works(&self, log: Option<&Log>) -> Vec<Work> {
        let mut works = Vec::new();
        match self.mode {
            Mode::Exhaustive(ops) => {
                for (place, setting) in self.settings.iter().enumerate() {
                    let lengths = 1..=ops;
                    let all = lengths.flat_map(|n| sequences(n, setting.scheme));
                    let kind = Kind::Sequences(all.collect());
                    works.push(Work { place, kind });
                }
            }
            Mode::Injections { each, from_run } => {
                let (whole, rest) = (
                    each / u64::from(CRASHES),
                    (each % u64::from(CRASHES)) as u32,
                );
                let end = from_run + whole;
                let together = (whole / PIECES).clamp(RUNS_TOGETHER.start, RUNS_TOGETHER.end);
                let mut pieces = Vec::new();
                for (place, setting) in self.settings.iter().enumerate() {
                    let missing = |runs: Range<u64>, crashes| match log {
                        Some(log) => log.missing(setting, runs, crashes),
                        None => vec![runs],
                    };
                    for runs in missing(from_run..end, CRASHES) {
                        let firsts = runs.clone().step_by(together as usize);
                        pieces.extend(firsts.map(|first| {
                            let runs = first..runs.end.min(first + together);
                            (runs.start, place, Kind::Runs(runs, CRASHES))
                        }));
                    }
                    let last = end..end + u64::from(rest > 0);
                    let last = missing(last, rest).into_iter();
                    pieces.extend(last.map(|run| (run.start, place, Kind::Runs(run, rest))));
                }
                pieces.sort_by_key(|&(first, place, _)| (first, place));
                let all = pieces.into_iter();
                works.extend(all.map(|(_, place, kind)| Work { place, kind }));
            }
        }
        works
    }

    fn explore(
        &self,
        work: &Work,
        fixture: &Mutex<Option<Fixture>>,
        ticker: &Ticker,
    ) -> Result<Part, CrashError> {
        let setting = &self.settings[work.place];
        match &work.kind {
            Kind::Sequences(all) => {
                let fixture = Fixture::new(setting, FEW_KEYS)?;
                let sequences = Sequences::new(&fixture, self.plant, self.depth, ticker);
                Ok(sequences.tried(self.exploration).explore(all.clone()))
            }
            Kind::Runs(numbers, crashes) => {
                let mut made = fixture.lock().unwrap_or_else(PoisonError::into_inner);
                let fixture = match &mut *made {
                    Some(fixture) => fixture.clone(),
                    none => none.insert(Runs::fixture(setting)?).clone(),
                };
                drop(made);
                let runs = Runs {
                    fixture: &fixture,
                    plant: self.plant,
                    depth: self.depth,
                    threads: setting.threads,
                    operations: OPERATIONS,
                    ticker,
                };
                let first = fastrand::Rng::with_seed(self.seed).u64(..) >> 1;
                Ok(runs.inject(first + numbers.start..first + numbers.end, *crashes))
            }
        }
    }
}
