//! Do two writers, a reader and a collector in one structure see each other's transactions whole?
//!
//! A transaction gives both partners of some pairs one value, or removes it from both; some are aborted at the end.
//! Each writer has pairs of its own, so the final content is known.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Random, pool};
use firn_heap::collector::{CollectOptions, CollectorOptions, PageSize};
use firn_heap::{Error, Pool, Statistics, Tx, View};
use firn_mapped::Mapped;
use firn_structures::avl::Avl;
use firn_structures::inline_tree::Inline;
use firn_structures::red_black::RedBlack;
use firn_structures::tree::{Kind, Tree};
use firn_structures::{HashMap, Map, Queue, StringArray, Vector};

/// Pairs, half of which belong to each writer.
const PAIRS: u64 = 400;
const WRITERS: u64 = 2;
/// Minimum number of transactions of a writer: it continues until something was collected.
const TRANSACTIONS: u64 = 6_000;
/// Minimum number of the reader's passes, however soon the writers are done.
const PASSES: u64 = 3;
/// Words of the longest value: the most that a tree with inline values takes.
const MOST_WORDS: u64 = 16;

/// A structure under the root name `it`, in which pairs have values.
trait Shared {
    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error>;

    /// Gives a place a value, or removes it.
    fn set(tx: Tx<'_, Mapped>, place: u64, value: Option<&[u8]>) -> Result<(), Error>;

    /// The values of all places, read under one lock.
    fn all<'g, V: View<'g>>(view: V) -> Vec<Option<Vec<u8>>>;

    /// The findings of the structure's own check.
    fn check<'g, V: View<'g>>(view: V) -> Vec<String>;
}

/// The places of a pair, far from each other.
fn places(pair: u64) -> [u64; 2] {
    [pair, PAIRS + pair]
}

fn bytes(value: u64) -> Vec<u8> {
    value
        .to_le_bytes()
        .repeat(1 + (value % MOST_WORDS) as usize)
}

/// A collector that always finds work.
fn eager() -> CollectorOptions {
    CollectorOptions {
        trigger: 1.01,
        least_bytes: 0,
        collect: CollectOptions {
            target: 1.0,
            pages: PageSize::Small,
            ..CollectOptions::default()
        },
        ..CollectorOptions::default()
    }
}

/// Runs one writer's transactions and returns the final values of its pairs.
fn write<S: Shared>(pool: &Pool<Mapped>, writer: u64) -> Vec<Option<u64>> {
    let mut session = pool.session().unwrap();
    let mut random = Random(11 + writer);
    let mut model = vec![None; PAIRS as usize];
    let is_collected = || Statistics::read(pool.medium()).unwrap().collector.cycles > 0;
    for step in 0.. {
        if step >= TRANSACTIONS && is_collected() {
            break;
        }
        let value = (random.below(3) > 0).then(|| step * WRITERS + writer);
        let pairs: Vec<u64> = (0..1 + random.below(6))
            .map(|_| random.below(PAIRS / WRITERS) * WRITERS + writer)
            .collect();
        let gives_up = random.below(7) == 0;
        let outcome = session.transaction(|tx| {
            for place in pairs.iter().flat_map(|&pair| places(pair)) {
                S::set(tx, place, value.map(bytes).as_deref())?;
            }
            match gives_up {
                true => Err(Error::ReadOnly),
                false => Ok(()),
            }
        });
        match outcome {
            Err(Error::ReadOnly) if gives_up => (),
            Ok(()) if !gives_up => pairs.iter().for_each(|&p| model[p as usize] = value),
            other => panic!("a transaction ended with {other:?}"),
        }
    }
    model
}

/// Counts a working thread, which may also leave by a panic.
struct Leaves<'w>(&'w AtomicU64);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn pairs<'g, S: Shared, V: View<'g>>(view: V) -> Vec<Option<Vec<u8>>> {
    let mut all = S::all(view);
    let partners = all.split_off(PAIRS as usize);
    assert!(all == partners, "a pair whose partners differ");
    all
}

fn share<S: Shared>() {
    let pool = pool();
    pool.session().unwrap().transaction(S::create).unwrap();
    let collector = pool.start_collector(&eager()).unwrap();
    let at_work = AtomicU64::new(WRITERS);
    let models: Vec<Vec<Option<u64>>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (pool, at_work) = (&pool, &at_work);
                scope.spawn(move || {
                    let _leaves = Leaves(at_work);
                    write::<S>(pool, writer)
                })
            })
            .collect();
        let mut session = pool.session().unwrap();
        let mut passes = 0;
        while at_work.load(Ordering::Acquire) > 0 || passes < PASSES {
            passes += 1;
            session.read(|view| drop(pairs::<S, _>(view)));
        }
        writers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    collector.stop().unwrap();
    let expected: Vec<Option<Vec<u8>>> = (0..PAIRS as usize)
        .map(|pair| models[pair % WRITERS as usize][pair].map(bytes))
        .collect();
    pool.session().unwrap().read(|view| {
        assert!(pairs::<S, _>(view) == expected, "a transaction got lost");
        assert_eq!(S::check(view), Vec::<String>::new());
    });
    assert!(pool.check().unwrap().is_empty());
    assert_eq!(pool.trace().unwrap().reclaimed, 0, "something leaked");
}

struct OfTree<K>(PhantomData<K>);

/// Keys of neighbouring numbers are far from each other in order.
fn tree_key(place: u64) -> u64 {
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<K: Kind> Shared for OfTree<K> {
    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        Tree::<_, K>::create(tx, "it").map(drop)
    }

    fn set(tx: Tx<'_, Mapped>, place: u64, value: Option<&[u8]>) -> Result<(), Error> {
        let mut tree = Tree::<_, K>::open(tx, "it")?;
        match value {
            Some(value) => tree.insert(tree_key(place), value).map(drop),
            None => tree.remove(tree_key(place)).map(drop),
        }
    }

    fn all<'g, V: View<'g>>(view: V) -> Vec<Option<Vec<u8>>> {
        let tree = Tree::<_, K>::open(view, "it").unwrap();
        let reader = tree.read().unwrap();
        let get = |place| reader.get(tree_key(place)).unwrap();
        let all: Vec<_> = (0..2 * PAIRS).map(get).collect();
        assert_eq!(reader.len(), all.iter().flatten().count() as u64);
        assert_eq!(reader.len(), reader.iter().count() as u64);
        all
    }

    fn check<'g, V: View<'g>>(view: V) -> Vec<String> {
        Tree::<_, K>::open(view, "it").unwrap().check().unwrap()
    }
}

/// Maps, whose keys are bytes.
macro_rules! of_map {
    ($subject:ident, $map:ident) => {
        struct $subject;

        impl Shared for $subject {
            fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
                $map::create(tx, "it").map(drop)
            }

            fn set(tx: Tx<'_, Mapped>, place: u64, value: Option<&[u8]>) -> Result<(), Error> {
                let mut map = $map::open(tx, "it")?;
                match value {
                    Some(value) => map.insert(&place.to_be_bytes(), value).map(drop),
                    None => map.remove(&place.to_be_bytes()).map(drop),
                }
            }

            fn all<'g, V: View<'g>>(view: V) -> Vec<Option<Vec<u8>>> {
                let map = $map::open(view, "it").unwrap();
                let reader = map.read().unwrap();
                let get = |place: u64| reader.get(&place.to_be_bytes()).unwrap();
                let all: Vec<_> = (0..2 * PAIRS).map(get).collect();
                assert_eq!(reader.len(), all.iter().flatten().count() as u64);
                assert_eq!(reader.len(), reader.iter().count() as u64);
                all
            }

            fn check<'g, V: View<'g>>(view: V) -> Vec<String> {
                $map::open(view, "it").unwrap().check().unwrap()
            }
        }
    };
}
of_map!(OfHash, HashMap);
of_map!(OfMap, Map);

struct OfStrings;

impl Shared for OfStrings {
    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        StringArray::create(tx, "it", 2 * PAIRS).map(drop)
    }

    fn set(tx: Tx<'_, Mapped>, place: u64, value: Option<&[u8]>) -> Result<(), Error> {
        let mut strings = StringArray::open(tx, "it")?;
        match value {
            Some(value) => strings.set(place, value).map(drop),
            None => strings.remove(place).map(drop),
        }
    }

    fn all<'g, V: View<'g>>(view: V) -> Vec<Option<Vec<u8>>> {
        let strings = StringArray::open(view, "it").unwrap();
        let reader = strings.read().unwrap();
        reader.iter().map(Result::unwrap).collect()
    }

    fn check<'g, V: View<'g>>(view: V) -> Vec<String> {
        StringArray::open(view, "it").unwrap().check().unwrap()
    }
}

/// A vector in which empty bytes stand for no value. It grows while a value is set, and shrinks again.
struct OfVector;

impl Shared for OfVector {
    fn create(tx: Tx<'_, Mapped>) -> Result<(), Error> {
        let mut vector = Vector::create(tx, "it")?;
        (0..2 * PAIRS).try_for_each(|_| vector.push(&[]))
    }

    fn set(tx: Tx<'_, Mapped>, place: u64, value: Option<&[u8]>) -> Result<(), Error> {
        let mut vector = Vector::open(tx, "it")?;
        vector.push(value.unwrap_or_default())?;
        vector.swap(place, 2 * PAIRS)?;
        vector.pop().map(drop)
    }

    fn all<'g, V: View<'g>>(view: V) -> Vec<Option<Vec<u8>>> {
        let vector = Vector::open(view, "it").unwrap();
        let reader = vector.read().unwrap();
        assert_eq!(reader.len(), 2 * PAIRS);
        let values = reader.iter().map(Result::unwrap);
        values.map(|v| (!v.is_empty()).then_some(v)).collect()
    }

    fn check<'g, V: View<'g>>(view: V) -> Vec<String> {
        Vector::open(view, "it").unwrap().check().unwrap()
    }
}

#[test]
fn an_avl_tree_is_shared() {
    share::<OfTree<Avl>>();
}

#[test]
fn a_red_black_tree_is_shared() {
    share::<OfTree<RedBlack>>();
}

#[test]
fn an_inline_tree_is_shared() {
    share::<OfTree<Inline>>();
}

#[test]
fn a_hash_map_is_shared() {
    share::<OfHash>();
}

#[test]
fn a_map_is_shared() {
    share::<OfMap>();
}

#[test]
fn an_array_of_strings_is_shared() {
    share::<OfStrings>();
}

#[test]
fn a_vector_is_shared() {
    share::<OfVector>();
}

/// Messages of each pushing thread.
const MESSAGES: u64 = 1_500;

/// Pushes every message of a writer, two per transaction.
fn push(pool: &Pool<Mapped>, writer: u64) {
    let mut session = pool.session().unwrap();
    for message in 0..MESSAGES {
        let message = bytes(message * WRITERS + writer);
        session
            .transaction(|tx| {
                let mut queue = Queue::open(tx, "it")?;
                queue.push_back(&message)?;
                queue.push_back(&message)
            })
            .unwrap();
    }
}

/// Pops two messages per transaction until none are `left`. Returns their numbers.
fn pop(pool: &Pool<Mapped>, left: &AtomicU64) -> Vec<u64> {
    let mut session = pool.session().unwrap();
    let mut popped = Vec::new();
    while left.load(Ordering::Acquire) > 0 {
        let two = session.transaction(|tx| {
            let mut queue = Queue::open(tx, "it")?;
            Ok::<_, Error>([queue.pop_front()?, queue.pop_front()?])
        });
        let [one, other] = two.unwrap();
        assert_eq!(one, other);
        if let Some(message) = one {
            left.fetch_sub(1, Ordering::Release);
            let number = u64::from_le_bytes(message[..8].try_into().unwrap());
            assert_eq!(message, bytes(number));
            popped.push(number);
        }
    }
    popped
}

/// Checks the queue until no messages are `left`.
fn look(pool: &Pool<Mapped>, left: &AtomicU64) {
    let mut session = pool.session().unwrap();
    while left.load(Ordering::Acquire) > 0 {
        session.read(|view| {
            let queue = Queue::open(view, "it").unwrap();
            let reader = queue.read().unwrap();
            let all: Vec<_> = reader.iter().map(Result::unwrap).collect();
            assert_eq!(all.len() as u64, reader.len());
            assert!(all.chunks(2).all(|two| two[0] == two[1]));
        });
    }
}

/// Two threads push, two pop, one checks: messages are pushed and popped in twos.
#[test]
fn a_queue_is_shared() {
    let pool = pool();
    let create = |tx: Tx<'_, Mapped>| Queue::create(tx, "it").map(drop);
    pool.session().unwrap().transaction(create).unwrap();
    let collector = pool.start_collector(&eager()).unwrap();
    let left = AtomicU64::new(WRITERS * MESSAGES);
    let popped: Vec<Vec<u64>> = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let pool = &pool;
            scope.spawn(move || push(pool, writer));
        }
        let poppers = [(); 2].map(|()| scope.spawn(|| pop(&pool, &left)));
        look(&pool, &left);
        poppers.map(|popper| popper.join().unwrap()).into()
    });
    collector.stop().unwrap();
    // Each message comes once, and a popping thread gets one writer's messages in the order of pushing.
    for popped in &popped {
        for writer in 0..WRITERS {
            let of: Vec<_> = popped.iter().filter(|n| *n % WRITERS == writer).collect();
            assert!(of.is_sorted());
        }
    }
    let mut all: Vec<u64> = popped.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..WRITERS * MESSAGES));
    assert_eq!(pool.trace().unwrap().reclaimed, 0, "something leaked");
}
