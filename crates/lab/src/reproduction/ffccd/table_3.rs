//! Table 3: fragmentation with and without FFCCD.

use firn_heap::collector::scheme::{FFCCD_CHECKLOOKUP, NONE};

use super::{Artefact, Bar, Context, Row, STRUCTURES, Structure, percent};
use crate::Table;
use crate::reproduction::ffccd::matrix::{Cell, Parameters};
use crate::reproduction::ffccd::size::EVERY;
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

/// Equation 1 of section 6: the saved part, in percent, of the bytes that are not live. The bytes that live objects
/// take if nothing was freed between them count as live.
pub(super) fn fragmentation_reduced(base: &Outcome, now: &Outcome) -> f64 {
    percent(
        base.page_bytes - now.page_bytes,
        base.page_bytes - base.packed_bytes(),
    )
}

/// Share of objects left after each deletion: four million of five are deleted.
const LEFT: f64 = 0.2;
/// Steps of a phase, over which the mean is taken.
const STEPS: u32 = 10_000;

/// The least reduction by a collector that only keeps the pages below `trigger` times the live bytes at every moment.
/// It follows from the phases alone: objects fall to a fifth, come back, and fall again.
fn least_reduction(trigger: f64) -> f64 {
    let step = |part: u32| (1.0 - LEFT) * f64::from(part) / f64::from(STEPS);
    let down = || (0..STEPS).map(|part| 1.0 - step(part));
    let up = (0..STEPS).map(|part| LEFT + step(part));
    let (mut pages, mut sum, mut live_sum, mut steps) = (1.0_f64, 0.0, 0.0, 0.0);
    for live in down().chain(up).chain(down()) {
        pages = pages.min(trigger * live).max(live);
        sum += pages;
        live_sum += live;
        steps += 1.0;
    }
    percent(1.0 - sum / steps, 1.0 - live_sum / steps)
}

const LATE: &str = "the printed collector is over its own trigger most of the time, too: see the row of one that never is. How \
    long a cycle lasts depends on how often the program looks, which the paper does not say: see the looks under the \
    sweeps";
const PHASES: &str = "what follows from the phases and the trigger alone; the printed collector saves less, so it is over its trigger \
    most of the time";

pub(super) fn make(context: &Context<'_>) -> Artefact {
    let mut rows = Vec::new();
    for (nth, (parameters, letter)) in PARAMETERS.into_iter().enumerate() {
        let ours = |structure: &Structure| {
            fragmentation_reduced(
                context.baseline(structure),
                context.outcome(&cell(structure, parameters)),
            )
        };
        for (structure, printed) in STRUCTURES.iter().zip(PRINTED) {
            let what = format!("fragmentation reduced, {}, {letter}", structure.short);
            let figures = (Some(printed[4 + nth]), ours(structure));
            rows.push(Row::new(what, figures, "%", Bar::Reduction, LATE));
        }
        let figures = (Some(PRINTED_MEAN[nth]), context.mean(ours));
        let what = format!("fragmentation reduced, mean, {letter}");
        rows.push(Row::new(what, figures, "%", Bar::Reduction, LATE));
        let what = format!("the least of a collector that is never above its trigger, {letter}");
        let (trigger, _) = parameters.trigger_and_target();
        let figures = (Some(PRINTED_MEAN[nth]), least_reduction(trigger));
        rows.push(Row::new(what, figures, "%", Bar::Reduction, PHASES));
    }
    for (structure, printed) in STRUCTURES.iter().zip(PRINTED) {
        let figures = (
            Some(printed[0] / printed[1]),
            context.baseline(structure).ratio(),
        );
        let what = format!("pages / live without defragmentation, {}", structure.short);
        let reason = "our allocator is not PMDK's: it has other size classes";
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
            "Ratios count in units of what the same objects take before anything is freed, as the printed ones must: \
             three fifths of the objects live on average, so the printed 1.60 without defragmentation is 0.96 when all \
             of them do. Against the bytes that the program asked for, a full pool begins higher (last table), and the \
             target could not be met."
                .into(),
            format!(
                "The program looks at its pool every {EVERY} allocations and frees at every scale. The paper says \
                 'periodically': this one number was chosen so that the mean of N comes out at a tenth; R, the \
                 structures, times and everything else follow."
            ),
            "Sources and destinations are both there until a cycle ends. The printed looks release a page as soon as \
             its objects have moved, which loses objects (docs/protocol.md, X4)."
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
            megabytes(base.packed_bytes()),
            format!("{:.3}", base.packed_ratio),
        ];
        let cycles = with.map(|outcome| outcome.collections.to_string());
        names.into_iter().chain(pages).chain(cycles).collect()
    };
    let head = [
        "structure",
        "pages",
        "live",
        "live, packed",
        "full pool over what was asked for",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_that_is_never_reached_saves_nothing_and_one_saves_all() {
        assert!(least_reduction(1.0 / LEFT).abs() < 0.1);
        assert!((least_reduction(1.0) - 100.0).abs() < 0.1);
    }

    #[test]
    fn the_least_reduction_is_the_closed_form() {
        // Until the trigger is reached all pages are there; then they are this many times the live bytes.
        let (trigger, gone) = (1.5, 1.0 - LEFT);
        let (meets, stays) = (1.0 / trigger, trigger * LEFT);
        let down = ((1.0 - meets) + trigger * (meets * meets - LEFT * LEFT) / 2.0) / gone;
        let up = ((stays - LEFT) * stays + (1.0 - stays * stays) / 2.0) / gone;
        let mean = (down + up + down) / 3.0;
        let expected = 100.0 * (1.0 - mean) / (1.0 - (1.0 + LEFT) / 2.0);
        assert!((least_reduction(trigger) - expected).abs() < 0.1);
    }
}
