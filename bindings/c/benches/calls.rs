//! What a call from C costs beside the same in Rust: allocation and free, sixteen in a transaction; a transaction that
//! stores a word; following a reference. Processor time of the thread, blocks of both in turn.
//!
//! ```text
//! cargo bench -p firn-c
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use firn_heap::{LogKind, Pool, PoolKind, PoolOptions, Ref, Stored};
use firn_mapped::{Mapped, MappedOptions};
use firn_media::{Domain, Medium};
use firn_units::VirtAddr;

const OBJECTS: usize = 4096;
const BATCH: usize = 16;
const ROUNDS: usize = 60;
const BLOCKS: usize = 15;
const WHAT: [&str; 4] = ["allocate", "transaction", "follow", "free"];

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: Ref<Node>,
    number: u64,
    rest: [u64; 4],
}

/// Nanoseconds an operation takes in Rust.
fn in_rust() -> [f64; 4] {
    let options = MappedOptions::default().assume_persistent(Domain::Adr);
    let medium = Mapped::anonymous(0, &options).unwrap();
    let options = PoolOptions {
        kind: PoolKind::Explicit,
        log: LogKind::Redo,
        ..PoolOptions::new("")
    };
    let pool = Pool::create(medium, &options).unwrap();
    let mut session = pool.session().unwrap();
    let mut at = [VirtAddr(0); OBJECTS];
    let now = || pool.medium().cpu_ns() as f64;
    let (mut spent, mut sum) = ([0.0; 4], 0);
    for round in 0..ROUNDS {
        let begin = now();
        for i in (0..OBJECTS).step_by(BATCH) {
            session
                .transaction(|tx| {
                    let mut last = None;
                    for (j, at) in at.iter_mut().enumerate().skip(i).take(BATCH) {
                        let node = Node {
                            next: Ref::null(),
                            number: j as u64,
                            rest: [0; 4],
                        };
                        let new = tx.alloc(node)?;
                        if let Some(last) = last {
                            new.link(Node::NEXT, Some(last));
                        }
                        *at = new.address();
                        last = Some(new);
                    }
                    Ok::<_, firn_heap::Error>(())
                })
                .unwrap();
        }
        let allocated = now();
        for (i, &at) in at.iter().enumerate() {
            session
                .transaction(|tx| {
                    let node = firn_heap::Obj::<firn_heap::Untyped, _>::at(tx, at)?;
                    node.typed::<Node>()?.store(Node::NUMBER, i as u64 + 1);
                    Ok::<_, firn_heap::Error>(())
                })
                .unwrap();
        }
        let stored = now();
        session.read(|view| {
            for &at in at.iter().skip(BATCH - 1).step_by(BATCH) {
                let first = firn_heap::Obj::<firn_heap::Untyped, _>::at(view, at).unwrap();
                let mut node = first.typed::<Node>().ok();
                while let Some(found) = node {
                    sum += found.load(Node::NUMBER);
                    node = found.follow(Node::NEXT);
                }
            }
        });
        let chased = now();
        for batch in at.chunks(BATCH) {
            session
                .transaction(|tx| {
                    for &at in batch {
                        let node = firn_heap::Obj::<firn_heap::Untyped, _>::at(tx, at)?;
                        // SAFETY: nothing refers to the batch when it is gone.
                        unsafe { tx.free(node) }?;
                    }
                    Ok::<_, firn_heap::Error>(())
                })
                .unwrap();
        }
        let freed = now();
        if round > 0 {
            let parts = [
                allocated - begin,
                stored - allocated,
                chased - stored,
                freed - chased,
            ];
            spent
                .iter_mut()
                .zip(parts)
                .for_each(|(sum, part)| *sum += part);
        }
    }
    assert_eq!(sum as usize, ROUNDS * OBJECTS * (OBJECTS + 1) / 2);
    spent.map(|ns| ns / ((ROUNDS - 1) * OBJECTS) as f64)
}

/// The library as this bench was built with it, under the names that programs look for.
fn library(folder: &Path) -> PathBuf {
    let bench = std::env::current_exe().unwrap();
    let library = bench.with_file_name("libfirn.so");
    for name in ["libfirn.so", "libfirn.so.0.1"] {
        std::os::unix::fs::symlink(&library, folder.join(name)).unwrap();
    }
    folder.to_owned()
}

fn in_c(program: &Path, libraries: &Path) -> [f64; 4] {
    let output = Command::new(program)
        .arg(ROUNDS.to_string())
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

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let libraries = library(folder.path());
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.path().join("calls");
    let compiled = Command::new("gcc")
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"])
        .arg(format!("-I{}", here.join("include").display()))
        .arg(here.join("benches/calls.c"))
        .arg("-o")
        .arg(&program)
        .arg(format!("-L{}", libraries.display()))
        .arg("-lfirn")
        .status()
        .unwrap();
    assert!(compiled.success());
    let mut blocks: [[Vec<f64>; 2]; 4] = Default::default();
    for _ in 0..BLOCKS {
        for (side, spent) in [in_rust(), in_c(&program, &libraries)]
            .into_iter()
            .enumerate()
        {
            for (what, ns) in spent.into_iter().enumerate() {
                blocks[what][side].push(ns);
            }
        }
    }
    println!("{BLOCKS} blocks of each in turn, {ROUNDS} rounds of {OBJECTS}; processor time, ADR");
    println!("| | Rust, ns | C, ns | C over Rust, median (least to most) |");
    println!("|---|---|---|---|");
    for (what, [rust, c]) in WHAT.into_iter().zip(blocks) {
        let mut ratios: Vec<f64> = c.iter().zip(&rust).map(|(c, rust)| c / rust).collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "| {what} | {:.1} | {:.1} | {:.3} ({:.3} to {:.3}) |",
            median(rust),
            median(c),
            median(ratios.clone()),
            ratios[0],
            ratios[ratios.len() - 1],
        );
    }
}
