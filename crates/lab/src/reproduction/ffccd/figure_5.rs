//! Figure 5: the cost of Espresso's collector, as the starting point.

use firn_heap::collector::scheme::{ESPRESSO, NONE};

use super::{Artefact, Bar, Context, Row, STRUCTURES, Structure, percent};
use crate::reproduction::ffccd::matrix::Cell;
use crate::reproduction::outcome::Outcome;

pub(super) fn cells() -> Vec<Cell> {
    let of = |structure: &Structure| {
        [&NONE, &ESPRESSO].map(|scheme| Cell::of(structure.workload, scheme))
    };
    STRUCTURES.iter().flat_map(of).collect()
}

/// A part of the collector's cost.
type Share = (&'static str, fn(&Outcome) -> u64);

const SLOWER: &str = "marking, planning and ending cycles are most of it here and stand below; the paper has both 16.5 and 22.1 % for \
    what reads as one figure, and says that compacting is most of it";

pub(super) fn make(context: &Context<'_>) -> Artefact {
    let over = |structure: &Structure| {
        let (now, before) = (
            context.of(structure, &ESPRESSO).cycles,
            context.baseline(structure).cycles,
        );
        percent(now as f64, before as f64) - 100.0
    };
    let mut rows = vec![Row::new(
        "time over no defragmentation, Espresso",
        (Some(22.1), context.mean(over)),
        "%",
        Bar::Overhead,
        SLOWER,
    )];
    let barrier = |structure: &Structure| {
        let spent = context.of(structure, &ESPRESSO).barrier();
        percent(spent as f64, context.baseline(structure).cycles as f64)
    };
    rows.push(Row::new(
        "of it: read barrier, copies and references alone",
        (Some(22.1), context.mean(barrier)),
        "%",
        Bar::Overhead,
        "the part that the schemes differ in; the rest is the row above less this one",
    ));
    let spent: [Share; 4] = [
        ("copying and its durability", Outcome::copy),
        ("check and lookup", Outcome::check_and_lookup),
        ("references", |outcome| outcome.spent.reference),
        ("marking, planning and ending cycles", |outcome| {
            outcome.spent.mark + outcome.spent.summary + outcome.spent.finish
        }),
    ];
    for (what, of) in spent {
        let part = context.mean(|structure| {
            let outcome = context.of(structure, &ESPRESSO);
            percent(of(outcome) as f64, outcome.spent.total() as f64)
        });
        let what = format!("of defragmentation: {what}");
        rows.push(Row::new(what, (None, part), "%", Bar::None, ""));
    }
    Artefact {
        name: "fig5",
        title: "Figure 5: what the collector takes before anything is improved".into(),
        rows,
        tables: Vec::new(),
        notes: vec![
            "The shares stand only in the paper's picture: copying first, then check and lookup."
                .into(),
        ],
        chart: None,
    }
}
