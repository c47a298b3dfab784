//! Steps chosen by proptest, on a structure and on its model: through aborts, panics, nested parts that fail, and
//! reopening.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use firn_heap::{Error, PoolKind, Session, Tx, View};
use firn_mapped::Mapped;
use proptest::prelude::*;

use super::FilePool;

/// A structure under the root name `it`, and the model that it should equal.
pub trait Stepped {
    type Model: Clone + Default;
    type Step: Clone + Debug;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error>;

    /// Does a step on both, and asserts that the answers are equal.
    fn step(tx: Tx<'_, Mapped>, model: &mut Self::Model, step: &Self::Step) -> Result<(), Error>;

    /// Asserts that both are equal, and the structure is sound.
    fn assert_same<'g, V: View<'g>>(view: V, model: &Self::Model);
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    Commit,
    Abort,
    Panic,
    /// After half of its steps it repeats all of them in a nested part, which fails.
    NestedAbort,
    /// The pool is closed and opened again.
    Reopen,
}

const PANIC: &str = "as planned";

/// Up to twenty transactions with at most this many steps.
pub fn transactions<S: Strategy>(
    step: S,
    most: usize,
) -> impl Strategy<Value = Vec<(Vec<S::Value>, End)>>
where
    S::Value: Clone,
{
    let end = prop_oneof![
        6 => Just(End::Commit),
        1 => Just(End::Abort),
        1 => Just(End::Panic),
        2 => Just(End::NestedAbort),
        1 => Just(End::Reopen),
    ];
    prop::collection::vec((prop::collection::vec(step, 1..most), end), 1..20)
}

fn all<S: Stepped>(
    tx: Tx<'_, Mapped>,
    model: &mut S::Model,
    steps: &[S::Step],
) -> Result<(), Error> {
    steps.iter().try_for_each(|step| S::step(tx, model, step))
}

fn transact<S: Stepped>(
    session: &mut Session<Mapped>,
    model: &mut S::Model,
    steps: &[S::Step],
    end: End,
) {
    let mut changed = model.clone();
    let body = |tx: Tx<'_, Mapped>| {
        changed.clone_from(model);
        let (before, behind) = steps.split_at(steps.len() / 2);
        all::<S>(tx, &mut changed, before)?;
        if end == End::NestedAbort {
            let mut lost = changed.clone();
            let failed = tx.nested(|tx| {
                all::<S>(tx, &mut lost, steps)?;
                S::assert_same(tx, &lost);
                Err::<(), _>(Error::ReadOnly)
            });
            assert!(matches!(failed, Err(Error::ReadOnly)));
        }
        all::<S>(tx, &mut changed, behind)?;
        // A transaction reads its own changes.
        S::assert_same(tx, &changed);
        match end {
            End::Abort => Err(Error::ReadOnly),
            End::Panic => std::panic::panic_any(PANIC),
            _ => Ok(()),
        }
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        session.transaction(body).map_err(|e| e.to_string())
    }));
    match end {
        End::Abort => assert_eq!(outcome.unwrap(), Err(Error::ReadOnly.to_string())),
        End::Panic => {
            let payload = outcome.unwrap_err();
            assert_eq!(payload.downcast_ref(), Some(&PANIC));
        }
        _ => {
            outcome.unwrap().unwrap();
            *model = changed;
        }
    }
}

/// Runs the transactions; `at_end` checks the final state.
pub fn run<S: Stepped>(
    transactions: &[(Vec<S::Step>, End)],
    at_end: impl FnOnce(&mut Session<Mapped>, &S::Model),
) {
    set_hook(Box::new(|info| {
        if info.payload().downcast_ref() != Some(&PANIC) {
            eprintln!("{info}");
        }
    }));
    let mut at = FilePool::new(PoolKind::Traced);
    at.parts().1.transaction(S::create).unwrap();
    let mut model = S::Model::default();
    for (steps, end) in transactions {
        transact::<S>(at.parts().1, &mut model, steps, *end);
        if *end == End::Reopen {
            at = at.reopen();
        }
        at.parts().1.read(|view| S::assert_same(view, &model));
    }
    at_end(at.parts().1, &model);
}
