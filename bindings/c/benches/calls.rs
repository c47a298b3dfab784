//! What a call from C costs beside the same in Rust: allocation and free, sixteen in a transaction; a transaction that
//! stores a word; following a reference. And what the collections of C++ cost: getting and inserting with a key, getting
//! by position. Processor time of the thread, blocks of both in turn.
//!
//! ```text
//! cargo bench -p firn-c
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use firn_heap::{Error, LogKind, Obj, Pool, PoolKind, PoolOptions, Ref, Session, Stored, Untyped};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Runtime};
use firn_structures::{HashMap, Map, Vector};
use firn_units::VirtAddr;

const OBJECTS: usize = 4096;
const BATCH: usize = 16;
const ROUNDS: usize = 60;
const BLOCKS: usize = 15;
const CALLS: [&str; 4] = ["allocate", "transaction", "follow", "free"];
const COLLECTIONS: [&str; 5] = [
    "map get",
    "map insert",
    "unordered map get",
    "unordered map insert",
    "vector get",
];
/// Entries of each collection; a block gets each of them once.
const ENTRIES: u64 = 20_000;
const GETS: u64 = 10;

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: Ref<Node>,
    number: u64,
    rest: [u64; 4],
}

/// A pool in anonymous memory that is treated as persistent.
fn pool(options: &PoolOptions) -> Pool<Mapped> {
    let on = MappedOptions::default().domain(Domain::Adr);
    Pool::create(Mapped::anonymous(0, &on).unwrap(), options).unwrap()
}

/// Nanoseconds per operation in Rust.
fn in_rust() -> [f64; 4] {
    let pool = pool(&PoolOptions {
        kind: PoolKind::Explicit,
        log: LogKind::Redo,
        ..PoolOptions::new("")
    });
    let mut session = pool.session().unwrap();
    let mut at = [VirtAddr(0); OBJECTS];
    let now = || pool.medium().cpu_ns() as f64;
    let (mut spent, mut sum) = ([0.0; 4], 0);
    for round in 0..ROUNDS {
        let begin = now();
        allocate(&mut session, &mut at);
        let allocated = now();
        store(&mut session, &at);
        let stored = now();
        sum += chase(&mut session, &at);
        let chased = now();
        free(&mut session, &at);
        let freed = now();
        if round > 0 {
            spent[0] += allocated - begin;
            spent[1] += stored - allocated;
            spent[2] += chased - stored;
            spent[3] += freed - chased;
        }
    }
    assert_eq!(sum as usize, ROUNDS * OBJECTS * (OBJECTS + 1) / 2);
    spent.map(|ns| ns / ((ROUNDS - 1) * OBJECTS) as f64)
}

/// Allocates all objects, with as many per transaction as are linked.
fn allocate(session: &mut Session<Mapped>, at: &mut [VirtAddr; OBJECTS]) {
    for (i, batch) in at.chunks_mut(BATCH).enumerate() {
        session
            .transaction(|tx| {
                let mut last = None;
                for (j, at) in batch.iter_mut().enumerate() {
                    let node = Node {
                        next: Ref::null(),
                        number: (i * BATCH + j) as u64,
                        rest: [0; 4],
                    };
                    let new = tx.alloc(node)?;
                    if let Some(last) = last {
                        new.link(Node::NEXT, Some(last));
                    }
                    *at = new.address();
                    last = Some(new);
                }
                Ok::<_, Error>(())
            })
            .unwrap();
    }
}

/// Stores a word of each in a transaction.
fn store(session: &mut Session<Mapped>, at: &[VirtAddr; OBJECTS]) {
    for (i, &at) in at.iter().enumerate() {
        session
            .transaction(|tx| {
                let node = Obj::<Untyped, _>::at(tx, at)?;
                node.typed::<Node>()?.store(Node::NUMBER, i as u64 + 1);
                Ok::<_, Error>(())
            })
            .unwrap();
    }
}

/// Follows the references. Returns the sum of the words.
fn chase(session: &mut Session<Mapped>, at: &[VirtAddr; OBJECTS]) -> u64 {
    session.read(|view| {
        let mut sum = 0;
        for &at in at.iter().skip(BATCH - 1).step_by(BATCH) {
            let first = Obj::<Untyped, _>::at(view, at).unwrap();
            let mut node = first.typed::<Node>().ok();
            while let Some(found) = node {
                sum += found.load(Node::NUMBER);
                node = found.follow(Node::NEXT);
            }
        }
        sum
    })
}

/// Frees all of them.
fn free(session: &mut Session<Mapped>, at: &[VirtAddr; OBJECTS]) {
    for batch in at.chunks(BATCH) {
        session
            .transaction(|tx| {
                for &at in batch {
                    let node = Obj::<Untyped, _>::at(tx, at)?;
                    // SAFETY: every reference to an object is in its batch, and the whole batch is freed.
                    unsafe { tx.free(node) }?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
    }
}

/// The library that was built with this bench, under the names that programs look for.
fn library(folder: &Path) -> PathBuf {
    let bench = std::env::current_exe().unwrap();
    let library = bench.with_file_name("libfirn.so");
    for name in ["libfirn.so", "libfirn.so.0.1"] {
        std::os::unix::fs::symlink(&library, folder.join(name)).unwrap();
    }
    folder.to_owned()
}

/// The key used at `index`: each key once, in no particular order.
fn key(index: u64) -> u64 {
    (index * 7919) % ENTRIES * 1_000_003
}

/// Nanoseconds per operation on a collection in Rust. Values are numbers, as in the C++ program.
fn collections_in_rust() -> [f64; 5] {
    let pool = pool(&PoolOptions::new(""));
    let mut session = pool.session().unwrap();
    let [map_insert, hash_insert] = fill(&pool, &mut session);
    let [map_get, hash_get, vector_get] = get(&pool, &mut session);
    let entries = ENTRIES as f64;
    let all = entries * GETS as f64;
    [
        map_get / all,
        map_insert / entries,
        hash_get / all,
        hash_insert / entries,
        vector_get / all,
    ]
}

/// Fills an ordered map, an unordered one and a vector. Returns the maps' times.
fn fill(pool: &Pool<Mapped>, session: &mut Session<Mapped>) -> [f64; 2] {
    let now = || pool.medium().cpu_ns() as f64;
    let begin = now();
    for i in 0..ENTRIES {
        session
            .transaction(|tx| {
                let mut map = Map::open_or_create(tx, "map")?;
                map.insert(&key(i).to_be_bytes(), &i.to_le_bytes())
            })
            .unwrap();
    }
    let map_filled = now();
    for i in 0..ENTRIES {
        session
            .transaction(|tx| {
                let mut map = HashMap::open_or_create(tx, "hash")?;
                map.insert(&key(i).to_be_bytes(), &i.to_le_bytes())
            })
            .unwrap();
    }
    let hash_filled = now();
    session
        .transaction(|tx| {
            let mut vector = Vector::open_or_create(tx, "vector")?;
            (0..ENTRIES).try_for_each(|i| vector.push(&i.to_le_bytes()))
        })
        .unwrap();
    [map_filled - begin, hash_filled - map_filled]
}

/// Gets each entry of each collection, in turns. Returns the times.
fn get(pool: &Pool<Mapped>, session: &mut Session<Mapped>) -> [f64; 3] {
    let now = || pool.medium().cpu_ns() as f64;
    let mut spent = [0.0; 3];
    let guard = session.guard();
    let map = Map::open(guard.view(), "map").unwrap();
    let hash = HashMap::open(guard.view(), "hash").unwrap();
    let vector = Vector::open(guard.view(), "vector").unwrap();
    let mut found = Vec::new();
    let mut sum = 0;
    let mut read = |got: bool, found: &mut Vec<u8>| {
        assert!(got);
        sum += u64::from_le_bytes(found[..].try_into().unwrap());
        found.clear();
    };
    for _ in 0..GETS {
        let begin = now();
        for i in 0..ENTRIES {
            let got = map.get_into(&key(i).to_be_bytes(), &mut found);
            read(got.unwrap(), &mut found);
        }
        let map_read = now();
        for i in 0..ENTRIES {
            let got = hash.get_into(&key(i).to_be_bytes(), &mut found);
            read(got.unwrap(), &mut found);
        }
        let hash_read = now();
        for i in 0..ENTRIES {
            let got = vector.get_into(key(i) / 1_000_003, &mut found);
            read(got.unwrap(), &mut found);
        }
        spent[0] += map_read - begin;
        spent[1] += hash_read - map_read;
        spent[2] += now() - hash_read;
    }
    assert_eq!(sum, 3 * GETS * (ENTRIES * (ENTRIES - 1) / 2));
    spent
}

fn numbers<const N: usize>(program: &Path, libraries: &Path, arguments: &[u64]) -> [f64; N] {
    let output = Command::new(program)
        .args(arguments.iter().map(u64::to_string))
        .env("LD_LIBRARY_PATH", libraries)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.lines().map(|line| line.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Compiles a program of this folder against the library.
fn compile(compiler: [&str; 2], source: &str, libraries: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = libraries.join(source.replace('.', "-"));
    let [compiler, standard] = compiler;
    let compiled = Command::new(compiler)
        .args([standard, "-O2", "-DNDEBUG", "-Wall", "-Wextra", "-Werror"])
        .arg(format!("-I{}", here.join("include").display()))
        .arg(here.join("benches").join(source))
        .arg("-o")
        .arg(&program)
        .arg(format!("-L{}", libraries.display()))
        .arg("-lfirn")
        .status()
        .unwrap();
    assert!(compiled.success());
    program
}

/// Runs both sides in turn and prints the time of an operation on each.
fn compare<const N: usize>(
    what: [&str; N],
    other: &str,
    rust: impl Fn() -> [f64; N],
    program: impl Fn() -> [f64; N],
) {
    let mut blocks = [(); N].map(|()| [Vec::new(), Vec::new()]);
    for _ in 0..BLOCKS {
        for (side, spent) in [rust(), program()].into_iter().enumerate() {
            for (what, ns) in spent.into_iter().enumerate() {
                blocks[what][side].push(ns);
            }
        }
    }
    println!("| | Rust, ns | {other}, ns | {other} over Rust, median (least to most) |");
    println!("|---|---|---|---|");
    for (what, [rust, other]) in what.into_iter().zip(blocks) {
        let mut ratios: Vec<f64> = other.iter().zip(&rust).map(|(o, rust)| o / rust).collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "| {what} | {:.1} | {:.1} | {:.3} ({:.3} to {:.3}) |",
            median(rust),
            median(other),
            median(ratios.clone()),
            ratios[0],
            ratios[ratios.len() - 1],
        );
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let libraries = library(folder.path());
    println!(
        "{BLOCKS} blocks of each in turn, {ROUNDS} rounds of {OBJECTS}; processor time; pools in memory, domain adr, level adr"
    );
    let calls = compile(["gcc", "-std=gnu11"], "calls.c", &libraries);
    let in_c = || numbers(&calls, &libraries, &[ROUNDS as u64]);
    compare(CALLS, "C", in_rust, in_c);
    println!(
        "\n{BLOCKS} blocks of each in turn, {ENTRIES} entries, each got {GETS} times; the same"
    );
    let collections = compile(["g++", "-std=c++20"], "collections.cpp", &libraries);
    let in_cpp = || numbers(&collections, &libraries, &[ENTRIES, GETS]);
    compare(COLLECTIONS, "C++", collections_in_rust, in_cpp);
}
