//! The machine and time of the measurement.

use std::process::Command;

const UNKNOWN: &str = "unknown";

/// Where and when figures were measured.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) cpu: String,
    pub(super) cores: usize,
    pub(super) kernel: String,
    pub(super) commit: String,
    pub(super) date: String,
}

impl Machine {
    /// This machine now. Call it before measuring, so that the checkout's commit is the one that was built.
    pub fn here() -> Self {
        Self {
            cpu: cpu().unwrap_or_else(|| UNKNOWN.to_owned()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: output("uname", &["-sr"]),
            commit: commit(),
            date: output("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
        }
    }
}

/// The commit of the current directory's checkout.
pub(crate) fn commit() -> String {
    output("git", &["describe", "--always", "--dirty"])
}

fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let output = output.filter(|output| output.status.success());
    let text = output.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| UNKNOWN.to_owned(), |text| text.trim().to_owned())
}
