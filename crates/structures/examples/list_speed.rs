//! How long a list's operations take: `cargo run --release --example list_speed [elements]`.

use std::time::Instant;

use firn_heap::{Error, Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::List;

fn report(what: &str, count: u64, since: Instant) {
    let ns = since.elapsed().as_nanos() as f64 / count as f64;
    println!("  {what:<40} {ns:8.0} ns");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let elements = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |n| n.parse())?;
    println!("{elements} elements of 128 bytes; pool in memory, domain process, level process");
    let medium = Mapped::anonymous(64 << 20, &MappedOptions::default())?;
    let pool = Pool::create(medium, &PoolOptions::new("speed"))?;
    let mut session = pool.session()?;
    session.transaction(|tx| List::create(tx, "list").map(|_| ()))?;
    let root = pool.handle(List::open(session.guard().view(), "list")?.object());
    let value = [7; 128];

    for pass in ["push_back, one a transaction", "again, reusing slots"] {
        let begin = Instant::now();
        for key in 0..elements {
            session.transaction(|tx| {
                let root = firn_heap::View::deref(tx, &root).ok_or(Error::Conflict)?;
                List::at(root).push_back(key, &value)
            })?;
        }
        report(pass, elements, begin);

        let guard = session.guard();
        let list = List::open(guard.view(), "list")?;
        let reader = list.read()?;
        let begin = Instant::now();
        let mut sum = 0;
        for element in reader.iter() {
            sum += element?.key();
        }
        report("a step, keys alone", elements, begin);
        let mut buffer = Vec::new();
        let begin = Instant::now();
        for element in reader.iter() {
            buffer.clear();
            element?.value_into(&mut buffer)?;
            sum += u64::from(buffer[0]);
        }
        report("a step with the value", elements, begin);
        assert!(sum > 0);
        drop(reader);
        drop(guard);

        let begin = Instant::now();
        for _ in 0..elements {
            session.transaction(|tx| {
                let root = firn_heap::View::deref(tx, &root).ok_or(Error::Conflict)?;
                let mut list = List::at(root);
                let mut cursor = list.cursor()?;
                cursor.move_next()?;
                cursor.remove()
            })?;
        }
        report("remove the first, one a transaction", elements, begin);
    }
    Ok(())
}
