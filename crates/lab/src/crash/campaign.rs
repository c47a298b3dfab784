//! A campaign: all of its settings, over all processors.

use core::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use firn_crash::Exploration;
use firn_heap::collector::scheme::{SCHEMES, Scheme};
use firn_heap::steps;
use firn_media::{Domain, Step};
use firn_tools::Progress;
use firn_workloads::subject::{Key, Structure};

use super::crew;
use super::error::CrashError;
use super::ground::Ground;
use super::letter::{Letter, sequences};
use super::log::{Log, Piece};
use super::report::{CrashReport, Part};
use super::runs::{CRASHES, OPERATIONS, Runs};
use super::sequences::Sequences;
use super::setting::Setting;
use super::ticker::Ticker;
use crate::bench::thread_cpu_ns;

/// Letters of a sequence at most.
pub const MOST_LETTERS: usize = 3;
/// Keys of short sequences are below.
pub(super) const FEW_KEYS: Key = 6;
/// Threads that a program may have.
const THREADS: [usize; 4] = [1, 2, 4, 8];
const MOST_DEPTH: u32 = 2;
/// Runs that one thread makes before it looks for other work: so that a setting is divided into so many
/// pieces, within the range.
const PIECES: u64 = 64;
const RUNS_TOGETHER: Range<u64> = 4..256;
/// Runs of a campaign at most.
const MOST_RUNS: u64 = 1 << 40;

/// What the explorations of a campaign are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every crash of every sequence of up to so many letters.
    Exhaustive(usize),
    /// Crashes at random moments of long random runs.
    Injections {
        /// So many of each setting.
        each: u64,
        /// The number of the first run: campaigns of one seed and other runs go on from each other.
        from_run: u64,
    },
}

impl Mode {
    /// So many injections of each setting, from the first run on.
    pub const fn injections(each: u64) -> Self {
        Self::Injections { each, from_run: 0 }
    }
}

/// What is crashed, and how.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// What is crashed.
    pub settings: Vec<Setting>,
    /// What is explored.
    pub mode: Mode,
    /// Crashes inside recovery.
    pub depth: u32,
    /// How images of sequences are tried.
    pub exploration: Exploration,
    /// What everything random follows from.
    pub seed: u64,
    /// A step that the code leaves out, to see that it is missed; see [`plant`].
    pub plant: Option<&'static Step>,
    /// Time after which nothing more is begun.
    pub time: Option<Duration>,
}

impl Default for Campaign {
    /// Every structure under every scheme for hardware that there is.
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

/// The schemes that keep what was committed on hardware that there is. Recovery with hardware that
/// remembers looks at each line of each copy, and has fifty times the images: who wants that asks for it.
pub fn stock_schemes() -> Vec<&'static Scheme> {
    let stock = SCHEMES
        .into_iter()
        .filter(|scheme| scheme.is_for_stock_hardware());
    stock.collect()
}

/// The scheme of this name, those that lose commits included: on this medium nobody loses anything.
///
/// Errors: there is none.
pub fn scheme(name: &str) -> Result<&'static Scheme, CrashError> {
    Scheme::named(name).ok_or_else(|| CrashError::Unknown {
        what: "scheme",
        name: name.to_owned(),
        known: SCHEMES.map(|scheme| scheme.name).join(", "),
    })
}

/// The domain of this name.
///
/// Errors: there is none.
pub fn domain(name: &str) -> Result<Domain, CrashError> {
    let domains = [Domain::Adr, Domain::Eadr, Domain::Process];
    let found = domains.into_iter().find(|domain| domain.name() == name);
    found.ok_or_else(|| CrashError::Unknown {
        what: "domain",
        name: name.to_owned(),
        known: domains.map(Domain::name).join(", "),
    })
}

/// How images are tried, by its name: `lazy`, `each-word` or `eager`.
///
/// Errors: there is no such way.
pub fn exploration(name: &str) -> Result<Exploration, CrashError> {
    let known = [
        ("lazy", Exploration::Lazy),
        ("each-word", Exploration::EachWord),
        ("eager", Exploration::Eager),
    ];
    let found = known.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, way)| *way)
        .ok_or_else(|| CrashError::Unknown {
            what: "way to try images",
            name: name.to_owned(),
            known: known.map(|(known, _)| known).join(", "),
        })
}

/// The step of this name.
///
/// Errors: there is none.
pub fn plant(name: &str) -> Result<&'static Step, CrashError> {
    steps::named(name).ok_or_else(|| CrashError::Unknown {
        what: "step",
        name: name.to_owned(),
        known: names(steps::STEPS.iter().map(|step| step.name)),
    })
}

fn names(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// A part of a setting, which one thread explores.
struct Work {
    /// The setting's place.
    place: usize,
    kind: Kind,
}

enum Kind {
    /// The shortest first, so that a finding's is one of the shortest.
    Sequences(Vec<Vec<Letter>>),
    /// Runs of these numbers, with so many crashes each.
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

/// Errors: not that many threads.
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

/// Errors: not that many crashes inside recovery.
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
    /// Runs it on all processors.
    ///
    /// Errors: a setting is out of range; a pool to be crashed cannot be made. What is found is no error,
    /// but part of the report.
    pub fn run(&self, progress: &mut dyn Progress) -> Result<CrashReport, CrashError> {
        self.run_into(None, progress)
    }

    /// Runs it and writes what was done to the log, piece by piece. What the log says already is not done again; the
    /// report has it.
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
        let grounds: Vec<Mutex<Option<Ground>>> =
            self.settings.iter().map(|_| Mutex::default()).collect();
        let mut parts: Vec<Option<Part>> = works.iter().map(|_| None).collect();
        progress.begin("exploring", Some(works.iter().map(Work::steps).sum()));
        let done = crew::do_all(
            &works,
            self.time.map(|time| started + time),
            &ticker,
            |work| {
                let before = thread_cpu_ns();
                let part = self.explore(work, &grounds[work.place], &ticker)?;
                let seconds = (thread_cpu_ns() - before) / 1e9;
                Ok(Part { seconds, ..part })
            },
            |place, part| {
                if let (Some(log), Kind::Runs(runs, crashes)) = (&mut log, &works[place].kind) {
                    // What fails ends a piece.
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

    fn check(&self) -> Result<(), CrashError> {
        check_depth(self.depth)?;
        for setting in &self.settings {
            check_threads(setting.threads)?;
            if let (Mode::Exhaustive(_), 2..) = (self.mode, setting.threads) {
                let one = "1 (more need --injections)".to_owned();
                let what = "the number of threads of a sequence";
                return Err(out_of_range(what, one, setting.threads));
            }
        }
        match self.mode {
            Mode::Exhaustive(letters) if !(1..=MOST_LETTERS).contains(&letters) => {
                let most = format!("1 to {MOST_LETTERS}");
                Err(out_of_range("the length of sequences", most, letters))
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

    /// What is to be done. Of runs a piece of each setting comes before the next piece of any, so that
    /// settings that share a time come equally far.
    fn works(&self, log: Option<&Log>) -> Vec<Work> {
        let mut works = Vec::new();
        match self.mode {
            Mode::Exhaustive(letters) => {
                for (place, setting) in self.settings.iter().enumerate() {
                    let lengths = 1..=letters;
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
        ground: &Mutex<Option<Ground>>,
        ticker: &Ticker,
    ) -> Result<Part, CrashError> {
        let setting = &self.settings[work.place];
        match &work.kind {
            Kind::Sequences(all) => {
                let ground = Ground::new(setting, FEW_KEYS)?;
                let sequences = Sequences::new(&ground, self.plant, self.depth, ticker);
                Ok(sequences.tried(self.exploration).explore(all.clone()))
            }
            Kind::Runs(numbers, crashes) => {
                let mut made = ground.lock().unwrap_or_else(PoisonError::into_inner);
                let ground = match &mut *made {
                    Some(ground) => ground.clone(),
                    none => none.insert(Runs::ground(setting)?).clone(),
                };
                drop(made);
                let runs = Runs {
                    ground: &ground,
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
