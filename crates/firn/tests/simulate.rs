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
    assert!(out(&["workloads"]).contains("inline_tree"));
    assert!(out(&["machines", "ffccd", "--json"]).contains("\"kind\": \"SPEC\""));
}

#[test]
fn what_there_is_not_is_named() {
    for arguments in [
        &["simulate", "--machine", "cray"][..],
        &["simulate", "--scheme", "ffccd-as-printed"],
        &["machines", "none.toml"],
    ] {
        let called = called(command(arguments).output().unwrap());
        assert_eq!(called.status, 2, "{}", called.out);
        let name = arguments.last().unwrap();
        assert!(called.err.contains(name), "{}", called.err);
    }
}
