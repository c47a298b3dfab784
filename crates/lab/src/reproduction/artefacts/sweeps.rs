//! How far conclusions depend on what the machine takes for granted: misses that overlap, cycles an instruction.

use firn_heap::collector::scheme::{ESPRESSO, FFCCD_CHECKLOOKUP, NONE, Scheme};

use super::{Artefact, Bar, Context, Row, percent, reduction};
use crate::reproduction::matrix::{Assumed, Cell};
use crate::reproduction::outcome::Outcome;

/// The structure that is swept.
const STRUCTURE: &str = "avl";
const SCHEMES: [&Scheme; 3] = [&NONE, &ESPRESSO, &FFCCD_CHECKLOOKUP];

fn sweeps() -> Vec<(String, Assumed)> {
    let misses = [1, 2, 4, 8].map(|misses| {
        let assumed = Assumed {
            parallel_misses: Some(misses),
            ..Assumed::AS_DESCRIBED
        };
        (format!("{misses} overlapping misses"), assumed)
    });
    let cycles = [250, 500, 1_000].map(|millicycles| {
        let assumed = Assumed {
            millicycles: Some(millicycles),
            ..Assumed::AS_DESCRIBED
        };
        (
            format!("{:.2} cycles an instruction", f64::from(millicycles) / 1e3),
            assumed,
        )
    });
    misses.into_iter().chain(cycles).collect()
}

fn cell(scheme: &'static Scheme, assumed: Assumed) -> Cell {
    Cell {
        assumed,
        ..Cell::of(STRUCTURE, scheme)
    }
}

pub(super) fn cells() -> Vec<Cell> {
    let of = |(_, assumed)| SCHEMES.map(|scheme| cell(scheme, assumed));
    sweeps().into_iter().flat_map(of).collect()
}

pub(super) fn make(context: &Context<'_>) -> Artefact {
    let mut rows = Vec::new();
    for (name, assumed) in sweeps() {
        let [base, espresso, ffccd] = SCHEMES.map(|scheme| context.outcome(&cell(scheme, assumed)));
        let each = |outcome: &Outcome| outcome.spent.total() as f64 / outcome.moved.max(1) as f64;
        let less = reduction(each(espresso), each(ffccd));
        let what = format!(
            "defragmentation of an object, FFCCD with checklookup less than Espresso, {name}"
        );
        rows.push(Row::new(what, (None, less), "%", Bar::None, ""));
        let over = percent(ffccd.cycles as f64, base.cycles as f64) - 100.0;
        let what = format!("time over no defragmentation, FFCCD with checklookup, {name}");
        rows.push(Row::new(what, (None, over), "%", Bar::None, ""));
    }
    Artefact {
        name: "sweeps",
        title: "What the machine takes for granted, swept (AVL tree)".into(),
        rows,
        tables: Vec::new(),
        notes: vec![
            "The paper's cores are out of order, five instructions wide; these are in order."
                .into(),
        ],
        chart: None,
    }
}
