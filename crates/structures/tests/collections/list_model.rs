//! Does a list equal a plain deque?

use std::collections::VecDeque;

use crate::support::limited_pool;
use crate::support::steps::{self, Stepped};
use firn_heap::{Error, PoolKind, Tx, View};
use firn_mapped::Mapped;
use firn_structures::List;
use proptest::prelude::*;

type Model = VecDeque<(u64, Vec<u8>)>;

#[derive(Clone, Debug)]
enum Step {
    PushFront(u64, usize),
    PushBack(u64, usize),
    PopFront,
    PopBack,
    Remove(u64),
    /// At the first element with the key, or beside all: insert behind it, before it, or replace it.
    After(u64, usize),
    Before(u64, usize),
    Set(u64, usize),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let (key, len) = (
        0u64..20,
        prop_oneof![4 => 0usize..20, 1 => Just(128), 1 => 600usize..900],
    );
    (0..80, key, len).prop_map(|(kind, key, len)| match kind % 8 {
        _ if kind == 79 => Step::Clear,
        0 => Step::PushFront(key, len),
        1 => Step::PushBack(key, len),
        2 => Step::PopFront,
        3 => Step::PopBack,
        4 => Step::Remove(key),
        5 => Step::After(key, len),
        6 => Step::Before(key, len),
        _ => Step::Set(key, len),
    })
}

fn value(key: u64, len: usize) -> Vec<u8> {
    vec![key as u8; len]
}

struct OfList;

impl Stepped for OfList {
    type Model = Model;
    type Step = Step;

    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        List::create(tx, "it").map(drop)
    }

    fn step(tx: Tx<'_, Mapped>, model: &mut Model, step: &Step) -> Result<(), Error> {
        let mut list = List::open(tx, "it")?;
        let find = |model: &Model, key| model.iter().position(|e| e.0 == key);
        match *step {
            Step::PushFront(key, len) => {
                list.push_front(key, &value(key, len))?;
                model.push_front((key, value(key, len)));
            }
            Step::PushBack(key, len) => {
                list.push_back(key, &value(key, len))?;
                model.push_back((key, value(key, len)));
            }
            Step::PopFront => assert_eq!(list.pop_front()?, model.pop_front()),
            Step::PopBack => assert_eq!(list.pop_back()?, model.pop_back()),
            Step::Remove(key) => {
                let removed = find(model, key).and_then(|at| model.remove(at));
                assert_eq!(list.remove(key)?, removed.is_some());
            }
            Step::After(key, len) => {
                let mut cursor = list.cursor()?;
                cursor.find(key)?;
                cursor.insert_after(key, &value(key, len))?;
                let at = find(model, key).map_or(0, |at| at + 1);
                model.insert(at, (key, value(key, len)));
            }
            Step::Before(key, len) => {
                let mut cursor = list.cursor()?;
                cursor.find(key)?;
                cursor.insert_before(key, &value(key, len))?;
                let at = find(model, key).unwrap_or(model.len());
                model.insert(at, (key, value(key, len)));
            }
            Step::Set(key, len) => {
                let mut cursor = list.cursor()?;
                assert_eq!(cursor.find(key)?, cursor.set_value(&vec![7; len])?);
                if let Some(at) = find(model, key) {
                    model[at].1 = vec![7; len];
                }
            }
            Step::Clear => {
                list.clear()?;
                model.clear();
            }
        }
        Ok(())
    }

    fn assert_same<'g, V: View<'g>>(view: V, model: &Model) {
        same(&List::open(view, "it").unwrap(), model);
    }
}

fn same<'g, V: View<'g>>(list: &List<'g, V>, model: &Model) {
    assert_eq!(list.check().unwrap(), Vec::<String>::new());
    let reader = list.read().unwrap();
    assert_eq!(reader.len(), model.len() as u64);
    let pair = |e: Result<firn_structures::list::Item<'_, 'g, V>, Error>| {
        let e = e.unwrap();
        (e.key(), e.value().unwrap())
    };
    assert!(reader.iter().map(pair).eq(model.iter().cloned()));
    assert!(
        reader
            .iter()
            .rev()
            .map(pair)
            .eq(model.iter().rev().cloned())
    );
    for key in 0..20 {
        let expected = model.iter().find(|e| e.0 == key).map(|e| e.1.clone());
        let found = reader.find(key).unwrap().map(|e| e.value().unwrap());
        assert_eq!(found, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_list_equals_a_deque(transactions in steps::transactions(step(), 40)) {
        steps::run::<OfList>(&transactions, |_, _| {});
    }
}

#[test]
fn a_list_that_is_cleared_gives_everything_back() {
    for kind in [PoolKind::Traced, PoolKind::Explicit] {
        let pool = limited_pool(kind, 24 << 20);
        let mut session = pool.session().unwrap();
        session
            .transaction(|tx| {
                let mut list = List::create(tx, "it")?;
                (0..500).try_for_each(|key| list.push_back(key, &value(key, key as usize)))
            })
            .unwrap();
        session
            .transaction(|tx| List::open(tx, "it")?.clear())
            .unwrap();
        session.read(|view| same(&List::open(view, "it").unwrap(), &Model::new()));
        let traced = pool.trace().unwrap();
        assert_eq!((traced.objects, traced.reclaimed), (1, 0), "{kind:?}");
    }
}
