//! Every crash of short sequences: exhaustive exploration.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use firn_crash::{Crash, CrashState, Exploration, ExploreOptions, Explorer, Schedule};
use firn_heap::Pool;
use firn_media::{Memory, Step, Ticket};
use firn_workloads::under_test::{Content, Key};

use super::fixture::Fixture;
use super::op::{History, Op, content_after};
use super::oracle::{Living, Survivor};
use super::report::{Part, Program};
use super::ticker::Ticker;

/// Keys of short sequences are below this.
pub(super) const FEW_KEYS: Key = 6;

/// Runs of the check on one sequence, after which images are drawn and the row is no longer exhaustive. This is reached
/// where hardware settles many large objects line by line: each line is there or not.
const MOST_STATES: u64 = 2_000_000;

/// The exploration of some sequences on one fixture.
pub(super) struct Sequences<'a> {
    fixture: &'a Fixture,
    plant: Option<&'static Step>,
    depth: u32,
    ticker: &'a Ticker,
    /// How images are tried.
    exploration: Exploration,
    /// The current sequence.
    now: RefCell<Vec<Op>>,
    /// The live objects after the program's operations of a sequence, counted once.
    living: RefCell<HashMap<Vec<Op>, Living>>,
    /// The newest place in the log when each operation of the current sequence had returned.
    tickets: RefCell<Vec<Ticket>>,
    /// By note, and by the operations that survive for certain.
    legal: RefCell<HashMap<(u64, usize), Rc<Legal>>>,
}

/// The states that a crash may leave.
struct Legal {
    /// The structure's content, and the live objects with it.
    outcomes: Vec<(Content, Living)>,
    /// Identifies the outcomes.
    digest: u64,
}

impl<'a> Sequences<'a> {
    pub(super) fn new(
        fixture: &'a Fixture,
        plant: Option<&'static Step>,
        depth: u32,
        ticker: &'a Ticker,
    ) -> Self {
        Self {
            fixture,
            plant,
            depth,
            ticker,
            exploration: Exploration::Lazy,
            now: RefCell::default(),
            living: RefCell::default(),
            tickets: RefCell::default(),
            legal: RefCell::default(),
        }
    }

    /// These sequences, with images tried by `exploration`.
    pub(super) fn tried(self, exploration: Exploration) -> Self {
        Self {
            exploration,
            ..self
        }
    }

    fn explorer(&self) -> Explorer<'_> {
        let options = ExploreOptions {
            medium: self.fixture.medium(self.plant, 0),
            recovery_depth: self.depth,
            exploration: self.exploration,
            max_states: MOST_STATES,
            ..ExploreOptions::default()
        };
        Explorer::from_image(
            options,
            &self.fixture.image,
            |crash| {
                let mut tickets = self.tickets.borrow_mut();
                tickets.clear();
                let returned = || {
                    if !self.fixture.waits() {
                        tickets.push(crash.commit());
                    }
                };
                if let Err(what) = run_telling(self.fixture, crash, &self.now.borrow(), returned) {
                    // A workload reports failures by panicking.
                    panic!("{what}");
                }
            },
            |crash, state| {
                self.ticker.state();
                self.verify(crash, state)
            },
        )
    }

    /// Crashes every sequence, one after the other, until one fails.
    pub(super) fn explore(&self, sequences: Vec<Vec<Op>>) -> Part {
        let explorer = self.explorer();
        let mut sequences = sequences.into_iter();
        let report = explorer.explore_each(|last| {
            if last.is_some() {
                self.ticker.step(1);
            }
            *self.now.borrow_mut() = sequences.next()?;
            Some(Schedule::Sequential)
        });
        let program = Program::of_ops(&self.now.borrow());
        Part::of(report, program)
    }

    /// Replays a finding's line on one sequence.
    pub(super) fn replay(
        &self,
        sequence: Vec<Op>,
        line: &str,
    ) -> Result<Result<(), String>, String> {
        *self.now.borrow_mut() = sequence;
        self.explorer().judge(line)
    }

    fn verify(&self, crash: Crash, state: &CrashState) -> Result<(), String> {
        let legal = self.legal(state)?;
        let mut survivor = Survivor::open(self.fixture, crash)?;
        if !survivor.goes_on(legal.digest) {
            return Ok(());
        }
        let found = survivor.content("after recovery")?;
        let mut needed = legal.outcomes.iter().filter(|legal| legal.0 == found);
        let first = needed.clone().next();
        let Some(&(_, first)) = first else {
            let history = History::of_note(state.note(0));
            return Err(format!("after {}: found {found:?}", history.text()));
        };
        if survivor.end_cycle()? {
            let after = survivor.content("after the interrupted cycle was ended")?;
            if after != found {
                return Err(format!("the end of the interrupted cycle left {after:?}"));
            }
        }
        let living = survivor.living()?;
        match needed.any(|legal| legal.1 == living) {
            true => Ok(()),
            false => living.is_needed(first),
        }
    }

    /// Operations that survive for certain: those that have returned, or, where they do not wait for the log, those whose
    /// place in it is durable.
    fn certain(&self, state: &CrashState, history: &History) -> usize {
        match self.fixture.waits() {
            true => history.returned(),
            false => {
                let tickets = self.tickets.borrow();
                let tickets = tickets.iter().take(history.begun.len());
                tickets
                    .take_while(|&&ticket| ticket <= state.durable)
                    .count()
            }
        }
    }

    /// The states that a crash may leave at this moment.
    fn legal(&self, state: &CrashState) -> Result<Rc<Legal>, String> {
        let note = state.note(0);
        let history = History::of_note(note);
        let certain = self.certain(state, &history);
        if let Some(known) = self.legal.borrow().get(&(note, certain)) {
            return Ok(Rc::clone(known));
        }
        let outcomes = history.outcomes(certain).map(|ops| {
            let content = content_after(self.fixture, ops);
            Ok((content, self.living_after(ops)?))
        });
        let outcomes = outcomes.collect::<Result<Vec<_>, String>>()?;
        let mut digest = DefaultHasher::new();
        outcomes.hash(&mut digest);
        let digest = digest.finish();
        let legal = Rc::new(Legal { outcomes, digest });
        let key = (note, certain);
        self.legal.borrow_mut().insert(key, Rc::clone(&legal));
        Ok(legal)
    }

    /// The live objects after the operations, without crashes.
    fn living_after(&self, ops: &[Op]) -> Result<Living, String> {
        let programs = ops.iter().copied().filter(|l| !l.is_collectors());
        let programs: Vec<Op> = programs.collect();
        if let Some(&known) = self.living.borrow().get(&programs) {
            return Ok(known);
        }
        let crash = Crash::from_image(&self.fixture.image, self.fixture.medium(None, 0));
        run(self.fixture, &crash, &programs)?;
        let living = Survivor::open(self.fixture, crash)?.living()?;
        self.living.borrow_mut().insert(programs, living);
        Ok(living)
    }
}

/// Runs a sequence and notes its progress.
fn run(fixture: &Fixture, crash: &Crash, sequence: &[Op]) -> Result<(), String> {
    run_telling(fixture, crash, sequence, || {})
}

/// Runs a sequence, notes its progress, and calls `returned` when an operation has returned.
fn run_telling(
    fixture: &Fixture,
    crash: &Crash,
    sequence: &[Op],
    mut returned: impl FnMut(),
) -> Result<(), String> {
    let failed = |e: firn_heap::Error| e.to_string();
    let pool = Pool::open(crash.clone(), &fixture.pool_options()).map_err(|e| e.to_string())?;
    let mut session = pool.session().map_err(failed)?;
    let (mut collection, mut history) = (None, History::default());
    for (number, &op) in (1..).zip(sequence) {
        history.begun.push(op);
        history.returned = false;
        crash.note(history.note());
        match op {
            Op::Begin => {
                let collecting = pool.collection(&fixture.collect()).map_err(failed)?;
                collection.insert(collecting).begin().map_err(failed)?;
            }
            Op::Step => {
                if let Some(collection) = &mut collection {
                    collection.compact(1).map_err(failed)?;
                }
            }
            Op::Finish => {
                if let Some(mut collection) = collection.take() {
                    collection.finish().map_err(failed)?;
                }
            }
            _ => op.run(fixture, &mut session, number).map_err(failed)?,
        }
        returned();
        history.returned = true;
        crash.note(history.note());
    }
    drop(collection);
    pool.clone().abandon();
    drop(session);
    Ok(())
}

#[cfg(test)]
mod tests {
    use firn_heap::Statistics;
    use firn_heap::collector::scheme::{FFCCD, PIGGYBACK, Scheme};
    use firn_heap::steps::{
        COPY_BEFORE_REPLAY, ENTRY_CHECKSUM, HOMES_WRITE_BACK, REACHED_CLEARED,
        RECOVERED_COPY_FENCE, SETTLED_STAYS,
    };
    use firn_media::Domain;
    use firn_workloads::under_test::Structure;

    use super::super::setting::Setting;
    use super::*;

    fn fixture(structure: Structure) -> Fixture {
        ground_in(structure, Domain::Adr)
    }

    fn ground_in(structure: Structure, domain: Domain) -> Fixture {
        ground_with(structure, &PIGGYBACK, domain)
    }

    fn ground_with(structure: Structure, scheme: &'static Scheme, domain: Domain) -> Fixture {
        let settings = Setting::every(&[structure], &[scheme], &[domain]);
        Fixture::new(&settings[0], FEW_KEYS).unwrap()
    }

    /// Objects that a whole cycle moves.
    fn moved(fixture: &Fixture) -> u64 {
        let crash = Crash::from_image(&fixture.image, fixture.medium(None, 0));
        let pool = Pool::open(crash, &fixture.pool_options()).unwrap();
        let collected = pool.collect(&fixture.collect()).unwrap();
        assert!(collected.cycles >= 1 && collected.moved == collected.planned);
        pool.abandon();
        collected.moved
    }

    #[test]
    fn a_cycle_moves_objects_of_every_structure() {
        for structure in Structure::ALL {
            let fixture = fixture(structure);
            let crash = Crash::from_image(&fixture.image, fixture.medium(None, 0));
            let objects = Statistics::read(&crash).unwrap().objects;
            let moved = moved(&fixture);
            // At least two of a kind, as thin pages are emptied: the neighbour's and its own.
            assert!(moved >= 2, "{structure:?}: {moved} of {objects} objects");
        }
    }

    #[test]
    fn pools_hold_64_kib_at_most() {
        for structure in Structure::ALL {
            let bytes = fixture(structure).image.occupied_bytes();
            assert!(bytes <= 64 << 10, "{structure:?}: {bytes} bytes");
        }
    }

    #[test]
    fn every_letter_does_what_it_says() {
        for structure in Structure::ALL {
            let fixture = fixture(structure);
            for ops in super::super::op::sequences(2, &PIGGYBACK) {
                let crash = Crash::from_image(&fixture.image, fixture.medium(None, 0));
                run(&fixture, &crash, &ops).unwrap();
                let history = History::of_note(crash.notes()[0]);
                assert!(history.returned && history.begun == ops, "{ops:?}");
                let mut survivor = Survivor::open(&fixture, crash).unwrap();
                let content = survivor.content("at the end").unwrap();
                assert_eq!(content, content_after(&fixture, &ops), "{ops:?}");
            }
        }
    }

    /// Lazy exploration and trying each image must give equal verdicts on every sequence that leaves few images.
    /// Returns the number of such sequences, and how many of them were wrong.
    fn compare(structure: Structure, plant: Option<&'static Step>, images: u128) -> (u32, u32) {
        let (mut compared, mut wrong) = (0, 0);
        for domain in [Domain::Adr, Domain::Eadr, Domain::Process] {
            let fixture = ground_in(structure, domain);
            let ticker = Ticker::default();
            for ops in super::super::op::sequences(1, &PIGGYBACK) {
                let explore = |exploration| {
                    let sequences = Sequences::new(&fixture, plant, 0, &ticker);
                    let sequences = sequences.tried(exploration);
                    sequences.explore(vec![ops.clone()])
                };
                let lazy = explore(Exploration::Lazy);
                if lazy.images >= images {
                    continue;
                }
                let eager = explore(Exploration::Eager);
                assert!(
                    lazy.found.is_none() == eager.found.is_none(),
                    "{domain}, {ops:?}"
                );
                assert!(lazy.found.is_some() || (lazy.exhaustive && eager.exhaustive));
                compared += 1;
                wrong += u32::from(eager.found.is_some());
            }
        }
        (compared, wrong)
    }

    /// Compares every structure, with every step in place and with some left out.
    fn compare_all(images: u128) -> (u32, u32) {
        let mut all = (0, 0);
        for structure in Structure::ALL {
            for plant in [
                None,
                Some(&HOMES_WRITE_BACK),
                Some(&SETTLED_STAYS),
                Some(&ENTRY_CHECKSUM),
            ] {
                let (compared, wrong) = compare(structure, plant, images);
                assert!(plant.is_some() || wrong == 0);
                all = (all.0 + compared, all.1 + wrong);
            }
        }
        println!("{} sequences compared, {} of them wrong", all.0, all.1);
        all
    }

    /// With hardware, exploration that does not tell apart which lines of a copy reached persistence reaches the
    /// verdict of the one that does, at every depth.
    #[test]
    fn lines_that_are_completed_are_told_apart_in_vain() {
        let (mut joined, mut each, mut wrong) = (0, 0, 0);
        // Those whose copies have few lines.
        let structures = Structure::ALL.into_iter();
        let small =
            structures.filter(|structure| ["list", "avl", "map"].contains(&structure.name()));
        for structure in small {
            for plant in [
                None,
                Some(&REACHED_CLEARED),
                Some(&COPY_BEFORE_REPLAY),
                Some(&RECOVERED_COPY_FENCE),
                Some(&HOMES_WRITE_BACK),
            ] {
                let fixture = ground_with(structure, &FFCCD, Domain::Adr);
                let ticker = Ticker::default();
                for ops in super::super::op::sequences(1, &FFCCD) {
                    let explore = |exploration| {
                        let sequences = Sequences::new(&fixture, plant, 1, &ticker);
                        let sequences = sequences.tried(exploration);
                        sequences.explore(vec![ops.clone()])
                    };
                    let lazy = explore(Exploration::Lazy);
                    let whole = explore(Exploration::EachWord);
                    let case = format!("{structure:?}, {plant:?}, {ops:?}");
                    assert!(lazy.found.is_none() == whole.found.is_none(), "{case}");
                    assert!(
                        lazy.found.is_some() || (lazy.exhaustive && whole.exhaustive),
                        "{case}"
                    );
                    (joined, each) = (joined + lazy.states, each + whole.states);
                    wrong += u32::from(lazy.found.is_some());
                }
            }
        }
        println!("{joined} recoveries, {each} with each word, {wrong} sequences wrong");
        assert!(wrong > 3 && joined < each);
    }

    #[test]
    fn the_reduction_comes_to_the_same_verdicts() {
        let (compared, wrong) = compare_all(1 << 10);
        assert!(compared > 500 && wrong > 10);
    }

    #[test]
    #[ignore = "takes minutes; cargo xtask test --long"]
    fn the_reduction_comes_to_the_same_verdicts_wherever_it_can_be_done_without() {
        compare_all(1 << 16);
    }
}
