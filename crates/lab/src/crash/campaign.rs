//! A campaign: every combination of its settings, over all processors.

use core::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use firn_heap::collector::scheme::{SCHEMES, Scheme};
use firn_heap::steps;
use firn_media::{Domain, Step};

use super::error::CrashError;
use super::ground::Ground;
use super::letter::{Letter, sequences};
use super::report::{CrashReport, Finding, Part, Row, join};
use super::runs::{CRASHES, OPERATIONS, Runs};
use super::sequences::Sequences;
use super::subject::{Key, Structure};
use super::ticker::Ticker;
use crate::Progress;
use crate::figures::count;

/// Letters of a sequence at most.
pub const MOST_LETTERS: usize = 3;
/// Keys of short sequences are below.
pub(super) const FEW_KEYS: Key = 6;
/// Threads that a program may have.
const THREADS: [usize; 4] = [1, 2, 4, 8];
const MOST_DEPTH: u32 = 2;
/// Runs that one thread makes before it looks for other work.
const RUNS_TOGETHER: u64 = 4;
/// Name of the threads that explore: what panics there is found, and told as such.
pub const EXPLORER: &str = "crash explorer";
/// How often the progress is told.
const TELLING: Duration = Duration::from_millis(200);

/// What the explorations of a campaign are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every crash of every sequence of up to so many letters.
    Exhaustive(usize),
    /// So many crashes at random moments of long random runs, of each combination.
    Injections(u64),
}

/// What is crashed, and how.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The structures; see [`Structure::named`].
    pub structures: Vec<Structure>,
    /// The relocation schemes; see [`scheme`].
    pub schemes: Vec<&'static Scheme>,
    /// What survives a crash; see [`domain`].
    pub domains: Vec<Domain>,
    /// Threads of the program, beside which the collector works.
    pub threads: usize,
    /// What is explored.
    pub mode: Mode,
    /// Crashes inside recovery.
    pub depth: u32,
    /// What everything random follows from.
    pub seed: u64,
    /// A step that the code leaves out, to see that it is missed; see [`plant`].
    pub plant: Option<&'static Step>,
}

impl Default for Campaign {
    fn default() -> Self {
        Self {
            structures: Structure::all(),
            // Recovery with hardware that remembers looks at each line of each copy, and has fifty times the
            // images: who wants that asks for it.
            schemes: SCHEMES
                .into_iter()
                .filter(|scheme| scheme.is_for_stock_hardware())
                .collect(),
            domains: vec![Domain::Adr],
            threads: 1,
            mode: Mode::Exhaustive(1),
            depth: 1,
            seed: 1,
            plant: None,
        }
    }
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

/// A combination of the settings.
#[derive(Clone, Copy)]
struct Cell {
    structure: Structure,
    scheme: &'static Scheme,
    domain: Domain,
}

/// A part of a combination, which one thread explores.
struct Work {
    /// The combination's place.
    place: usize,
    cell: Cell,
    kind: Kind,
}

enum Kind {
    /// The shortest first, so that a finding's is one of the shortest.
    Sequences(Vec<Vec<Letter>>),
    /// Runs of these seeds, with so many crashes each.
    Runs(Range<u64>, u32),
}

impl Work {
    /// Steps that the ticker counts.
    fn steps(&self) -> u64 {
        match &self.kind {
            Kind::Sequences(all) => all.len() as u64,
            Kind::Runs(seeds, crashes) => (seeds.end - seeds.start) * u64::from(*crashes),
        }
    }
}

/// Errors: not that many threads.
pub(super) fn check_threads(threads: usize) -> Result<(), CrashError> {
    match THREADS.contains(&threads) {
        true => Ok(()),
        false => Err(CrashError::Range {
            what: "the number of threads",
            range: THREADS.map(|n| n.to_string()).join(", "),
            found: threads.to_string(),
        }),
    }
}

/// Errors: not that many crashes inside recovery.
pub(super) fn check_depth(depth: u32) -> Result<(), CrashError> {
    match depth <= MOST_DEPTH {
        true => Ok(()),
        false => Err(CrashError::Range {
            what: "the number of crashes inside recovery",
            range: format!("0 to {MOST_DEPTH}"),
            found: depth.to_string(),
        }),
    }
}

impl Campaign {
    /// Runs it on all processors.
    ///
    /// Errors: a setting is out of range; a pool to be crashed cannot be made. What is found is no error,
    /// but part of the report.
    pub fn run(&self, progress: &mut dyn Progress) -> Result<CrashReport, CrashError> {
        self.check()?;
        let started = Instant::now();
        let cells = self.cells();
        let works = self.works(&cells);
        let parts = self.run_all(&works, progress)?;
        let mut rows: Vec<Row> = cells.iter().map(|cell| self.row(cell)).collect();
        let mut findings = Vec::new();
        for (work, part) in works.iter().zip(&parts) {
            let row = &mut rows[work.place];
            row.add(part);
            if let Some(finding) = part.report.findings.first() {
                row.findings += 1;
                if row.findings == 1 {
                    findings.push(self.finding(&work.cell, part, finding));
                }
            }
        }
        let (exhaustive, injections) = match self.mode {
            Mode::Exhaustive(letters) => (Some(letters), None),
            Mode::Injections(each) => (None, Some(each)),
        };
        let hash = rows.iter().fold(0, |hash, row| join(hash, row.hash));
        Ok(CrashReport {
            ok: findings.is_empty(),
            exhaustive,
            injections,
            seed: self.seed,
            depth: self.depth,
            plant: self.plant.map(|step| step.name),
            states: rows.iter().map(|row| row.states).sum(),
            rows,
            findings,
            hash: format!("{hash:016x}"),
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    fn check(&self) -> Result<(), CrashError> {
        let range = |what, range: String, found: &dyn ToString| {
            Err(CrashError::Range {
                what,
                range,
                found: found.to_string(),
            })
        };
        check_threads(self.threads)?;
        check_depth(self.depth)?;
        match self.mode {
            Mode::Exhaustive(letters) if !(1..=MOST_LETTERS).contains(&letters) => {
                let most = format!("1 to {MOST_LETTERS}");
                range("the length of sequences", most, &letters)
            }
            Mode::Exhaustive(_) if self.threads > 1 => {
                let one = "1 (more need --injections)".to_owned();
                range("the number of threads of a sequence", one, &self.threads)
            }
            Mode::Injections(0) => range("the number of injections", "at least 1".to_owned(), &0),
            _ => Ok(()),
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &structure in &self.structures {
            for &scheme in &self.schemes {
                cells.extend(self.domains.iter().map(|&domain| Cell {
                    structure,
                    scheme,
                    domain,
                }));
            }
        }
        cells
    }

    /// What is to be done, in an order of its own: that of the cells.
    fn works(&self, cells: &[Cell]) -> Vec<Work> {
        let first_seed = fastrand::Rng::with_seed(self.seed).u64(..) >> 1;
        let mut works = Vec::new();
        for (place, &cell) in cells.iter().enumerate() {
            let mut add = |kind| works.push(Work { place, cell, kind });
            match self.mode {
                Mode::Exhaustive(letters) => {
                    let lengths = 1..=letters;
                    let all = lengths.flat_map(|n| sequences(n, cell.scheme));
                    add(Kind::Sequences(all.collect()));
                }
                Mode::Injections(each) => {
                    let (whole, rest) = (each / u64::from(CRASHES), each % u64::from(CRASHES));
                    let mut first = 0;
                    while first < whole {
                        let next = whole.min(first + RUNS_TOGETHER);
                        add(Kind::Runs(first_seed + first..first_seed + next, CRASHES));
                        first = next;
                    }
                    if rest > 0 {
                        let seed = first_seed + whole;
                        add(Kind::Runs(seed..seed + 1, rest as u32));
                    }
                }
            }
        }
        works
    }

    /// What every work came to, in their order.
    fn run_all(
        &self,
        works: &[Work],
        progress: &mut dyn Progress,
    ) -> Result<Vec<Part>, CrashError> {
        let (ticker, next) = (Ticker::default(), AtomicUsize::new(0));
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let (tell, told) = mpsc::channel();
        let mut parts: Vec<Option<Part>> = works.iter().map(|_| None).collect();
        progress.begin("exploring", Some(works.iter().map(Work::steps).sum()));
        let run = thread::scope(|scope| {
            for _ in 0..workers.min(works.len()) {
                let (tell, ticker, next) = (tell.clone(), &ticker, &next);
                let explorer = thread::Builder::new().name(EXPLORER.to_owned());
                let spawned = explorer.spawn_scoped(scope, move || {
                    loop {
                        let place = next.fetch_add(1, Relaxed);
                        let Some(work) = works.get(place) else {
                            break;
                        };
                        let explored = self.explore_or_say(work, ticker);
                        if tell.send((place, explored)).is_err() {
                            break;
                        }
                    }
                });
                spawned.map_err(CrashError::Thread)?;
            }
            drop(tell);
            let mut teller = Teller::new(&ticker, progress);
            loop {
                match told.recv_timeout(TELLING) {
                    Ok((place, Ok(part))) => parts[place] = Some(part),
                    Ok((_, Err(error))) => {
                        // The others end after what they are at.
                        next.store(works.len(), Relaxed);
                        break Err(error);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break Ok(()),
                }
                teller.tell();
            }
        });
        progress.end();
        run.map(|()| parts.into_iter().flatten().collect())
    }

    /// Errors: as [`Campaign::run`]; a panic of what explores, not of what is explored.
    fn explore_or_say(&self, work: &Work, ticker: &Ticker) -> Result<Part, CrashError> {
        let explored = catch_unwind(AssertUnwindSafe(|| self.explore(work, ticker)));
        explored.unwrap_or_else(|_| {
            Err(CrashError::Setup {
                structure: work.cell.structure.name(),
                what: "the explorer panicked".to_owned(),
            })
        })
    }

    fn explore(&self, work: &Work, ticker: &Ticker) -> Result<Part, CrashError> {
        let Cell {
            structure,
            scheme,
            domain,
        } = work.cell;
        match &work.kind {
            Kind::Sequences(all) => {
                let ground = Ground::new(structure, scheme, domain, 1, FEW_KEYS)?;
                let sequences = Sequences::new(&ground, self.plant, self.depth, ticker);
                Ok(sequences.explore(all.clone()))
            }
            Kind::Runs(seeds, crashes) => {
                let ground = Runs::ground(structure, scheme, domain, self.threads)?;
                let runs = Runs {
                    ground: &ground,
                    plant: self.plant,
                    depth: self.depth,
                    threads: self.threads,
                    operations: OPERATIONS,
                    ticker,
                };
                Ok(runs.inject(seeds.clone(), *crashes))
            }
        }
    }

    fn row(&self, cell: &Cell) -> Row {
        Row {
            structure: cell.structure.name(),
            scheme: cell.scheme.name,
            domain: cell.domain.name(),
            threads: self.threads,
            executions: 0,
            injections: 0,
            states: 0,
            recovery_states: 0,
            images: 0,
            exhaustive: true,
            seconds: 0.0,
            hash: 0,
            findings: 0,
        }
    }

    fn finding(&self, cell: &Cell, part: &Part, finding: &firn_crash::Finding) -> Finding {
        Finding {
            structure: cell.structure.name().to_owned(),
            scheme: cell.scheme.name.to_owned(),
            domain: cell.domain.name().to_owned(),
            threads: self.threads,
            depth: self.depth,
            plant: self.plant.map(|step| step.name.to_owned()),
            program: part.program.clone(),
            message: finding.message.clone(),
            replay: finding.replay.clone(),
        }
    }
}

/// Tells a progress what the ticker counts.
struct Teller<'a> {
    ticker: &'a Ticker,
    progress: &'a mut dyn Progress,
    steps: u64,
    /// When states were looked at last, and how many there were.
    last: (Instant, u64),
}

impl<'a> Teller<'a> {
    fn new(ticker: &'a Ticker, progress: &'a mut dyn Progress) -> Self {
        Self {
            ticker,
            progress,
            steps: 0,
            last: (Instant::now(), 0),
        }
    }

    fn tell(&mut self) {
        let steps = self.ticker.steps();
        self.progress.advance(steps - self.steps);
        self.steps = steps;
        let (then, before) = self.last;
        let passed = then.elapsed();
        if passed >= TELLING {
            let states = self.ticker.states();
            let rate = (states - before) as f64 / passed.as_secs_f64();
            self.progress
                .rename(&format!("exploring, {} states/s", count(rate as u64)));
            self.last = (Instant::now(), states);
        }
    }
}
