//! Do the crash tests detect the faults for which they exist? Each named step of the heap is left out in turn, and its
//! workload must detect that.

#[path = "../collect_crash/beside.rs"]
#[allow(dead_code, reason = "another test's")]
mod beside;
mod cycle;
#[path = "../collect_crash/emptied.rs"]
mod emptied;
mod fields;
mod handles;
mod interrupted;
mod lanes;
mod lookup;
#[path = "../collect_crash/moments.rs"]
#[allow(dead_code, reason = "another test's")]
mod moments;
mod moving_fields;
#[path = "../collect_crash/phases.rs"]
#[allow(dead_code, reason = "another test's")]
mod phases;
mod pools;
#[path = "../collect_crash/program.rs"]
#[allow(dead_code, reason = "another test's")]
mod program;
mod raw;
#[path = "../collect_crash/reused.rs"]
mod reused;
mod roots;
mod rounds;
mod shared_words;
#[path = "../collect_crash/story.rs"]
#[allow(dead_code, reason = "another test's")]
mod story;
mod table;
mod tables;
mod types;
mod undo;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use firn_crash::Report;
use firn_heap::steps::STEPS;
use firn_media::Step;

use pools::Missing;
use table::table;

/// Runs a workload on a medium on which a step is missing, or none.
type Workload = Box<dyn Fn(Missing) -> Report + Send + Sync>;

/// A workload, and the steps that it detects.
struct Row {
    name: &'static str,
    workload: Workload,
    steps: Vec<&'static Step>,
}

fn row(
    name: &'static str,
    workload: impl Fn(Missing) -> Report + Send + Sync + 'static,
    steps: &[&'static Step],
) -> Row {
    Row {
        name,
        workload: Box::new(workload),
        steps: steps.to_vec(),
    }
}

/// Runs `each` for every item, on two threads.
fn in_parallel<T: Sync>(items: &[T], each: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    each(item);
                }
            });
        }
    });
}

#[test]
fn every_step_is_missed() {
    let table = table();
    let all: Vec<_> = table
        .iter()
        .flat_map(|row| row.steps.iter().map(move |step| (row, *step)))
        .collect();
    let unnoticed = Mutex::new(Vec::new());
    in_parallel(&all, |(row, step)| {
        let report = (row.workload)(Some(step));
        let found = report.findings.first();
        let what = found.map_or("nothing", |finding| finding.message.as_str());
        println!(
            "{}, {}: {:.1} s, {}",
            step.name,
            row.name,
            report.elapsed.as_secs_f64(),
            what.lines().next().unwrap_or_default(),
        );
        if found.is_none() {
            unnoticed.lock().unwrap().push(step.name);
        }
    });
    let unnoticed = unnoticed.into_inner().unwrap();
    assert!(unnoticed.is_empty(), "not missed: {unnoticed:?}");
}

#[test]
fn with_every_step_nothing_is_found() {
    in_parallel(&table(), |row| {
        let report = (row.workload)(None);
        println!(
            "{}: {report}, {:.1} s",
            row.name,
            report.elapsed.as_secs_f64()
        );
        report.expect_clean();
    });
}

#[test]
fn every_step_has_a_workload() {
    let of_table: Vec<&str> = table()
        .iter()
        .flat_map(|row| row.steps.iter().map(|step| step.name))
        .collect();
    let names: BTreeSet<&str> = of_table.iter().copied().collect();
    assert_eq!(names.len(), of_table.len(), "a step has two workloads");
    assert_eq!(names, STEPS.iter().map(|step| step.name).collect());
}

#[test]
fn the_page_lists_every_step() {
    let page = include_str!("../../../../docs/protocol.md");
    let (_, table) = page.split_once("| step | rule |").unwrap();
    let listed: Vec<&str> = table
        .lines()
        .skip(2)
        .filter(|line| !line.is_empty())
        .collect();
    let row = |step: &&Step| format!("| {} | {} | {} |", step.name, step.rule, step.what);
    assert_eq!(listed, STEPS.iter().map(row).collect::<Vec<_>>());
}
