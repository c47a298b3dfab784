//! Table 3: fragmentation with and without FFCCD.

use firn_heap::collector::scheme::{FFCCD_CHECKLOOKUP, NONE};

use super::{Artefact, Bar, Context, Row, STRUCTURES, Structure, percent};
use crate::demo::Table;
use crate::reproduction::matrix::{Cell, Parameters};
use crate::reproduction::outcome::Outcome;

/// Megabytes as printed: without defragmentation, live, with normal and with relaxed parameters, and the
/// reductions of both. In the order of the structures.
const PRINTED: [[f64; 6]; 5] = [
    [245.6, 145.3, 194.6, 225.5, 50.8, 20.0],
    [369.3, 230.1, 309.5, 334.6, 43.0, 24.9],
    [493.5, 311.9, 435.7, 469.2, 31.8, 13.4],
    [845.7, 536.1, 735.3, 817.6, 35.7, 9.1],
    [488.2, 302.1, 391.1, 443.1, 52.2, 24.3],
];
/// The mean as printed.
const PRINTED_MEAN: [f64; 2] = [42.7, 18.3];

const PARAMETERS: [(Parameters, &str); 2] = [(Parameters::Normal, "N"), (Parameters::Relaxed, "R")];

fn cell(structure: &Structure, parameters: Parameters) -> Cell {
    Cell {
        parameters,
        ..Cell::of(structure.workload, &FFCCD_CHECKLOOKUP)
    }
}

pub(super) fn cells() -> Vec<Cell> {
    let of = |structure: &Structure| {
        let [normal, relaxed] = PARAMETERS.map(|(parameters, _)| cell(structure, parameters));
        [Cell::of(structure.workload, &NONE), normal, relaxed]
    };
    STRUCTURES.iter().flat_map(of).collect()
}

/// Equation 1 of section 6: what is saved of what is not live.
fn reduction(base: &Outcome, now: &Outcome) -> f64 {
    percent(
        base.page_bytes - now.page_bytes,
        base.page_bytes - base.live_bytes,
    )
}

const MORE: &str = "sources and destinations are both there until a cycle ends, and a cycle waits for the program to touch what \
    moves; the printed one releases a page as soon as its objects have moved, which loses objects \
    (docs/protocol.md, X4). The lower the target, the more is there twice";

pub(super) fn make(context: &Context<'_>) -> Artefact {
    let mut rows = Vec::new();
    for (nth, (parameters, letter)) in PARAMETERS.into_iter().enumerate() {
        let ours = |structure: &Structure| {
            reduction(
                context.baseline(structure),
                context.outcome(&cell(structure, parameters)),
            )
        };
        for (structure, printed) in STRUCTURES.iter().zip(PRINTED) {
            let what = format!("fragmentation reduced, {}, {letter}", structure.short);
            let figures = (Some(printed[4 + nth]), ours(structure));
            rows.push(Row::new(what, figures, "%", Bar::Reduction, MORE));
        }
        let figures = (Some(PRINTED_MEAN[nth]), context.mean(ours));
        let what = format!("fragmentation reduced, mean, {letter}");
        rows.push(Row::new(what, figures, "%", Bar::Reduction, MORE));
    }
    for (structure, printed) in STRUCTURES.iter().zip(PRINTED) {
        let figures = (
            Some(printed[0] / printed[1]),
            context.baseline(structure).ratio(),
        );
        let what = format!("pages / live without defragmentation, {}", structure.short);
        let reason = "our allocator is not PMDK's: its classes are finer and it fills pages that are there first";
        rows.push(Row::new(what, figures, "", Bar::Reduction, reason));
    }
    Artefact {
        name: "table3",
        title: "Table 3: fragmentation with and without FFCCD".into(),
        rows,
        tables: vec![footprints(context)],
        notes: vec![
            "Means over the three phases after the first inserts, pages of 2 MiB (of 4 KiB at the scale quick). The printed megabytes cannot be \
             five million objects of 128 bytes, so ratios are compared."
                .into(),
        ],
        chart: None,
    }
}

fn footprints(context: &Context<'_>) -> Table {
    let row = |structure: &Structure| {
        let megabytes = |bytes: f64| format!("{:.1}", bytes / 1e6);
        let base = context.baseline(structure);
        let with = PARAMETERS.map(|(parameters, _)| context.outcome(&cell(structure, parameters)));
        let pages = with.map(|outcome| megabytes(outcome.page_bytes));
        let names = [
            structure.short.to_owned(),
            megabytes(base.page_bytes),
            megabytes(base.live_bytes),
        ];
        let cycles = with.map(|outcome| outcome.collections.to_string());
        names.into_iter().chain(pages).chain(cycles).collect()
    };
    let head = [
        "structure",
        "pages",
        "live",
        "pages, N",
        "pages, R",
        "collections, N",
        "collections, R",
    ];
    Table {
        title: "MB on average".into(),
        head: head.map(str::to_owned).to_vec(),
        rows: STRUCTURES.iter().map(row).collect(),
    }
}
