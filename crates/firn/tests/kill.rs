//! Is anything lost that was acknowledged, when a child is killed in the middle of transactions?

mod support;

use std::time::Duration;

use firn_lab::kill::{Collecting, KillPlan, KillReport, run};
use firn_lab::writers::Ledger;
use firn_lab::{Entry, Silent};
use support::Folder;

struct Plan {
    kills: u64,
    entries: usize,
    payload_bytes: usize,
    seed: u64,
    collecting: Vec<Collecting>,
}

fn kill(plan: Plan) -> KillReport {
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
        time: Duration::from_millis(60 * kills),
        collecting: plan.collecting,
    };
    let report = run(&plan, &mut ledger, &mut Silent).unwrap();
    println!("{report:#?}");
    assert!(report.is_sound(), "seed {seed}: {report:#?}");
    assert_eq!(report.kills, kills);
    assert!(report.acknowledged.total() > kills);
    report
}

/// Kills during compactions. A test that misses them tests nothing.
fn kill_compactions(kills: u64, entries: usize, payload_bytes: usize, seed: u64) {
    let collecting = Collecting::every_way(Duration::from_millis(1));
    let report = kill(Plan {
        kills,
        entries,
        payload_bytes,
        seed,
        collecting,
    });
    let hit = report.killed_while_collecting;
    assert!(hit * 2 >= kills, "{hit} of {kills} kills hit a compaction");
    assert!(report.acknowledged.deletes > entries as u64 / 4);
}

#[test]
fn nothing_is_lost_in_50_kills_during_compactions() {
    kill_compactions(50, 6000, 300, 4);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn nothing_is_lost_in_500_kills_during_compactions() {
    kill_compactions(500, 20_000, 300, 5);
}

#[test]
fn nothing_is_lost_in_50_kills() {
    let report = kill(Plan {
        kills: 50,
        entries: 4000,
        payload_bytes: 0,
        seed: 1,
        collecting: Vec::new(),
    });
    assert!(report.acknowledged.deletes > 0);
}

/// Values of up to some pages: allocation of every kind is cut short.
#[test]
fn nothing_of_large_values_is_lost() {
    kill(Plan {
        kills: 20,
        entries: 300,
        payload_bytes: 20_000,
        seed: 2,
        collecting: Vec::new(),
    });
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn nothing_is_lost_in_500_kills() {
    kill(Plan {
        kills: 500,
        entries: 20_000,
        payload_bytes: 300,
        seed: 3,
        collecting: Vec::new(),
    });
}
