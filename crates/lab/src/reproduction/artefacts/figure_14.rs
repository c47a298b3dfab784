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

const COPIES: &str = "reading the source from persistent memory is most of a copy, and no scheme saves it: a fence waits for the \
    queue, 30 cycles, not for the device; the row of what is beyond that read compares the rest";
const TABLES: &str = "software looks in tables in volatile memory of 4 and 64 bytes a page, which caches hold; the printed one has 259 \
    bytes a page in persistent memory, and the buffer of sixteen pages misses where accesses are random: the counts are \
    below, and the next row is what is left if it never missed";
const WHOLE: &str = "marking, planning and ending a cycle do not depend on the scheme, and are the larger part here";
const TOTAL: &str = "marking and ending cycles are most of it; and reading what moves once, a persistent read each, is more than the \
    printed total already: see the two rows below";

/// Cycles of an instruction that the hardware answers at once: itself, and its filter's answer.
const ANSWERED: u64 = 1 + 2;
/// Cycles of the look-aside buffer.
const LOOKED_UP: u64 = 4;

/// Cycles of check and lookup if filters and look-aside buffer had always been at hand.
fn always_at_hand(outcome: &Outcome) -> f64 {
    let count = |name| outcome.count(name);
    let found = count("checklookup: look-aside hits") + count("checklookup: look-aside misses");
    (count("checklookup") * ANSWERED + found * LOOKED_UP) as f64
}

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
        Row::new(
            "the same if filters and look-aside buffer never missed",
            (
                Some(80.0),
                reduction(
                    context.mean(|structure| asked(context.of(structure, &FFCCD))),
                    context.mean(|structure| {
                        always_at_hand(context.of(structure, &FFCCD_CHECKLOOKUP))
                    }),
                ),
            ),
            "%",
            Bar::Reduction,
            "what the instruction itself takes is more of what software takes here",
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
    rows.extend(copies_beyond_the_read(context));
    rows.extend(what_overhead_is_of(context));
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
        tables: vec![breakdown(context), answers(context), runs(context)],
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

/// Copies without the one read of the source that any of them waits for.
fn copies_beyond_the_read(context: &Context<'_>) -> [Row; 2] {
    let beyond = |scheme| {
        let of = |structure: &Structure| {
            let outcome = context.of(structure, scheme);
            (of_moved(outcome, outcome.copy()) - context.nvm_read_cycles).max(0.0)
        };
        context.mean(of)
    };
    let row = |name: &str, scheme, published| {
        let what = format!("data copy beyond one persistent read, {name} less than Espresso");
        let less = reduction(beyond(&ESPRESSO), beyond(scheme));
        let reason =
            "lines of the source beyond the first are read as well, in part beside each other";
        Row::new(what, (Some(published), less), "%", Bar::Reduction, reason)
    };
    [row("SFCCD", &SFCCD, 40.0), row("FFCCD", &FFCCD, 66.0)]
}

/// What the printed total would have to hold: the barrier and copies alone, and no more of them than one read of each
/// object that moved.
fn what_overhead_is_of(context: &Context<'_>) -> [Row; 3] {
    let mean = |of: &dyn Fn(&Outcome) -> f64, scheme: &'static Scheme| {
        context.mean(|structure| {
            let base = context.baseline(structure).cycles as f64;
            percent(of(context.of(structure, scheme)), base)
        })
    };
    let barrier = |outcome: &Outcome| outcome.barrier() as f64;
    let read = |outcome: &Outcome| outcome.moved as f64 * context.nvm_read_cycles;
    let row = |what: &str, ours| {
        let reason = "a part of the whole, and more than the printed whole";
        Row::new(what, (Some(3.5), ours), "%", Bar::Overhead, reason)
    };
    [
        row(
            "of it: read barrier, copies and references alone",
            mean(&barrier, &FFCCD_CHECKLOOKUP),
        ),
        row(
            "of it: one persistent read of each object that moved",
            mean(&read, &FFCCD_CHECKLOOKUP),
        ),
        Row::new(
            "read barrier, copies and references alone, Espresso",
            (None, mean(&barrier, &ESPRESSO)),
            "%",
            Bar::None,
            "",
        ),
    ]
}

/// How the hardware came to its answers.
fn answers(context: &Context<'_>) -> Table {
    let names = [
        "out of range",
        "filter says no",
        "filters fetched",
        "look-aside hits",
        "look-aside misses",
        "filter was wrong",
    ];
    let row = |structure: &Structure| {
        let outcome = context.of(structure, &FFCCD_CHECKLOOKUP);
        let asked = outcome.count("checklookup");
        let share = |name: &str| {
            let count = outcome.count(&format!("checklookup: {name}"));
            format!("{:.1}", percent(count as f64, asked as f64))
        };
        let begin = [structure.short.to_owned(), asked.to_string()];
        begin.into_iter().chain(names.map(share)).collect()
    };
    let head = ["structure", "checklookup"].into_iter().chain(names);
    Table {
        title: "Answers of the hardware, % of what was asked".into(),
        head: head.map(str::to_owned).collect(),
        rows: STRUCTURES.iter().map(row).collect(),
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
