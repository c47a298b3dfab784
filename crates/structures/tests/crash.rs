//! Is every legal crash image of every sequence of up to two operations recoverable, with crashes inside recovery?
//!
//! Three keys; insert, update (an insert of an existing key), remove, and each of them aborted. One key exists from the
//! start, so that every sequence of one or two operations occurs. In the binary trees four exist, so that an insert or
//! a removal rotates. A vector and a queue hold the key as an element's first byte; a queue's removal takes the first
//! element, whatever the key.

use std::cell::RefCell;

use firn_crash::{Crash, CrashOptions, CrashState, ExploreOptions, Explorer};
use firn_heap::{Error, Pool, PoolOptions, Session, Tx, View};
use firn_media::Domain;
use firn_structures::avl::Avl;
use firn_structures::inline_tree::Inline;
use firn_structures::red_black::RedBlack;
use firn_structures::tree::{self, Tree};
use firn_structures::{HashMap, List, Map, Queue, StringArray, Vector};

/// Keys and values in the structure's own order.
type Content = Vec<(u8, Vec<u8>)>;

#[derive(Clone, Copy, Debug)]
enum Op {
    Insert(u8),
    Remove(u8),
    AbortedInsert(u8),
    AbortedRemove(u8),
}

const OPS: [Op; 9] = [
    Op::Insert(1),
    Op::Insert(2),
    Op::Insert(3),
    Op::Remove(1),
    Op::Remove(2),
    Op::Remove(3),
    Op::AbortedInsert(1),
    Op::AbortedInsert(2),
    Op::AbortedRemove(2),
];

/// The key that exists from the start.
const PRESENT: [u8; 1] = [2];

/// The operations of the trees: one fewer; and the keys that exist from the start.
const TREE_OPS: [Op; 8] = [
    Op::Insert(50),
    Op::Insert(15),
    Op::Insert(20),
    Op::Remove(10),
    Op::Remove(20),
    Op::Remove(40),
    Op::AbortedInsert(50),
    Op::AbortedRemove(20),
];
const TREE_PRESENT: [u8; 4] = [10, 20, 30, 40];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    List,
    Map,
    Hash,
    Vector,
    Queue,
    Strings,
    Avl,
    RedBlack,
    Inline,
}

impl Kind {
    fn ops(self) -> &'static [Op] {
        match self {
            Self::Avl | Self::RedBlack | Self::Inline => &TREE_OPS,
            _ => &OPS,
        }
    }

    fn present(self) -> &'static [u8] {
        match self {
            Self::Avl | Self::RedBlack => &TREE_PRESENT,
            // A leaf that splits has more images than can be tried: a test of its own covers that.
            Self::Inline => &TREE_PRESENT[..2],
            _ => &PRESENT,
        }
    }
}

const KINDS: [Kind; 9] = [
    Kind::List,
    Kind::Map,
    Kind::Hash,
    Kind::Vector,
    Kind::Queue,
    Kind::Strings,
    Kind::Avl,
    Kind::RedBlack,
    Kind::Inline,
];

/// Elements of the array of strings.
const STRINGS: u64 = 5;

fn options() -> PoolOptions {
    PoolOptions {
        lanes: 1,
        publish_every: u32::MAX,
        ..PoolOptions::new("structures")
    }
}

fn value(number: u8) -> Vec<u8> {
    vec![number; 10 + usize::from(number)]
}

/// A key and its value in one element.
fn element(key: u8, value: &[u8]) -> Vec<u8> {
    [&[key], value].concat()
}

fn split(element: &[u8]) -> (u8, Vec<u8>) {
    (element[0], element[1..].to_vec())
}

/// The position of the key in a vector.
fn position<'t>(vector: &Vector<'t, Tx<'t, Crash>>, key: u8) -> Result<Option<u64>, Error> {
    for index in 0..vector.len()? {
        if vector.get(index)?.is_some_and(|e| e[0] == key) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// A key of a map: the entry of one stores its length; the others have eight bytes, and their entries do not.
fn name(key: u8) -> Vec<u8> {
    let bytes = u64::from(key).to_le_bytes();
    bytes[..if key == 1 { 1 } else { 8 }].to_vec()
}

fn insert(kind: Kind, tx: Tx<'_, Crash>, key: u8, value: &[u8]) -> Result<(), Error> {
    match kind {
        Kind::Map => Map::open(tx, "it")?.insert(&name(key), value).map(|_| ()),
        Kind::List => {
            let mut list = List::open(tx, "it")?;
            let mut cursor = list.cursor()?;
            if cursor.find(u64::from(key))? {
                cursor.set_value(value).map(|_| ())
            } else {
                list.push_back(u64::from(key), value)
            }
        }
        Kind::Hash => HashMap::open(tx, "it")?
            .insert(&name(key), value)
            .map(|_| ()),
        Kind::Vector => {
            let mut vector = Vector::open(tx, "it")?;
            match position(&vector, key)? {
                Some(index) => vector.set(index, &element(key, value)),
                None => vector.push(&element(key, value)),
            }
        }
        Kind::Queue => Queue::open(tx, "it")?.push_back(&element(key, value)),
        Kind::Strings => StringArray::open(tx, "it")?
            .set(key.into(), value)
            .map(|_| ()),
        Kind::Avl => insert_in::<Avl>(tx, key, value),
        Kind::RedBlack => insert_in::<RedBlack>(tx, key, value),
        Kind::Inline => insert_in::<Inline>(tx, key, value),
    }
}

fn insert_in<K: tree::Kind>(tx: Tx<'_, Crash>, key: u8, value: &[u8]) -> Result<(), Error> {
    let mut tree = Tree::<_, K>::open(tx, "it")?;
    tree.insert(u64::from(key), value).map(|_| ())
}

fn remove_in<K: tree::Kind>(tx: Tx<'_, Crash>, key: u8) -> Result<(), Error> {
    let mut tree = Tree::<_, K>::open(tx, "it")?;
    tree.remove(u64::from(key)).map(|_| ())
}

fn remove(kind: Kind, tx: Tx<'_, Crash>, key: u8) -> Result<(), Error> {
    match kind {
        Kind::Map => Map::open(tx, "it")?.remove(&name(key)).map(|_| ()),
        Kind::List => List::open(tx, "it")?.remove(u64::from(key)).map(|_| ()),
        Kind::Hash => HashMap::open(tx, "it")?.remove(&name(key)).map(|_| ()),
        Kind::Vector => {
            let mut vector = Vector::open(tx, "it")?;
            match position(&vector, key)? {
                Some(index) => vector.remove(index).map(|_| ()),
                None => Ok(()),
            }
        }
        Kind::Queue => Queue::open(tx, "it")?.pop_front().map(|_| ()),
        Kind::Strings => StringArray::open(tx, "it")?.remove(key.into()).map(|_| ()),
        Kind::Avl => remove_in::<Avl>(tx, key),
        Kind::RedBlack => remove_in::<RedBlack>(tx, key),
        Kind::Inline => remove_in::<Inline>(tx, key),
    }
}

fn apply(kind: Kind, session: &mut Session<Crash>, op: Op, number: u8) -> Result<(), Error> {
    session.transaction(|tx| match op {
        Op::Insert(key) => insert(kind, tx, key, &value(number)),
        Op::Remove(key) => remove(kind, tx, key),
        Op::AbortedInsert(key) => {
            insert(kind, tx, key, &value(number))?;
            Err(Error::ReadOnly)
        }
        Op::AbortedRemove(key) => {
            remove(kind, tx, key)?;
            Err(Error::ReadOnly)
        }
    })
}

fn model(kind: Kind, content: &mut Content, op: Op, number: u8) {
    match op {
        Op::Insert(key) if kind == Kind::Queue => content.push((key, value(number))),
        Op::Remove(_) if kind == Kind::Queue => drop(content.drain(..content.len().min(1))),
        Op::Insert(key) => match content.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) => *old = value(number),
            None => {
                content.push((key, value(number)));
                if !matches!(kind, Kind::List | Kind::Vector | Kind::Queue) {
                    content.sort();
                }
            }
        },
        Op::Remove(key) => content.retain(|(k, _)| *k != key),
        Op::AbortedInsert(_) | Op::AbortedRemove(_) => {}
    }
}

/// Everything that an iteration yields.
fn content<T>(
    items: impl Iterator<Item = Result<T, Error>>,
    pair: impl Fn(T) -> Result<(u8, Vec<u8>), Error>,
) -> Result<Content, Error> {
    items.map(|item| pair(item?)).collect()
}

/// A tree's defects, and its content.
fn read_tree<'g, V: View<'g>, K: tree::Kind>(view: V) -> Result<(Vec<String>, Content), Error> {
    let tree = Tree::<_, K>::open(view, "it")?;
    let numbered = content(tree.read()?.iter(), |e| Ok((e.key() as u8, e.value()?)))?;
    Ok((tree.check()?, numbered))
}

/// The structure's defects, and its content.
fn read_any<'g, V: View<'g>>(kind: Kind, view: V) -> Result<(Vec<String>, Content), Error> {
    let named = |(key, value): (Vec<u8>, _)| (key[0], value);
    Ok(match kind {
        Kind::Map => {
            let map = Map::open(view, "it")?;
            let entries = content(map.read()?.iter(), |e| e.to_pair().map(named))?;
            (map.check()?, entries)
        }
        Kind::Hash => {
            let map = HashMap::open(view, "it")?;
            let mut entries = content(map.read()?.iter(), |e| e.to_pair().map(named))?;
            entries.sort();
            (map.check()?, entries)
        }
        Kind::List => {
            let list = List::open(view, "it")?;
            let elements = content(list.read()?.iter(), |e| Ok((e.key() as u8, e.value()?)))?;
            (list.check()?, elements)
        }
        Kind::Vector => {
            let vector = Vector::open(view, "it")?;
            let elements = content(vector.read()?.iter(), |e| Ok(split(&e)))?;
            (vector.check()?, elements)
        }
        Kind::Queue => {
            let queue = Queue::open(view, "it")?;
            let elements = content(queue.read()?.iter(), |e| Ok(split(&e)))?;
            (queue.check()?, elements)
        }
        Kind::Strings => {
            let array = StringArray::open(view, "it")?;
            let strings: Vec<_> = array.read()?.iter().collect::<Result<_, _>>()?;
            let placed = (0..).zip(strings);
            let placed = placed.filter_map(|(key, string)| Some((key, string?)));
            (array.check()?, placed.collect())
        }
        Kind::Avl => read_tree::<_, Avl>(view)?,
        Kind::RedBlack => read_tree::<_, RedBlack>(view)?,
        Kind::Inline => read_tree::<_, Inline>(view)?,
    })
}

/// The structure's content, or its defects.
fn read(kind: Kind, session: &mut Session<Crash>) -> Result<Content, String> {
    let read = session.read(|view| read_any(kind, view));
    let (wrong, content) = read.map_err(|e| e.to_string())?;
    match wrong.into_iter().next() {
        Some(wrong) => Err(wrong),
        None => Ok(content),
    }
}

fn setup(kind: Kind, crash: &Crash) {
    let pool = Pool::create(crash.clone(), &options()).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            match kind {
                Kind::Map => Map::create(tx, "it").map(|_| ())?,
                Kind::List => List::create(tx, "it").map(|_| ())?,
                Kind::Hash => HashMap::create(tx, "it").map(|_| ())?,
                Kind::Vector => Vector::create(tx, "it").map(|_| ())?,
                Kind::Queue => Queue::create(tx, "it").map(|_| ())?,
                Kind::Strings => StringArray::create(tx, "it", STRINGS).map(|_| ())?,
                Kind::Avl => Tree::<_, Avl>::create(tx, "it").map(|_| ())?,
                Kind::RedBlack => Tree::<_, RedBlack>::create(tx, "it").map(|_| ())?,
                Kind::Inline => Tree::<_, Inline>::create(tx, "it").map(|_| ())?,
            }
            let mut present = kind.present().iter();
            present.try_for_each(|&key| insert(kind, tx, key, &value(0)))
        })
        .unwrap();
    drop(session);
    pool.close().unwrap();
}

fn verify(kind: Kind, crash: Crash, state: &CrashState, legal: &[Content]) -> Result<(), String> {
    let pool = Pool::open(crash, &options()).map_err(|e| e.to_string())?;
    pool.medium().end_of_recovery();
    let mut session = pool.session().map_err(|e| e.to_string())?;
    let found = read(kind, &mut session)?;
    let findings = pool.check().map_err(|e| e.to_string())?;
    pool.abandon();
    drop(session);
    if let Some(finding) = findings.first() {
        return Err(finding.to_string());
    }
    let done = state.note(0) as usize;
    let either = [legal.get(done), legal.get(done + 1)];
    if either.contains(&Some(&found)) {
        Ok(())
    } else {
        Err(format!(
            "{done} operations were acknowledged; found {found:?}"
        ))
    }
}

/// Explores one sequence; returns how often the check ran.
fn explore(kind: Kind, domain: Domain, ops: &[Op]) -> u64 {
    let present = kind.present().iter();
    let mut legal = vec![present.map(|&key| (key, value(0))).collect::<Content>()];
    for (number, &op) in (1..).zip(ops) {
        let mut next = legal.last().unwrap().clone();
        model(kind, &mut next, op, number);
        legal.push(next);
    }
    let outcome = RefCell::new(Vec::new());
    let explorer = Explorer::new(
        ExploreOptions {
            recovery_depth: 1,
            medium: CrashOptions::with_domain(domain),
            ..ExploreOptions::default()
        },
        16 << 20,
        |crash| setup(kind, crash),
        |crash| {
            outcome.borrow_mut().clear();
            let pool = Pool::open(crash.clone(), &options()).unwrap();
            let mut session = pool.session().unwrap();
            for (number, &op) in (1..).zip(ops) {
                outcome
                    .borrow_mut()
                    .push(apply(kind, &mut session, op, number).is_ok());
                crash.note(u64::from(number));
            }
            pool.abandon();
            drop(session);
        },
        |crash, state| verify(kind, crash, state, &legal),
    );
    let report = explorer.explore();
    println!("{kind:?} {ops:?} {report}");
    report.expect_clean();
    for (op, done) in ops.iter().zip(outcome.borrow().iter()) {
        let aborts = matches!(op, Op::AbortedInsert(_) | Op::AbortedRemove(_));
        assert_eq!(*done, !aborts, "{op:?}");
    }
    assert!(report.exhaustive(), "{ops:?}");
    report.states
}

fn explore_all(kind: Kind, domain: Domain) {
    let started = std::time::Instant::now();
    let mut states = 0;
    let mut sequences = 0;
    for &first in kind.ops() {
        for &second in kind.ops() {
            states += explore(kind, domain, &[first, second]);
            sequences += 1;
        }
    }
    println!(
        "{kind:?} under {domain}: {sequences} sequences, {states} runs of the check, all legal, {:.1} s",
        started.elapsed().as_secs_f64()
    );
}

#[test]
fn every_image_of_the_list_under_adr() {
    explore_all(Kind::List, Domain::Adr);
}

#[test]
fn every_image_of_the_map_under_adr() {
    explore_all(Kind::Map, Domain::Adr);
}

#[test]
fn every_image_of_the_hash_map_under_adr() {
    explore_all(Kind::Hash, Domain::Adr);
}

#[test]
fn every_image_of_the_vector_under_adr() {
    explore_all(Kind::Vector, Domain::Adr);
}

#[test]
fn every_image_of_the_queue_under_adr() {
    explore_all(Kind::Queue, Domain::Adr);
}

#[test]
fn every_image_of_the_array_of_strings_under_adr() {
    explore_all(Kind::Strings, Domain::Adr);
}

#[test]
fn every_image_of_the_avl_tree_under_adr() {
    explore_all(Kind::Avl, Domain::Adr);
}

#[test]
fn every_image_of_the_red_black_tree_under_adr() {
    explore_all(Kind::RedBlack, Domain::Adr);
}

#[test]
fn every_image_of_the_inline_tree_under_adr() {
    explore_all(Kind::Inline, Domain::Adr);
}

#[test]
fn every_image_of_leaves_that_split_and_merge() {
    let inserts = [50, 30, 15, 16].map(Op::Insert);
    let removals = [30, 50, 16, 10].map(Op::Remove);
    let ops: Vec<_> = inserts.into_iter().chain(removals).collect();
    explore(Kind::Inline, Domain::Adr, &ops);
}

#[test]
fn every_image_where_caches_or_the_page_cache_survive() {
    for domain in [Domain::Eadr, Domain::Process] {
        for kind in KINDS {
            explore_all(kind, domain);
        }
    }
}

#[test]
#[ignore = "long: sequences of three operations"]
fn every_image_of_three_operations_under_adr() {
    for kind in KINDS {
        for &first in kind.ops() {
            for &second in kind.ops() {
                for &third in kind.ops() {
                    explore(kind, Domain::Adr, &[first, second, third]);
                }
            }
        }
    }
}
