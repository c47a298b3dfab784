//! Figure 5: what Espresso's collector takes, as the starting point.

use firn_heap::collector::scheme::{ESPRESSO, NONE};

use super::{Artefact, Bar, Context, Row, STRUCTURES, Structure, percent};
use crate::reproduction::matrix::Cell;
use crate::reproduction::outcome::Outcome;

pub(super) fn cells() -> Vec<Cell> {
    let of = |structure: &Structure| {
        [&NONE, &ESPRESSO].map(|scheme| Cell::of(structure.workload, scheme))
    };
    STRUCTURES.iter().flat_map(of).collect()
}

/// A part of what the collector takes.
type Share = (&'static str, fn(&Outcome) -> u64);

const SLOWER: &str = "marking and ending cycles are most of it here, and grow with objects and with cycles; the paper's program is \
    PMDK's, whose operations take longer; and it has both 16.5 and 22.1 % for what reads as one figure";

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
