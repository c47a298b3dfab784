//! Does `firn churn` run its phases, and touch only its own map?

use firn_heap::{Pool, PoolOptions};
use firn_mapped::{Mapped, MappedOptions};
use firn_structures::List;
use serde_json::Value;

use crate::support::{ENTRIES, Folder, firn, lines_of};

fn churn(pool: &str, more: &[&str]) -> Value {
    let called = firn(&[&["churn", pool, "--json"][..], more].concat());
    assert_eq!(called.status, 0, "{}", called.err);
    serde_json::from_str(&called.out).expect("JSON")
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("a number: {of}"))
}

#[test]
fn the_phases_are_told_one_by_one() {
    let folder = Folder::new();
    let pool = folder.arg("pool");
    let report = churn(&pool, &["--n", "1000", "--value-bytes", "9"]);
    let phases = report["phases"].as_array().unwrap();
    let done: Vec<(&str, u64)> = phases
        .iter()
        .map(|phase| {
            for figure in ["cpu_ns_an_operation", "per_second"] {
                assert!(number(&phase[figure]) > 0.0, "{figure}");
            }
            let standing = &phase["standing"];
            for figure in ["footprint_2m_bytes", "ratio_2m", "file_backed_bytes"] {
                assert!(number(&standing[figure]) > 0.0, "{figure}");
            }
            assert!(number(&standing["ratio_2m"]) >= number(&standing["ratio_4k"]));
            let operations = phase["operations"].as_u64().unwrap();
            (phase["phase"].as_str().unwrap(), operations)
        })
        .collect();
    let expected = [
        ("insert", 1000),
        ("delete", 800),
        ("insert again", 800),
        ("delete again", 800),
    ];
    assert_eq!(done, expected);
    let objects = |phase: usize| number(&phases[phase]["standing"]["objects"]);
    assert!(objects(1) < objects(0) && objects(3) < objects(2));
    assert_eq!(report["setting"]["scheme"], "piggyback");
    assert_eq!(report["cleaned"], 200);
    for figure in ["cycles", "moved_objects", "stops", "longest_stop_ms"] {
        assert!(number(&report["collector"][figure]) >= 0.0, "{figure}");
    }
    assert_eq!(firn(&["scan", &pool, "", "--map", "churn"]).out, "");
    assert_eq!(firn(&["check", &pool]).status, 0);
}

#[test]
fn the_collector_keeps_the_pool_dense() {
    let folder = Folder::new();
    let settings: [&[&str]; 2] = [&["--no-collect"], &["--collect", "1.5:1.25"]];
    let [without, with] = settings.map(|setting| {
        let arguments = [&["--n", "60000", "--keep"][..], setting].concat();
        churn(&folder.arg(setting[0]), &arguments)
    });
    assert_eq!(
        (&without["collector"], &without["setting"]),
        (&Value::Null, &Value::Null)
    );
    let ratio = |report: &Value| number(&report["end"]["ratio_2m"]);
    assert!(
        ratio(&with) < ratio(&without),
        "{} {}",
        ratio(&with),
        ratio(&without)
    );
    for figure in ["cycles", "moved_objects", "stops"] {
        assert!(number(&with["collector"][figure]) > 0.0, "{figure}");
    }
    assert_eq!(with["kept"], true);
    let kept = folder.arg("--collect");
    let left = firn(&["scan", &kept, "churn-", "--map", "churn"]).out;
    assert_eq!(left.lines().count(), 12_000);
    assert_eq!(firn(&["check", &kept]).status, 0);
}

#[test]
fn a_second_run_takes_away_what_the_first_kept() {
    let folder = Folder::new();
    let pool = folder.pool("pool");
    let small = ["--n", "500", "--seed", "3"];
    let first = churn(&pool, &[&small[..], &["--keep"]].concat());
    assert_eq!(
        (&first["kept"], &first["cleaned"]),
        (&true.into(), &0.into())
    );
    let called = firn(&[
        "churn",
        &pool,
        "--n",
        "500",
        "--rounds",
        "2",
        "--no-collect",
    ]);
    assert_eq!(called.status, 0, "{}", called.err);
    assert!(called.err.contains("removed 100 entries"), "{}", called.err);
    for words in [
        "no collector",
        "round 2",
        "delete again",
        "at the end",
        "100 entries were removed",
    ] {
        assert!(called.out.contains(words), "{words}: {}", called.out);
    }
    assert_eq!(firn(&["scan", &pool, "", "--map", "churn"]).out, "");
    assert_eq!(firn(&["scan", &pool, ""]).out, lines_of(ENTRIES));
    assert_eq!(firn(&["check", &pool]).status, 0);
}

#[test]
fn one_seed_leaves_the_same_entries() {
    let folder = Folder::new();
    let left = ["4", "4", "5"].into_iter().enumerate().map(|(i, seed)| {
        let pool = folder.arg(&format!("pool-{i}"));
        churn(&pool, &["--n", "300", "--seed", seed, "--keep"]);
        firn(&["scan", &pool, "", "--map", "churn"]).out
    });
    let left: Vec<String> = left.collect();
    assert_eq!(left[0], left[1]);
    assert_ne!(left[0], left[2]);
}

#[test]
fn a_root_of_another_kind_is_refused_in_any_pool() {
    let folder = Folder::new();
    let pool = folder.arg("lists");
    let medium = Mapped::create(&pool, 0, &MappedOptions::default()).unwrap();
    let lists = Pool::create(medium, &PoolOptions::new("lists")).unwrap();
    let mut session = lists.session().unwrap();
    session
        .transaction(|tx| List::create(tx, "churn").map(drop))
        .unwrap();
    drop(session);
    lists.close().unwrap();
    let refused = firn(&["churn", &pool, "--n", "10"]);
    assert_eq!(refused.status, 2);
    for words in [&*pool, "root `churn`", "firn.list", "not a map", "--map"] {
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
    }
    assert_eq!(firn(&["check", &pool]).status, 0);
    churn(&pool, &["--n", "10", "--map", "other"]);
}

#[test]
fn a_map_with_other_entries_is_refused() {
    let folder = Folder::new();
    let pool = folder.pool("pool");
    let refused = firn(&["churn", &pool, "--map", "map", "--n", "10"]);
    assert_eq!(refused.status, 2);
    for words in [&*pool, "`map`", "key-000000", "--map"] {
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
    }
    assert_eq!(firn(&["scan", &pool, ""]).out, lines_of(ENTRIES));
}

#[test]
fn nonsense_is_refused_before_a_pool_is_made() {
    let folder = Folder::new();
    let pool = folder.arg("pool");
    for (nonsense, words) in [
        (&["--collect", "1.2:1.5"][..], "trigger"),
        (&["--collect", "1.2:0.5"], "target"),
        (&["--collect", "nan:1.25"], "trigger"),
        (&["--collect", "1.5"], "1.5:1.25"),
        (&["--no-collect", "--collect", "1.5:1.25"], "--collect"),
        (&["--scheme", "nobody"], "piggyback"),
        (&["--n", "4"], "--n"),
        (&["--rounds", "0"], "--rounds"),
        (&["--value-bytes", "9999999999"], "--value-bytes"),
    ] {
        let refused = firn(&[&["churn", &pool][..], nonsense].concat());
        assert_eq!(refused.status, 2, "{nonsense:?}");
        assert!(refused.err.contains(words), "{nonsense:?}: {}", refused.err);
        assert!(!folder.path("pool").exists(), "{nonsense:?}");
    }
}
