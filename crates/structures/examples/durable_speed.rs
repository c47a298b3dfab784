//! How long durable insertions take on this disk: `cargo run --release --example durable_speed [FOLDER]`.
//!
//! A logged file beside a bare write of 4 KiB past the page cache, in turns; then its other levels beside the page cache.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use firn_heap::{Error, Pool, PoolOptions, Session};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Level, Medium, Memory};
use firn_structures::Map;

type AnyError = Box<dyn std::error::Error>;

const ROUNDS: usize = 7;
const VALUE: [u8; 128] = [7; 128];

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

#[repr(align(4096))]
struct Block([u8; 4096]);

fn bare(file: &File, count: u64) -> Result<Vec<Duration>, AnyError> {
    let block = Block([3; 4096]);
    let timed = |number: u64| {
        let begin = Instant::now();
        file.write_all_at(&block.0, number % 1024 * 4096)?;
        Ok(begin.elapsed())
    };
    (0..count).map(timed).collect()
}

fn insert<M: Medium>(session: &mut Session<M>, number: u64) -> Result<(), Error> {
    let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    session.transaction(|tx| {
        let mut map = Map::open(tx, "map")?;
        map.insert(&key, &VALUE).map(|_| ())
    })
}

fn timed<M: Medium>(
    pool: &Pool<M>,
    numbers: core::ops::Range<u64>,
) -> Result<Vec<Duration>, AnyError> {
    let mut session = pool.session()?;
    let mut times = Vec::new();
    for number in numbers {
        let begin = Instant::now();
        insert(&mut session, number)?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

fn filled<M: Medium>(medium: M) -> Result<Pool<M>, AnyError> {
    let pool = Pool::create(medium, &PoolOptions::new("speed"))?;
    let mut session = pool.session()?;
    session.transaction(|tx| Map::create(tx, "map").map(|_| ()))?;
    drop(session);
    Ok(pool)
}

fn logged(folder: &Path, level: Level) -> Result<Pool<Mapped>, AnyError> {
    let mut options = MappedOptions::default().domain(Domain::Logged);
    options.log.level = level;
    let path = folder.join(format!("speed-{}", level.name()));
    filled(Mapped::create(path, 0, &options)?)
}

fn main() -> Result<(), AnyError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = tempfile::tempdir_in(folder)?;
    let folder = folder.path();
    let direct = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(0o40000 | 0o10000)
        .open(folder.join("bare"))?;
    bare(&direct, 1024)?;
    let pool = logged(folder, Level::Sync)?;
    let (mut alone, mut inserts) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS as u64 {
        alone.extend(bare(&direct, 300)?);
        inserts.extend(timed(&pool, round * 300..(round + 1) * 300)?);
    }
    println!("bare write of 4 KiB      {:8.1} us", median(alone));
    println!("insert, sync             {:8.1} us", median(inserts));

    // Eight threads on one map, as many insertions in all as one thread makes alone.
    let mut begin = Instant::now();
    timed(&pool, 10_000..11_000)?;
    let one = begin.elapsed();
    begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let pool = &pool;
            scope.spawn(move || {
                timed(pool, 20_000 + thread * 1000..20_000 + thread * 1000 + 1000).unwrap()
            });
        }
    });
    let eight = begin.elapsed();
    let ratio = 8.0 * one.as_secs_f64() / eight.as_secs_f64();
    println!("eight threads            {ratio:8.2} x one thread");

    let written = logged(folder, Level::Written)?;
    let group = logged(folder, Level::Group(Duration::from_millis(10)))?;
    let process = filled(Mapped::create(
        folder.join("process"),
        0,
        &MappedOptions::default(),
    )?)?;
    let mut times = [const { Vec::new() }; 3];
    for round in 0..ROUNDS as u64 {
        let numbers = round * 2000..(round + 1) * 2000;
        times[0].extend(timed(&process, numbers.clone())?);
        times[1].extend(timed(&written, numbers.clone())?);
        times[2].extend(timed(&group, numbers)?);
    }
    for (name, times) in ["process", "written", "group"].into_iter().zip(times) {
        println!("insert, {name:<16} {:8.2} us", median(times));
    }
    group.medium().wait_durable(group.medium().commit())?;
    Ok(())
}
