//! Does a list equal a plain deque, through aborts, nested parts that fail, and reopening?

use std::collections::VecDeque;

use crate::support::TempFile;
use firn_heap::{Error, Pool, PoolOptions, View};
use firn_mapped::{Mapped, MappedOptions};
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
    /// At the first element with the key, or beside all: insert behind, in front, replace.
    After(u64, usize),
    Before(u64, usize),
    Set(u64, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (key, len) = (
        0u64..20,
        prop_oneof![4 => 0usize..20, 1 => Just(128), 1 => 600usize..900],
    );
    (0..8, key, len).prop_map(|(kind, key, len)| match kind {
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

fn apply(model: &mut Model, step: &Step) {
    let find = |model: &Model, key| model.iter().position(|e| e.0 == key);
    match *step {
        Step::PushFront(key, len) => model.push_front((key, value(key, len))),
        Step::PushBack(key, len) => model.push_back((key, value(key, len))),
        Step::PopFront => drop(model.pop_front()),
        Step::PopBack => drop(model.pop_back()),
        Step::Remove(key) => {
            if let Some(at) = find(model, key) {
                model.remove(at);
            }
        }
        Step::After(key, len) => {
            let at = find(model, key).map_or(0, |at| at + 1);
            model.insert(at, (key, value(key, len)));
        }
        Step::Before(key, len) => {
            let at = find(model, key).unwrap_or(model.len());
            model.insert(at, (key, value(key, len)));
        }
        Step::Set(key, len) => {
            if let Some(at) = find(model, key) {
                model[at].1 = vec![7; len];
            }
        }
    }
}

fn apply_to_list<'t>(
    list: &mut List<'t, firn_heap::Tx<'t, Mapped>>,
    model: &Model,
    step: &Step,
) -> Result<(), Error> {
    match *step {
        Step::PushFront(key, len) => list.push_front(key, &value(key, len))?,
        Step::PushBack(key, len) => list.push_back(key, &value(key, len))?,
        Step::PopFront => assert_eq!(list.pop_front()?, model.front().cloned()),
        Step::PopBack => assert_eq!(list.pop_back()?, model.back().cloned()),
        Step::Remove(key) => assert_eq!(list.remove(key)?, model.iter().any(|e| e.0 == key)),
        Step::After(key, len) => {
            let mut cursor = list.cursor()?;
            cursor.find(key)?;
            cursor.insert_after(key, &value(key, len))?;
        }
        Step::Before(key, len) => {
            let mut cursor = list.cursor()?;
            cursor.find(key)?;
            cursor.insert_before(key, &value(key, len))?;
        }
        Step::Set(key, len) => {
            let mut cursor = list.cursor()?;
            assert_eq!(cursor.find(key)?, cursor.set_value(&vec![7; len])?);
        }
    }
    Ok(())
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
    fn a_list_equals_a_deque(
        transactions in prop::collection::vec((prop::collection::vec(step(), 1..40), 0..6), 1..20),
    ) {
        let file = TempFile::new();
        let options = PoolOptions::new("test");
        let medium = Mapped::create(file.path(), 16 << 20, &MappedOptions::default()).unwrap();
        let mut pool = Pool::create(medium, &options).unwrap();
        let mut session = pool.session().unwrap();
        session.transaction(|tx| List::create(tx, "list").map(|_| ())).unwrap();
        let mut model = Model::new();
        for (steps, end) in &transactions {
            let mut changed = model.clone();
            let outcome = session.transaction(|tx| {
                let mut list = List::open(tx, "list")?;
                changed.clone_from(&model);
                if *end == 1 {
                    let failed = tx.nested(|_| {
                        let mut lost = changed.clone();
                        for step in steps {
                            apply_to_list(&mut list, &lost, step)?;
                            apply(&mut lost, step);
                        }
                        same(&list, &lost);
                        Err::<(), _>(Error::ReadOnly)
                    });
                    assert!(matches!(failed, Err(Error::ReadOnly)));
                }
                for step in steps {
                    apply_to_list(&mut list, &changed, step)?;
                    apply(&mut changed, step);
                }
                same(&list, &changed);
                if *end == 0 { Err(Error::ReadOnly) } else { Ok(()) }
            });
            match end {
                0 => assert!(matches!(outcome, Err(Error::ReadOnly))),
                _ => {
                    outcome.unwrap();
                    model = changed;
                }
            }
            if *end == 2 {
                drop(session);
                pool.close().unwrap();
                let medium = Mapped::open(file.path(), &MappedOptions::default()).unwrap();
                pool = Pool::open(medium, &options).unwrap();
                session = pool.session().unwrap();
            }
            let guard = session.guard();
            same(&List::open(guard.view(), "list").unwrap(), &model);
        }
    }
}
