//! Many damaged pools, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::error::DamageError;
use super::judge::{Verdict, judge};
use super::mutation::{Mutation, draw};
use super::report::{DamageFinding, DamageReport, DamageRow};
use super::sample::{Condition, Sample};
use crate::crash::Structure;

/// Name of the working thread: its panics are findings and are reported as such.
pub const DAMAGER: &str = "firn-damage";

/// Mutations applied to a pool at once at most, besides those of the corpus.
const AT_ONCE: usize = 4;
/// Bytes of the thread's stack.
const STACK_BYTES: usize = 16 << 20;

/// When a campaign ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Until {
    /// After this many pools.
    Runs(u64),
    /// After this much time.
    Time(Duration),
}

/// What is damaged, and for how long.
#[derive(Clone, Debug)]
pub struct DamageCampaign {
    /// The structures.
    pub structures: Vec<Structure>,
    /// When it ends.
    pub until: Until,
    /// Seed of everything random. With [`Until::Runs`], equal seeds give equal campaigns.
    pub seed: u64,
    /// Folder of damage that led to answers not seen before: it is read from here and saved here.
    pub corpus: Option<PathBuf>,
}

/// A campaign's state for one structure in one condition.
struct Fixture {
    sample: Sample,
    row: DamageRow,
    answers: BTreeSet<String>,
    corpus: Vec<Vec<Mutation>>,
}

impl Fixture {
    fn new(structure: Structure, condition: Condition) -> Result<Self, DamageError> {
        Ok(Self {
            sample: Sample::new(structure, condition)?,
            row: DamageRow {
                structure: structure.name(),
                condition,
                runs: 0,
                unnoticed: 0,
                answers: 0,
                findings: 0,
            },
            answers: BTreeSet::new(),
            corpus: Vec::new(),
        })
    }

    /// Draws damage to try: new, or an extension of known damage.
    fn draw(&self, rng: &mut Rng) -> Vec<Mutation> {
        let known = rng.choice(&self.corpus).filter(|_| rng.bool());
        let mut mutations = known.cloned().unwrap_or_default();
        if mutations.len() > 1 && rng.bool() {
            mutations.swap_remove(rng.usize(0..mutations.len()));
        }
        let wanted = mutations.len() + rng.usize(1..=AT_ONCE);
        // Damage without effect is drawn again, a few times.
        for _ in 0..4 * AT_ONCE {
            if mutations.len() < wanted {
                mutations.extend(draw(&self.sample, rng));
            }
        }
        mutations
    }
}

/// A failure without its numbers, so that each kind is reported once.
fn kind(failure: &str) -> String {
    failure.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// The smallest subset of the mutations, and of their words, that still `fails`.
fn shrink(mut mutations: Vec<Mutation>, fails: impl Fn(&[Mutation]) -> bool) -> Vec<Mutation> {
    let mut at = 0;
    while at < mutations.len() {
        let without = mutations.remove(at);
        if !fails(&mutations) {
            mutations.insert(at, without);
            at += 1;
        }
    }
    for at in 0..mutations.len() {
        let mut step = mutations[at].stores.len();
        while step > 0 {
            let mut from = 0;
            while from < mutations[at].stores.len() {
                let mut fewer = mutations.clone();
                let to = (from + step).min(fewer[at].stores.len());
                fewer[at].stores.drain(from..to);
                match fails(&fewer) {
                    true => mutations = fewer,
                    false => from += step,
                }
            }
            step /= 2;
        }
    }
    mutations.retain(|one| !one.is_empty());
    mutations
}

impl DamageCampaign {
    /// Runs the campaign, on a thread of its own.
    ///
    /// Errors: an undamaged pool could not be made; the corpus cannot be read or written.
    pub fn run(&self) -> Result<DamageReport, DamageError> {
        let campaign = self.clone();
        on_thread(move || campaign.damage())
    }

    fn damage(&self) -> Result<DamageReport, DamageError> {
        let started = Instant::now();
        let mut fixtures = Vec::new();
        for &structure in &self.structures {
            for condition in Condition::ALL {
                fixtures.push(Fixture::new(structure, condition)?);
            }
        }
        if let Some(directory) = &self.corpus {
            load(directory, &mut fixtures)?;
        }
        let mut rng = Rng::with_seed(self.seed);
        let mut findings: BTreeMap<String, DamageFinding> = BTreeMap::new();
        let mut runs = 0;
        let began = Instant::now();
        let goes_on = |runs| match self.until {
            Until::Runs(all) => runs < all,
            Until::Time(all) => began.elapsed() < all,
        };
        while goes_on(runs) && !fixtures.is_empty() {
            let at = runs as usize % fixtures.len();
            runs += 1;
            let mutations = fixtures[at].draw(&mut rng);
            let verdict = judge(&fixtures[at].sample, &mutations);
            self.take_in(&mut fixtures[at], mutations, verdict, &mut findings)?;
        }
        let all: BTreeSet<&String> = fixtures
            .iter()
            .flat_map(|fixture| &fixture.answers)
            .collect();
        Ok(DamageReport {
            ok: findings.is_empty(),
            seed: self.seed,
            runs,
            unnoticed: fixtures.iter().map(|fixture| fixture.row.unnoticed).sum(),
            answers: all.len(),
            corpus: fixtures.iter().map(|fixture| fixture.corpus.len()).sum(),
            rows: fixtures.into_iter().map(|fixture| fixture.row).collect(),
            findings: findings.into_values().collect(),
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    fn take_in(
        &self,
        fixture: &mut Fixture,
        mutations: Vec<Mutation>,
        verdict: Verdict,
        findings: &mut BTreeMap<String, DamageFinding>,
    ) -> Result<(), DamageError> {
        fixture.row.runs += 1;
        fixture.row.unnoticed += u64::from(verdict.unnoticed);
        let damage = |message, mutations| DamageFinding {
            structure: fixture.row.structure.to_owned(),
            condition: fixture.row.condition,
            message,
            mutations,
        };
        if let Some(failure) = verdict.failure {
            let kind = kind(&failure);
            fixture.row.findings += 1;
            if let std::collections::btree_map::Entry::Vacant(place) = findings.entry(kind.clone())
            {
                let fails = |mutations: &[Mutation]| {
                    let failure = judge(&fixture.sample, mutations).failure;
                    failure.is_some_and(|failure| self::kind(&failure) == kind)
                };
                place.insert(damage(failure, shrink(mutations, fails)));
            }
            return Ok(());
        }
        let new: Vec<String> = verdict
            .answers
            .difference(&fixture.answers)
            .cloned()
            .collect();
        let Some(first) = new.first().cloned() else {
            return Ok(());
        };
        fixture.answers.extend(new);
        fixture.row.answers = fixture.answers.len();
        if let Some(directory) = &self.corpus {
            let name = format!(
                "{}-{}-{:05}",
                fixture.row.structure,
                fixture.row.condition.name(),
                fixture.corpus.len()
            );
            damage(first, mutations.clone()).write(directory, &name)?;
        }
        fixture.corpus.push(mutations);
        Ok(())
    }
}

/// Reads a corpus. The search starts from its damage to these fixtures, whatever the effect now. A new one is empty.
fn load(directory: &Path, fixtures: &mut [Fixture]) -> Result<(), DamageError> {
    let failed = |source| DamageError::File {
        path: directory.to_path_buf(),
        doing: "reading the corpus",
        source,
    };
    let mut files = Vec::new();
    std::fs::create_dir_all(directory).map_err(failed)?;
    for file in std::fs::read_dir(directory).map_err(failed)? {
        files.push(file.map_err(failed)?.path());
    }
    files.sort();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "json"))
    {
        let damage = DamageFinding::read(file)?;
        let of = |fixture: &&mut Fixture| {
            (fixture.row.structure, fixture.row.condition) == (&*damage.structure, damage.condition)
        };
        if let Some(fixture) = fixtures.iter_mut().find(of) {
            let answers = judge(&fixture.sample, &damage.mutations).answers;
            fixture.answers.extend(answers);
            fixture.corpus.push(damage.mutations);
        }
    }
    Ok(())
}

impl DamageFinding {
    /// Damages the pool again in this way. `Err` with the failure, `Ok` if there is none of that kind.
    ///
    /// Errors: it names an unknown structure.
    pub fn replay(&self) -> Result<Result<(), String>, DamageError> {
        let damage = self.clone();
        on_thread(move || {
            let sample = Sample::new(Structure::named(&damage.structure)?, damage.condition)?;
            let failure = judge(&sample, &damage.mutations).failure;
            Ok(failure.map_or(Ok(()), Err))
        })
    }
}

fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DamageError> + Send + 'static,
) -> Result<T, DamageError> {
    let builder = thread::Builder::new().name(DAMAGER.to_owned());
    let running = builder.stack_size(STACK_BYTES).spawn(work);
    match running.map_err(DamageError::Thread)?.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
