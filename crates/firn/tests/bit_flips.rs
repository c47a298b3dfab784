//! Does a pool with bits flipped anywhere give an answer or an error, in bounded time: never a panic, never a signal?
//!
//! A child of this very binary opens, walks, checks, changes and closes damaged pools in memory, and names each one as
//! it begins. A signal or an endless loop ends the child, and the parent names the seed. To repeat one:
//! `FIRN_FLIPS=SEED:1 cargo test -p firn --test bit_flips child -- --nocapture`.

use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use firn_format::geometry::{LENGTH, REGISTRY, ROOTS, STATE, SUPERBLOCKS};
use firn_heap::{Error, Occupancy, OpenError, Pool, PoolOptions, Statistics, View};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Memory, Space};
use firn_structures::Map;
use firn_structures::map::Scan;
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr};

/// The child's work: the first seed and the number of seeds, with a colon between.
const PLAN: &str = "FIRN_FLIPS";
/// Time for one damaged pool.
const LIMIT: Duration = Duration::from_secs(20);
const CAPACITY: u64 = 64 << 20;
const LAYOUT: &str = "flips";
const MAP: &str = "map";

type Frames = Vec<(u64, Vec<u8>)>;

/// The non-empty frames of a pool, and its length.
struct Image {
    frames: Frames,
    len: u64,
}

fn medium(len: u64) -> Mapped {
    Mapped::anonymous(len, &MappedOptions::default().capacity(CAPACITY)).unwrap()
}

fn key(i: u64) -> Vec<u8> {
    format!("key/{:04}", i * 7 % 1000).into_bytes()
}

/// A pool with a map of keys and values of many sizes, some of them deleted; closed, or as a crash leaves it.
fn build(close: bool) -> Image {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let file = Mapped::create(&path, 0, &MappedOptions::default().domain(Domain::Process)).unwrap();
    let pool = Pool::create(file, &PoolOptions::new(LAYOUT)).unwrap();
    let mut session = pool.session().unwrap();
    session
        .transaction(|tx| Map::create(tx, MAP).map(drop))
        .unwrap();
    for i in 0..400 {
        let size = if i % 50 == 0 { 30_000 } else { i as usize * 3 };
        session
            .transaction(|tx| Map::open(tx, MAP)?.insert(&key(i), &vec![i as u8; size]))
            .unwrap();
    }
    for i in (0..400).step_by(3) {
        session
            .transaction(|tx| Map::open(tx, MAP)?.remove(&key(i)))
            .unwrap();
    }
    drop(session);
    if close {
        pool.close().unwrap();
    } else {
        pool.abandon();
    }
    image(&Mapped::peek(&path).unwrap())
}

fn image(medium: &Mapped) -> Image {
    let mut frames = Vec::new();
    for index in 0..medium.len() / FRAME_BYTES {
        let mut frame = vec![0; FRAME_BYTES as usize];
        medium.load_bytes(VirtAddr(index * FRAME_BYTES), &mut frame);
        if frame.iter().any(|&byte| byte != 0) {
            frames.push((index, frame));
        }
    }
    Image {
        frames,
        len: medium.len(),
    }
}

/// The image in memory, with flipped bits.
fn damaged(image: &Image, rng: &mut Rng) -> Mapped {
    let medium = medium(image.len);
    for (index, frame) in &image.frames {
        medium.store_bytes(VirtAddr(index * FRAME_BYTES), frame);
    }
    for _ in 0..1 << rng.u32(0..6) {
        let at = VirtAddr(address(image, rng) & !7);
        medium.store_u64(at, damage(medium.load_u64(at), rng));
    }
    medium
}

/// Where a bit is flipped: mostly in used bytes, often in those that describe the rest.
fn address(image: &Image, rng: &mut Rng) -> u64 {
    let near = |at: VirtAddr, bytes: u64, rng: &mut Rng| at.0 + rng.u64(0..bytes);
    match rng.u32(0..10) {
        0 => near(SUPERBLOCKS[rng.usize(0..2)], 200, rng),
        1 => near([STATE, LENGTH][rng.usize(0..2)], 64, rng),
        2 => near(ROOTS, 128, rng),
        3 => near(REGISTRY, 512, rng),
        // Lanes, then frame words and bitmaps.
        4 => near(VirtAddr(CHUNK_BYTES), 4096, rng),
        5 => near(VirtAddr(2 * CHUNK_BYTES), 8 * CHUNK_BYTES, rng).min(image.len - 8),
        6 => rng.u64(0..image.len),
        _ => {
            let (index, frame) = &image.frames[rng.usize(0..image.frames.len())];
            // A non-zero word, if one is found soon.
            let word = (0..64)
                .map(|_| rng.usize(0..frame.len() / 8) * 8)
                .find(|&w| frame[w..w + 8] != [0; 8]);
            index * FRAME_BYTES + word.unwrap_or(0) as u64
        }
    }
}

fn damage(word: u64, rng: &mut Rng) -> u64 {
    match rng.u32(0..8) {
        0 => rng.u64(..),
        1 => 0,
        2 => word ^ (word.wrapping_add(16) ^ word),
        _ => word ^ 1 << rng.u32(0..64),
    }
}

/// Everything that a program does with a pool. Errors are fine.
///
/// Errors: it cannot be opened.
fn use_pool(medium: Mapped, rng: &mut Rng) -> Result<(), OpenError> {
    let _ = Statistics::read(&medium);
    let _ = Occupancy::read(&medium);
    let pool = Pool::open(medium, &PoolOptions::new(LAYOUT))?;
    let _ = walk(&pool);
    let _ = pool.check();
    let _ = pool.occupancy();
    if rng.bool() {
        let _ = pool.trace();
    }
    let _ = change(&pool, rng);
    let _ = pool.release_free_space();
    let _ = pool.copy_into(
        crate::medium(FRAME_BYTES),
        firn_heap::CopyIdentity::New,
        &mut |_| {},
    );
    let _ = pool.check();
    let _ = pool.close();
    Ok(())
}

fn walk(pool: &Pool<Mapped>) -> Result<(), Error> {
    let mut session = pool.session()?;
    {
        let guard = session.guard();
        for name in guard.view().root_names()? {
            if let Some(map) = Map::find(guard.view(), &name)? {
                let _ = map.check();
                let _ = map.last();
            }
        }
        let map = Map::open(guard.view(), MAP)?;
        for i in 0..400 {
            let _ = map.get(&key(i));
        }
    }
    let mut scan = Scan::of_root(MAP);
    while scan.next(&mut session)?.is_some() {}
    Ok(())
}

fn change(pool: &Pool<Mapped>, rng: &mut Rng) -> Result<(), Error> {
    let mut session = pool.session()?;
    for _ in 0..100 {
        let (i, size) = (rng.u64(0..600), rng.usize(0..5000));
        let _ = session.transaction(|tx| {
            let mut map = Map::open(tx, MAP)?;
            match i % 2 {
                0 => map.insert(&key(i), &vec![1; size]),
                _ => map.remove(&key(i)),
            }
        });
    }
    session.transaction(|tx| Map::open(tx, MAP)?.clear())
}

#[test]
fn child() {
    let Ok(plan) = std::env::var(PLAN) else {
        return;
    };
    let (first, count) = plan.split_once(':').unwrap();
    let (first, count): (u64, u64) = (first.parse().unwrap(), count.parse().unwrap());
    let images = [build(true), build(false)];
    let mut opened = 0;
    for seed in first..first + count {
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let medium = damaged(&images[seed as usize % 2], &mut rng);
        let start = Instant::now();
        let ended = catch_unwind(AssertUnwindSafe(|| use_pool(medium, &mut rng)));
        assert!(ended.is_ok(), "seed {seed} panicked");
        opened += u64::from(ended.is_ok_and(|used| used.is_ok()));
        assert!(start.elapsed() < LIMIT, "seed {seed} took too long");
    }
    println!("opened {opened} of {count}");
    assert!(
        opened >= count / 4,
        "damage that reaches no further than open"
    );
    println!("seed end");
}

/// Runs the child on `count` seeds from `first`. Returns what went wrong.
fn run(first: u64, count: u64) -> Result<(), String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(PLAN, format!("{first}:{count}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (tell, told) = mpsc::channel();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let Some((_, seed)) = line.split_once("seed ") else {
                continue;
            };
            let _ = tell.send(seed.to_owned());
        }
    });
    let mut last = "none".to_owned();
    // A child that has ended closes the channel.
    let outcome = loop {
        match told.recv_timeout(2 * LIMIT) {
            Ok(seed) => last = seed,
            Err(mpsc::RecvTimeoutError::Timeout) => break Err(format!("seed {last} does not end")),
            Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
        }
    };
    if outcome.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().unwrap();
    outcome?;
    match (status.success(), &*last) {
        (true, "end") => Ok(()),
        _ => Err(format!("seed {last}: {status}")),
    }
}

#[test]
fn flipped_bits_are_an_answer_or_an_error() {
    run(0, 600).unwrap();
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn many_flipped_bits_are_an_answer_or_an_error() {
    run(1_000_000, 20_000).unwrap();
}
