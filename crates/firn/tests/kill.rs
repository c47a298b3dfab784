//! Is anything lost that was acknowledged, when a child is killed in the middle of transactions?

mod support;

use std::time::Duration;

use firn_lab::kill::{KillPlan, KillReport, run};
use firn_lab::{Entry, Silent};
use support::Folder;

fn kill(kills: u64, entries: usize, payload_bytes: usize, seed: u64) -> KillReport {
    let folder = Folder::new();
    let entry = |i: usize| Entry {
        key: format!("{}/{i:06}", "k".repeat(i % 90)).into_bytes(),
        value: format!("{i}").into_bytes(),
    };
    let mut entries: Vec<Entry> = (0..entries).map(entry).collect();
    entries.sort_unstable();
    let plan = KillPlan {
        program: env!("CARGO_BIN_EXE_firn").into(),
        pool: folder.path("pool"),
        entries_file: folder.path("entries"),
        entries,
        kills,
        time: Duration::from_millis(60 * kills),
        seed,
        payload_bytes,
    };
    let report = run(&plan, &mut Silent).unwrap();
    println!("{report:#?}");
    assert!(report.is_sound(), "seed {seed}: {report:#?}");
    assert_eq!(report.kills, kills);
    assert!(report.acknowledged.total() > kills);
    report
}

#[test]
fn nothing_is_lost_in_50_kills() {
    let report = kill(50, 4000, 0, 1);
    assert!(report.acknowledged.deletes > 0);
}

/// Values of up to some pages: allocation of every kind is cut short.
#[test]
fn nothing_of_large_values_is_lost() {
    kill(20, 300, 20_000, 2);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn nothing_is_lost_in_500_kills() {
    kill(500, 20_000, 300, 3);
}
