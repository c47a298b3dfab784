//! Is any acknowledged change lost when a child is killed in the middle of transactions?

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use firn_heap::{Pool, PoolOptions};
use firn_lab::kill::{Collecting, KillPlan, KillReport, Power, run};
use firn_lab::power_cut::Syncs;
use firn_lab::writers::Ledger;
use firn_mapped::{Mapped, MappedOptions};
use firn_media::Domain;
use firn_structures::Map;
use firn_tools::{Entry, Silent};

use crate::support::stepped::killed_at;
use crate::support::{Called, Folder, called, command};

struct Plan {
    kills: u64,
    entries: usize,
    payload_bytes: usize,
    seed: u64,
    collecting: Vec<Collecting>,
}

/// Kills, of which nothing may come.
fn kill(plan: Plan, power: Option<Syncs>) -> KillReport {
    let Plan { kills, seed, .. } = plan;
    let report = run_kills(plan, power);
    println!("{report:#?}");
    assert!(report.is_sound(), "seed {seed}: {report:#?}");
    assert_eq!(report.kills, kills);
    assert!(report.acknowledged.total() > kills);
    report
}

/// Kills a child that writes to a pool; with a disk, the pool has a log, and the power fails at half of the kills.
fn run_kills(plan: Plan, power: Option<Syncs>) -> KillReport {
    let folder = Folder::new();
    let Plan { kills, seed, .. } = plan;
    let entry = |i: usize| Entry {
        key: format!("{}/{i:06}", "k".repeat(i % 90)).into_bytes(),
        value: format!("{i}").into_bytes(),
    };
    let mut entries: Vec<Entry> = (0..plan.entries).map(entry).collect();
    entries.sort_unstable();
    let mut ledger = Ledger::new(entries, plan.payload_bytes, seed);
    let plan = KillPlan {
        program: env!("CARGO_BIN_EXE_firn").into(),
        pool: folder.path("pool"),
        entries_file: folder.path("entries"),
        kills,
        time: Duration::from_millis(kills * if power.is_some() { 100 } else { 60 }),
        collecting: plan.collecting,
        domain: power.map_or(Domain::Process, |_| Domain::Logged),
        power: power.map(|syncs| Power {
            journal: folder.path("disk"),
            syncs,
        }),
    };
    run(&plan, &mut ledger, &mut Silent).unwrap()
}

/// Kills during compactions. A test that misses them tests nothing.
fn kill_compactions(
    kills: u64,
    (entries, payload_bytes): (usize, usize),
    seed: u64,
    power: Option<Syncs>,
) -> KillReport {
    let collecting = Collecting::every_way(Duration::from_millis(1));
    let plan = Plan {
        kills,
        entries,
        payload_bytes,
        seed,
        collecting,
    };
    // On a disk that takes its time a child has less of it for compactions.
    let few = if power.is_some() { 4 } else { 2 };
    let report = kill(plan, power);
    let hit = report.killed_while_collecting;
    assert!(
        hit * few >= kills,
        "{hit} of {kills} kills hit a compaction"
    );
    assert!(report.acknowledged.deletes > entries as u64 / 4);
    report
}

#[test]
fn nothing_is_lost_in_50_kills_during_compactions() {
    kill_compactions(50, (6000, 300), 4, None);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn nothing_is_lost_in_500_kills_during_compactions() {
    kill_compactions(500, (20_000, 300), 5, None);
}

#[test]
fn nothing_is_lost_in_50_kills() {
    let report = kill(
        Plan {
            kills: 50,
            entries: 4000,
            payload_bytes: 0,
            seed: 1,
            collecting: Vec::new(),
        },
        None,
    );
    assert!(report.acknowledged.deletes > 0);
}

/// Values of up to some pages: allocation of every kind is interrupted.
#[test]
fn nothing_of_large_values_is_lost() {
    kill(
        Plan {
            kills: 20,
            entries: 300,
            payload_bytes: 20_000,
            seed: 2,
            collecting: Vec::new(),
        },
        None,
    );
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn nothing_is_lost_in_500_kills() {
    kill(
        Plan {
            kills: 500,
            entries: 20_000,
            payload_bytes: 300,
            seed: 3,
            collecting: Vec::new(),
        },
        None,
    );
}

/// The power fails, too. A test in which nothing is on its way to the disk tests nothing.
fn assert_cut(report: &KillReport) {
    let power = report.power;
    assert!(power.with_writes * 8 >= report.kills, "{power:?}");
    assert!(power.lost > 0 && power.arrived > 0, "{power:?}");
    assert!(power.torn_blocks > 0, "{power:?}");
}

#[test]
fn nothing_is_lost_in_60_kills_and_power_failures() {
    let plan = Plan {
        kills: 60,
        entries: 4000,
        payload_bytes: 300,
        seed: 6,
        collecting: Vec::new(),
    };
    assert_cut(&kill(plan, Some(Syncs::Honest)));
}

#[test]
fn nothing_is_lost_in_50_kills_and_power_failures_during_compactions() {
    let report = kill_compactions(50, (6000, 300), 7, Some(Syncs::Honest));
    assert_cut(&report);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn nothing_is_lost_in_500_kills_and_power_failures_during_compactions() {
    let report = kill_compactions(500, (20_000, 300), 8, Some(Syncs::Honest));
    assert_cut(&report);
}

/// The planted fault: power failures that no comparison notices would show nothing.
#[test]
fn a_disk_that_lies_about_its_syncs_is_found_out() {
    for seed in 9..12 {
        let plan = Plan {
            kills: 60,
            entries: 2000,
            payload_bytes: 300,
            seed,
            collecting: Vec::new(),
        };
        let report = run_kills(plan, Some(Syncs::Lie));
        println!("{report:#?}");
        assert!(!report.is_sound(), "seed {seed}");
        assert!(report.power.failures < 20, "{:?}", report.power);
    }
}

/// Kills a command at each of its calls that change files, in a folder of its own each time, and checks the result.
/// Returns the number of kills.
fn kill_at_each_call(
    prepare: impl Fn(&Folder),
    arguments: &[&str],
    look: impl Fn(&Folder, u64),
) -> u64 {
    kill_at_calls(1, prepare, arguments, look)
}

/// Kills a command at every `step`th of these calls. Returns the number of calls.
fn kill_at_calls(
    step: usize,
    prepare: impl Fn(&Folder),
    arguments: &[&str],
    look: impl Fn(&Folder, u64),
) -> u64 {
    for kill_at in (1..).step_by(step) {
        let folder = Folder::new();
        prepare(&folder);
        let mut command = command(arguments);
        if !killed_at(command.current_dir(folder.0.path()), kill_at) {
            return kill_at - 1;
        }
        look(&folder, kill_at);
    }
    unreachable!("every command ends")
}

fn assert_succeeds(folder: &Folder, arguments: &[&str], kill_at: u64) -> String {
    let output = command(arguments).current_dir(folder.0.path()).output();
    let called = called(output.expect("the program starts"));
    let Called { status, err, out } = called;
    assert_eq!(
        status, 0,
        "after a kill at call {kill_at}: {arguments:?}: {err}{out}"
    );
    out
}

/// Asserts that the folder holds these files and no others.
fn assert_names(folder: &Folder, expected: &[&str], kill_at: u64) {
    let listing = std::fs::read_dir(folder.0.path()).expect("a folder");
    let mut names: Vec<_> = listing
        .map(|item| item.expect("a name").file_name())
        .collect();
    names.sort();
    assert_eq!(names, expected, "after a kill at call {kill_at}");
}

#[test]
fn a_pool_whose_creation_was_killed_at_any_call_is_created_by_the_next() {
    let lines = |folder: &Folder| {
        std::fs::write(folder.path("lines"), "a\t1\nb\t2\n").expect("written");
    };
    let load = ["load", "pool", "lines"];
    let kills = kill_at_each_call(lines, &load, |folder, kill_at| {
        if folder.path("pool").exists() {
            assert_succeeds(folder, &["check", "pool"], kill_at);
        }
        assert_succeeds(folder, &load, kill_at);
        let got = assert_succeeds(folder, &["get", "pool", "a", "b"], kill_at);
        assert_eq!(got, "1\n2\n");
        assert_succeeds(folder, &["check", "pool"], kill_at);
        assert_names(folder, &["lines", "pool"], kill_at);
    });
    assert!(kills > 30, "{kills} kills");
}

#[test]
fn a_copy_that_was_killed_at_any_call_is_made_by_the_next() {
    let model = Folder::new();
    model.pool("pool");
    let prepare = |folder: &Folder| {
        std::fs::copy(model.path("pool"), folder.path("pool")).expect("copied");
    };
    let copy = ["copy", "pool", "new"];
    let kills = kill_at_each_call(prepare, &copy, |folder, kill_at| {
        if folder.path("new").exists() {
            assert_succeeds(folder, &["check", "new"], kill_at);
        } else {
            assert_succeeds(folder, &copy, kill_at);
        }
        let [old, new] =
            ["pool", "new"].map(|pool| assert_succeeds(folder, &["scan", pool, ""], kill_at));
        assert!(
            old == new && !old.is_empty(),
            "the copy holds what the pool holds"
        );
        // A log that outlived the closing of its pool goes with the next opening for changes.
        assert_succeeds(folder, &["delete", "new", "--fraction", "0"], kill_at);
        assert_names(folder, &["new", "pool"], kill_at);
    });
    assert!(kills > 30, "{kills} kills");
}

#[test]
fn a_backup_that_was_killed_at_every_fifth_call_is_made_by_the_next() {
    kill_backups(5);
}

#[test]
#[ignore = "takes a minute; cargo xtask test --long"]
fn a_backup_that_was_killed_at_any_call_is_made_by_the_next() {
    kill_backups(1);
}

/// A pool and its log as a crash leaves them. Neither changes, whenever the backup is killed.
fn kill_backups(step: usize) {
    let model = Folder::new();
    let medium = Mapped::create(model.path("pool"), 0, &logged()).expect("created");
    let pool = Pool::create(medium, &PoolOptions::new("firn map")).expect("created");
    let mut session = pool.session().expect("a session");
    let inserted = session.transaction(|tx| Map::create(tx, "map")?.insert(b"a", b"1"));
    inserted.expect("inserted");
    let files = ["pool", "pool.firn-log"];
    let crashed = files.map(|name| std::fs::read(model.path(name)).expect("read"));
    let prepare = |folder: &Folder| {
        for (name, bytes) in files.iter().zip(&crashed) {
            write_sparse(&folder.path(name), bytes);
        }
    };
    let backup = ["backup", "pool", "new"];
    let calls = kill_at_calls(step, prepare, &backup, |folder, kill_at| {
        if !folder.path("new").exists() {
            assert_succeeds(folder, &backup, kill_at);
        }
        assert_eq!(
            assert_succeeds(folder, &["get", "new", "a"], kill_at),
            "1\n"
        );
        assert_names(folder, &["new", "pool", "pool.firn-log"], kill_at);
        for (name, bytes) in files.iter().zip(&crashed) {
            assert!(std::fs::read(folder.path(name)).expect("read") == *bytes);
        }
    });
    assert!(calls > 60, "{calls} calls");
}

/// Writes a file without its zeros, which saves most of the time.
fn write_sparse(path: &Path, bytes: &[u8]) {
    const STEP: usize = 4096;
    let file = std::fs::File::create(path).expect("created");
    file.set_len(bytes.len() as u64).expect("long enough");
    for (number, part) in bytes.chunks(STEP).enumerate() {
        if part.iter().any(|&byte| byte != 0) {
            let at = (number * STEP) as u64;
            file.write_all_at(part, at).expect("written");
        }
    }
}

fn logged() -> MappedOptions {
    MappedOptions::default().domain(Domain::Logged)
}

#[test]
fn a_picture_that_was_killed_at_any_call_is_the_old_one_or_the_new() {
    let model = Folder::new();
    model.pool("pool");
    let prepare = |folder: &Folder| {
        std::fs::copy(model.path("pool"), folder.path("pool")).expect("copied");
        std::fs::write(folder.path("p.svg"), "old").expect("written");
    };
    let map = ["map", "pool", "-o", "p.svg"];
    let kills = kill_at_each_call(prepare, &map, |folder, kill_at| {
        let left = std::fs::read_to_string(folder.path("p.svg")).expect("a picture");
        assert!(
            left == "old" || left.ends_with("</svg>\n") || left.ends_with("</svg>"),
            "{kill_at}: {left}"
        );
        assert_succeeds(folder, &map, kill_at);
        let made = std::fs::read_to_string(folder.path("p.svg")).expect("a picture");
        assert!(left == "old" || left == made);
        assert_names(folder, &["p.svg", "pool"], kill_at);
    });
    assert!(kills > 10, "{kills} kills");
}
