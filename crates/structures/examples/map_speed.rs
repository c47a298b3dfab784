//! How long a map's operations take: `cargo run --release --example map_speed [entries]`.

use std::time::Instant;

use firn_heap::{Error, Handle, Pool, PoolOptions, Session, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::Map;
use firn_structures::map::MapRoot;

fn key(kind: &str, number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match kind {
        "numbers" => mixed.to_be_bytes().to_vec(),
        "user" => format!("user{mixed:020}").into_bytes(),
        _ => format!("/usr/share/doc/package/file-{mixed:020}").into_bytes(),
    }
}

/// Time that this process ran on a processor, so that a busy machine does not count.
struct Begin(Instant, Option<u64>);

impl Begin {
    fn now() -> Self {
        Self(Instant::now(), on_processor_ns())
    }
}

fn on_processor_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn report(what: &str, count: u64, since: Begin) {
    let wall = since.0.elapsed().as_nanos() as f64 / count as f64;
    let busy = on_processor_ns()
        .zip(since.1)
        .map_or(0, |(now, then)| now - then);
    let busy = busy as f64 / count as f64;
    println!("  {what:<36} {busy:8.0} ns on the processor, {wall:8.0} ns in all");
}

type AnyError = Box<dyn std::error::Error>;

const VALUE: [u8; 100] = [7; 100];

/// The map in a guard or a transaction.
fn seen<'g, V: View<'g, Medium = Mapped>>(
    view: V,
    root: &Handle<MapRoot, Mapped>,
) -> Result<Map<'g, V>, Error> {
    view.deref(root).map(Map::at).ok_or(Error::Conflict)
}

fn run(kind: &str, entries: u64) -> Result<(), AnyError> {
    println!(
        "{kind}, {entries} entries, values of 100 bytes; pool in memory, domain process, level process"
    );
    let medium = Mapped::anonymous(64 << 20, &MappedOptions::default())?;
    let pool = Pool::create(medium, &PoolOptions::new("speed"))?;
    let mut session = pool.session()?;
    session.transaction(|tx| Map::create(tx, "map").map(|_| ()))?;

    let begin = Begin::now();
    for number in 0..entries {
        let key = key(kind, number);
        session.transaction(|tx| Map::open(tx, "map")?.insert(&key, &VALUE).map(|_| ()))?;
    }
    report("insert, one a transaction, open", entries, begin);
    let root = pool.handle(Map::open(session.guard().view(), "map")?.object());

    let keys: Vec<_> = (0..entries)
        .map(|n| key(kind, n.wrapping_mul(7919) % entries))
        .collect();
    let found = get(&mut session, &root, &keys)? + look(&mut session, &keys)?;
    change(&mut session, &root, &keys)?;
    let guard = session.guard();
    let map = Map::open(guard.view(), "map")?;
    assert_eq!(map.check()?, Vec::<String>::new());
    println!("  {found} found; {:?}", map.shape()?);
    Ok(())
}

/// Gets each key in a guard of its own, twice. Returns how many it found.
fn get(
    session: &mut Session<Mapped>,
    root: &Handle<MapRoot, Mapped>,
    keys: &[Vec<u8>],
) -> Result<usize, AnyError> {
    let (mut buffer, mut found) = (Vec::with_capacity(4096), 0);
    for pass in ["get_into, a guard each", "again"] {
        let begin = Begin::now();
        for key in keys {
            let guard = session.guard();
            buffer.clear();
            found += usize::from(seen(guard.view(), root)?.get_into(key, &mut buffer)?);
        }
        report(pass, keys.len() as u64, begin);
    }
    Ok(found)
}

/// Looks up all keys in one guard, and iterates over ranges. Returns how many it found.
fn look(session: &mut Session<Mapped>, keys: &[Vec<u8>]) -> Result<usize, AnyError> {
    let (mut buffer, mut found) = (Vec::with_capacity(4096), 0);
    let count = keys.len() as u64;
    let guard = session.guard();
    let map = Map::open(guard.view(), "map")?;
    let begin = Begin::now();
    for key in keys {
        buffer.clear();
        found += usize::from(map.get_into(key, &mut buffer)?);
    }
    report("get_into, one guard", count, begin);
    let reader = map.read()?;
    let begin = Begin::now();
    for key in keys {
        buffer.clear();
        found += usize::from(reader.get_into(key, &mut buffer)?);
    }
    report("get_into, one lock", count, begin);
    let begin = Begin::now();
    for key in keys {
        found += usize::from(reader.contains(key)?);
    }
    report("contains, one lock", count, begin);
    let begin = Begin::now();
    for key in keys.iter().step_by(100) {
        for entry in reader.range(&key[..]..).take(100) {
            buffer.clear();
            entry?.value_into(&mut buffer)?;
            found += 1;
        }
    }
    report("a step of a range of 100", count, begin);
    Ok(found)
}

/// Replaces all entries, removes and inserts all, and removes four of five.
fn change(
    session: &mut Session<Mapped>,
    root: &Handle<MapRoot, Mapped>,
    keys: &[Vec<u8>],
) -> Result<(), AnyError> {
    let count = keys.len() as u64;
    let begin = Begin::now();
    for key in keys {
        session.transaction(|tx| seen(tx, root)?.insert(key, &[9; 100]).map(|_| ()))?;
    }
    report("replace in place, one a transaction", count, begin);
    let begin = Begin::now();
    for some in keys.chunks(16) {
        session.transaction(|tx| {
            let mut map = seen(tx, root)?;
            for key in some {
                map.remove(key)?;
                map.insert(key, &VALUE)?;
            }
            Ok::<_, Error>(())
        })?;
    }
    report("remove and insert, 16 a transaction", count, begin);
    let begin = Begin::now();
    for key in &keys[..keys.len() * 4 / 5] {
        session.transaction(|tx| seen(tx, root)?.remove(key).map(|_| ()))?;
    }
    report("remove, one a transaction", count * 4 / 5, begin);
    Ok(())
}

fn main() -> Result<(), AnyError> {
    let entries = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |n| n.parse())?;
    for kind in ["numbers", "user", "paths"] {
        run(kind, entries)?;
    }
    Ok(())
}
