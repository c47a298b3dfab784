//! Does the bench of the collector run at any scale, and do its figures mean what they promise?

use serde_json::Value;

use crate::support::{Folder, firn};

/// Enough objects that pools have several pages of 2 MiB.
const ENTRIES: &str = "40000";
/// Enough that a cycle has something to move.
const REOPENED: &str = "60000";

/// Runs a part of the bench at a small scale. Returns its figures.
fn figures(only: &str) -> Vec<Value> {
    let folder = Folder::new();
    let dir = folder.arg("");
    let mut arguments = vec!["--json", "bench", "--only", only];
    arguments.extend(["--entries", ENTRIES, "--objects", REOPENED]);
    arguments.extend(["--n", "500", "--blocks", "1"]);
    arguments.extend(["--memory-dir", &dir, "--dir", &dir]);
    let called = firn(&arguments);
    assert_eq!(called.status, 0, "{}", called.err);
    let all: Value = serde_json::from_str(&called.out).expect("JSON");
    let all = all.as_array().expect("an array").clone();
    for figure in all.iter().filter(|figure| figure["system"] == "firn") {
        let (medium, level) = (&figure["medium"], &figure["level"]);
        let medium = medium.as_str().expect("a medium");
        let domain = level.as_str().expect("a level");
        let pool = format!("pool, domain {domain}, ");
        assert!(
            medium.starts_with(&pool) && medium.len() > pool.len(),
            "{figure}"
        );
    }
    all
}

fn number(figure: &Value, field: &str) -> f64 {
    let value = figure[field].as_f64();
    value.unwrap_or_else(|| panic!("a number in {field} of {figure}"))
}

#[test]
fn a_packed_pool_is_told_by_ratio_objects_and_cpu_time() {
    let figures = figures("collect_map_128_4k");
    let [figure] = &figures[..] else {
        panic!("one figure: {figures:?}")
    };
    assert_eq!(figure["system"], "firn");
    assert_eq!(figure["structure"], "map");
    assert_eq!(figure["operation"], "collect_map_128_4k");
    assert_eq!(figure["scheme"], "piggyback");
    assert_eq!(number(figure, "n"), 40_000.0);
    assert!(number(figure, "moved") >= 8000.0);
    assert!(number(figure, "ns_cpu_per_moved") > 0.0);
    assert!(number(figure, "ns_cpu_per_op") > 0.0);
    assert!(number(figure, "longest_stop_ns") > 0.0);
    assert!(number(figure, "ratio_2m") >= 1.0);
    assert!((1.0..1.2).contains(&number(figure, "ratio_4k")));
}

#[test]
fn moving_costs_the_fences_of_the_scheme_and_no_other() {
    for (scheme, fences) in [("espresso", 2.0), ("sfccd", 1.0), ("piggyback", 0.0)] {
        let figures = figures(&format!("move_map_{scheme}"));
        let [figure] = &figures[..] else {
            panic!("one figure: {figures:?}")
        };
        assert_eq!(figure["scheme"], scheme);
        assert_eq!(number(figure, "fences_per_op"), fences, "{scheme}");
        assert!(number(figure, "lines_per_op") >= 0.0);
        let program = number(figure, "ns_program_per_moved");
        assert!(number(figure, "ns_cpu_per_moved") >= program);
    }
}

#[test]
fn phases_are_compared_with_a_run_without_a_collector() {
    let figures = figures("phases_refs_normal");
    let [none, normal, relaxed] = &figures[..] else {
        panic!("three figures: {figures:?}")
    };
    assert_eq!(none["scheme"], "none");
    assert_eq!(number(none, "reduction"), 0.0);
    for figure in [normal, relaxed] {
        assert_eq!(figure["scheme"], "piggyback");
        // How much moves by then depends on when the collector's thread gets to run.
        assert!(figure["moved"].is_number());
        assert!(number(figure, "ratio_max") <= number(figure, "ratio_peak"));
        assert!(number(figure, "reduction") <= 1.0);
    }
}

#[test]
fn gets_are_measured_with_and_without_the_barrier() {
    let figures = figures("get_idle");
    let names: Vec<&Value> = figures.iter().map(|f| &f["operation"]).collect();
    assert_eq!(names, ["get_idle", "get_unbarriered"]);
    assert!(figures.iter().all(|f| number(f, "ns_cpu_per_op") > 0.0));
}

#[test]
fn a_pool_that_was_killed_while_it_was_compacted_is_reopened() {
    let figures = figures("reopen_compacting");
    let [figure] = &figures[..] else {
        panic!("one figure: {figures:?}")
    };
    assert_eq!(figure["operation"], format!("reopen_compacting {REOPENED}"));
    assert!(number(figure, "ns_wall_per_op") > 0.0);
}

/// Durable pools, without rivals, whose program need not be built here.
#[test]
fn durable_pools_are_told_by_rows_and_bars() {
    let folder = Folder::new();
    let (dir, page) = (folder.arg(""), folder.arg("durable.md"));
    let mut arguments = vec!["--json", "bench", "--dir", &dir, "--write", &page];
    let parts = ["durable_levels", "durable_reads", "durable_open"];
    arguments.extend(parts.iter().flat_map(|part| ["--only", part]));
    arguments.extend([
        "--n",
        "20",
        "--blocks",
        "1",
        "--entries",
        "3000",
        "--log-mib",
        "4",
    ]);
    let called = firn(&arguments);
    assert_eq!(called.status, 0, "{}", called.err);
    let report: Value = serde_json::from_str(&called.out).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    for part in parts {
        assert!(rows.iter().any(|row| row["part"] == part), "{part}");
    }
    for row in rows {
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        assert!(
            text("medium").starts_with("pool, domain ") && !text("level").is_empty(),
            "{row}"
        );
        assert!(number(row, "median") > 0.0, "{row}");
    }
    let bars = report["bars"].as_array().expect("bars");
    assert_eq!(bars.len(), 5, "{bars:?}");
    assert!(bars.iter().all(|bar| bar["met"].is_boolean()));
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(
        text.contains("`firn bench --only durable --write`"),
        "{text}"
    );
    let left = std::fs::read_dir(&dir).unwrap();
    let left = left.filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(left.count(), 0, "the pools are gone");
}

/// The simulated machine's bench: a pattern's rate, and a mechanism's share of the rate without it.
#[test]
fn the_simulated_machine_is_told_by_rates_and_bars() {
    let arguments = [
        "--json",
        "bench",
        "--machine",
        "--n",
        "40000",
        "--blocks",
        "3",
    ];
    let called = firn(&arguments);
    assert_eq!(called.status, 0, "{}", called.err);
    let all: Value = serde_json::from_str(&called.out).expect("JSON");
    let all = all.as_array().expect("an array");
    let named = |name: &str| {
        let found = all.iter().find(|rate| rate["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {all:?}"))
    };
    for (name, bar) in [
        ("l1", 80.0),
        ("mix", 60.0),
        ("random", 15.0),
        ("image_mix", 40.0),
        ("image_random", 4.0),
        ("requests", 10.0),
        ("cores8", 20.0),
    ] {
        let rate = named(name);
        assert_eq!(number(rate, "bar"), bar, "{name}");
        assert!(number(&rate["millions_per_s"], "median") > 0.0, "{name}");
        assert!(rate["met"].is_boolean(), "{name}");
        assert_eq!(number(rate, "blocks"), 3.0, "{name}");
    }
    for mechanism in ["ffccd-relocate", "ffccd-checklookup", "start-gap"] {
        for pattern in ["with", "list"] {
            let rate = named(&format!("{pattern}_{mechanism}"));
            assert_eq!(rate["control"]["name"], format!("{pattern}_none"));
            let share = number(&rate["control"], "share");
            assert_eq!(rate["met"], share >= 0.5, "{share}");
        }
    }
}

#[test]
fn a_page_about_the_simulated_machine_is_written_alone() {
    let folder = Folder::new();
    let page = folder.arg("machine.md");
    let arguments = ["bench", "--machine=thynvm", "--only", "l1", "--n", "10000"];
    let called = firn(&[&arguments[..], &["--write", &page]].concat());
    assert_eq!(called.status, 0, "{}", called.err);
    assert!(called.out.lines().any(|line| line.starts_with("l1 ")));
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("`firn bench --machine --write`"), "{text}");
    assert!(text.contains("| simulated machine | `thynvm` |"), "{text}");
    assert!(text.contains("zsim"), "{text}");
    let unknown = firn(&["bench", "--machine", "--only", "l9"]);
    assert_eq!(unknown.status, 2);
    assert!(unknown.err.contains("l9") && unknown.err.contains("image_mix"));
}
