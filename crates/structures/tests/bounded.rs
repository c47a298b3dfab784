//! Does an operation of a hash map cost about the same, whatever the number of entries?

use firn_crash::{Counts, Crash, CrashOptions};
use firn_heap::{Pool, PoolOptions, Session};
use firn_media::Domain;
use firn_structures::{HashMap, Queue, StringArray, Vector};

const ENTRIES: u64 = 100_000;
/// Words that one operation may store: several times what an ordinary one does. Moving a thousandth
/// of the entries would store more.
const MOST_STORES: u64 = 1200;

fn pool() -> Pool<Crash> {
    let crash = Crash::new(64 << 20, CrashOptions::with_domain(Domain::Adr));
    Pool::create(crash, &PoolOptions::new("test")).unwrap()
}

/// Counts what an operation does.
fn counted(pool: &Pool<Crash>, operation: impl FnOnce()) -> Counts {
    pool.medium().reset_counts();
    operation();
    pool.medium().counts()
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

fn shape(session: &mut Session<Crash>) -> firn_structures::hash::Shape {
    session.read(|view| HashMap::open(view, "it").unwrap().shape().unwrap())
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

#[test]
fn every_operation_has_one_fence() {
    let pool = pool();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| {
            HashMap::create(tx, "hash")?;
            Vector::create(tx, "vector")?;
            Queue::create(tx, "queue")?;
            StringArray::create(tx, "strings", 1000).map(|_| ())
        })
        .unwrap();
    let mut fences = 0;
    let mut count = |operation: &mut dyn FnMut()| {
        fences = counted(&pool, operation).fences.max(fences);
    };
    const COUNTED: u64 = 2000;
    for number in 0..COUNTED {
        let value = [number as u8; 128];
        let (a, b) = (number % 1000, number * 7 % 1000);
        let mut run =
            |operation: &dyn Fn(firn_heap::Tx<'_, Crash>) -> Result<(), firn_heap::Error>| {
                count(&mut || session.transaction(operation).unwrap());
            };
        run(&|tx| {
            HashMap::open(tx, "hash")?
                .insert(&key(number), &value)
                .map(|_| ())
        });
        run(&|tx| Vector::open(tx, "vector")?.push(&value));
        run(&|tx| Queue::open(tx, "queue")?.push_back(&value));
        run(&|tx| StringArray::open(tx, "strings")?.set(a, &value).map(|_| ()));
        run(&|tx| StringArray::open(tx, "strings")?.swap(a, b));
    }
    for number in 0..COUNTED {
        let mut run =
            |operation: &dyn Fn(firn_heap::Tx<'_, Crash>) -> Result<(), firn_heap::Error>| {
                count(&mut || session.transaction(operation).unwrap());
            };
        run(&|tx| HashMap::open(tx, "hash")?.remove(&key(number)).map(|_| ()));
        run(&|tx| Vector::open(tx, "vector")?.pop().map(|_| ()));
        run(&|tx| Queue::open(tx, "queue")?.pop_front().map(|_| ()));
        run(&|tx| {
            StringArray::open(tx, "strings")?
                .clear(number % 1000)
                .map(|_| ())
        });
    }
    assert_eq!(fences, 1);
}
