//! How long a map's operations take: `cargo run --release --example map_speed [entries]`.

use std::time::Instant;

use firn_heap::{Error, Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::Map;

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

fn run(kind: &str, entries: u64) -> Result<(), Box<dyn std::error::Error>> {
    println!("{kind}, {entries} entries, values of 100 bytes");
    let medium = Mapped::anonymous(64 << 20, &MappedOptions::default())?;
    let pool = Pool::create(medium, &PoolOptions::new("speed"))?;
    let mut session = pool.session()?;
    let value = [7u8; 100];
    session.transaction(|tx| Map::create(tx, "map").map(|_| ()))?;

    let begin = Begin::now();
    for number in 0..entries {
        let key = key(kind, number);
        session.transaction(|tx| Map::open(tx, "map")?.insert(&key, &value).map(|_| ()))?;
    }
    report("insert, one a transaction, open", entries, begin);
    let root = pool.handle(Map::open(session.guard().view(), "map")?.object());

    let mut buffer = Vec::with_capacity(4096);
    let mut sum = 0;
    let keys: Vec<_> = (0..entries)
        .map(|n| key(kind, n.wrapping_mul(7919) % entries))
        .collect();
    for pass in ["get_into, a guard each", "again"] {
        let begin = Begin::now();
        for key in &keys {
            let guard = session.guard();
            let root = firn_heap::View::deref(guard.view(), &root).ok_or("gone")?;
            buffer.clear();
            sum += usize::from(Map::at(root).get_into(key, &mut buffer)?);
        }
        report(pass, entries, begin);
    }
    {
        let guard = session.guard();
        let map = Map::open(guard.view(), "map")?;
        let begin = Begin::now();
        for key in &keys {
            buffer.clear();
            sum += usize::from(map.get_into(key, &mut buffer)?);
        }
        report("get_into, one guard", entries, begin);
        let reader = map.read()?;
        let begin = Begin::now();
        for key in &keys {
            buffer.clear();
            sum += usize::from(reader.get_into(key, &mut buffer)?);
        }
        report("get_into, one lock", entries, begin);
        let begin = Begin::now();
        for key in &keys {
            sum += usize::from(reader.contains(key)?);
        }
        report("contains, one lock", entries, begin);
        let begin = Begin::now();
        for key in keys.iter().step_by(100) {
            for entry in reader.range(&key[..]..)?.take(100) {
                buffer.clear();
                entry?.value_into(&mut buffer)?;
                sum += 1;
            }
        }
        report("a step of a range of 100", entries, begin);
    }
    let begin = Begin::now();
    for key in &keys {
        let (value, root) = ([9u8; 100], &root);
        session.transaction(|tx| {
            let root = firn_heap::View::deref(tx, root).ok_or(Error::Conflict)?;
            Map::at(root).insert(key, &value).map(|_| ())
        })?;
    }
    report("replace in place, one a transaction", entries, begin);
    let begin = Begin::now();
    for some in keys.chunks(16) {
        session.transaction(|tx| {
            let root = firn_heap::View::deref(tx, &root).ok_or(Error::Conflict)?;
            let mut map = Map::at(root);
            for key in some {
                map.remove(key)?;
                map.insert(key, &value)?;
            }
            Ok::<_, Error>(())
        })?;
    }
    report("remove and insert, 16 a transaction", entries, begin);
    let begin = Begin::now();
    for key in &keys[..keys.len() * 4 / 5] {
        session.transaction(|tx| {
            let root = firn_heap::View::deref(tx, &root).ok_or(Error::Conflict)?;
            Map::at(root).remove(key).map(|_| ())
        })?;
    }
    report("remove, one a transaction", entries * 4 / 5, begin);
    let guard = session.guard();
    let map = Map::open(guard.view(), "map")?;
    assert_eq!(map.check()?, Vec::<String>::new());
    println!("  {sum} found; {:?}", map.shape()?);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let entries = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |n| n.parse())?;
    for kind in ["numbers", "user", "paths"] {
        run(kind, entries)?;
    }
    Ok(())
}
