//! The machine code of a probe. The tests of other crates include this file by its path.

use std::process::Command;

/// Builds an example of the crate in `folder` in release mode and disassembles it.
#[allow(dead_code, reason = "each crate has a probe of one kind")]
pub fn of_example(folder: &str, example: &str) -> String {
    built(
        folder,
        ["--example", example],
        &format!("examples/{example}"),
    )
}

/// As [`of_example`], for a program of the crate.
#[allow(dead_code, reason = "each crate has a probe of one kind")]
pub fn of_program(folder: &str, program: &str) -> String {
    built(folder, ["--bin", program], program)
}

fn built(folder: &str, what: [&str; 2], path: &str) -> String {
    let this = std::env::current_exe().unwrap();
    let target = this.ancestors().nth(3).expect("target/profile/deps/name");
    let manifest = format!("{folder}/Cargo.toml");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--quiet"])
        .args(what)
        .args(["--manifest-path", &manifest])
        .arg("--target-dir")
        .arg(target)
        .env_remove("RUSTFLAGS")
        .status();
    assert!(built.unwrap().success());
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "-M", "intel"])
        .arg(target.join("release").join(path))
        .output()
        .expect("binutils are installed");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// The instructions of `function`, without padding.
pub fn instructions(text: &str, function: &str) -> Vec<String> {
    let label = format!("<{function}>:");
    text.lines()
        .skip_while(|line| !line.ends_with(&label))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(":\t"))
        .map(|(_, code)| code.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|code| {
            !["nop", "int3", "cs", "data16", "xchg"]
                .iter()
                .any(|pad| code.starts_with(pad))
        })
        .collect()
}
