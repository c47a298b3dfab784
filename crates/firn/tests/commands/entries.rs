//! Are entries loaded, scanned, got and deleted as their help says?

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use firn_tools::{Store, StoreOptions};

use crate::support::{ENTRIES, Folder, called, command, firn, json, lines_of};

#[test]
fn what_is_loaded_is_scanned_in_order_and_got() {
    let folder = Folder::new();
    let pool = folder.pool("pool");
    assert_eq!(firn(&["scan", &pool, ""]).out, lines_of(ENTRIES));
    assert_eq!(firn(&["scan", &pool, "key-00001"]).out.lines().count(), 10);
    assert_eq!(firn(&["scan", &pool, "", "--limit", "3"]).out, lines_of(3));
    assert_eq!(firn(&["scan", &pool, "", "--limit", "0"]).out, "");
    let got = firn(&["get", &pool, "key-000001", "key-000000"]);
    assert_eq!((got.status, &*got.out), (0, "value-x1\nvalue-0\n"));
    let got = firn(&["get", &pool, "key-000001", "nobody"]);
    assert_eq!((got.status, &*got.out), (1, "value-x1\n"));
    assert!(got.err.contains("nobody") && got.err.contains(&pool));
    let got = firn(&["get", &pool, "key-000000", "nobody", "--json"]);
    let lines =
        "{\"key\":\"key-000000\",\"value\":\"value-0\"}\n{\"key\":\"nobody\",\"missing\":true}\n";
    assert_eq!((got.status, &*got.out), (1, lines));
}

/// Loads lines of standard input.
fn load_lines(pool: &str, lines: &[u8], more: &[&str]) -> crate::support::Called {
    let mut child = command(&[&["load", pool][..], more].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines).unwrap();
    called(child.wait_with_output().unwrap())
}

/// The output as bytes, which need not be text.
fn printed(arguments: &[&str]) -> Vec<u8> {
    let output = command(arguments)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn every_byte_of_keys_and_values_comes_back_from_what_was_printed() {
    let folder = Folder::new();
    let pool = folder.arg("pool");
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = (0..=255u8)
        .map(|byte| (vec![byte], vec![b'x', byte, b'\t', byte, b'\n']))
        .collect();
    let all: Vec<u8> = (0..=255).collect();
    entries.push((all.clone(), all.iter().rev().copied().collect()));
    entries.push((b"".to_vec(), "n\u{e4}chste\r\n\\t {".into()));
    entries.push((b"{\"key\":1}".to_vec(), b"".to_vec()));
    entries.sort();
    let mut store = Store::open_or_create(
        pool.as_ref(),
        &StoreOptions::default(),
        &mut firn_tools::Silent,
    )
    .unwrap();
    for (key, value) in &entries {
        store.insert(key, value).unwrap();
    }
    store.close().unwrap();
    for format in [&[][..], &["--json"]] {
        let lines = printed(&[&["scan", &pool, ""][..], format].concat());
        assert!(std::str::from_utf8(&lines).is_ok(), "text");
        assert_eq!(lines.split(|&b| b == b'\n').count(), entries.len() + 1);
        let again = folder.arg(if format.is_empty() { "text" } else { "json" });
        let loaded = load_lines(&again, &lines, &[]);
        assert_eq!(loaded.status, 0, "{}", loaded.err);
        let mut store = Store::open(
            again.as_ref(),
            &StoreOptions::default(),
            &mut firn_tools::Silent,
        )
        .unwrap();
        let mut found = Vec::new();
        store
            .scan(b"", |key, value| {
                found.push((key.to_vec(), value.to_vec()));
                true
            })
            .unwrap();
        assert_eq!(found, entries);
    }
    let got = printed(&["get", &pool, "", "--json"]);
    assert_eq!(
        got,
        b"{\"key\":\"\",\"value\":\"n\xc3\xa4chste\\r\\n\\\\t {\"}\n"
    );
}

#[test]
fn backslashes_stay_as_they_are_where_lines_are_raw() {
    let folder = Folder::new();
    let pool = folder.arg("pool");
    let refused = load_lines(&pool, b"a\t1\nc:\\quick\tx\n", &[]);
    assert_eq!(refused.status, 2);
    for part in ["standard input:2", "backslash", "--raw", "the 1 lines"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    let line = b"c:\\quick\tx\\t\n";
    assert_eq!(load_lines(&pool, line, &["--raw"]).status, 0);
    assert_eq!(printed(&["scan", &pool, "c", "--raw"]), line);
    assert_eq!(printed(&["scan", &pool, "c"]), b"c:\\\\quick\tx\\\\t\n");
}

/// Anonymous memory of a command once its first line can be read and it waits for the others to be read.
fn anonymous_kib(arguments: &[&str]) -> u64 {
    let mut child = command(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    // The rest is never read.
    drop(lines);
    assert!(child.wait().unwrap().success(), "a closed pipe is no error");
    kib.expect("the kernel says so")
}

#[test]
fn a_scan_takes_no_more_memory_of_a_larger_pool() {
    const MORE_KIB: u64 = 4096;
    let folder = Folder::new();
    let pools = [1_000, 30_000].map(|entries| {
        let pool = folder.arg(&format!("of {entries}"));
        let lines: String = (0..entries)
            .map(|n| format!("key-{n:08}\t{}\n", "v".repeat(1000)))
            .collect();
        std::fs::write(folder.path("lines"), lines).unwrap();
        assert_eq!(firn(&["load", &pool, &folder.arg("lines")]).status, 0);
        pool
    });
    for format in [&[][..], &["--json"]] {
        let [small, large] = [0, 1]
            .map(|pool: usize| anonymous_kib(&[&["scan", &pools[pool], ""][..], format].concat()));
        assert!(large < small + MORE_KIB, "{small} KiB, then {large} KiB");
    }
}

#[test]
fn input_comes_from_a_pipe_too() {
    let folder = Folder::new();
    let pool = folder.arg("pool");
    for arguments in [&["load", &pool][..], &["load", &pool, "-"]] {
        let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"a\t1\nb\t2").unwrap();
        drop(input);
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(firn(&["scan", &pool, ""]).out, "a\t1\nb\t2\n");
}

#[test]
fn a_tree_is_loaded_with_sizes() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("tree/below")).unwrap();
    std::fs::write(folder.path("tree/below/file"), [0; 77]).unwrap();
    let (pool, tree) = (folder.arg("pool"), folder.arg("tree"));
    assert_eq!(json(&["load", &pool, "--tree", &tree])["entries"], 2);
    let file = folder.arg("tree/below/file");
    assert_eq!(firn(&["get", &pool, &file]).out, "77\n");
}

#[test]
fn deleting_takes_keys_or_a_fraction() {
    let folder = Folder::new();
    let (pool, other) = (folder.pool("pool"), folder.pool("other"));
    assert_eq!(firn(&["delete", &pool, "key-000007"]).status, 0);
    assert_eq!(firn(&["delete", &pool, "key-000007"]).status, 1);
    assert_eq!(firn(&["get", &pool, "key-000007"]).status, 1);
    firn(&["delete", &other, "key-000007"]);
    let fraction = ["--fraction", "0.25", "--seed", "9"];
    for pool in [&pool, &other] {
        let deleted = json(&[&["delete", pool][..], &fraction].concat());
        assert_eq!(deleted["deleted"], (ENTRIES as u64 - 1).div_ceil(4));
    }
    let left = firn(&["scan", &pool, ""]).out;
    assert_eq!(
        left,
        firn(&["scan", &other, ""]).out,
        "one seed, one choice"
    );
    firn(&["delete", &pool, "--fraction", "1"]);
    assert_eq!(firn(&["scan", &pool, ""]).out, "");
    assert_eq!(json(&["check", &pool])["ok"], true);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let pool = folder.arg("pool");
    std::fs::write(folder.path("many"), lines_of(20_000)).unwrap();
    assert_eq!(firn(&["load", &pool, &folder.arg("many")]).status, 0);
    let mut scan = command(&["scan", &pool, ""])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(scan.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let called = called(scan.wait_with_output().unwrap());
    assert_eq!((called.status, &*called.err), (0, ""));
    assert_eq!(json(&["stat", &pool])["open"], false);
}
