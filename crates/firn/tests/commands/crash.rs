//! Does `firn crash` find broken code and nothing else, and can its findings be replayed?

use std::process::Command;

use serde_json::Value;

use crate::support::{Called, Folder, called, command};

/// Calls `firn crash` in a directory, where it writes the files of findings.
fn crash(folder: &Folder, arguments: &[&str]) -> Called {
    let mut command: Command = command(&[&["crash"], arguments].concat());
    called(command.current_dir(folder.0.path()).output().unwrap())
}

fn json(folder: &Folder, arguments: &[&str]) -> Value {
    let called = crash(folder, &[arguments, &["--json"]].concat());
    serde_json::from_str(&called.out)
        .unwrap_or_else(|e| panic!("{e}: {}{}", called.out, called.err))
}

/// The only file in a directory.
fn the_file(folder: &Folder) -> String {
    let listing = std::fs::read_dir(folder.0.path()).unwrap();
    let names: Vec<String> = listing
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    names[0].clone()
}

#[test]
fn a_sound_combination_is_crashed_everywhere() {
    let folder = Folder::new();
    let queue = ["--structure", "queue", "--scheme", "piggyback"];
    let called = crash(&folder, &queue);
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    assert!(called.out.contains("nothing was found"), "{}", called.out);
    let report = json(&folder, &queue);
    let row = &report["rows"][0];
    assert_eq!(row["exhaustive"], true);
    assert_eq!(row["executions"], 17);
    assert!(row["recovery_states"].as_u64().unwrap() > 0);
    assert!(row["images"].as_u64().unwrap() > row["states"].as_u64().unwrap());
}

#[test]
fn one_seed_gives_one_campaign() {
    let folder = Folder::new();
    let queue = ["--structure", "queue", "--scheme", "none,sfccd"];
    let hash = |more: &[&str]| json(&folder, &[&queue, more].concat())["hash"].clone();
    assert_eq!(hash(&["--seed", "1"]), hash(&["--seed", "1"]));
    let injected = ["--injections", "20", "--threads", "2", "--seed", "7"];
    assert_eq!(hash(&injected), hash(&injected));
    let other = ["--injections", "20", "--threads", "2", "--seed", "8"];
    assert_ne!(hash(&injected), hash(&other));
}

#[test]
fn runs_of_several_threads_lose_nothing() {
    let folder = Folder::new();
    let arguments = ["--structure", "avl,queue", "--injections", "40"];
    for threads in ["1", "8"] {
        let report = json(&folder, &[&arguments[..], &["--threads", threads]].concat());
        assert_eq!(report["ok"], true, "{report}");
        for row in report["rows"].as_array().unwrap() {
            assert_eq!(row["injections"], 40);
            assert_eq!(row["executions"], 3);
        }
    }
}

/// An interrupted campaign continues from its log, and several logs are reported as one.
#[test]
fn logs_are_gone_on_with_and_added_up() {
    let folder = Folder::new();
    let list = [
        "--structure",
        "list",
        "--scheme",
        "sfccd",
        "--pool",
        "explicit",
    ];
    let called = |more: &[&str]| json(&folder, &[&list, more].concat());
    let whole = called(&["--injections", "96"]);
    let one = called(&["--injections", "32", "--log", "one"]);
    assert_eq!(one["rows"][0]["injections"], 32);
    let again = called(&["--injections", "48", "--log", "one"]);
    assert_eq!(again["rows"][0]["injections"], 48);
    called(&["--injections", "48", "--from-run", "3", "--log", "two"]);
    let both = json(&folder, &["--logs", "one,two"]);
    assert_eq!(both["report"]["rows"][0]["pool"], "explicit");
    assert_eq!(both["report"]["rows"][0]["injections"], 96);
    assert_eq!(both["report"]["hash"], whole["hash"]);
    let other = crash(
        &folder,
        &["--injections", "1", "--seed", "9", "--log", "one"],
    );
    assert_eq!(other.status, 2);
    assert!(other.err.contains("it says"), "{}", other.err);
}

/// A finding is written to a file, and replays from it every time.
fn is_found_again(arguments: &[&str], in_text: &str) {
    let folder = Folder::new();
    let found = crash(&folder, arguments);
    assert_eq!(found.status, 1, "{}{}", found.out, found.err);
    assert!(found.out.contains(in_text), "{}", found.out);
    let file = the_file(&folder);
    let command = format!("firn crash --replay ./{file}");
    assert!(found.out.contains(&command), "{}", found.out);
    for _ in 0..2 {
        let again = crash(&folder, &["--replay", &file]);
        assert_eq!(again.status, 1, "{}{}", again.out, again.err);
        assert!(again.out.contains("It still fails."), "{}", again.out);
    }
    let again = json(&folder, &["--replay", &file]);
    assert_eq!(again["ok"], false);
    assert_eq!(again["message"], again["finding"]["message"]);
    mended(&folder, &file);
}

/// Without the fault, the finding passes or leads nowhere; it does not fail.
fn mended(folder: &Folder, file: &str) {
    let text = std::fs::read_to_string(folder.path(file)).unwrap();
    let mut finding: Value = serde_json::from_str(&text).unwrap();
    finding["finding"]["plant"] = Value::Null;
    finding["finding"]["scheme"] = "none".into();
    std::fs::write(folder.path(file), finding.to_string()).unwrap();
    let mended = crash(folder, &["--replay", file]);
    match mended.status {
        0 => assert!(mended.out.contains("It passes now."), "{}", mended.out),
        2 => assert!(
            mended.err.contains("the code has changed"),
            "{}",
            mended.err
        ),
        _ => panic!("{}{}", mended.out, mended.err),
    }
}

#[test]
fn a_fence_that_is_left_out_is_missed_by_sequences() {
    let list = ["--structure", "list", "--scheme", "none"];
    let plant = ["--plant", "entry-fence"];
    is_found_again(&[&list[..], &plant].concat(), "without `entry-fence`");
}

#[test]
fn a_fence_that_is_left_out_is_missed_by_runs() {
    let list = ["--structure", "list", "--scheme", "none", "--threads", "2"];
    let plant = ["--plant", "entry-fence", "--injections", "400"];
    is_found_again(&[&list[..], &plant].concat(), "operations of 2 threads");
}

/// S1: a commit to an object that was copied is lost.
#[test]
fn the_printed_scheme_loses_a_commit() {
    let list = ["--structure", "list", "--scheme", "sfccd-as-printed"];
    is_found_again(
        &list,
        "FOUND in list, sfccd-as-printed, adr, traced: begin, step",
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = Folder::new();
    let refused = [
        (&["--structure", "heap"][..], "list, map, hash"),
        (&["--scheme", "slow"], "sfccd-as-printed"),
        (&["--domain", "dax"], "adr, eadr, process"),
        (&["--plant", "nothing"], "entry-fence"),
        (&["--exhaustive", "9"], "1 to 3"),
        (&["--exhaustive", "0"], "1 to 3"),
        (&["--injections", "0"], "1 to"),
        (&["--pool", "new"], "traced, explicit"),
        (&["--settings", "thynvm", "--injections", "1"], "ffccd-7.1"),
        (&["--settings", "ffccd-7.1"], "--injections"),
        (&["--minutes", "1"], "--injections"),
        (&["--log", "nowhere/log", "--injections", "1"], "nowhere"),
        (&["--logs", "nowhere.log"], "nowhere.log"),
        (
            &[
                "--settings",
                "ffccd-7.1",
                "--injections",
                "1",
                "--pool",
                "traced",
            ],
            "cannot be used",
        ),
        (&["--threads", "3", "--injections", "1"], "1, 2, 4, 8"),
        (&["--threads", "2"], "--injections"),
        (&["--depth", "3"], "0 to 2"),
        (
            &["--exhaustive", "1", "--injections", "5"],
            "cannot be used",
        ),
        (&["--out", "nowhere"], "nowhere"),
        (&["--replay", "nowhere.json"], "nowhere.json"),
        (&["--replay", "x", "--structure", "list"], "cannot be used"),
    ];
    for (arguments, named) in refused {
        let called = crash(&folder, arguments);
        assert_eq!(called.status, 2, "{arguments:?}: {}", called.out);
        assert!(called.err.contains(named), "{arguments:?}: {}", called.err);
    }
}

#[test]
fn a_file_that_is_no_finding_is_refused() {
    let folder = Folder::new();
    let plant = ["--plant", "entry-fence", "--structure", "list"];
    crash(&folder, &[&plant[..], &["--scheme", "none"]].concat());
    let file = the_file(&folder);
    let text = std::fs::read_to_string(folder.path(&file)).unwrap();
    let finding: Value = serde_json::from_str(&text).unwrap();
    let with = |field: &str, value: Value| {
        let mut changed = finding.clone();
        changed["finding"][field] = value;
        changed.to_string()
    };
    let long: Vec<&str> = vec!["update"; 40];
    let refused = [
        (String::new(), "EOF"),
        ("{}".to_owned(), "format"),
        (text.replace("crash, 1", "crash, 9"), "crash, 9"),
        (with("structure", "heap".into()), "red_black"),
        (with("structure", 7.into()), "invalid type"),
        (with("plant", "nothing".into()), "entry-fence"),
        (with("depth", 77.into()), "0 to 2"),
        (with("more", 1.into()), "unknown field"),
        (
            with("program", serde_json::json!({ "sequence": ["fly"] })),
            "abort-insert",
        ),
        (
            with("program", serde_json::json!({ "sequence": long })),
            "at most",
        ),
        (with("replay", "event".into()), "no `=`"),
        (
            with("replay", "seed=0 event=99999999:".into()),
            "fewer events",
        ),
    ];
    for (text, named) in refused {
        std::fs::write(folder.path(&file), &text).unwrap();
        let called = crash(&folder, &["--replay", &file]);
        assert_eq!(called.status, 2, "{text}: {}", called.out);
        assert!(called.err.contains(named), "{text}: {}", called.err);
    }
}
