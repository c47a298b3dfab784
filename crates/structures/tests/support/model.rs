//! Random operations on a structure and on its model, through aborted transactions, aborted parts of
//! them, reopening, and collections, whole and step by step.

use std::fmt::Debug;

use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, Pool, PoolKind, PoolOptions, Session, Tx, View};
use firn_mapped::{Mapped, MappedOptions};

use super::{Random, TempFile};

/// A structure under the root name `it`, and what it should equal.
pub trait Subject {
    type Model: Clone + PartialEq + Debug;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error>;

    /// What it should equal when it is new.
    fn empty() -> Self::Model;

    /// Does the same random operation on both, and asserts that the answers are the same. `grows`
    /// says which way the number of elements should tend.
    fn step(
        tx: Tx<'_, Mapped>,
        model: &mut Self::Model,
        grows: bool,
        random: &mut Random,
    ) -> Result<(), Error>;

    /// Everything that the structure holds.
    ///
    /// Asserts that it is sound, and that its reading functions agree.
    fn content<'g, V: View<'g>>(view: V) -> Self::Model;
}

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    Abort,
    /// A part before the rest is rolled back.
    PartAborts,
}

const MOST_STEPS: u64 = 60;

fn transact<S: Subject>(
    session: &mut Session<Mapped>,
    model: &mut S::Model,
    grows: bool,
    random: &mut Random,
) {
    let end = match random.below(6) {
        0 => End::Abort,
        1 => End::PartAborts,
        _ => End::Commit,
    };
    let seed = random.next();
    let steps = 1 + random.below(MOST_STEPS);
    let mut changed = model.clone();
    let outcome = session.transaction(|tx| {
        let mut random = Random(seed);
        changed.clone_from(model);
        if end == End::PartAborts {
            let mut lost = changed.clone();
            let failed = tx.nested(|tx| {
                for _ in 0..steps {
                    S::step(tx, &mut lost, grows, &mut random)?;
                }
                Err::<(), _>(Error::ReadOnly)
            });
            assert!(matches!(failed, Err(Error::ReadOnly)), "{failed:?}");
        }
        for _ in 0..steps {
            S::step(tx, &mut changed, grows, &mut random)?;
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

fn assert_same<S: Subject>(session: &mut Session<Mapped>, model: &S::Model) {
    let content = session.read(|view| S::content(view));
    assert!(content == *model, "{content:?} is not {model:?}");
}

fn collecting() -> CollectOptions {
    CollectOptions {
        target: 1.0,
        pages: PageSize::Small,
        ..CollectOptions::default()
    }
}

/// A collection with transactions between its steps; not always ended.
fn collect_stepwise<S: Subject>(
    pool: &Pool<Mapped>,
    session: &mut Session<Mapped>,
    model: &mut S::Model,
    random: &mut Random,
) {
    let mut collection = pool.collection(&collecting()).unwrap();
    if !collection.begin().unwrap() {
        return;
    }
    let ends = random.below(4) != 0;
    for _ in 0..random.below(6) {
        let grows = random.below(2) == 0;
        transact::<S>(session, model, grows, random);
        collection.compact(1 + random.below(20)).unwrap();
        assert_same::<S>(session, model);
    }
    if ends {
        collection.finish().unwrap();
    }
}

/// Runs `rounds` transactions. The number of elements tends up, then down, and up again.
pub fn run<S: Subject>(seed: u64, rounds: u64) {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let file = TempFile::new();
        let options = PoolOptions {
            kind,
            ..PoolOptions::new("test")
        };
        let medium = Mapped::create(file.path(), 16 << 20, &MappedOptions::default()).unwrap();
        let mut pool = Pool::create(medium, &options).unwrap();
        let mut session = pool.session().unwrap();
        session.transaction(S::create).unwrap();
        let mut random = Random(seed);
        let mut model = S::empty();
        for round in 0..rounds {
            let grows = (round * 4 / rounds).is_multiple_of(2);
            transact::<S>(&mut session, &mut model, grows, &mut random);
            match random.below(30) {
                0 => drop(pool.collect(&collecting()).unwrap()),
                1 | 2 => collect_stepwise::<S>(&pool, &mut session, &mut model, &mut random),
                3 => {
                    drop(session);
                    pool.close().unwrap();
                    let medium = Mapped::open(file.path(), &MappedOptions::default()).unwrap();
                    pool = Pool::open(medium, &options).unwrap();
                    session = pool.session().unwrap();
                }
                _ => continue,
            }
            assert_same::<S>(&mut session, &model);
        }
        assert_same::<S>(&mut session, &model);
        let findings = pool.check().unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(pool.trace().unwrap().reclaimed, 0, "something leaked");
    }
}
