//! The demo, printed.

use std::time::Duration;

use firn_lab::LabError;
use firn_lab::demo::{DemoPlan, DemoReport, summary, tables};
use firn_lab::kill::{Collecting, WriterPlan};
use firn_lab::writers::Tide;

use crate::Verdict;
use crate::arguments::{Demo, DemoWriter};
use crate::bars::Bars;
use crate::failure::Failure;
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
        page: demo.page.clone(),
        program,
        time: Duration::from_secs(demo.seconds),
        kills: demo.kills,
        seed: demo.seed,
    };
    let mut tell = |step: &str| remark(&format!("demo: {step}"));
    let report = firn_lab::demo::run(&plan, &mut Bars::new(), &mut tell)?;
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
