//! Figure 14: the cost of defragmentation (a), and the program's total cost with it (b).

mod tables;

use firn_heap::collector::scheme::{
    ESPRESSO, ESPRESSO_AS_PRINTED, FFCCD, FFCCD_AS_PRINTED, FFCCD_CHECKLOOKUP, NONE, PIGGYBACK,
    SFCCD, SFCCD_AS_PRINTED, Scheme,
};

use super::{Artefact, Bar, Context, Row, STRUCTURES, Structure, percent, reduction};
use crate::reproduction::ffccd::matrix::Cell;
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

/// Cycles of the structure's run, in percent of the run where nothing moves.
fn of_baseline(context: &Context<'_>, structure: &Structure, cycles: u64) -> f64 {
    percent(cycles as f64, context.baseline(structure).cycles as f64)
}

fn overhead(context: &Context<'_>, scheme: &'static Scheme) -> f64 {
    let of = |structure: &Structure| {
        of_baseline(context, structure, context.of(structure, scheme).cycles)
    };
    context.mean(of) - 100.0
}

/// How much less `of` is for one scheme than for another, in percent; the mean over the structures.
fn less(
    context: &Context<'_>,
    scheme: &'static Scheme,
    than: &'static Scheme,
    of: fn(&Outcome) -> f64,
) -> f64 {
    let mean = |scheme| context.mean(|structure| of(context.of(structure, scheme)));
    reduction(mean(than), mean(scheme))
}

/// Cycles per moved object: schemes end their cycles at different times, and so move different numbers.
fn of_moved(outcome: &Outcome, cycles: u64) -> f64 {
    cycles as f64 / outcome.moved.max(1) as f64
}

const COPIES: &str = "reading the source from persistent memory is most of a copy, and no scheme saves it: a fence waits for the queue \
    and not for the device; the rows of what is beyond that read compare the rest";
const TABLES: &str = "software looks in small tables in volatile memory, which caches hold; the printed one lies in persistent memory, and \
    a buffer of few pages misses where accesses are random: the answers are below, and the next row is what is left if \
    it never missed";
const WHOLE: &str = "marking, planning and ending a cycle do not depend on the scheme, and are the larger part here: the next row \
    is without them";
const BARRIER: &str =
    "check and lookup are not less, and copies only by so much: see the rows above";
const TOTAL: &str = "marking and ending cycles are most of it; and one read of each object that moves is as much as the printed total \
    already: see the rows below";

/// Cycles of an instruction that the hardware answers at once: its own, and its filter's.
const ANSWERED: u64 = 1 + 2;
/// Cycles of the look-aside buffer.
const LOOKED_UP: u64 = 4;

/// Cycles of check and lookup if filters and look-aside buffer never missed.
fn always_at_hand(outcome: &Outcome) -> f64 {
    let count = |name| outcome.count(name);
    let found = count("checklookup: look-aside hits") + count("checklookup: look-aside misses");
    (count("checklookup") * ANSWERED + found * LOOKED_UP) as f64
}

/// The printed values, and ours.
fn printed_rows(context: &Context<'_>) -> Vec<Row> {
    let printed = |what: &str, published: f64, ours: f64, reason| {
        Row::new(what, (Some(published), ours), "%", Bar::Reduction, reason)
    };
    let copy = |outcome: &Outcome| of_moved(outcome, outcome.copy());
    let barrier = |outcome: &Outcome| of_moved(outcome, outcome.barrier());
    let total = |outcome: &Outcome| of_moved(outcome, outcome.spent.total());
    let asked = |outcome: &Outcome| outcome.check_and_lookup() as f64;
    let at_hand = reduction(
        context.mean(|structure| asked(context.of(structure, &FFCCD))),
        context.mean(|structure| always_at_hand(context.of(structure, &FFCCD_CHECKLOOKUP))),
    );
    vec![
        printed(
            "data copy of an object, SFCCD less than Espresso",
            40.0,
            less(context, &SFCCD, &ESPRESSO, copy),
            COPIES,
        ),
        printed(
            "data copy of an object, FFCCD less than Espresso",
            66.0,
            less(context, &FFCCD, &ESPRESSO, copy),
            COPIES,
        ),
        beyond_the_read(context, "SFCCD", &SFCCD, 40.0),
        beyond_the_read(context, "FFCCD", &FFCCD, 66.0),
        printed(
            "check and lookup, checklookup less than software",
            80.0,
            less(context, &FFCCD_CHECKLOOKUP, &FFCCD, asked),
            TABLES,
        ),
        printed(
            "the same if filters and look-aside buffer never missed",
            80.0,
            at_hand,
            "what the instruction itself takes is more of what software takes here",
        ),
        printed(
            "defragmentation of an object, FFCCD with checklookup less than Espresso",
            68.0,
            less(context, &FFCCD_CHECKLOOKUP, &ESPRESSO, total),
            WHOLE,
        ),
        printed(
            "the same without marking, planning and ending cycles",
            68.0,
            less(context, &FFCCD_CHECKLOOKUP, &ESPRESSO, barrier),
            BARRIER,
        ),
        Row::new(
            "time over no defragmentation, FFCCD with checklookup",
            (Some(3.5), overhead(context, &FFCCD_CHECKLOOKUP)),
            "%",
            Bar::Overhead,
            TOTAL,
        ),
    ]
}

/// Copies without the one read of the source for which all of them wait.
fn beyond_the_read(
    context: &Context<'_>,
    name: &str,
    scheme: &'static Scheme,
    published: f64,
) -> Row {
    let beyond = |scheme| {
        let of = |structure: &Structure| {
            let outcome = context.of(structure, scheme);
            (of_moved(outcome, outcome.copy()) - context.nvm_read_cycles).max(0.0)
        };
        context.mean(of)
    };
    let what = format!("the same beyond one persistent read, {name}");
    let less = reduction(beyond(&ESPRESSO), beyond(scheme));
    let reason = "lines of the source beyond the first are read as well, in part beside each other";
    Row::new(what, (Some(published), less), "%", Bar::Reduction, reason)
}

/// The least that the printed total would have to contain: the barrier and copies alone, and of these no more than one
/// read of each moved object.
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

/// The schemes without lookup hardware, each structure's copies, and each scheme beside the printed one.
fn our_rows(context: &Context<'_>) -> Vec<Row> {
    let row = |what, ours, unit| Row::new(what, (None, ours), unit, Bar::None, "");
    let others = SCHEMES
        .into_iter()
        .filter(|&scheme| !core::ptr::eq(scheme, &FFCCD_CHECKLOOKUP));
    let over = others.map(|scheme| {
        let what = format!("time over no defragmentation, {}", scheme.name);
        row(what, overhead(context, scheme), "%")
    });
    let copies = STRUCTURES.iter().map(|structure| {
        let copy = |scheme| {
            let outcome = context.of(structure, scheme);
            of_moved(outcome, outcome.copy())
        };
        let short = structure.short;
        let what = format!("data copy of an object, FFCCD less than Espresso, {short}");
        row(what, reduction(copy(&ESPRESSO), copy(&FFCCD)), "%")
    });
    let pairs = [
        (&ESPRESSO, &ESPRESSO_AS_PRINTED),
        (&SFCCD, &SFCCD_AS_PRINTED),
        (&FFCCD, &FFCCD_AS_PRINTED),
    ];
    let correctness = pairs.into_iter().flat_map(|(right, wrong)| {
        let copy = |outcome: &Outcome| of_moved(outcome, outcome.copy());
        let of_copy = -less(context, right, wrong, copy);
        let costs = overhead(context, right) - overhead(context, wrong);
        let what = |of| format!("what correctness costs, {}, {of}", right.name);
        [
            row(what("an object's copy"), of_copy, "%"),
            row(what("time, with what its cycles do"), costs, "points"),
        ]
    });
    over.chain(copies).chain(correctness).collect()
}

pub(super) fn make(context: &Context<'_>) -> Artefact {
    let mut rows = printed_rows(context);
    rows.extend(what_overhead_is_of(context));
    rows.extend(our_rows(context));
    Artefact {
        name: "fig14",
        title: "Figure 14: what defragmentation takes, micro-benchmarks".into(),
        rows,
        tables: vec![
            tables::breakdown(context),
            tables::answers(context),
            tables::runs(context),
        ],
        notes: vec![
            "Cycles of the three phases after the first inserts, the mean over the five structures. Parts of the \
             breakdown are what was spent inside each step, whether the program or the end of a cycle took it. What \
             is said of an object is divided by the objects that moved: FFCCD copies those that share lines together, \
             ends its cycles earlier, begins more of them and moves more."
                .into(),
            "A copy by software is simulated in pieces of 256 bytes, of each of which the first line is waited for; \
             `relocate` in pieces of a page. Only objects of the inline tree are longer than the former, so its copies \
             are dearer under all schemes but FFCCD as printed."
                .into(),
            "Schemes `as-printed` lose commits (docs/protocol.md) and have the printed forwarding table of one \
             destination a page; the others keep them. `piggyback` needs no hardware."
                .into(),
        ],
        chart: Some(tables::chart(context)),
    }
}
