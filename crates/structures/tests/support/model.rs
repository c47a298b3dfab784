//! Random operations on a structure and on its model, through aborted transactions, aborted parts of
//! them, reopening, and collections, whole and step by step.

use std::fmt::Debug;

use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, Pool, PoolKind, Session, Tx, View};
use firn_mapped::Mapped;

use super::{FilePool, Random};

/// A structure under the root name `it`, and the model that it should equal.
pub trait Subject {
    type Model: Clone + PartialEq + Debug;

    /// The most steps of a transaction.
    const MOST_STEPS: u64 = 60;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error>;

    /// The model of a new structure.
    fn empty() -> Self::Model;

    /// Does one random operation on both, and asserts that the answers are equal.
    fn step(
        tx: Tx<'_, Mapped>,
        model: &mut Self::Model,
        phase: Phase,
        random: &mut Random,
    ) -> Result<(), Error>;

    /// Everything that the structure holds.
    ///
    /// Asserts that it is sound, and that its reading functions agree.
    fn content<'g, V: View<'g>>(view: V) -> Self::Model;

    /// Asserts that random parts of both are equal.
    fn assert_same_parts<'g, V: View<'g>>(
        _view: V,
        _model: &Self::Model,
        _phase: Phase,
        _random: &mut Random,
    ) {
    }
}

/// The quarter of the run: the number of elements tends up, then down, and up and down again.
#[derive(Clone, Copy)]
pub struct Phase(pub u64);

impl Phase {
    const NUMBER: u64 = 4;

    /// Whether the number of elements should tend up.
    pub fn grows(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    Abort,
    /// A part is rolled back before the rest.
    PartAborts,
}

fn transact<S: Subject>(
    session: &mut Session<Mapped>,
    model: &mut S::Model,
    phase: Phase,
    random: &mut Random,
) {
    let end = match random.below(6) {
        0 => End::Abort,
        1 => End::PartAborts,
        _ => End::Commit,
    };
    let seed = random.next();
    let steps = 1 + random.below(S::MOST_STEPS);
    let looks = random.below(20) == 0;
    let mut changed = model.clone();
    let outcome = session.transaction(|tx| {
        let mut random = Random(seed);
        changed.clone_from(model);
        if end == End::PartAborts {
            let mut lost = changed.clone();
            let failed = tx.nested(|tx| {
                for _ in 0..steps {
                    S::step(tx, &mut lost, phase, &mut random)?;
                }
                Err::<(), _>(Error::ReadOnly)
            });
            assert!(matches!(failed, Err(Error::ReadOnly)), "{failed:?}");
        }
        for _ in 0..steps {
            S::step(tx, &mut changed, phase, &mut random)?;
        }
        if looks {
            // A transaction reads its own changes.
            assert_same::<S, _>(tx, &changed);
        }
        match end {
            End::Abort => Err(Error::ReadOnly),
            _ => Ok(()),
        }
    });
    match end {
        End::Abort => assert!(matches!(outcome, Err(Error::ReadOnly)), "{outcome:?}"),
        _ => {
            outcome.unwrap();
            *model = changed;
        }
    }
}

fn assert_same<'g, S: Subject, V: View<'g>>(view: V, model: &S::Model) {
    let content = S::content(view);
    assert!(content == *model, "{content:?} is not {model:?}");
}

fn assert_all_same<S: Subject>(
    session: &mut Session<Mapped>,
    model: &S::Model,
    phase: Phase,
    random: &mut Random,
) {
    session.read(|view| {
        assert_same::<S, _>(view, model);
        S::assert_same_parts(view, model, phase, random);
    });
}

fn collecting() -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    }
}

/// A collection with transactions between its steps; not always ended. Returns whether anything was moved.
fn collect_stepwise<S: Subject>(
    pool: &Pool<Mapped>,
    session: &mut Session<Mapped>,
    model: &mut S::Model,
    phase: Phase,
    random: &mut Random,
) -> bool {
    let mut collection = pool.collection(&collecting()).unwrap();
    if !collection.begin().unwrap() {
        return false;
    }
    let ends = random.below(4) != 0;
    for _ in 0..random.below(12) {
        // Elements come and go equally often.
        transact::<S>(
            session,
            model,
            Phase(random.below(2) + phase.0 / 2 * 2),
            random,
        );
        let done = collection.compact(1 + random.below(40)).unwrap();
        assert_all_same::<S>(session, model, phase, random);
        if done {
            break;
        }
    }
    if ends {
        collection.finish().unwrap();
    }
    true
}

/// Runs `rounds` transactions in a pool of each kind. Then `at_end` checks the pool, in which nothing has leaked.
pub fn run<S: Subject>(seed: u64, rounds: u64, at_end: fn(&Pool<Mapped>, &mut Session<Mapped>)) {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let mut at = FilePool::new(kind);
        at.parts().1.transaction(S::create).unwrap();
        let mut random = Random(seed);
        let mut model = S::empty();
        let mut moved = false;
        for round in 0..rounds {
            let phase = Phase(round * Phase::NUMBER / rounds);
            let (pool, session) = at.parts();
            transact::<S>(session, &mut model, phase, &mut random);
            match random.below(30) {
                0 => drop(pool.collect(&collecting()).unwrap()),
                1 | 2 => {
                    moved |= collect_stepwise::<S>(pool, session, &mut model, phase, &mut random);
                }
                3 => at = at.reopen(),
                4 => {
                    let findings = pool.check().unwrap();
                    assert!(findings.is_empty(), "{findings:?}");
                }
                _ if round % 10 == 0 => {}
                _ => continue,
            }
            assert_all_same::<S>(at.parts().1, &model, phase, &mut random);
        }
        assert!(moved, "some collection moved something");
        let (pool, session) = at.parts();
        session.read(|view| assert_same::<S, _>(view, &model));
        let findings = pool.check().unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(pool.trace().unwrap().reclaimed, 0, "something leaked");
        // The allocated objects are the reachable ones, after a collection, too.
        pool.collect(&collecting()).unwrap();
        assert_eq!(pool.trace().unwrap().reclaimed, 0, "something leaked");
        at_end(pool, session);
    }
}
