//! Does a damaged node lead only to an error or a wrong answer, but never to a panic or an endless loop?

use std::collections::HashSet;

use crate::support::{Random, pool};
use firn_heap::{Error, Obj, Pool, Session, Target, Tx, View};
use firn_mapped::Mapped;
use firn_media::Memory;
use firn_structures::avl::Avl;
use firn_structures::hash::Hashed;
use firn_structures::inline_tree::Inline;
use firn_structures::list::Linked;
use firn_structures::map::Ordered;
use firn_structures::queue::Segmented;
use firn_structures::red_black::RedBlack;
use firn_structures::strings::Fixed;
use firn_structures::tree::{Kind, Tree};
use firn_structures::vector::Placed;
use firn_structures::{Collection, HashMap, List, Map, Protocol, Queue, StringArray, Vector};

/// Bits of a reference that hold the address.
const ADDRESS_MASK: u64 = (1 << 48) - 16;
/// Words that are read from the start of an object.
const WORDS: u64 = 40;
const ROUNDS: u64 = 12_000;

/// A structure's root object, and the bits with which references in its pool begin.
#[derive(Clone, Copy)]
struct Root {
    at: u64,
    id: u64,
}

impl Root {
    fn of<'g, T: Target, V: View<'g>>(object: Obj<'g, T, V>) -> Self {
        Self {
            at: object.address().0,
            id: object.untyped().reference_word() >> 48,
        }
    }
}

/// Addresses of words that belong to a structure: everything that is found from its root object by following words that
/// look like references.
fn words_of(pool: &Pool<Mapped>, root: Root) -> Vec<u64> {
    let Root { at, id } = root;
    let (mut objects, mut seen) = (vec![at], HashSet::from([at]));
    let mut words = Vec::new();
    while let Some(object) = objects.pop() {
        // Objects of bytes are short here; nodes are longer.
        for index in 0..WORDS {
            let at = object + index * 8;
            let word = load(pool, at);
            words.push(at);
            let target = word & ADDRESS_MASK;
            if word >> 48 == id && word & 15 == 0 && target != 0 && seen.insert(target) {
                objects.push(target);
            }
        }
    }
    words.sort_unstable();
    words.dedup();
    words
}

fn load(pool: &Pool<Mapped>, at: u64) -> u64 {
    let mut bytes = [0; 8];
    let zero = pool
        .medium()
        .address(pool.medium().place(Default::default()));
    pool.medium().load_bytes(zero + at, &mut bytes);
    u64::from_le_bytes(bytes)
}

fn store(pool: &Pool<Mapped>, at: u64, word: u64) {
    let zero = pool
        .medium()
        .address(pool.medium().place(Default::default()));
    pool.medium().store_u64(zero + at, word);
}

fn damage(random: &mut Random, words: &[u64], old: u64, other: u64) -> u64 {
    let any = words[random.below(words.len() as u64) as usize];
    match random.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => random.next(),
        3 => old ^ 1 << random.below(64),
        4 => random.below(64),
        // Another word of the structure: most are references to a sound object of another kind.
        5 | 6 => other,
        _ => old & !ADDRESS_MASK | any & ADDRESS_MASK,
    }
}

fn use_map(session: &mut Session<Mapped>, random: &mut Random) -> Result<(), Error> {
    let keys: Vec<_> = (0..20).map(|_| key(random.below(900))).collect();
    {
        let guard = session.guard();
        let map = Map::open(guard.view(), "it")?;
        let _ = map.check();
        let _ = map.first();
        let _ = map.last();
        let reader = map.read()?;
        for key in &keys {
            let _ = reader.get(key);
            reader.range(&key[..]..).take(40).for_each(drop);
        }
        for entry in reader.iter().rev().flatten() {
            let _ = entry.to_pair();
        }
        for entry in reader.iter().flatten() {
            let _ = entry.to_pair();
        }
    }
    let clear = random.below(4) == 0;
    session.transaction(|tx| {
        let mut map = Map::open(tx, "it")?;
        for (index, key) in keys.iter().enumerate() {
            let _ = match index % 3 {
                0 => map.insert(key, b"another value"),
                1 => map.remove(key),
                _ => map.take(key).map(|_| true),
            };
        }
        if clear {
            let _ = map.clear();
        }
        let _ = map.check();
        Err(Error::ReadOnly)
    })
}

fn use_list(session: &mut Session<Mapped>, random: &mut Random) -> Result<(), Error> {
    let key = random.below(60);
    {
        let guard = session.guard();
        let list = List::open(guard.view(), "it")?;
        let _ = list.check();
        let reader = list.read()?;
        let _ = reader.find(key);
        reader.iter().flatten().for_each(|e| drop(e.value()));
        reader.iter().rev().flatten().for_each(|e| drop(e.value()));
    }
    session.transaction(|tx| {
        let mut list = List::open(tx, "it")?;
        let _ = list.remove(key);
        let _ = list.push_front(1, b"more");
        let _ = list.push_back(2, b"more");
        let _ = list.pop_front();
        let _ = list.pop_back();
        let mut cursor = list.cursor()?;
        let _ = cursor.find(key);
        let _ = cursor.set_value(b"another value");
        let _ = cursor.insert_after(3, b"more");
        let _ = cursor.insert_before(3, b"more");
        let _ = cursor.remove();
        Err(Error::ReadOnly)
    })
}

fn use_tree<K: Kind>(session: &mut Session<Mapped>, random: &mut Random) -> Result<(), Error> {
    let keys: Vec<_> = (0..20).map(|_| number_key(random.below(300))).collect();
    {
        let guard = session.guard();
        let tree = Tree::<_, K>::open(guard.view(), "it")?;
        let _ = tree.check();
        let reader = tree.read()?;
        let _ = (reader.first(), reader.last());
        let _ = reader.get_each(&keys, |_, _| {});
        for &key in &keys {
            let _ = reader.get(key);
            reader.range(key..).take(40).for_each(drop);
            reader.range(..key).rev().take(40).for_each(drop);
        }
        for entry in reader.iter().flatten().chain(reader.iter().rev().flatten()) {
            let _ = entry.to_pair();
        }
    }
    let clear = random.below(4) == 0;
    session.transaction(|tx| {
        let mut tree = Tree::<_, K>::open(tx, "it")?;
        for (index, &key) in keys.iter().enumerate() {
            let _ = match index % 4 {
                0 => tree.insert(key, b"another value"),
                1 => tree.insert(key ^ 1, b"another value"),
                2 => tree.remove(key),
                _ => tree.update(key, |old| old.map(|old| old.repeat(2))),
            };
        }
        if clear {
            let _ = tree.clear();
        }
        let _ = tree.check();
        Err(Error::ReadOnly)
    })
}

/// An even number.
fn number_key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c16)
}

fn key(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => number.to_be_bytes().to_vec(),
        _ => format!("a long start that is shared {number}").into_bytes(),
    }
}

fn use_hash(session: &mut Session<Mapped>, random: &mut Random) -> Result<(), Error> {
    let keys: Vec<_> = (0..20).map(|_| key(random.below(300))).collect();
    {
        let guard = session.guard();
        let map = HashMap::open(guard.view(), "it")?;
        let _ = map.check();
        let reader = map.read()?;
        for key in &keys {
            let _ = reader.get(key);
        }
        for entry in reader.iter().flatten() {
            let _ = entry.to_pair();
        }
    }
    session.transaction(|tx| {
        let mut map = HashMap::open(tx, "it")?;
        for (index, key) in keys.iter().enumerate() {
            let _ = match index % 4 {
                0 => map.insert(key, b"another value").map(|_| ()),
                1 => map.remove(key).map(|_| ()),
                2 => map.update(key, |old| old.map(<[u8]>::to_vec)).map(|_| ()),
                _ => map.take(key).map(|_| ()),
            };
        }
        let _ = map.check();
        let _ = map.clear();
        let _ = map.check();
        Err(Error::ReadOnly)
    })
}

fn use_vector(session: &mut Session<Mapped>, random: &mut Random) -> Result<(), Error> {
    let index = random.below(30);
    {
        let guard = session.guard();
        let vector = Vector::open(guard.view(), "it")?;
        let _ = vector.check();
        let reader = vector.read()?;
        let _ = reader.get(index);
        reader.iter().for_each(drop);
        reader.iter().rev().for_each(drop);
    }
    session.transaction(|tx| {
        let mut vector = Vector::open(tx, "it")?;
        let _ = vector.push(b"more");
        let _ = vector.set(index, b"another");
        let _ = vector.swap(index, 2);
        let _ = vector.insert(index, b"more");
        let _ = vector.remove(index);
        let _ = vector.swap_remove(index);
        let _ = vector.pop();
        let _ = vector.truncate(20);
        let _ = vector.clear();
        let _ = vector.check();
        Err(Error::ReadOnly)
    })
}

fn use_queue(session: &mut Session<Mapped>, random: &mut Random) -> Result<(), Error> {
    {
        let guard = session.guard();
        let queue = Queue::open(guard.view(), "it")?;
        let _ = queue.check();
        let _ = queue.front();
        queue.read()?.iter().for_each(drop);
    }
    session.transaction(|tx| {
        let mut queue = Queue::open(tx, "it")?;
        for _ in 0..random.below(200) {
            let _ = queue.push_back(b"more");
            let _ = queue.pop_front();
        }
        let _ = queue.clear();
        let _ = queue.check();
        Err(Error::ReadOnly)
    })
}

fn use_strings(session: &mut Session<Mapped>, random: &mut Random) -> Result<(), Error> {
    let (a, b) = (random.below(38), random.below(38));
    {
        let guard = session.guard();
        let array = StringArray::open(guard.view(), "it")?;
        let _ = array.check();
        let reader = array.read()?;
        let _ = reader.get(a);
        let all: Vec<u64> = (0..40).collect();
        let _ = reader.get_each(&all, |_, _| {});
        reader.iter().for_each(drop);
    }
    session.transaction(|tx| {
        let mut array = StringArray::open(tx, "it")?;
        let _ = array.set(a, b"another");
        let _ = array.swap(a, b);
        let _ = array.take(b);
        let _ = array.remove(a);
        let _ = array.check();
        Err(Error::ReadOnly)
    })
}

/// Damages one to three words at a time, uses the structure, and repairs it.
fn bombard(
    root: Root,
    pool: &Pool<Mapped>,
    mut using: impl FnMut(&mut Random) -> Result<(), Error>,
) {
    let words = words_of(pool, root);
    let mut random = Random(4711);
    let mut refused = 0;
    for round in 0..ROUNDS {
        let pick = |random: &mut Random| words[random.below(words.len() as u64) as usize];
        let places: Vec<_> = (0..=round % 3).map(|_| pick(&mut random)).collect();
        let old: Vec<_> = places.iter().map(|&at| load(pool, at)).collect();
        for (&at, &old) in places.iter().zip(&old) {
            let other = load(pool, pick(&mut random));
            store(pool, at, damage(&mut random, &words, old, other));
        }
        refused += u64::from(using(&mut random).is_err());
        for (&at, &old) in places.iter().zip(&old).rev() {
            store(pool, at, old);
        }
    }
    assert!(refused > 0);
}

/// Makes a structure with this many elements, bombards it while it is used, and checks it after the repair.
fn damaged<P: Protocol>(
    len: u64,
    make: impl Fn(Tx<'_, Mapped>) -> Result<(), Error>,
    using: impl Fn(&mut Session<Mapped>, &mut Random) -> Result<(), Error>,
) {
    let pool = pool();
    let mut session = pool.session().unwrap();
    session.transaction(make).unwrap();
    let root =
        session.read(|view| Root::of(Collection::<_, P>::open(view, "it").unwrap().object()));
    bombard(root, &pool, |random| using(&mut session, random));
    session.read(|view| {
        let it = Collection::<_, P>::open(view, "it").unwrap();
        assert_eq!(it.check().unwrap(), Vec::<String>::new());
        assert_eq!(it.len().unwrap(), len);
        assert_eq!(view.root_names().unwrap(), ["it"]);
    });
}

#[test]
fn a_damaged_map_is_an_error() {
    let make = |tx: Tx<'_, Mapped>| {
        let mut map = Map::create(tx, "it")?;
        (0..900).try_for_each(|number| map.insert(&key(number), &[1; 24]).map(drop))
    };
    damaged::<Ordered>(900, make, use_map);
}

#[test]
fn a_damaged_list_is_an_error() {
    let make = |tx: Tx<'_, Mapped>| {
        let mut list = List::create(tx, "it")?;
        (0..60).try_for_each(|key| list.push_back(key, &[1; 24]))
    };
    damaged::<Linked>(60, make, use_list);
}

#[test]
fn a_damaged_hash_map_is_an_error() {
    let make = |tx: Tx<'_, Mapped>| {
        let mut map = HashMap::create(tx, "it")?;
        (0..200).try_for_each(|number| map.insert(&key(number), &[1; 24]).map(drop))
    };
    damaged::<Hashed>(200, make, use_hash);
}

#[test]
fn a_damaged_vector_is_an_error() {
    let make = |tx: Tx<'_, Mapped>| {
        let mut vector = Vector::create(tx, "it")?;
        (0..300).try_for_each(|_| vector.push(&[1; 24]))
    };
    damaged::<Placed>(300, make, use_vector);
}

#[test]
fn a_damaged_queue_is_an_error() {
    let make = |tx: Tx<'_, Mapped>| {
        let mut queue = Queue::create(tx, "it")?;
        (0..300).try_for_each(|_| queue.push_back(&[1; 24]))
    };
    damaged::<Segmented>(300, make, use_queue);
}

#[test]
fn a_damaged_array_of_strings_is_an_error() {
    let make = |tx: Tx<'_, Mapped>| {
        let mut array = StringArray::create(tx, "it", 38)?;
        (0..30).try_for_each(|index| array.set(index, &[1; 40]).map(drop))
    };
    damaged::<Fixed>(38, make, use_strings);
}

fn a_damaged_tree_is_an_error<K: Kind>() {
    let make = |tx: Tx<'_, Mapped>| {
        let mut tree = Tree::<_, K>::create(tx, "it")?;
        (0..300).try_for_each(|number| tree.insert(number_key(number), &[1; 24]).map(drop))
    };
    damaged::<K>(300, make, use_tree::<K>);
}

#[test]
fn a_damaged_avl_tree_is_an_error() {
    a_damaged_tree_is_an_error::<Avl>();
}

#[test]
fn a_damaged_red_black_tree_is_an_error() {
    a_damaged_tree_is_an_error::<RedBlack>();
}

#[test]
fn a_damaged_inline_tree_is_an_error() {
    a_damaged_tree_is_an_error::<Inline>();
}

/// Comparisons take whole words: an entry with nonzero padding behind its key is found by no search.
#[test]
fn what_follows_a_key_is_looked_at() {
    const KEY: [u8; 2] = [0, 9];
    let pool = pool();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            HashMap::create(tx, "hash")?.insert(&KEY, b"value")?;
            Map::create(tx, "map")?.insert(&KEY, b"value")
        })
        .unwrap();
    let guard = session.guard();
    let hash = HashMap::open(guard.view(), "hash").unwrap();
    let map = Map::open(guard.view(), "map").unwrap();
    for root in [Root::of(hash.object()), Root::of(map.object())] {
        let mut words = words_of(&pool, root).into_iter();
        let stored = u64::from_le_bytes([KEY[0], KEY[1], 0, 0, 0, 0, 0, 0]);
        let at = words.find(|&at| load(&pool, at) == stored).unwrap();
        store(&pool, at, stored | 8 << 32);
    }
    for findings in [hash.check(), map.check()] {
        assert!(findings.unwrap()[0].contains("what follows a key"));
    }
}
