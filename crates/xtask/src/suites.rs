//! The suites, by the runners that come with Rust.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::times::Times;

/// Runs every suite; the output is the runners' own, and a table of how long each suite took. The long ones are tests that are ignored
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

/// How long no line comes before cargo is looked after.
const QUIET: Duration = Duration::from_millis(200);

fn cargo_test(arguments: &[&str]) -> bool {
    // The cargo that runs this program, so that the toolchain is the pinned one.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(cargo);
    command.arg("test").args(arguments).current_dir(root);
    println!("xtask: cargo test {}", arguments.join(" "));
    match watched(command) {
        Ok(succeeds) => succeeds,
        Err(error) => {
            eprintln!("xtask: cargo cannot be run: {error}");
            false
        }
    }
}

/// Runs a command, passes on what it prints, and prints how long its suites took. True if it succeeds.
fn watched(mut command: Command) -> std::io::Result<bool> {
    // One pipe for both, so that a suite's name comes before its result.
    let (output, end) = std::io::pipe()?;
    command.stdout(end.try_clone()?).stderr(end);
    let mut child = command.spawn()?;
    // Its copies of the pipe's end would keep the pipe open.
    drop(command);
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output
            .read_until(b'\n', &mut line)
            .is_ok_and(|read| read > 0)
        {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    let mut times = Times::new();
    let mut ended = None;
    // A process that a test has left behind may hold the pipe open: once cargo has ended, what is in it is the rest.
    let succeeds = loop {
        match lines.recv_timeout(QUIET) {
            Ok(line) => {
                let text = String::from_utf8_lossy(&line);
                print!("{text}");
                times.read(&text);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break child.wait()?.success(),
            Err(mpsc::RecvTimeoutError::Timeout) => match ended {
                Some(succeeds) => break succeeds,
                None => ended = child.try_wait()?.map(|status| status.success()),
            },
        }
    };
    print!("\n{}", times.table());
    Ok(succeeds)
}
