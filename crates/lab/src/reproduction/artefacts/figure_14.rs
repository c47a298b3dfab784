//! Figure 14: what defragmentation takes (a), and what the program takes with it (b).

use firn_heap::collector::scheme::{
    ESPRESSO, ESPRESSO_AS_PRINTED, FFCCD, FFCCD_AS_PRINTED, FFCCD_CHECKLOOKUP, NONE, PIGGYBACK,
    SFCCD, SFCCD_AS_PRINTED, Scheme,
};

use super::{Artefact, Bar, Context, Row, STRUCTURES, Structure, percent, reduction};
use crate::demo::Table;
use crate::reproduction::bars::{Chart, Group};
use crate::reproduction::matrix::Cell;
use crate::reproduction::outcome::Outcome;

/// As corrected, then as printed.
const SCHEMES: [&Scheme; 8] = [
    &ESPRESSO,
    &SFCCD,
    &FFCCD,
    &FFCCD_CHECKLOOKUP,
    &PIGGYBACK,
    &ESPRESSO_AS_PRINTED,
    &SFCCD_AS_PRINTED,
    &FFCCD_AS_PRINTED,
];

const PARTS: [&str; 5] = [
    "copy and its durability",
    "check and lookup",
    "references",
    "marking and planning",
    "ending cycles",
];

pub(super) fn cells() -> Vec<Cell> {
    let of = |structure: &Structure| {
        let workload = structure.workload;
        let schemes = [&NONE].into_iter().chain(SCHEMES);
        schemes.map(move |scheme| Cell::of(workload, scheme))
    };
    STRUCTURES.iter().flat_map(of).collect()
}

fn parts(outcome: &Outcome) -> [u64; PARTS.len()] {
    let spent = &outcome.spent;
    [
        outcome.copy(),
        outcome.check_and_lookup(),
        spent.reference,
        spent.mark + spent.summary,
        spent.finish,
    ]
}

/// Cycles of the structure's run, of a hundred of the run where nothing moves.
fn of_baseline(context: &Context<'_>, structure: &Structure, cycles: u64) -> f64 {
    percent(cycles as f64, context.baseline(structure).cycles as f64)
}

fn overhead(context: &Context<'_>, scheme: &'static Scheme) -> f64 {
    let of = |structure: &Structure| {
        of_baseline(context, structure, context.of(structure, scheme).cycles)
    };
    context.mean(of) - 100.0
}

/// How much less one scheme takes than another, of a hundred; the mean over the structures of what `of` says.
fn less(
    context: &Context<'_>,
    scheme: &'static Scheme,
    than: &'static Scheme,
    of: fn(&Outcome) -> f64,
) -> f64 {
    let mean = |scheme| context.mean(|structure| of(context.of(structure, scheme)));
    reduction(mean(than), mean(scheme))
}

/// Cycles of an object that moved: schemes end their cycles at different times, and so move different numbers.
fn of_moved(outcome: &Outcome, cycles: u64) -> f64 {
    cycles as f64 / outcome.moved.max(1) as f64
}

const COPIES: &str = "most of a copy is reading its source from persistent memory, which no scheme saves: a fence waits for the queue \
    only; and ours copies line by line where lines have marks, so that the lines of a large object are read one \
    after the other";
const TABLES: &str = "software looks in two tables in volatile memory, which caches hold; the hardware fetches a filter whenever the \
    program goes from one range of pages to another, and its sixteen entries miss where accesses are random";
const WHOLE: &str = "marking, planning and ending a cycle do not depend on the scheme, and are the larger part here";
const TOTAL: &str = "marking and ending cycles, which the paper does not tell apart, are most of it; and FFCCD begins more cycles";

pub(super) fn make(context: &Context<'_>) -> Artefact {
    let printed = |what: &str, published: f64, ours: f64, bar, reason| {
        Row::new(what, (Some(published), ours), "%", bar, reason)
    };
    let copy = |outcome: &Outcome| of_moved(outcome, outcome.copy());
    let total = |outcome: &Outcome| of_moved(outcome, outcome.spent.total());
    let asked = |outcome: &Outcome| outcome.check_and_lookup() as f64;
    let mut rows = vec![
        printed(
            "data copy of an object, SFCCD less than Espresso",
            40.0,
            less(context, &SFCCD, &ESPRESSO, copy),
            Bar::Reduction,
            COPIES,
        ),
        printed(
            "data copy of an object, FFCCD less than Espresso",
            66.0,
            less(context, &FFCCD, &ESPRESSO, copy),
            Bar::Reduction,
            COPIES,
        ),
        printed(
            "check and lookup, checklookup less than software",
            80.0,
            less(context, &FFCCD_CHECKLOOKUP, &FFCCD, asked),
            Bar::Reduction,
            TABLES,
        ),
        printed(
            "defragmentation of an object, FFCCD with checklookup less than Espresso",
            68.0,
            less(context, &FFCCD_CHECKLOOKUP, &ESPRESSO, total),
            Bar::Reduction,
            WHOLE,
        ),
        printed(
            "time over no defragmentation, FFCCD with checklookup",
            3.5,
            overhead(context, &FFCCD_CHECKLOOKUP),
            Bar::Overhead,
            TOTAL,
        ),
    ];
    for scheme in SCHEMES
        .into_iter()
        .filter(|&scheme| !core::ptr::eq(scheme, &FFCCD_CHECKLOOKUP))
    {
        let what = format!("time over no defragmentation, {}", scheme.name);
        rows.push(Row::new(
            what,
            (None, overhead(context, scheme)),
            "%",
            Bar::None,
            "",
        ));
    }
    for structure in &STRUCTURES {
        let of = |scheme| copy(context.of(structure, scheme));
        let what = format!(
            "data copy of an object, FFCCD less than Espresso, {}",
            structure.short
        );
        let figures = (None, reduction(of(&ESPRESSO), of(&FFCCD)));
        rows.push(Row::new(what, figures, "%", Bar::None, ""));
    }
    for (right, wrong) in [
        (&ESPRESSO, &ESPRESSO_AS_PRINTED),
        (&SFCCD, &SFCCD_AS_PRINTED),
        (&FFCCD, &FFCCD_AS_PRINTED),
    ] {
        let costs = overhead(context, right) - overhead(context, wrong);
        let what = format!("what correctness costs, {}", right.name);
        rows.push(Row::new(what, (None, costs), "points", Bar::None, ""));
    }
    Artefact {
        name: "fig14",
        title: "Figure 14: what defragmentation takes, micro-benchmarks".into(),
        rows,
        tables: vec![breakdown(context), runs(context)],
        notes: vec![
            "Cycles of the three phases after the first inserts, the mean over the five structures. Parts of the \
             breakdown are what was spent inside each step, whether the program or the end of a cycle took it. What \
             is said of an object is divided by the objects that moved: FFCCD copies those that share lines together, \
             ends its cycles earlier, begins more of them and moves more."
                .into(),
            "Schemes `as-printed` lose commits (docs/protocol.md) and have the printed forwarding table of one \
             destination a page; the others keep them."
                .into(),
        ],
        chart: Some(chart(context)),
    }
}

fn breakdown(context: &Context<'_>) -> Table {
    let rows = SCHEMES.into_iter().map(|scheme| {
        let part = |nth: usize| {
            let of = |structure: &Structure| {
                of_baseline(
                    context,
                    structure,
                    parts(context.of(structure, scheme))[nth],
                )
            };
            format!("{:.2}", context.mean(of))
        };
        let figures = (0..PARTS.len()).map(part);
        let total = context.mean(|structure| {
            of_baseline(
                context,
                structure,
                context.of(structure, scheme).spent.total(),
            )
        });
        let whole = [
            format!("{total:.2}"),
            format!("{:+.2}", overhead(context, scheme)),
        ];
        [scheme.name.to_owned()]
            .into_iter()
            .chain(figures)
            .chain(whole)
            .collect()
    });
    let head = ["scheme"]
        .into_iter()
        .chain(PARTS)
        .chain(["all of it", "run"]);
    Table {
        title: "% of the cycles without defragmentation".into(),
        head: head.map(str::to_owned).collect(),
        rows: rows.collect(),
    }
}

/// What each run did.
fn runs(context: &Context<'_>) -> Table {
    let row = |structure: &Structure, scheme: &'static Scheme| {
        let outcome = context.of(structure, scheme);
        let each = |count: u64| format!("{:.2}", count as f64 / outcome.operations as f64);
        vec![
            format!("{}, {}", structure.short, scheme.name),
            each(outcome.cycles),
            each(outcome.instructions),
            each(outcome.fences),
            each(outcome.nvm_writes),
            outcome.collections.to_string(),
            outcome.moved.to_string(),
            format!("{:.3}", outcome.ratio()),
        ]
    };
    let schemes = || [&NONE].into_iter().chain(SCHEMES);
    let rows = STRUCTURES
        .iter()
        .flat_map(|structure| schemes().map(move |scheme| row(structure, scheme)));
    let head = [
        "run",
        "cycles/op",
        "instructions/op",
        "fences/op",
        "NVM lines/op",
        "collections",
        "objects moved",
        "pages / live",
    ];
    Table {
        title: "runs".into(),
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

fn chart(context: &Context<'_>) -> Chart {
    let group = |structure: &Structure| {
        let bar = |scheme: &&'static Scheme| {
            let parts = parts(context.of(structure, scheme));
            let of = |cycles| of_baseline(context, structure, cycles);
            (scheme.name.to_owned(), parts.map(of).to_vec())
        };
        Group {
            name: structure.short.to_owned(),
            bars: SCHEMES.iter().map(bar).collect(),
        }
    };
    Chart {
        title: "cycles of defragmentation, % of those without it".into(),
        parts: PARTS.map(str::to_owned).to_vec(),
        groups: STRUCTURES.iter().map(group).collect(),
    }
}
