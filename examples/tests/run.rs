//! Do the examples run, twice on one pool, and say what they should?

use std::path::Path;
use std::process::Command;

fn run(program: &str, arguments: &[&Path]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_first_program_remembers_its_runs() {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("notes.firn");
    let program = env!("CARGO_BIN_EXE_first_program");
    assert_eq!(run(program, &[&pool]), "run 1\n");
    assert_eq!(run(program, &[&pool]), "run 2\nrun 1\n");
}

#[test]
fn words_are_counted_across_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, text) = (dir.path().join("words.firn"), dir.path().join("text"));
    std::fs::write(&text, "snow ice snow firn").unwrap();
    let program = env!("CARGO_BIN_EXE_word_count");
    run(program, &[&pool, &text]);
    let counted = run(program, &[&pool, &text]);
    assert_eq!(counted, "       2 firn\n       2 ice\n       4 snow\n");
}

#[test]
fn the_readme_shows_the_first_program() {
    let readme = include_str!("../../README.md");
    let program = include_str!("../first_program.rs");
    let (_, program) = program.split_once('\n').unwrap();
    assert!(
        readme.contains(program),
        "README.md shows another program than the one that runs"
    );
}
