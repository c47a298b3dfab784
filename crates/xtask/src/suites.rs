//! The suites, by the runners that come with Rust.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::times::Times;

/// Runs every suite. The output is the runners' own, and then a table of how long each suite took. The long suites are
/// tests that are ignored otherwise; with them, programs for measurements are built as well.
pub fn run(long: bool) -> Result<(), String> {
    let start = Instant::now();
    let mut times = Times::new();
    let mut failed = Vec::new();
    let mut suite = |name: &'static str, arguments: &[&str]| {
        if !cargo_test(arguments, &mut times) {
            failed.push(name);
        }
    };
    let all = ["--workspace", "--no-fail-fast"];
    let every = |more: &[&'static str]| [&all[..], more].concat();
    suite("tests", &every(&["--lib", "--bins", "--tests"]));
    suite("documentation", &every(&["--doc"]));
    if long {
        // Not the examples in the documentation: those that are ignored do not compile.
        suite("long tests", &every(&["--all-targets", "--", "--ignored"]));
    }
    print!("\n{}", times.table());
    println!("xtask: {} s in all", start.elapsed().as_secs());
    match failed[..] {
        [] => Ok(()),
        _ => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// How long no line comes before cargo is looked after.
const QUIET: Duration = Duration::from_millis(200);

fn cargo_test(arguments: &[&str], times: &mut Times) -> bool {
    // The cargo that runs this program, so that the toolchain is the pinned one.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(cargo);
    command.arg("test").args(arguments).current_dir(root);
    println!("xtask: cargo test {}", arguments.join(" "));
    match watched(command, times) {
        Ok(succeeds) => succeeds,
        Err(error) => {
            eprintln!("xtask: cargo cannot be run: {error}");
            false
        }
    }
}

/// Runs a command, passes on its output, and notes how long its suites took. True if it succeeds.
fn watched(mut command: Command, times: &mut Times) -> std::io::Result<bool> {
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
    times.begin_building();
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
    times.end_building();
    Ok(succeeds)
}
