//! Do the commands about simulated machines print what they should, and refuse what they should?

use crate::support::{called, command};

#[test]
fn a_workload_is_simulated() {
    let called = called(command(&["simulate", "--n", "200"]).output().unwrap());
    assert_eq!(called.status, 0, "{}", called.err);
    assert!(
        called.out.contains("linked_list of 200 objects on ffccd"),
        "{}",
        called.out
    );
    assert!(called.out.contains("delete again"), "{}", called.out);
    assert!(called.out.contains("insert: NVM written"), "{}", called.out);
    assert!(!called.out.contains("nanojoules"), "FFCCD gives no energy");
}

/// HOOP's paper gives the energy of NVM but not of DRAM: an unknown figure is absent.
#[test]
fn bytes_and_energy_are_told_by_device() {
    let arguments = ["--json", "simulate", "--machine", "hoop", "--n", "200"];
    let called = called(command(&arguments).output().unwrap());
    assert_eq!(called.status, 0, "{}", called.err);
    let all: serde_json::Value = serde_json::from_str(&called.out).expect("JSON");
    let phase = &all["phases"][0];
    let lines = |direction: &str| {
        let causes = phase["bytes"]["nvm"][direction].as_object().unwrap();
        let bytes: u64 = causes.values().map(|bytes| bytes.as_u64().unwrap()).sum();
        bytes / 64
    };
    assert_eq!(phase["nvm_reads"], lines("read"));
    assert_eq!(phase["nvm_writes"], lines("written"));
    assert!(phase["bytes"]["nvm"]["written"]["write_back"].as_u64() > Some(0));
    let energy = phase["energy"].as_object().unwrap();
    assert!(!energy.contains_key("dram_nj"), "{energy:?}");
    let (reads, writes) = (lines("read") as f64, lines("written") as f64);
    let expected = 512.0 * (reads * (0.93 + 2.47) + writes * (1.02 + 16.82)) / 1_000.0;
    let found = energy["nvm_nj"].as_f64().unwrap();
    assert!(
        (found - expected).abs() < 1e-6 * expected,
        "{found} {expected}"
    );
}

#[test]
fn machines_and_workloads_are_listed() {
    let out = |arguments: &[&str]| called(command(arguments).output().unwrap()).out;
    assert!(out(&["machines"]).contains("thynvm: ThyNVM"));
    assert!(out(&["machines", "hoop"]).contains("Table II"));
    assert!(out(&["machines", "hoop"]).contains("16.82 pJ/bit"));
    assert!(out(&["mechanisms"]).contains("1 132 bytes (printed: 1132 bytes, 0.045 mm2)"));
    assert!(out(&["workloads"]).contains("inline_tree"));
    assert!(out(&["machines", "ffccd", "--json"]).contains("\"kind\": \"SPEC\""));
}

#[test]
fn what_there_is_not_is_named() {
    for arguments in [
        &["simulate", "--machine", "cray"][..],
        &["simulate", "--scheme", "mark-sweep"],
        &["simulate", "--mechanism", "flux"],
        &["reproduce", "ffccd", "--scale", "huge"],
        &["reproduce", "ffccd", "--only", "fig99"],
        &["machines", "none.toml"],
    ] {
        let called = called(command(arguments).output().unwrap());
        assert_eq!(called.status, 2, "{}", called.out);
        let name = arguments.last().unwrap();
        assert!(called.err.contains(name), "{}", called.err);
    }
}

#[test]
fn what_needs_no_run_is_reproduced_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let arguments = [
        "reproduce",
        "ffccd",
        "--only",
        "table1,section4.3",
        "--out",
        out,
    ];
    let called = called(command(&arguments).output().unwrap());
    assert_eq!(called.status, 0, "{}", called.err);
    assert!(called.out.contains("13.3 %"), "{}", called.out);
    let page = std::fs::read_to_string(directory.path().join("index.html")).unwrap();
    assert!(page.contains("Table 1"));
}
