//! Does the entry of a key behave like the standard library's?

use std::collections::BTreeMap;
use std::collections::btree_map;

use crate::support::Random;
use firn_heap::{Error, Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::entry::Entry;
use firn_structures::protocol::Keyed;
use firn_structures::{AvlTree, HashMap, InlineTree, Map, RedBlackTree};

type Model = BTreeMap<u64, Vec<u8>>;

const STEPS: usize = 1000;
/// The keys are few, so that many of them exist.
const KEYS: u64 = 60;

fn value(random: &mut Random) -> Vec<u8> {
    vec![random.next() as u8; random.below(40) as usize]
}

/// Does one operation on an entry and on the model's.
fn compare<P: Keyed>(
    entry: Entry<'_, '_, '_, Mapped, P>,
    model: btree_map::Entry<'_, u64, Vec<u8>>,
    random: &mut Random,
) -> Result<(), Error> {
    let new = value(random);
    match random.below(6) {
        0 => {
            let found = entry.or_insert(&new)?;
            assert_eq!(found.get(), model.or_insert(new));
        }
        1 => {
            let change = |value: &mut Vec<u8>| value.push(7);
            let found = entry.and_modify(change)?.or_insert_with(|| new.clone())?;
            let expected = model.and_modify(change).or_insert_with(|| new);
            assert_eq!(&found.into_value(), expected);
        }
        2 => {
            let found = entry.insert_entry(&new)?;
            assert_eq!(found.get(), model.insert_entry(new).get());
        }
        which => match (entry, model) {
            (Entry::Vacant(entry), btree_map::Entry::Vacant(model)) => {
                if which == 3 {
                    assert_eq!(entry.insert(&new)?.get(), model.insert(new));
                }
            }
            (Entry::Occupied(mut entry), btree_map::Entry::Occupied(mut model)) => {
                assert_eq!(entry.get(), model.get());
                match which {
                    3 => assert_eq!(entry.insert(&new)?, model.insert(new)),
                    4 => {
                        entry.modify(|value| value.truncate(3))?;
                        model.get_mut().truncate(3);
                        assert_eq!(entry.get(), model.get());
                    }
                    _ => assert_eq!(entry.remove()?, model.remove()),
                }
            }
            _ => panic!("one is there, the other is not"),
        },
    }
    Ok(())
}

/// The test of a collection; `$key` makes its keys from numbers.
macro_rules! entries {
    ($test:ident, $collection:ident, $key:expr) => {
        #[test]
        fn $test() {
            let mut random = Random(1);
            let mut model = Model::new();
            let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).unwrap();
            let pool = Pool::create(medium, &PoolOptions::new("entries")).unwrap();
            let mut session = pool.session().unwrap();
            for step in 0..STEPS {
                let mut changed = model.clone();
                let done = session.transaction(|tx| {
                    let mut collection = $collection::open_or_create(tx, "c")?;
                    for _ in 0..random.below(3) {
                        let key = random.below(KEYS);
                        let entry = collection.entry($key(&key))?;
                        assert_eq!(entry.key(), $key(&key));
                        compare(entry, changed.entry(key), &mut random)?;
                    }
                    match step % 10 {
                        9 => Err(Error::ReadOnly),
                        _ => Ok(()),
                    }
                });
                if done.is_ok() {
                    model = changed;
                }
                let guard = session.guard();
                let collection = $collection::open(guard.view(), "c").unwrap();
                assert_eq!(collection.len().unwrap(), model.len() as u64);
                for key in 0..KEYS {
                    let found = collection.get($key(&key)).unwrap();
                    assert_eq!(found.as_ref(), model.get(&key), "step {step}");
                }
            }
            assert!(pool.check().unwrap().is_empty());
        }
    };
}
entries!(of_a_map, Map, bytes);
entries!(of_a_hash_map, HashMap, bytes);
entries!(of_an_avl_tree, AvlTree, number);
entries!(of_a_red_black_tree, RedBlackTree, number);
entries!(of_an_inline_tree, InlineTree, number);

/// Keys each of which begins with all earlier ones.
fn bytes(key: &u64) -> &'static [u8] {
    static BYTES: [u8; KEYS as usize] = [7; KEYS as usize];
    &BYTES[..*key as usize]
}

fn number(key: &u64) -> u64 {
    *key
}
