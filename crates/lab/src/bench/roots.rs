//! The cost of finding a root in each operation, over finding it once in an operation shared by many.

use firn_heap::{Error, LogKind, Pool, PoolKind, PoolOptions, RootHandle, Session, Stored, View};
use firn_mapped::{HugePages, Mapped};
use firn_structures::Vector;
use firn_structures::vector::VectorRoot;
use firn_tools::Progress;
use firn_units::VirtAddr;

use super::bars::{Bar, NONE, find};
use super::clock::{Moment, Times};
use super::figure::{Figure, Subject};
use super::{BenchError, Options, pools};

/// The name of this part of the bench.
pub(super) const SECTION: &str = "roots";
const LIST: &str = "list";
const WORD: &str = "word";
/// Elements of the list. All are near: the subject is the way to them.
const ELEMENTS: u64 = 100;
/// Operations that share one.
const SHARED: u64 = 100;
const POOL_BYTES: u64 = 16 << 20;
/// Extra nanoseconds of an operation of its own, over one in a shared operation, at most.
const OVER_NS: f64 = 25.0;
const HOW: &str = "one session; pages present; everything in the first cache";

#[derive(Stored)]
#[repr(C)]
struct Word {
    number: u64,
}

const OPERATIONS: [(&str, Operation); 7] = [
    ("root_get_own", get_own),
    ("root_get_named", get_named),
    ("root_get_shared", get_shared),
    ("root_word", word),
    ("root_word_named", word_named),
    ("root_raw_own", raw_own),
    ("root_raw_shared", raw_shared),
];

/// Performs the operation this many times.
type Operation = fn(&mut Rig, u64) -> Result<(), Error>;

/// Names of all operations.
pub(super) fn names() -> impl Iterator<Item = String> {
    OPERATIONS.iter().map(|(name, _)| (*name).to_owned())
}

struct Rig {
    session: Session<Mapped>,
    raw: Session<Mapped>,
    list: RootHandle<VectorRoot>,
    word: RootHandle<Word>,
    into: Vec<u8>,
}

impl Rig {
    fn new(options: &Options) -> Result<Self, BenchError> {
        let dir = &options.memory_dir;
        let pool = pools::mapped(dir, POOL_BYTES, options.domain, PoolKind::Traced)?;
        let mut session = pool.session()?;
        session.transaction(|tx| {
            let mut list = Vector::create(tx, LIST)?;
            for number in 0..ELEMENTS {
                list.push(&number.to_le_bytes())?;
            }
            tx.set_root(WORD, tx.alloc(Word { number: 0 })?)
        })?;
        let medium = pools::unnamed(dir, POOL_BYTES, options.domain, HugePages::Ask)?;
        let undo = PoolOptions {
            log: LogKind::Undo,
            ..pools::pool_options(PoolKind::Explicit)
        };
        let pool = Pool::create(medium, &undo)?;
        let id = pool.register_described(Word::DESCRIPTOR)?.id();
        let mut raw = pool.session()?;
        raw.raw_transaction(|tx| {
            let body = tx.alloc_of(id, u64::from(Word::DESCRIPTOR.size))?;
            tx.set_root(WORD, Some(body))
        })?;
        Ok(Self {
            session,
            raw,
            list: RootHandle::new(LIST)?,
            word: RootHandle::new(WORD)?,
            into: Vec::new(),
        })
    }
}

/// A get in a guard of its own, by a handle.
fn get_own(rig: &mut Rig, count: u64) -> Result<(), Error> {
    for number in 0..count {
        let guard = rig.session.guard();
        rig.into.clear();
        Vector::open(guard.view(), &rig.list)?.get_into(number % ELEMENTS, &mut rig.into)?;
    }
    Ok(())
}

/// Gets an element of a vector that is found by its name.
fn get_named(rig: &mut Rig, count: u64) -> Result<(), Error> {
    for number in 0..count {
        let guard = rig.session.guard();
        rig.into.clear();
        Vector::open(guard.view(), LIST)?.get_into(number % ELEMENTS, &mut rig.into)?;
    }
    Ok(())
}

/// A get under a guard shared by a hundred.
fn get_shared(rig: &mut Rig, count: u64) -> Result<(), Error> {
    for _ in 0..count / SHARED {
        let guard = rig.session.guard();
        let list = Vector::open(guard.view(), &rig.list)?;
        for number in 0..SHARED {
            rig.into.clear();
            list.get_into(number % ELEMENTS, &mut rig.into)?;
        }
    }
    Ok(())
}

/// A transaction that changes one word, found by a handle.
fn word(rig: &mut Rig, count: u64) -> Result<(), Error> {
    for _ in 0..count {
        let word = &rig.word;
        rig.session.transaction(|tx| {
            let word = tx.root(word)?;
            word.store(Word::NUMBER, word.load(Word::NUMBER) + 1);
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

/// Changes a word of an object that is found by its name.
fn word_named(rig: &mut Rig, count: u64) -> Result<(), Error> {
    for _ in 0..count {
        rig.session.transaction(|tx| {
            let word = tx.root::<Word>(WORD)?;
            word.store(Word::NUMBER, word.load(Word::NUMBER) + 1);
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

/// A transaction in place that changes one word, found in an operation of its own.
fn raw_own(rig: &mut Rig, count: u64) -> Result<(), Error> {
    for number in 0..count {
        let guard = rig.raw.raw_guard()?;
        let body = guard.view().root(&rig.word)?.address() + firn_format::header::HEADER_BYTES;
        let transaction = guard.begin()?;
        change(&transaction, body, number)?;
        drop(transaction.commit()?);
    }
    Ok(())
}

/// Changes a word in place, in an operation that a hundred share.
fn raw_shared(rig: &mut Rig, count: u64) -> Result<(), Error> {
    for _ in 0..count / SHARED {
        let mut guard = rig.raw.raw_guard()?;
        let body = guard.view().root(&rig.word)?.address() + firn_format::header::HEADER_BYTES;
        for number in 0..SHARED {
            let transaction = guard.begin()?;
            change(&transaction, body, number)?;
            guard = transaction.commit()?;
        }
    }
    Ok(())
}

fn change(
    transaction: &firn_heap::OpenRawTx<'_, Mapped>,
    body: VirtAddr,
    number: u64,
) -> Result<(), Error> {
    let tx = transaction.tx();
    tx.log(&[(body, 8)])?;
    tx.store(body, &number.to_le_bytes())
}

/// Measures the selected operations, in turns.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let wanted: Vec<_> = OPERATIONS
        .iter()
        .filter(|(name, _)| options.wants(SECTION, name))
        .collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut rig = Rig::new(options)?;
    let count = options.n.next_multiple_of(SHARED);
    let mut blocks: Vec<Vec<Times>> = wanted.iter().map(|_| Vec::new()).collect();
    progress.begin("roots", Some((options.blocks * wanted.len()) as u64));
    for _ in 0..options.blocks {
        for ((_, operation), blocks) in wanted.iter().zip(&mut blocks) {
            operation(&mut rig, SHARED)?;
            let start = Moment::now();
            operation(&mut rig, count)?;
            blocks.push(start.elapsed() / count as f64);
            progress.advance(1);
        }
    }
    progress.end();
    let figure = |((name, _), blocks): (&&(&'static str, Operation), &Vec<Times>)| {
        let subject = Subject {
            system: "firn",
            structure: SECTION,
            operation: name,
            n: count,
            threads: 1,
            how: HOW,
        };
        Figure::of(subject, blocks)
    };
    Ok(wanted.iter().zip(&blocks).map(figure).collect())
}

/// The bars they have to meet.
pub(super) fn bars(figures: &[Figure]) -> Vec<Bar> {
    let over = |what: &str, own: &str, shared: &str, bar: Option<f64>| {
        let [own, shared] =
            [own, shared].map(|name| find(figures, true, name, 1).map(|f| f.ns_cpu_per_op));
        let (own, shared) = (own?, shared?);
        let over = own - shared;
        let what = format!("{what}, over one in an operation that {SHARED} share");
        let firn = format!("{over:.0} ns ({own:.0} over {shared:.0})");
        Some(match bar {
            Some(most) => Bar::ours(what, firn, format!("{most:.0} ns"), over <= most),
            None => Bar {
                bar: NONE.to_owned(),
                ..Bar::figure(what, firn)
            },
        })
    };
    let (get, raw) = ("root_get_shared", "root_raw_shared");
    [
        over(
            "a get in an operation of its own",
            "root_get_own",
            get,
            Some(OVER_NS),
        ),
        over("the same by the root's name", "root_get_named", get, None),
        over(
            "a one-word transaction in place in an operation of its own",
            "root_raw_own",
            raw,
            Some(OVER_NS),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
