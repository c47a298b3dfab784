//! How far conclusions depend on assumptions: overlapping misses, cycles per instruction, how often the program polls
//! its pool.

use firn_heap::collector::scheme::{ESPRESSO, FFCCD_CHECKLOOKUP, NONE, Scheme};

use super::table_3::fragmentation_reduced;
use super::{Artefact, Bar, Context, Row, percent, reduction};
use crate::Table;
use crate::reproduction::ffccd::matrix::{Cell, Parameters};
use crate::reproduction::ffccd::size::EVERY;
use crate::reproduction::outcome::Outcome;
use crate::reproduction::run::Assumed;

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

/// Allocations and frees between two polls; all other runs have [`EVERY`].
const LOOKS: [u64; 4] = [5, EVERY, 80, 320];

/// The structure, polled every `every` allocations and frees.
fn looked_at(every: u64, parameters: Parameters) -> Cell {
    let assumed = Assumed {
        every: Some(every).filter(|&every| every != EVERY),
        ..Assumed::AS_DESCRIBED
    };
    Cell {
        parameters,
        ..cell(&FFCCD_CHECKLOOKUP, assumed)
    }
}

pub(super) fn cells() -> Vec<Cell> {
    let of = |(_, assumed)| SCHEMES.map(|scheme| cell(scheme, assumed));
    let looks = LOOKS.into_iter().flat_map(|every| {
        [Parameters::Normal, Parameters::Relaxed].map(|parameters| looked_at(every, parameters))
    });
    sweeps().into_iter().flat_map(of).chain(looks).collect()
}

/// The effect of polling more or less often. The paper's figures of the structure stand beside each.
fn looks(context: &Context<'_>) -> Table {
    let base = context.outcome(&cell(&NONE, Assumed::AS_DESCRIBED));
    let row = |every| {
        let [normal, relaxed] = [Parameters::Normal, Parameters::Relaxed]
            .map(|parameters| context.outcome(&looked_at(every, parameters)));
        let reduced = |now| format!("{:.1}", fragmentation_reduced(base, now));
        let over = |now: &Outcome| {
            format!(
                "{:.1}",
                percent(now.cycles as f64, base.cycles as f64) - 100.0
            )
        };
        vec![
            every.to_string(),
            reduced(normal),
            reduced(relaxed),
            over(normal),
            over(relaxed),
            normal.collections.to_string(),
            relaxed.collections.to_string(),
        ]
    };
    let head = [
        "allocations and frees between two looks",
        "% reduced, N",
        "% reduced, R",
        "% of time, N",
        "% of time, R",
        "cycles, N",
        "cycles, R",
    ];
    Table {
        title: "How often the program looks at its pool (FFCCD with checklookup; printed: 43.0 % N, 24.9 % R)"
            .into(),
        head: head.map(str::to_owned).to_vec(),
        rows: LOOKS.into_iter().map(row).collect(),
    }
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
        title: "What is taken for granted, swept (AVL tree)".into(),
        rows,
        tables: vec![looks(context)],
        notes: vec![
            "The paper's cores are out of order, five instructions wide; these are in order.".into(),
            "How often the program looks at its pool is what the paper leaves open and what decides most: a cycle ends \
             when nothing has moved between two looks, and sources are there until it ends."
                .into(),
        ],
        chart: None,
    }
}
