//! The demo, printed.

use std::time::Duration;

use firn_lab::demo::{DemoPlan, DemoReport};
use firn_lab::kill::{Collecting, WriterPlan};
use firn_lab::writers::Tide;
use firn_lab::{LabError, Spread};

use crate::Verdict;
use crate::arguments::{Demo, DemoWriter};
use crate::bars::Bars;
use crate::failure::Failure;
use crate::figures::{bytes, count};
use crate::output::{Output, remark};

/// Things lost or found that are printed.
const MOST_PRINTED: usize = 20;

pub fn run(demo: &Demo, output: &mut Output) -> Result<Verdict, Failure> {
    let program = std::env::current_exe().map_err(|source| LabError::File {
        path: "/proc/self/exe".into(),
        doing: "finding this program",
        source,
    })?;
    let plan = DemoPlan {
        tree: demo.tree.clone(),
        pool: demo.pool.clone(),
        program,
        time: Duration::from_secs(demo.seconds),
        kills: demo.kills,
        seed: demo.seed,
    };
    let report = firn_lab::demo::run(&plan, &mut Bars::new(), |step| {
        remark(&format!("demo: {step}"));
    })?;
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

fn print(report: &DemoReport, output: &mut Output) -> std::io::Result<()> {
    let (kills, stat) = (&report.kills, &report.stat);
    let mut line = |name: &str, value: String| output.line(&format!("{name:<14} {value}"));
    let more = if report.cut { ", of more" } else { "" };
    line(
        "indexed",
        format!("{} paths{more} below {}", count(report.paths), report.tree),
    )?;
    let done = kills.acknowledged;
    line(
        "operations",
        format!(
            "{} transactions acknowledged: {} inserts, {} updates, {} deletes",
            count(done.total()),
            count(done.inserts),
            count(done.updates),
            count(done.deletes)
        ),
    )?;
    line(
        "speed",
        format!(
            "{} transactions a second by two threads, each told to another process",
            count(kills.operations_per_second as u64)
        ),
    )?;
    line(
        "kills",
        format!(
            "{} with SIGKILL, {} of them while the pool was being opened",
            kills.kills, kills.killed_while_opening
        ),
    )?;
    line("reopening", spread("to the first insert", kills.reopen_ms))?;
    line("tracing", spread("what a crash left", kills.trace_ms))?;
    line(
        "compared",
        format!(
            "{} entries; {} transactions were committed and not yet acknowledged",
            count(kills.compared),
            kills.in_flight
        ),
    )?;
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "none".into(), |r| format!("{r:.3}"));
    line(
        "fragmentation",
        format!(
            "{} on 4 KiB pages, {} on 2 MiB pages ({} objects, {} live)",
            ratio(stat.ratio_4k),
            ratio(stat.ratio_2m),
            count(stat.objects),
            bytes(stat.live_bytes)
        ),
    )?;
    line(
        "file",
        format!(
            "{}, {} of them backed by blocks, on {}",
            bytes(stat.file_bytes),
            bytes(stat.file_backed_bytes),
            stat.backing
        ),
    )?;
    line("took", format!("{:.1} s", report.seconds))?;
    let bad = kills.lost.iter().chain(&kills.findings);
    for what in bad.chain(&report.check.findings).take(MOST_PRINTED) {
        line("WRONG", what.clone())?;
    }
    line("lost", lost(report))?;
    if let Some(pool) = &report.pool {
        line(
            "look at it",
            format!("firn scan {pool} '' --map writer-0 --limit 10"),
        )?;
    }
    Ok(())
}

fn lost(report: &DemoReport) -> String {
    match (report.ok, report.kills.lost.len()) {
        (true, _) => "nothing; the checker finds nothing either".into(),
        (false, lost) => format!("{lost} entries; {} findings", findings(report)),
    }
}

fn findings(report: &DemoReport) -> usize {
    report.kills.findings.len() + report.check.findings.len()
}

fn spread(what: &str, ms: Spread) -> String {
    let Spread { min, median, max } = ms;
    format!("{what}: {min:.2} ms at least, {median:.2} ms in the middle, {max:.2} ms at most")
}

pub fn write(writer: &DemoWriter) -> Result<Verdict, Failure> {
    let collecting = match (
        &writer.collect,
        writer.collect_pages,
        writer.collect_pause_us,
    ) {
        (Some(name), Some(pages), Some(pause)) => Some(Collecting {
            scheme: firn_lab::scheme(name)?,
            pages: pages.into(),
            pause: Duration::from_micros(pause),
        }),
        _ => None,
    };
    let tide = |number| match writer.flood.contains(&number) {
        true => Tide::Flood,
        false => Tide::Ebb,
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
    };
    firn_lab::kill::write(&plan)?;
    Ok(Verdict::Well)
}
