//! A rival in a process of its own, controlled by lines of JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use super::BenchError;
use super::clock::Times;

/// The rival that is a heap, by its name on the command line.
pub(super) const LIBPMEMOBJ: &str = "libpmemobj";

/// The rivals' package, and the program in it.
const PROGRAM: &str = "firn-rivals";

/// Where the rivals' program comes from.
#[derive(Clone, Debug)]
pub struct RivalSource {
    /// Which rival.
    pub name: String,
    /// The program that builds it, in this checkout; a program next to this one if `None`.
    pub build: Option<Build>,
}

/// How the rivals' program is built.
#[derive(Clone, Debug)]
pub struct Build {
    /// Cargo.
    pub cargo: PathBuf,
    /// The checkout's root.
    pub checkout: PathBuf,
}

/// A rival that runs and answers. It is asked to end when dropped.
pub(super) struct Rival {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Its name on the command line.
    pub(super) id: String,
    /// Name and version.
    pub(super) name: String,
}

#[derive(Deserialize)]
struct Hello {
    rival: String,
    version: String,
}

#[derive(Deserialize)]
struct Timed {
    ns_cpu_per_op: f64,
    ns_wall_per_op: f64,
}

/// A rival's times of FFCCD's phases on a structure.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Phased {
    pub(super) ns_cpu: PhaseTimes,
    pub(super) ns_wall: PhaseTimes,
    pub(super) ratio_2m_mean: Option<f64>,
    pub(super) ratio_2m_after: Option<f64>,
    pub(super) ratio_4k_after: Option<f64>,
    pub(super) file_over_payload: Option<f64>,
    pub(super) how: String,
}

/// A rival's times of packing a structure.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Defragmented {
    pub(super) moved: u64,
    pub(super) ns_cpu_per_moved: f64,
    pub(super) ns_wall_per_moved: f64,
    pub(super) ratio_2m: Option<f64>,
    pub(super) ratio_4k: Option<f64>,
    pub(super) how: String,
}

/// A rival's times of durable insertions.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Inserted {
    pub(super) ns_wall_per_op: f64,
    pub(super) ns_median_per_commit: f64,
    pub(super) how: String,
}

/// What a rival wrote for its bytes to be counted.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Volume {
    pub(super) digest: u64,
    pub(super) how: String,
}

/// Nanoseconds per operation in each phase.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct PhaseTimes {
    pub(super) insert: f64,
    pub(super) delete: f64,
    pub(super) reinsert: f64,
    pub(super) redelete: f64,
    pub(super) get_full: f64,
    pub(super) get_after: f64,
}

/// Fences and lines of an operation.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Counted {
    pub(super) fences_per_op: f64,
    #[serde(rename = "write_backs_per_op")]
    pub(super) lines_per_op: f64,
}

fn problem(doing: &'static str) -> impl Fn(&dyn std::fmt::Display) -> BenchError {
    move |problem| BenchError::Rival {
        doing,
        problem: problem.to_string(),
    }
}

impl Rival {
    /// Builds and starts a rival, whose pool lies in `dir`.
    pub(super) fn start(source: &RivalSource, dir: &Path) -> Result<Self, BenchError> {
        let program = match &source.build {
            Some(build) => built(build)?,
            None => beside_this_program()?,
        };
        let failed = problem("starting the rival");
        let mut child = Command::new(&program)
            .arg(&source.name)
            .arg("--dir")
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(&format!("{}: {e}", program.display())))?;
        let (ask, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(ask), Some(answers)) = (ask, answers) else {
            return Err(failed(&"no pipes"));
        };
        let mut rival = Self {
            child,
            ask,
            answers: BufReader::new(answers),
            id: source.name.clone(),
            name: source.name.clone(),
        };
        let hello: Hello = rival.answer()?;
        rival.name = format!("{} {}", hello.rival, hello.version);
        Ok(rival)
    }

    /// The mean time of `count` operations.
    pub(super) fn time(&mut self, op: &str, count: u64, threads: u64) -> Result<Times, BenchError> {
        self.say(&json!({ "op": op, "count": count, "threads": threads }))?;
        let timed: Timed = self.answer()?;
        Ok(Times {
            cpu_ns: timed.ns_cpu_per_op,
            wall_ns: timed.ns_wall_per_op,
        })
    }

    /// FFCCD's phases on a structure of `n` entries.
    pub(super) fn phases(
        &mut self,
        structure: &str,
        n: u64,
        seed: u64,
    ) -> Result<Phased, BenchError> {
        self.say(&json!({ "op": "phases", "structure": structure, "n": n, "seed": seed }))?;
        self.answer()
    }

    /// The time per moved object of packing a structure of `n` entries, of which four fifths were deleted.
    pub(super) fn defrag(
        &mut self,
        structure: &str,
        n: u64,
        seed: u64,
    ) -> Result<Defragmented, BenchError> {
        self.say(&json!({ "op": "defrag", "structure": structure, "n": n, "seed": seed }))?;
        self.answer()
    }

    /// Durable insertions of `count` entries by so many threads, `batch` a commit.
    pub(super) fn insert(
        &mut self,
        count: u64,
        batch: u64,
        threads: u64,
    ) -> Result<Inserted, BenchError> {
        self.say(
            &json!({ "op": "durable_insert", "count": count, "batch": batch, "threads": threads }),
        )?;
        self.answer()
    }

    /// `n` insertions and as many skewed updates, all of it home; its files stay until the rival ends.
    pub(super) fn volume(&mut self, n: u64, batch: u64, seed: u64) -> Result<Volume, BenchError> {
        self.say(&json!({ "op": "durable_volume", "n": n, "batch": batch, "seed": seed }))?;
        self.answer()
    }

    /// Fences and lines of an operation.
    pub(super) fn count(&mut self, op: &str) -> Result<Counted, BenchError> {
        self.say(&json!({ "op": "count_fences", "of": op }))?;
        self.answer()
    }

    fn say(&mut self, request: &Value) -> Result<(), BenchError> {
        let line = format!("{request}\n");
        let said = self
            .ask
            .write_all(line.as_bytes())
            .and_then(|()| self.ask.flush());
        said.map_err(|e| problem("asking the rival")(&e))
    }

    fn answer<T: for<'a> Deserialize<'a>>(&mut self) -> Result<T, BenchError> {
        let failed = problem("reading the rival's answer");
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        if read.map_err(|e| failed(&e))? == 0 {
            let ended = self.child.wait().map_err(|e| failed(&e))?;
            return Err(failed(&format!("it ended: {ended}")));
        }
        serde_json::from_str(&line).map_err(|_| failed(&line.trim_end()))
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        // It ends at the end of its input too; whether it received this does not matter.
        let _ = self.say(&json!({ "op": "quit" }));
        let _ = self.child.wait();
    }
}

/// Builds the program and asks cargo where it is.
fn built(build: &Build) -> Result<PathBuf, BenchError> {
    let failed = problem("building the rival");
    let output = Command::new(&build.cargo)
        .current_dir(&build.checkout)
        .args(["build", "--release", "-p", PROGRAM])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| failed(&e))?;
    if !output.status.success() {
        return Err(failed(&output.status));
    }
    let lines = output.stdout.split(|&byte| byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut programs = messages.filter_map(|m| Some(PathBuf::from(m["executable"].as_str()?)));
    programs
        .rfind(|path| path.file_stem().is_some_and(|stem| stem == PROGRAM))
        .ok_or_else(|| failed(&"cargo named no program"))
}

fn beside_this_program() -> Result<PathBuf, BenchError> {
    let this = std::env::current_exe().map_err(|e| problem("looking for the rival")(&e))?;
    Ok(this.with_file_name(PROGRAM))
}
