//! The stores of `examples/pmemobj/stores`, and a chase of references, built from one source with libpmemobj and with
//! Firn: processor time of the thread, memory that is treated as persistent (ADR), rounds of both in turn.
//!
//! ```text
//! cargo bench -p firn-c --bench stores
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use support::{command, compile_pmemobj, compile_with_libpmemobj, here};

const STORES: [&str; 5] = ["hash", "red_black", "btree", "queue", "strings"];
const PHASES: [&str; 3] = ["insert", "get", "delete"];
/// Phases after the deletions; the last comes after `firn_forget_oids`, which libpmemobj does not need.
const LATER: [&str; 3] = ["get_after_deletes", "get_after_defrag", "get_after_forget"];
const ROUNDS: usize = 7;
const ENTRIES: &str = "200000";
/// Entries of the run in which pages are counted, once: the counts are equal in each run.
const MANY: &str = "2000000";

/// A program built with libpmemobj and with Firn.
struct Both([PathBuf; 2]);

impl Both {
    fn built(name: &str, source: &Path, more: &[&str], into: &Path) -> Option<Self> {
        let flags = [&["-O2"][..], more].concat();
        let theirs = compile_with_libpmemobj(source, &flags, into)?;
        let folder = into.join(name);
        std::fs::create_dir(&folder).unwrap();
        Some(Self([
            theirs,
            compile_pmemobj("gcc", source, &flags, &folder),
        ]))
    }

    /// The output of each of them in turn: a name and a number per line.
    fn run(&self, arguments: &[&str]) -> [BTreeMap<String, f64>; 2] {
        [0, 1].map(|side| figures(&self.0[side], arguments))
    }
}

fn figures(program: &Path, arguments: &[&str]) -> BTreeMap<String, f64> {
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let folder = folder.unwrap();
    let output = command(program)
        .arg(folder.path().join("pool"))
        .args(arguments)
        .env("FIRN_ASSUME_PERSISTENT", "adr")
        .env("FIRN_COLLECT", "0")
        .env("PMEM_IS_PMEM_FORCE", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!told.contains("NOT SOUND"), "{told}");
    let figure = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    told.lines().filter_map(figure).collect()
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The output of both sides of each program, round by round.
type Rounds<'a> = BTreeMap<&'a str, Vec<[BTreeMap<String, f64>; 2]>>;

/// Medians of a figure on both sides and of their ratios, with the least and the greatest.
struct Compared {
    medians: [f64; 2],
    ratio: f64,
    least: f64,
    most: f64,
}

fn compared(rounds: &[[BTreeMap<String, f64>; 2]], name: &str) -> Compared {
    let side = |i: usize| rounds.iter().map(|round| round[i][name]).collect();
    let ratios: Vec<f64> = rounds.iter().map(|r| r[0][name] / r[1][name]).collect();
    Compared {
        medians: [median(side(0)), median(side(1))],
        least: ratios.iter().copied().fold(f64::MAX, f64::min),
        most: ratios.iter().copied().fold(0.0, f64::max),
        ratio: median(ratios),
    }
}

/// Prints a line for each phase of each store. Returns the geometric mean of the ratios.
fn table(rounds: &Rounds<'_>, phases: &[&str]) -> f64 {
    println!("| | libpmemobj, ns | Firn, ns | libpmemobj over Firn, median (least to most) |");
    println!("|---|---|---|---|");
    let mut logs = Vec::new();
    for store in STORES {
        for phase in phases {
            let it = compared(&rounds[store], phase);
            logs.push(it.ratio.ln());
            let [theirs, ours] = it.medians;
            let (ratio, least, most) = (it.ratio, it.least, it.most);
            let phase = phase.replace('_', " ");
            println!(
                "| {store}, {phase} | {theirs:.0} | {ours:.0} | {ratio:.2} ({least:.2} to {most:.2}) |"
            );
        }
    }
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let driver = here("examples/pmemobj/stores/driver.c");
    let flags = [driver.to_str().unwrap(), "-DSTORE_KEYS=(1<<21)"];
    let mut stores = Vec::new();
    for store in STORES {
        let source = here("examples/pmemobj/stores").join(format!("{store}.c"));
        let Some(both) = Both::built(store, &source, &flags, folder.path()) else {
            return;
        };
        stores.push((store, both));
    }
    let chase = here("benches/chase.c");
    let Some(chase) = Both::built("chase", &chase, &[], folder.path()) else {
        return;
    };
    let mut rounds = Rounds::new();
    for _ in 0..ROUNDS {
        for (store, both) in &stores {
            let told = both.run(&["course", ENTRIES]);
            rounds.entry(store).or_default().push(told);
        }
        rounds.entry("chase").or_default().push(chase.run(&[]));
    }
    println!(
        "{ROUNDS} rounds of both in turn, {ENTRIES} entries; processor time of the thread; pools on tmpfs, domain adr, level adr"
    );
    let mean = table(&rounds, &PHASES);
    println!("| geometric mean | | | {mean:.2} |");
    println!(
        "\nGets of all keys when four fifths are deleted, after pmemobj_defrag, and after firn_forget_oids"
    );
    table(&rounds, &LATER);
    let [theirs, ours] = compared(&rounds["chase"], "follow").medians;
    let more = ours - theirs;
    println!(
        "\n`D_RW` in a chase: {theirs:.2} ns with libpmemobj, {ours:.2} with Firn: {more:.2} more"
    );
    let told: Vec<_> = stores
        .iter()
        .map(|(store, both)| (store, both.run(&["course", MANY])))
        .collect();
    for (over, kind) in [
        ("objects with their headers", "ratio_with_headers"),
        ("objects", "ratio"),
    ] {
        println!("\n{MANY} entries, four fifths deleted: 2 MiB pages over {over}");
        println!("| | libpmemobj | after pmemobj_defrag | Firn | after pmemobj_defrag |");
        println!("|---|---|---|---|---|");
        for (store, both) in &told {
            let [theirs, ours] = both.each_ref().map(|of| {
                let [before, after] =
                    ["deletes", "defrag"].map(|when| of[&format!("{kind}_after_{when}")]);
                format!("{before:.2} | {after:.2}")
            });
            println!("| {store} | {theirs} | {ours} |");
        }
    }
}
