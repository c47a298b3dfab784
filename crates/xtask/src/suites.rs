//! The suites, by the runners that come with Rust.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Runs every suite; the output is the runners' own. The long ones are tests that are ignored
/// otherwise.
pub fn run(long: bool) -> Result<(), String> {
    let start = Instant::now();
    let mut failed = Vec::new();
    let mut suite = |name: &'static str, arguments: &[&str]| {
        if !cargo_test(arguments) {
            failed.push(name);
        }
    };
    suite("tests", &["--workspace", "--no-fail-fast"]);
    if long {
        // Not the examples in the documentation: what those ignore does not compile.
        let every_target = ["--workspace", "--no-fail-fast", "--all-targets"];
        suite(
            "long tests",
            &[&every_target[..], &["--", "--ignored"]].concat(),
        );
    }
    println!("xtask: {} s in all", start.elapsed().as_secs());
    match failed[..] {
        [] => Ok(()),
        _ => Err(format!("failed: {}", failed.join(", "))),
    }
}

fn cargo_test(arguments: &[&str]) -> bool {
    // The cargo that runs this program, so that the toolchain is the pinned one.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(cargo);
    command.arg("test").args(arguments).current_dir(root);
    println!("xtask: cargo test {}", arguments.join(" "));
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("xtask: cargo cannot be started: {error}");
            false
        }
    }
}
