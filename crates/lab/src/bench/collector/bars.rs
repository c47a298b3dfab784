//! The bars that the collector's figures have to meet.

use firn_heap::collector::PageSize;
use firn_workloads::Shape;

use super::super::bars::{Bar, Reopening, find, reopenings};
use super::super::figure::Figure;
use super::super::{Options, reopen};
use super::reduction::SETTINGS;
use super::{density, full, idle, moving, reduction, stops};

/// Ratios at most, on pages of 2 MiB and of 4 KiB.
const DENSE_2M: f64 = 1.10;
const DENSE_4K: f64 = 1.08;
/// Least decrease of the file's blocks, over the decrease of the footprint; the rest is metadata.
const BLOCKS_FALL: f64 = 0.9;
/// Objects of another length that fit into a full pool after half was freed and it was collected, over those that a
/// fresh pool of the freed size holds.
const ROOM: f64 = 0.9;
/// CPU nanoseconds per object moved, against those of `pmemobj_defrag`. Times of one machine say little about another,
/// or about itself an hour later; so if the rival is measured too, the ratio counts.
const MOVED_NS: f64 = 400.0;
const DEFRAG_NS: f64 = 3700.0;
/// Nanoseconds of the longest stop.
const STOP_NS: f64 = 200_000.0;
/// Gets with the barrier over gets without.
const IDLE: f64 = 1.05;
/// Why bars are missed, if they are.
const SPARSE_PAGE: &str = "with so few pages each is worth several hundredths, and the last sparse \
                           ones are not emptied if their objects would fill as many others";
const METADATA: &str = "the pool has a few megabytes of metadata, which do not shrink";
const SMALL_GAPS: &str = "free space goes back in pieces of 64 KiB, and most gaps between pages of \
                          4 KiB that were emptied one by one are smaller";
const BEHIND: &str = "the program is faster than the collector, so the ratio rises while the \
                      collector works; and during a cycle its sources count beside its \
                      destinations (see the peak)";
const STEPS: &str = "the steps are in the table below; most of the time is cache misses: a line of \
                     the mark bitmap, the object and its copy, a reference to it; the reader waits \
                     for the same memory. In some passes the host first had to find memory for the \
                     destinations, and they took up to twice as long (minimum and maximum in the \
                     last table; docs/decisions/huge-pages.md)";
const REOPENING: Reopening = Reopening {
    structure: reopen::COMPACTING.structure,
    what: "reopen after kill -9 in the middle of a compaction, to the first insert",
    most_ms: 30.0,
};
/// The settings, with their highest ratio outside a collection and their least reduction.
const KEPT: [(&str, Option<f64>, f64); 2] = [("normal", Some(1.55), 0.60), ("relaxed", None, 0.45)];

/// All bars that have figures.
pub(super) fn bars(options: &Options, figures: &[Figure]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = density::cases()
        .filter(|case| case.shape != Shape::List)
        .filter_map(|case| dense(&case, figures))
        .flatten()
        .collect();
    bars.extend(full::cases().filter_map(|case| room(&case, figures)));
    for shape in reduction::SHAPES {
        bars.extend(KEPT.iter().flat_map(|row| kept(shape, row, figures)));
    }
    bars.extend(moved(figures).into_iter().flatten());
    bars.extend(fresh_page(figures));
    bars.extend(stop(figures));
    bars.extend(barrier(figures));
    bars.extend(reopenings(&REOPENING, options, figures));
    bars
}

fn dense(case: &density::Case, figures: &[Figure]) -> Option<[Bar; 2]> {
    let name = case.name();
    let compaction = &find(figures, true, &name, 1)?.compaction;
    let (ratio, most) = match case.pages {
        PageSize::Huge => (compaction.ratio_2m?, DENSE_2M),
        PageSize::Small => (compaction.ratio_4k?, DENSE_4K),
    };
    let (footprint, blocks) = (compaction.footprint_ratio?, compaction.blocks_ratio?);
    let pages = match case.pages {
        PageSize::Huge => "2 MiB",
        PageSize::Small => "4 KiB",
    };
    let dense = Bar::ours(
        format!("ratio on pages of {pages} after 80 % were deleted (`{name}`)"),
        format!("{ratio:.3}"),
        format!("{most:.2}"),
        ratio <= most,
    )
    .because(SPARSE_PAGE);
    let falls = Bar::ours(
        format!("the file's blocks shrink too (`{name}`)"),
        format!("{blocks:.2}x, footprint {footprint:.2}x"),
        format!("{:.0} % of the footprint's", BLOCKS_FALL * 100.0),
        blocks >= footprint * BLOCKS_FALL,
    )
    .because(match case.pages {
        PageSize::Huge => METADATA,
        PageSize::Small => SMALL_GAPS,
    });
    Some([dense, falls])
}

fn room(case: &full::Case, figures: &[Figure]) -> Option<Bar> {
    let name = case.name();
    let room = find(figures, true, &name, 1)?.compaction.room?;
    Some(Bar::ours(
        format!("a full pool, half freed and collected, takes of what a fresh one does (`{name}`)"),
        format!("{:.0} %", room * 100.0),
        format!("{:.0} %", ROOM * 100.0),
        room >= ROOM,
    ))
}

fn kept(
    shape: Shape,
    &(setting, most, least): &(&str, Option<f64>, f64),
    figures: &[Figure],
) -> Vec<Bar> {
    let named = SETTINGS.iter().find(|s| s.name == setting);
    let figure = named.and_then(|s| find(figures, true, &reduction::name(shape, s), 1));
    let Some(figure) = figure else {
        return Vec::new();
    };
    let (name, seen) = (&figure.operation, &figure.compaction);
    let highest = seen.ratio_max.zip(most).map(|(highest, most)| {
        Bar::ours(
            format!("highest ratio outside a collection (`{name}`)"),
            format!("{highest:.3}"),
            format!("{most:.2}"),
            highest <= most,
        )
    });
    let reduction = seen.reduction.map(|reduction| {
        Bar::ours(
            format!("fragmentation reduction, the mean of three phases (`{name}`)"),
            format!("{:.1} %", reduction * 100.0),
            format!("{:.0} %", least * 100.0),
            reduction >= least,
        )
        .because(BEHIND)
    });
    highest.into_iter().chain(reduction).collect()
}

/// Not a bar, but a limit of the one above.
fn fresh_page(figures: &[Figure]) -> Option<Bar> {
    let page = find(figures, true, moving::FRESH_PAGE, 1)?;
    Some(Bar::figure(
        format!(
            "a fresh page of 4 KiB from the kernel (`{}`)",
            page.operation
        ),
        format!("{:.0} ns", page.ns_cpu_per_op),
    ))
}

fn moved(figures: &[Figure]) -> Option<[Bar; 2]> {
    let name = moving::name(&firn_heap::collector::scheme::PIGGYBACK);
    let figure = find(figures, true, &name, 2)?;
    let ns = figure.compaction.ns_cpu_per_moved?;
    let fences = figure.fences_per_op?;
    let program = figure.compaction.ns_program_per_moved?;
    let what = format!("CPU time per moved object, including the program's share (`{name}`)");
    let memory = figure.compaction.ns_memory_per_moved.unwrap_or_default();
    let took = format!(
        "{ns:.0} ns, {program:.0} of them the program's (excluding {memory:.0} by which gets from another pool are slower too)"
    );
    let theirs = find(figures, false, moving::DEFRAG, 1);
    let least = DEFRAG_NS / MOVED_NS;
    let time = match theirs.zip(figure.ratio_to_rival) {
        // The collector's table has no column for rivals.
        Some((theirs, ratio)) => Bar::ours(
            what,
            format!(
                "{took}; `pmemobj_defrag` of an AVL tree {:.0} ns: {ratio:.1}x",
                theirs.ns_cpu_per_op
            ),
            format!("{MOVED_NS} ns where the rival takes {DEFRAG_NS}: {least}x"),
            ratio >= least,
        ),
        None => Bar::ours(what, took, format!("{MOVED_NS} ns"), ns <= MOVED_NS),
    };
    Some([
        time.because(STEPS),
        Bar::ours(
            format!("own fences per moved object (`{name}`)"),
            fences.to_string(),
            "0".to_owned(),
            fences == 0.0,
        ),
    ])
}

fn stop(figures: &[Figure]) -> Option<Bar> {
    let figure = figures.iter().find(|f| f.operation == stops::NAME)?;
    let us = |ns: f64| ns / 1e3;
    let (median, max) = (figure.ns_cpu_per_op, figure.ns_cpu_max);
    Some(Bar::ours(
        format!(
            "longest stop, CPU time, {} objects (`{}`)",
            figure.n,
            stops::NAME
        ),
        format!("{:.0} us (at most {:.0})", us(median), us(max)),
        format!("{:.0} us", us(STOP_NS)),
        median <= STOP_NS,
    ))
}

fn barrier(figures: &[Figure]) -> Option<Bar> {
    let ratio = find(figures, true, idle::WITH, 1)?.over_control?;
    Some(Bar::ours(
        format!(
            "get with an idle collector over get without a barrier (`{}`)",
            idle::WITH
        ),
        format!("{:+.1} %", (ratio - 1.0) * 100.0),
        format!("{:+.0} %", (IDLE - 1.0) * 100.0),
        ratio <= IDLE,
    ))
}
