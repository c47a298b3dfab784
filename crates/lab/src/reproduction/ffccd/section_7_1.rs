//! Section 7.1: crashes at drawn moments, and the states they leave.

use super::{Artefact, Bar, Context, Row};
use crate::Table;
use crate::crash::{self, CrashReport};

/// Printed number of settings, and of injections in all of them together.
const SETTINGS: f64 = 26.0;
const INJECTIONS: f64 = 26_000.0;

const FEWER: &str = "the scale has fewer; a tenth has as many as the paper";
const FOUND: &str = "see the findings below: this is an error of ours";

/// Settings in which a check failed afterwards.
fn failed(report: &CrashReport, scheme: Option<&str>) -> usize {
    let rows = report.rows.iter();
    let of = rows.filter(|row| scheme.is_none_or(|scheme| row.scheme == scheme));
    of.filter(|row| row.findings > 0).count()
}

pub(super) fn make(context: &Context<'_>) -> Artefact {
    let mut artefact = Artefact {
        name: "section7.1",
        title: "Section 7.1: crashes".into(),
        rows: Vec::new(),
        tables: Vec::new(),
        notes: Vec::new(),
        chart: None,
    };
    let Some(injected) = context.injected else {
        return artefact;
    };
    let (corrected, printed) = (&injected.corrected, &injected.printed);
    let row = |what: &str, printed, ours: u64, reason| {
        Row::new(what, (printed, ours as f64), "", Bar::Exact, reason)
    };
    artefact.rows = vec![
        row("settings", Some(SETTINGS), corrected.rows.len() as u64, ""),
        row("injections", Some(INJECTIONS), corrected.injected(), FEWER),
        row(
            "settings in which one failed",
            Some(0.0),
            failed(corrected, None) as u64,
            FOUND,
        ),
        row("states that crashes left", None, corrected.states, ""),
    ];
    artefact.rows.extend(as_printed(printed));
    artefact.tables = vec![
        table("As corrected", corrected),
        table("As printed", printed),
    ];
    artefact.notes = vec![
        "Each injection is a crash at a drawn event with a drawn image of what caches lose, and one more inside its \
         recovery; docs/injections.md says what is asked afterwards. The ordered map and the hash map stand for BzTree \
         and FPTree."
            .into(),
        "As printed is tried with one thread only, and until the first finding of a setting.".into(),
    ];
    artefact.notes.extend(found(corrected));
    artefact
}

/// A row for each scheme as printed.
fn as_printed(printed: &CrashReport) -> Vec<Row> {
    let mut schemes: Vec<&str> = printed.rows.iter().map(|row| row.scheme).collect();
    schemes.dedup();
    let row = |scheme: &str| {
        let rows = printed.rows.iter();
        let settings = rows.filter(|row| row.scheme == scheme).count();
        let what = format!("settings in which {scheme} failed, of {settings}");
        let ours = failed(printed, Some(scheme)) as f64;
        Row::new(what, (Some(0.0), ours), "", Bar::Exact, PRINTED)
    };
    schemes.into_iter().map(row).collect()
}

/// A note for each finding.
fn found(corrected: &CrashReport) -> impl Iterator<Item = String> {
    corrected.findings.iter().map(|finding| {
        let (structure, scheme, threads) = (&finding.structure, &finding.scheme, finding.threads);
        format!(
            "Found in {structure}, {scheme}, {threads} threads: {}",
            finding.message
        )
    })
}

const PRINTED: &str = "the scheme as printed loses what was committed, or calls a line arrived that is not (docs/protocol.md, S1, S2, F1 \
    to F7); the paper's test ends a process, which keeps every store that a cache holds, and here caches lose them";

fn table(title: &str, report: &CrashReport) -> Table {
    let head = [
        "setting",
        "threads",
        "injections",
        "states",
        "of them while objects moved",
        "cycles",
        "findings",
    ];
    let row = |row: &crash::Row| {
        vec![
            format!("{}, {}", row.structure, row.scheme),
            row.threads.to_string(),
            row.injections.to_string(),
            row.states.to_string(),
            row.in_cycles.to_string(),
            row.cycles.to_string(),
            row.findings.to_string(),
        ]
    };
    Table {
        title: title.into(),
        head: head.map(str::to_owned).to_vec(),
        rows: report.rows.iter().map(row).collect(),
    }
}
