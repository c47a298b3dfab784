//! Does `firn top` show another process's effects on a pool, and does it leave the terminal as it was?

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, command, firn};

/// Another process that changes the pool all the time, until it is dropped.
struct Churning(Child);

impl Churning {
    fn start(pool: &str) -> Self {
        let churn = ["churn", pool, "--n", "30000", "--rounds", "100000"];
        let child = command(&churn).stdout(Stdio::null()).spawn().unwrap();
        let churning = Self(child);
        while stat(pool)["commits"].as_u64().unwrap_or_default() < 1000 {}
        churning
    }
}

impl Drop for Churning {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn stat(pool: &str) -> Value {
    serde_json::from_str(&firn(&["stat", pool, "--json"]).out).unwrap_or_default()
}

#[test]
fn one_picture_of_a_pool_that_another_process_changes() {
    let folder = Folder::new();
    let pool = folder.pool("p.firn");
    let churning = Churning::start(&pool);
    let json = firn(&["top", &pool, "--json", "--interval", "0.5"]);
    assert_eq!(json.status, 0, "{}", json.err);
    let seen: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(seen["condition"], "open");
    let change = &seen["change"];
    for rate in ["seconds", "commits_per_second"] {
        assert!(change[rate].as_f64().unwrap() > 0.0, "{rate}: {change}");
    }
    assert!(seen["stat"]["types"].as_array().unwrap().len() > 1);
    for arguments in [&["--once"][..], &[]] {
        let text = firn(&[&["top", &pool, "--interval", "0.3"][..], arguments].concat());
        assert_eq!(text.status, 0, "{}", text.err);
        for words in [
            "p.firn  open",
            "2 MiB pages",
            "commits a second",
            "program stops",
            "marking",
            "firn.map",
        ] {
            assert!(text.out.contains(words), "{words}: {}", text.out);
        }
        assert!(!text.out.contains('\u{1b}'), "plain text: {:?}", text.out);
        assert!(!text.out.contains("open, idle"), "{}", text.out);
    }
    drop(churning);
    let after = firn(&["top", &pool, "--once", "--interval", "0.05"]).out;
    assert!(after.contains("open, idle"), "{after}");
}

#[test]
fn a_closed_pool_is_shown_as_closed_and_left_as_it_is() {
    let folder = Folder::new();
    let pool = folder.pool("p.firn");
    let before = std::fs::read(&pool).unwrap();
    let once = firn(&["top", &pool, "--once", "--interval", "0.05"]);
    assert!(once.out.contains("p.firn  closed"), "{}", once.out);
    assert!(before == std::fs::read(&pool).unwrap());
}

#[test]
fn a_missing_pool_is_named() {
    let folder = Folder::new();
    let pool = folder.arg("nobody.firn");
    for more in [&["--once"][..], &["--json"], &[]] {
        let refused = firn(&[&["top", &pool][..], more].concat());
        assert_eq!((refused.status, &*refused.out), (2, ""));
        assert!(refused.err.contains(&pool), "{}", refused.err);
        assert!(refused.err.contains("not found"), "{}", refused.err);
    }
}

#[test]
fn intervals_that_make_no_sense_are_refused() {
    for interval in ["0", "-1", "nan", "soon", "1e9"] {
        let refused = firn(&["top", "p.firn", &format!("--interval={interval}")]);
        assert_eq!(refused.status, 2);
        assert!(refused.err.contains("0.05 to 3600"), "{}", refused.err);
    }
}

/// Runs `firn top` in a terminal of this size until it reads `keys`. Returns what appears, and what `stty` says of the
/// terminal before and after.
fn in_terminal(folder: &Folder, keys: &str, (columns, lines): (u16, u16)) -> String {
    let session = format!(
        "stty cols {columns} rows {lines}; stty -g; \
         \"$PROGRAM\" top p.firn --interval 0.1; echo \"status $?\"; stty -g"
    );
    let typed = format!(
        "(sleep 1; printf '{keys}'; sleep 1) | script --quiet --return --command '{session}' /dev/null"
    );
    let output = Command::new("sh")
        .args(["-c", &typed])
        .current_dir(folder.path(""))
        .env("TERM", "xterm")
        .env("PROGRAM", env!("CARGO_BIN_EXE_firn"))
        .output()
        .expect("script is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn each_key_that_ends_it_gives_the_terminal_back() {
    let folder = Folder::new();
    folder.pool("p.firn");
    for (keys, size) in [("q", (120, 40)), ("\\003", (40, 10)), ("x\\033", (9, 3))] {
        let shown = in_terminal(&folder, keys, size);
        let (drawn, after) = shown
            .split_once("\u{1b}[?1049l")
            .unwrap_or_else(|| panic!("the screen is left: {shown:?}"));
        assert!(drawn.contains("\u{1b}[?1049h"), "{drawn:?}");
        assert!(
            after.contains("\u{1b}[?25h") || drawn.contains("\u{1b}[?25h"),
            "{shown:?}"
        );
        assert!(after.contains("status 0"), "{after:?}");
        let settings = |text: &str| {
            let mut lines = text.lines().map(str::trim);
            let setting = |line: &&str| line.matches(':').count() > 10;
            lines.find(setting).map(str::to_owned)
        };
        let before = settings(&shown);
        assert!(before.is_some(), "{shown:?}");
        assert_eq!(before, settings(after), "{keys}");
    }
}
