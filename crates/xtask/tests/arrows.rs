//! Does every room depend only on the rooms that it may know? Read from cargo's own metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Rooms of production, each with the rooms that it may know.
const PRODUCTION: &[(&str, &[&str])] = &[
    ("firn-units", &[]),
    ("firn-media", &["firn-units"]),
    ("firn-format", &["firn-units"]),
    // The derive macro is part of the heap; it is a crate of its own because cargo requires that.
    ("firn-heap-derive", &[]),
    (
        "firn-heap",
        &[
            "firn-media",
            "firn-format",
            "firn-units",
            "firn-heap-derive",
        ],
    ),
    ("firn-hardware", &["firn-units"]),
    ("firn-log", &["firn-format", "firn-units"]),
    (
        "firn-mapped",
        &["firn-log", "firn-media", "firn-format", "firn-units"],
    ),
    ("firn-fibers", &[]),
    (
        "firn-crash",
        &["firn-media", "firn-fibers", "firn-hardware", "firn-units"],
    ),
    (
        "firn-machine",
        &["firn-media", "firn-fibers", "firn-hardware", "firn-units"],
    ),
    ("firn-structures", &["firn-heap", "firn-media"]),
    (
        "firn-c",
        &[
            "firn-structures",
            "firn-heap",
            "firn-mapped",
            "firn-media",
            "firn-units",
        ],
    ),
];

/// The parts of the lab and the command line, each with the rooms that it may know.
const BELOW_THE_LAB: &[(&str, &[&str])] = &[
    (
        "firn-workloads",
        &["firn-structures", "firn-heap", "firn-media"],
    ),
    (
        "firn-tools",
        &[
            "firn-structures",
            "firn-heap",
            "firn-mapped",
            "firn-format",
            "firn-media",
            "firn-units",
        ],
    ),
];

/// The lab and the rooms that stand on it; no other room knows them.
const LAB: &str = "firn-lab";
const COMMAND_LINE: &str = "firn";
/// Programs that show how the heap is used; no other room knows them.
const EXAMPLES: &str = "firn-examples";
/// Rooms that stand alone.
const ALONE: &[&str] = &["firn-rivals", "xtask"];
/// The program whose machine code the heap's tests inspect; nobody knows it.
const PROBE: &str = "firn-heap-probe";
/// Rooms that production rooms may use in their tests, besides those that they may know.
const IN_TESTS: &[&str] = &[
    "firn-mapped",
    "firn-crash",
    "firn-heap",
    "firn-structures",
    "firn-format",
    "firn-units",
    "firn-media",
];

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Arrows between the rooms of this workspace, from dependencies of one kind (`dev`, or none).
fn arrows(dev: bool) -> Arrows {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let rooms: BTreeSet<String> = packages.iter().map(name).collect();
    let known = |package: &Value| {
        let all = package["dependencies"].as_array().expect("a list");
        let of_kind = all.iter().filter(|d| (d["kind"] == "dev") == dev);
        of_kind.map(name).filter(|d| rooms.contains(d)).collect()
    };
    packages.iter().map(|p| (name(p), known(p))).collect()
}

fn assert_within(room: &str, knows: &BTreeSet<String>, may_know: &[&str]) {
    for known in knows {
        assert!(
            may_know.contains(&known.as_str()),
            "{room} may not know {known}"
        );
    }
}

#[test]
fn every_room_is_in_the_table() {
    let tables = PRODUCTION.iter().chain(BELOW_THE_LAB);
    let named = tables
        .map(|(room, _)| *room)
        .chain(ALONE.iter().copied())
        .chain([LAB, COMMAND_LINE, EXAMPLES, PROBE]);
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    let found: BTreeSet<String> = arrows(false).into_keys().collect();
    assert_eq!(found, named);
}

#[test]
fn rooms_know_only_whom_they_may_know() {
    let arrows = arrows(false);
    for (room, may_know) in PRODUCTION.iter().chain(BELOW_THE_LAB) {
        assert_within(room, &arrows[*room], may_know);
    }
    for room in ALONE {
        assert_within(room, &arrows[*room], &[]);
    }
    let production = PRODUCTION.iter().map(|(room, _)| *room);
    let rooms: Vec<&str> = production.clone().collect();
    assert_within(EXAMPLES, &arrows[EXAMPLES], &rooms);
    assert_within(PROBE, &arrows[PROBE], &rooms);
    let below = BELOW_THE_LAB.iter().map(|(room, _)| *room);
    let rooms: Vec<&str> = production.chain(below).collect();
    assert_within(LAB, &arrows[LAB], &rooms);
    let with_lab: Vec<&str> = rooms.into_iter().chain([LAB]).collect();
    assert_within(COMMAND_LINE, &arrows[COMMAND_LINE], &with_lab);
}

#[test]
fn nobody_knows_the_lab_but_the_command_line() {
    for arrows in [arrows(false), arrows(true)] {
        for (room, knows) in &arrows {
            assert!(room == COMMAND_LINE || !knows.contains(LAB), "{room}");
            assert!(!knows.contains(COMMAND_LINE), "{room}");
            assert!(!knows.contains(EXAMPLES), "{room}");
            assert!(!knows.contains(PROBE), "{room}");
        }
    }
}

#[test]
fn tests_of_production_rooms_use_media_and_what_stands_on_them() {
    let arrows = arrows(true);
    for (room, _) in PRODUCTION.iter().chain(BELOW_THE_LAB) {
        assert_within(room, &arrows[*room], IN_TESTS);
    }
    for room in ALONE {
        assert_within(room, &arrows[*room], &[]);
    }
}
