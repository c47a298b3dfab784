//! Do progress bars fit the terminal, and are they gone when the work is done?

use std::process::Command;

use crate::support::{Folder, lines_of};

/// Columns of the terminal: fewer than a bar of the usual width takes.
const COLUMNS: usize = 36;

/// Runs a shell command in a terminal. Returns what appears there, one item for each redrawing of a line, and the last
/// line that stays.
fn in_terminal(folder: &Folder, command: &str) -> (Vec<String>, String) {
    let command = format!("stty cols {COLUMNS} rows 24; {command}");
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(folder.path(""))
        .env("TERM", "xterm")
        .env("PROGRAM", env!("CARGO_BIN_EXE_firn"))
        .output()
        .expect("script is installed");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    let drawn = text.split(['\r', '\n']).map(visible);
    let drawn: Vec<String> = drawn.filter(|line| !line.trim().is_empty()).collect();
    let last = text.trim_end().rsplit(['\r', '\n']).next();
    (drawn, last.unwrap_or_default().to_owned())
}

/// The text without its control sequences.
fn visible(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_owned();
    let end_of_sequence = |piece: &str| piece.find(|c: char| c.is_ascii_alphabetic());
    pieces.fold(first, |text, piece| {
        let rest = end_of_sequence(piece).map_or("", |end| &piece[end + 1..]);
        text + rest
    })
}

fn bars(drawn: &[String]) -> Vec<&String> {
    let bars = drawn.iter().filter(|line| line.starts_with("loading"));
    bars.collect()
}

#[test]
fn a_bar_of_unknown_length_counts_lines_and_is_cleared() {
    let folder = Folder::new();
    let slow = r#"(printf 'a\t1\n'; sleep 1.6; printf 'b\t2\n') | "$PROGRAM" load pool -"#;
    let (drawn, last) = in_terminal(&folder, slow);
    let bars = bars(&drawn);
    assert!(!bars.is_empty(), "{drawn:?}");
    for bar in bars {
        assert!(bar.starts_with("loading lines "), "{bar:?}");
        assert!(bar.trim_end().ends_with(" 1"), "{bar:?}");
        assert!(bar.chars().count() <= COLUMNS, "{bar:?}");
    }
    assert!(
        last.starts_with("\u{1b}[2K2 entries (2 new)"),
        "the line is cleared before the result: {last:?}"
    );
}

#[test]
fn a_bar_of_known_length_fits_a_narrow_terminal() {
    let folder = Folder::new();
    std::fs::write(folder.path("lines"), lines_of(120_000)).unwrap();
    let (drawn, last) = in_terminal(&folder, r#""$PROGRAM" load pool lines"#);
    // A fast machine may finish before a bar appears.
    for bar in bars(&drawn) {
        assert!(bar.chars().count() <= COLUMNS, "{bar:?}");
        assert!(bar.contains(" %, ") && bar.contains(" left"), "{bar:?}");
    }
    assert!(last.contains("120 000 entries"), "{last:?}");
}

#[test]
fn work_that_is_soon_done_draws_nothing() {
    let folder = Folder::new();
    let (drawn, _) = in_terminal(&folder, r#"printf 'a\t1\n' | "$PROGRAM" load pool -"#);
    assert!(bars(&drawn).is_empty(), "{drawn:?}");
}
