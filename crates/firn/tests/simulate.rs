//! Do the commands about simulated machines say what they should, and refuse what they should?

mod support;

use support::{called, command};

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
}

#[test]
fn machines_and_workloads_are_listed() {
    let out = |arguments: &[&str]| called(command(arguments).output().unwrap()).out;
    assert!(out(&["machines"]).contains("thynvm: ThyNVM"));
    assert!(out(&["machines", "hoop"]).contains("Table II"));
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
