//! How much work may one operation do? A hash map grows in small parts, and no structure needs a second fence.

use firn_crash::{Counts, Crash, CrashOptions};
use firn_heap::{Error, Pool, PoolKind, PoolOptions, Session, Tx};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;
use firn_structures::{HashMap, Map, Queue, StringArray, Vector};

const ENTRIES: u64 = 100_000;
/// The most words that one operation may store: enough for a new array on each level of a directory, each of which is
/// logged. Moving a hundredth of the entries would store more.
const MOST_STORES: u64 = 1500;

fn pool() -> Pool<Crash> {
    let crash = Crash::new(64 << 20, CrashOptions::with_domain(Domain::Adr));
    Pool::create(crash, &PoolOptions::new("test")).unwrap()
}

/// Counts the work of an operation.
fn counted(pool: &Pool<Crash>, operation: impl FnOnce()) -> Counts {
    pool.medium().reset_counts();
    operation();
    pool.medium().counts()
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

fn shape(session: &mut Session<Crash>) -> firn_structures::hash::Shape {
    session.read(|view| {
        let map = HashMap::open(view, "it").unwrap();
        assert_eq!(map.check().unwrap(), Vec::<String>::new());
        map.shape().unwrap()
    })
}

#[test]
fn no_operation_of_a_hash_map_moves_the_whole() {
    let pool = pool();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| HashMap::create(tx, "it").map(|_| ()))
        .unwrap();
    let (mut most, mut sum) = (0, 0);
    for number in 0..ENTRIES {
        let counts = counted(&pool, || {
            session
                .transaction(|tx| HashMap::open(tx, "it")?.insert(&key(number), b"value"))
                .unwrap();
        });
        most = most.max(counts.stores);
        sum += counts.stores;
    }
    let grown = shape(&mut session);
    println!(
        "{most} stores at most, {} on average: {grown:?}",
        sum / ENTRIES
    );
    assert!(most < MOST_STORES, "{most} stores in an insert");
    assert!(grown.longest <= 6, "{grown:?}");
    let mut most = 0;
    for number in 0..ENTRIES {
        let counts = counted(&pool, || {
            session
                .transaction(|tx| HashMap::open(tx, "it")?.remove(&key(number)))
                .unwrap();
        });
        most = most.max(counts.stores);
    }
    assert!(most < MOST_STORES, "{most} stores in a removal");
    let shrunk = shape(&mut session);
    assert_eq!((shrunk.entries, shrunk.buckets), (0, 1));
}

/// Transactions on every structure, each counted.
struct Fences {
    pool: Pool<Crash>,
    session: Session<Crash>,
    transactions: u64,
    fences: u64,
}

impl Fences {
    fn of(&mut self, body: impl Fn(Tx<'_, Crash>) -> Result<(), Error>) {
        let session = &mut self.session;
        let counts = counted(&self.pool, || session.transaction(&body).unwrap());
        self.transactions += 1;
        self.fences += counts.fences;
    }
}

#[test]
fn an_operation_has_one_fence() {
    const COUNTED: u64 = 2000;
    let pool = pool();
    let session = pool.session().unwrap();
    let mut fences = Fences {
        pool,
        session,
        transactions: 0,
        fences: 0,
    };
    fences
        .session
        .transaction(|tx| {
            HashMap::create(tx, "hash")?;
            Vector::create(tx, "vector")?;
            Queue::create(tx, "queue")?;
            StringArray::create(tx, "strings", COUNTED).map(|_| ())
        })
        .unwrap();
    for n in 0..COUNTED {
        let value = [n as u8; 128];
        let other = n * 7 % (n + 1);
        fences.of(|tx| {
            HashMap::open(tx, "hash")?
                .insert(&key(n), &value)
                .map(|_| ())
        });
        fences.of(|tx| Vector::open(tx, "vector")?.push(&value));
        fences.of(|tx| Queue::open(tx, "queue")?.push_back(&value));
        fences.of(|tx| StringArray::open(tx, "strings")?.set(n, &value).map(|_| ()));
        fences.of(|tx| StringArray::open(tx, "strings")?.swap(n, other));
    }
    for n in 0..COUNTED {
        fences.of(|tx| HashMap::open(tx, "hash")?.remove(&key(n)).map(|_| ()));
        fences.of(|tx| Vector::open(tx, "vector")?.pop().map(|_| ()));
        fences.of(|tx| Queue::open(tx, "queue")?.pop_front().map(|_| ()));
        fences.of(|tx| StringArray::open(tx, "strings")?.remove(n).map(|_| ()));
    }
    let Fences {
        transactions,
        fences,
        ..
    } = fences;
    println!("{fences} fences in {transactions} transactions");
    // The log adds some fences when it begins from the front again.
    assert!((transactions..transactions + transactions / 20).contains(&fences));
}

/// The length of a queue's values in a map, by round: constant, or different in each round.
type LengthOf = fn(u64) -> usize;

/// A round of a queue: the oldest entries go and as many new ones come, a quarter per transaction.
fn replace_all(pool: &Pool<Mapped>, round: u64, length_of: LengthOf) {
    const ENTRIES: u64 = 2_000;
    let mut session = pool.session().unwrap();
    let numbers = |round: u64, quarter: u64| {
        let first = round * ENTRIES + quarter * (ENTRIES / 4);
        first..first + ENTRIES / 4
    };
    for quarter in 0..4 {
        session
            .transaction(|tx| {
                let mut map = match round + quarter {
                    0 => Map::create(tx, "queue")?,
                    _ => Map::open(tx, "queue")?,
                };
                for number in numbers(round, quarter) {
                    map.insert(&number.to_be_bytes(), &vec![7; length_of(round)])?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
    }
    for quarter in (0..4).filter(|_| round > 0) {
        session
            .transaction(|tx| {
                for number in numbers(round - 1, quarter) {
                    assert!(Map::open(tx, "queue")?.remove(&number.to_be_bytes())?);
                }
                Ok::<_, Error>(())
            })
            .unwrap();
    }
}

/// Bytes of the file and of its blocks after these rounds, each in an open of its own, which `end` ends.
fn reopened(
    kind: PoolKind,
    rounds: core::ops::Range<u64>,
    (path, length_of): (&std::path::Path, LengthOf),
    end: fn(Pool<Mapped>),
) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let (options, on) = (
        PoolOptions {
            kind,
            ..PoolOptions::new("test")
        },
        MappedOptions::default(),
    );
    for round in rounds {
        let pool = match round {
            0 => Pool::create(Mapped::create(path, 0, &on).unwrap(), &options).unwrap(),
            _ => Pool::open(Mapped::open(path, &on).unwrap(), &options).unwrap(),
        };
        replace_all(&pool, round, length_of);
        end(pool);
    }
    let file = std::fs::metadata(path).unwrap();
    (file.len(), file.blocks() * 512)
}

/// Free space in chunks that this open of the pool did not fill serves before the file grows.
#[test]
fn a_pool_keeps_its_size_however_often_it_is_opened() {
    let lengths: [LengthOf; 2] = [|_| 1_000, |round| 300 + (round as usize * 397) % 2_500];
    let ways: [(PoolKind, fn(Pool<Mapped>)); 3] = [
        (PoolKind::Traced, |pool| pool.close().unwrap()),
        (PoolKind::Explicit, |pool| pool.close().unwrap()),
        // An explicit pool's allocation bits are exact after a crash, too.
        (PoolKind::Explicit, Pool::abandon),
    ];
    for (case, (kind, end)) in ways.into_iter().enumerate() {
        for (which, length_of) in lengths.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("pool");
            let (len, blocks) = reopened(kind, 0..10, (&path, length_of), end);
            let (later, later_blocks) = reopened(kind, 10..60, (&path, length_of), end);
            println!("{case}.{which}: {len} bytes, {later}; blocks {blocks}, {later_blocks}");
            let chunk = 2 << 20;
            assert!(
                later <= len + chunk,
                "{case}.{which}: {len} grows to {later}"
            );
            assert!(
                later_blocks <= blocks + chunk,
                "{case}.{which}: {blocks} bytes of blocks grow to {later_blocks}"
            );
        }
    }
}

/// Elements of the vector and of the array of strings.
const LEN: u64 = 300;

fn is_refused<T>(outcome: Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::BadRange { .. }))
}

/// Asserts that a vector refuses an index at or above its length.
fn refuses_index<'t>(mut vector: Vector<'t, Tx<'t, Crash>>, index: u64) -> Result<(), Error> {
    assert_eq!(vector.get(index)?, None);
    assert!(!vector.get_into(index, &mut Vec::new())?);
    assert!(is_refused(vector.set(index, b"new")), "{index:#x}");
    assert!(is_refused(vector.replace(index, b"new")));
    assert!(is_refused(vector.swap(index, 0)) && is_refused(vector.swap(0, index)));
    assert!(is_refused(vector.swap_remove(index)));
    assert!(is_refused(vector.remove(index)));
    assert!(index == LEN || is_refused(vector.insert(index, b"new")));
    vector.truncate(index)?;
    assert_eq!(vector.len()?, LEN);
    Ok(())
}

/// Asserts that an array of strings refuses an index at or above its length.
fn refuses_place<'t>(mut strings: StringArray<'t, Tx<'t, Crash>>, index: u64) -> Result<(), Error> {
    assert_eq!(strings.get(index)?, None);
    assert!(!strings.get_into(index, &mut Vec::new())?);
    assert!(is_refused(strings.set(index, b"new")));
    assert!(is_refused(strings.replace(index, b"new")));
    assert!(is_refused(strings.remove(index)));
    assert!(is_refused(strings.take(index)));
    assert!(is_refused(strings.swap(index, 0)) && is_refused(strings.swap(0, index)));
    Ok(())
}

/// Positions around the end, around the end of 32 bits, and at the end of 64 bits.
#[test]
fn positions_and_lengths_at_every_edge_are_refused() {
    let crash = Crash::new(64 << 20, CrashOptions::with_domain(Domain::Adr));
    let limited = PoolOptions {
        max_bytes: Some(64 << 20),
        ..PoolOptions::new("test")
    };
    let pool = Pool::create(crash, &limited).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            let mut vector = Vector::create(tx, "vector")?;
            let mut strings = StringArray::create(tx, "strings", LEN)?;
            for i in 0..LEN {
                vector.push(&i.to_le_bytes())?;
                strings.set(i, &i.to_le_bytes())?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    let ends = (0..18).map(|i| u64::MAX - i);
    let powers = [1 << 31, 1 << 32, 1 << 61, 1 << 63].into_iter();
    let around = powers.flat_map(|power: u64| [power - 1, power, power + 1]);
    for index in ends.chain(around).chain([LEN, LEN + 1]) {
        session
            .transaction(|tx| {
                refuses_index(Vector::open(tx, "vector")?, index)?;
                refuses_place(StringArray::open(tx, "strings")?, index)?;
                if index > LEN + 1 {
                    let new = StringArray::new(tx, index).map(drop);
                    let refused = matches!(
                        new,
                        Err(Error::ObjectTooLarge { .. } | Error::PoolFull { .. })
                    );
                    assert!(refused, "{index:#x}: {new:?}");
                }
                Ok::<_, Error>(())
            })
            .unwrap();
    }
    session.read(|view| {
        let (vector, strings) = (
            Vector::open(view, "vector").unwrap(),
            StringArray::open(view, "strings").unwrap(),
        );
        for i in 0..LEN {
            let expected = Some(i.to_le_bytes().to_vec());
            assert_eq!(
                (vector.get(i).unwrap(), strings.get(i).unwrap()),
                (expected.clone(), expected)
            );
        }
        assert_eq!(vector.check().unwrap(), Vec::<String>::new());
        assert_eq!(strings.check().unwrap(), Vec::<String>::new());
    });
}
