//! How much may one operation do? A hash map that grows moves a part of itself at a time, and no
//! structure needs a second fence.

use firn_crash::{Counts, Crash, CrashOptions};
use firn_heap::{Error, Pool, PoolOptions, Session, Tx};
use firn_media::Domain;
use firn_structures::{HashMap, Queue, StringArray, Vector};

const ENTRIES: u64 = 100_000;
/// Words that one operation may store: enough for a new array on each level of a directory, each of
/// which is logged. Moving a hundredth of the entries would store more.
const MOST_STORES: u64 = 1500;

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
        fences.of(|tx| StringArray::open(tx, "strings")?.clear(n).map(|_| ()));
    }
    let Fences {
        transactions,
        fences,
        ..
    } = fences;
    println!("{fences} fences in {transactions} transactions");
    // The log has some of its own, when it begins from the front again.
    assert!((transactions..transactions + transactions / 20).contains(&fences));
}
