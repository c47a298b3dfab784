//! The counts of the figure's runs, as tables and bars.

use firn_heap::collector::scheme::{FFCCD_CHECKLOOKUP, NONE, Scheme};

use super::{PARTS, SCHEMES, of_baseline, overhead, parts};
use crate::Table;
use crate::reproduction::bars::{Chart, Group};
use crate::reproduction::ffccd::{Context, STRUCTURES, Structure, percent};

/// The cost of each part, scheme by scheme.
pub(super) fn breakdown(context: &Context<'_>) -> Table {
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

/// Which parts of the hardware gave the answers.
pub(super) fn answers(context: &Context<'_>) -> Table {
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

/// The counts of each run.
pub(super) fn runs(context: &Context<'_>) -> Table {
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

/// The figures as bars, structure by structure.
pub(super) fn chart(context: &Context<'_>) -> Chart {
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
