//! The demo: its arguments, and its output.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use firn_lab::LabError;
use firn_lab::demo::{DemoPlan, DemoReport, summary, tables};
use firn_lab::kill::{Collecting, KillReport, WriterPlan};
use firn_lab::power_cut::Syncs;
use firn_lab::writers::Tide;
use firn_tools::ToolError;

use crate::Verdict;
use crate::arguments::Pages;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::output::{Output, remark};

pub const AFTER_HELP: &str = "\
A child process indexes every path below DIR in a durable pool on disk, then deletes, changes and \
re-inserts entries from two threads. It reports each operation when it is on the disk (level sync), \
before it begins the next, and is killed with SIGKILL at random moments.

At half of the kills the power fails, too. The children that this happens to write to a disk with a \
volatile cache of 512-byte sectors, which the demo makes in software: what was written and not yet \
synced is lost, torn, stale or kept, sector by sector. The other children write to the real disk. \
After each kill the demo opens the pool again and checks that everything reported is there, to the \
byte.

Then most entries are deleted at random. Two threads read and write, in turn on a copy of the pool \
without the collector and on the pool with it, durable 10 ms later (level group): at level sync both \
would wait for the disk. More children are killed in the middle of compactions. Finally the pool is \
compacted completely. Exit status 1 if anything is lost or the pool is refused. A page shows the pool \
before and after.

Examples:
  firn demo
  firn demo /home --pool home.firn --seconds 60 --kills 200 --page home.html";

#[derive(Args, Debug)]
pub struct Demo {
    /// The tree to index
    #[arg(default_value = "/usr", value_name = "DIR")]
    pub tree: PathBuf,
    /// The pool's file, kept afterwards; a temporary file by default
    #[arg(long, value_name = "PATH")]
    pub pool: Option<PathBuf>,
    /// The page with pictures and figures, created or replaced
    #[arg(long, value_name = "FILE", default_value = "firn-demo.html")]
    pub page: PathBuf,
    /// Approximate duration in seconds
    #[arg(long, value_name = "N", default_value_t = 27, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Number of kills, most of them in the middle of compactions, half of them with a power failure
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub kills: u64,
    /// Random seed, for the moments of the kills, the power failures and the operations of the writers
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Args, Debug)]
pub struct DemoWriter {
    #[arg(long)]
    pub pool: PathBuf,
    #[arg(long)]
    pub entries: PathBuf,
    #[arg(long)]
    pub life: u64,
    #[arg(long)]
    pub seed: u64,
    #[arg(long)]
    pub payload_bytes: usize,
    #[arg(long)]
    pub filling: Vec<usize>,
    #[arg(long)]
    pub flood: Vec<usize>,
    #[arg(long, requires = "collect_pages", requires = "collect_pause_us")]
    pub collect: Option<String>,
    #[arg(long)]
    pub collect_pages: Option<Pages>,
    #[arg(long)]
    pub collect_pause_us: Option<u64>,
    #[arg(long)]
    pub disk: Option<PathBuf>,
    #[arg(long, requires = "disk")]
    pub disk_lies: bool,
}

/// Lost or unexpected entries that are printed.
const MOST_PRINTED: usize = 20;

pub fn run(demo: &Demo, output: &mut Output) -> Result<Verdict, Failure> {
    let program = std::env::current_exe().map_err(|source| ToolError::File {
        path: "/proc/self/exe".into(),
        doing: "finding this program",
        source,
    })?;
    let plan = DemoPlan {
        tree: demo.tree.clone(),
        pool: demo.pool.clone(),
        page: demo.page.clone(),
        program,
        time: Duration::from_secs(demo.seconds),
        kills: demo.kills,
        seed: demo.seed,
    };
    let mut tell = |step: &str| remark(&format!("demo: {step}"));
    let report = match firn_lab::demo::run(&plan, &mut Bars::new(), &mut tell) {
        Err(LabError::Lost { report }) => return lost(&report, output),
        other => other?,
    };
    if output.json() {
        output.object(&report)?;
    } else {
        print(&report, output)?;
    }
    Ok(if report.ok {
        Verdict::Well
    } else {
        Verdict::Finding
    })
}

/// Prints what was lost in kills, after which there is nothing to show.
fn lost(report: &KillReport, output: &mut Output) -> Result<Verdict, Failure> {
    if output.json() {
        output.object(report)?;
    }
    let wrong = report.lost.iter().chain(&report.findings);
    for what in wrong.take(MOST_PRINTED) {
        let what = format!("WRONG: {what}");
        match output.json() {
            true => remark(&what),
            false => output.line(&what)?,
        }
    }
    Ok(Verdict::Finding)
}

fn print(report: &DemoReport, output: &mut Output) -> std::io::Result<()> {
    for table in tables(report) {
        output.table(&table)?;
    }
    let wrong = report.all_lost().chain(report.all_findings());
    for what in wrong.take(MOST_PRINTED) {
        output.line(&format!("WRONG: {what}"))?;
    }
    output.line("")?;
    output.line(&summary(report))?;
    output.line(&format!("It took {:.1} s.", report.seconds))?;
    output.line(&format!("The page with the pictures: {}", report.page))?;
    if let Some(pool) = &report.pool {
        output.line(&format!(
            "The pool: firn scan {pool} '' --map writer-0 --limit 10"
        ))?;
    }
    Ok(())
}

pub fn write(writer: &DemoWriter) -> Result<Verdict, Failure> {
    let collecting = match (
        &writer.collect,
        writer.collect_pages,
        writer.collect_pause_us,
    ) {
        (Some(name), Some(pages), Some(pause)) => Some(Collecting {
            scheme: firn_tools::scheme(name)?,
            pages: pages.into(),
            pause: Duration::from_micros(pause),
        }),
        _ => None,
    };
    let tide = |number| match writer.flood.contains(&number) {
        true => Tide::Flood,
        false => Tide::Ebb,
    };
    let syncs = match writer.disk_lies {
        true => Syncs::Lie,
        false => Syncs::Honest,
    };
    let plan = WriterPlan {
        pool: writer.pool.clone(),
        entries: writer.entries.clone(),
        life: writer.life,
        seed: writer.seed,
        payload_bytes: writer.payload_bytes,
        filling: core::array::from_fn(|number| writer.filling.contains(&number)),
        collecting,
        tides: core::array::from_fn(tide),
        disk: writer.disk.clone().map(|journal| (journal, syncs)),
    };
    firn_lab::kill::write(&plan)?;
    Ok(Verdict::Well)
}
