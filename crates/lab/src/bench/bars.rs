//! The bars that figures have to meet, and whether they do.

use super::figure::Figure;
use super::{Options, reopen};

/// Durable transactions: description, operation, least speed-up over the rival, fences.
const TRANSACTIONS: [(&str, &str, Option<f64>, f64); 5] = [
    ("one changed word", "tx_snapshot_8", Some(2.0), 1.0),
    ("8 ranges of 64 bytes", "tx_snapshot_64x8", Some(4.0), 1.0),
    (
        "allocate 128 B, initialise, link",
        "tx_alloc_snapshot_128",
        Some(2.0),
        1.0,
    ),
    (
        "the same, freeing what was linked before",
        "tx_alloc_link_128",
        Some(2.0),
        1.0,
    ),
    (
        "allocate 64 KiB, initialise, link, free the old",
        "tx_alloc_64k",
        None,
        2.0,
    ),
];
/// The allocator: description, the figure's operation, the rival's, nanoseconds at most.
const ALLOCATOR: [(&str, &str, &str, Option<f64>); 6] = [
    (
        "allocate 128 B, the call",
        "alloc_128 call",
        "alloc_128",
        Some(60.0),
    ),
    (
        "free 128 B, the call",
        "free_128 call",
        "free_128",
        Some(40.0),
    ),
    (
        "allocate 128 B, the call, slots scattered",
        "alloc_128 call scattered",
        "",
        Some(60.0),
    ),
    (
        "free 128 B, the call, slots scattered",
        "free_128 call scattered",
        "",
        Some(40.0),
    ),
    (
        "allocate 128 B, marginal",
        "alloc_128 marginal",
        "alloc_128",
        None,
    ),
    (
        "free 128 B, marginal",
        "free_128 marginal",
        "free_128",
        None,
    ),
];
/// Slow-down of two threads in one pool, over two in a pool each, above which it counts as a loss: about the difference
/// between blocks themselves.
const LOSS: f64 = 1.1;
/// Undisturbed blocks that a median needs.
const FEW_BLOCKS: usize = 5;
const REOPEN_EQUAL: f64 = 1.2;
const NS_PER_MS: f64 = 1e6;
/// Bars that tests show: description, test, bar.
const TESTS: [(&str, &str, &str); 4] = [
    (
        "every legal image of every sequence of up to 2 operations on list and map, crashes inside recovery included",
        "`crates/structures/tests/crash.rs`",
        "the oracle's content",
    ),
    (
        "kill -9 of a child on a real file, 50 times",
        "`crates/firn/tests/kills/kill.rs`",
        "nothing acknowledged lost",
    ),
    (
        "the same, 500 times",
        "`crates/firn/tests/kills/kill.rs`, with `--long`",
        "nothing acknowledged lost",
    ),
    (
        "a field load through the accessor on mapped memory",
        "`crates/heap/tests/assembly.rs`",
        "one `mov`",
    ),
];

/// A line of the table.
pub(super) struct Bar {
    pub(super) what: String,
    pub(super) rival: String,
    pub(super) firn: String,
    pub(super) ratio: String,
    pub(super) bar: String,
    pub(super) verdict: &'static str,
    /// Why it is missed, if it is.
    pub(super) reason: &'static str,
}

impl Bar {
    /// A bar for which no rival has a figure.
    pub(super) fn ours(what: String, firn: String, bar: String, met: bool) -> Self {
        Self {
            what,
            rival: NONE.to_owned(),
            firn,
            ratio: NONE.to_owned(),
            bar,
            verdict: verdict(met),
            reason: UNEXPLAINED,
        }
    }

    /// A figure without a bar.
    pub(super) fn figure(what: String, firn: String) -> Self {
        Self {
            verdict: NONE,
            ..Self::ours(what, firn, NONE.to_owned(), true)
        }
    }

    /// A bar on the speed-up over a rival.
    pub(super) fn against(
        what: String,
        rival: String,
        firn: String,
        ratio: f64,
        least: f64,
    ) -> Self {
        Self {
            what,
            rival,
            firn,
            ratio: format!("{ratio:.1}x"),
            bar: format!("{least}x"),
            verdict: verdict(ratio >= least),
            reason: UNEXPLAINED,
        }
    }

    /// Gives the reason, in case it is missed.
    pub(super) fn because(self, reason: &'static str) -> Self {
        Self { reason, ..self }
    }
}

pub(super) const NONE: &str = "–";
const UNEXPLAINED: &str = "no reason is known yet";
const NEIGHBOURS: &str = "a neighbour shared the cores nearly all the time, see *a step in \
                          registers*";
pub(super) const MISSED: &str = "**missed**";

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { MISSED }
}

/// All bars that have figures, and those that tests show.
pub(super) fn bars(options: &Options, figures: &[Figure]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = fences(figures).into_iter().collect();
    bars.extend(
        TRANSACTIONS
            .iter()
            .filter_map(|row| transaction(row, figures)),
    );
    bars.extend(super::roots::bars(figures));
    bars.extend(super::long::bars(figures));
    for threads in [1, 2] {
        bars.extend(
            ALLOCATOR
                .iter()
                .filter_map(|row| call(row, threads, figures)),
        );
    }
    bars.extend(reopenings(&REOPENING, options, figures));
    bars.extend(TESTS.iter().map(|(what, test, bar)| Bar {
        what: (*what).to_owned(),
        rival: NONE.to_owned(),
        firn: format!("the test {test}"),
        ratio: NONE.to_owned(),
        bar: (*bar).to_owned(),
        verdict: "by test",
        reason: UNEXPLAINED,
    }));
    bars
}

/// Firn's figure, or the rival's.
pub(super) fn find<'f>(
    figures: &'f [Figure],
    ours: bool,
    operation: &str,
    threads: u64,
) -> Option<&'f Figure> {
    figures.iter().find(|figure| {
        (figure.system == "firn") == ours
            && figure.operation == operation
            && figure.threads == threads
    })
}

fn fences(figures: &[Figure]) -> Option<Bar> {
    let (mut ours, mut theirs, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    let rows = TRANSACTIONS
        .iter()
        .filter(|row| row.1 != "tx_alloc_snapshot_128");
    for (_, operation, _, fences) in rows {
        ours.push(find(figures, true, operation, 1)?.fences_per_op?);
        theirs.extend(find(figures, false, operation, 1).and_then(|f| f.fences_per_op));
        wanted.push(*fences);
    }
    let text = |counts: &[f64]| {
        let counts: Vec<String> = counts.iter().map(f64::to_string).collect();
        counts.join(", ")
    };
    Some(Bar {
        what: "fences: one changed word; 8 ranges; 128 B allocated and linked; 64 KiB".to_owned(),
        rival: text(&theirs),
        firn: text(&ours),
        ratio: NONE.to_owned(),
        bar: text(&wanted),
        verdict: verdict(ours == wanted),
        reason: UNEXPLAINED,
    })
}

fn transaction(
    &(what, operation, bar, _): &(&str, &str, Option<f64>, f64),
    figures: &[Figure],
) -> Option<Bar> {
    let ours = find(figures, true, operation, 1)?;
    let theirs = find(figures, false, operation, 1);
    let ratio = ours.ratio_to_rival;
    Some(Bar {
        what: format!("{what} (`{operation}`)"),
        rival: theirs.map_or_else(|| NONE.to_owned(), cpu),
        firn: cpu(ours),
        ratio: ratio.map_or_else(|| NONE.to_owned(), |ratio| format!("{ratio:.1}x")),
        bar: bar.map_or_else(|| "none in time".to_owned(), |bar| format!("{bar}x")),
        verdict: match (ratio, bar) {
            (Some(ratio), Some(bar)) => verdict(ratio >= bar),
            (None, Some(_)) => "not compared",
            _ => NONE,
        },
        reason: UNEXPLAINED,
    })
}

fn call(
    &(what, operation, rivals, bar): &(&str, &str, &str, Option<f64>),
    threads: u64,
    figures: &[Figure],
) -> Option<Bar> {
    let of = |threads| find(figures, true, operation, threads);
    let (ours, alone) = (of(threads)?, of(1)?);
    let theirs = find(figures, false, rivals, threads);
    let ratio = theirs.map(|theirs| theirs.ns_cpu_per_op / ours.ns_cpu_per_op);
    let loss = threads > 1 && ours.over_control.is_none_or(|over| over > LOSS);
    let ns = alone_on_its_core(ours).unwrap_or(ours.ns_cpu_per_op);
    let all = match alone_on_its_core(ours) {
        Some(ns) => format!("{ns:.0} ns undisturbed, {} of all blocks", cpu(ours)),
        None => cpu(ours),
    };
    let more = |figure: &Figure| (figure.ns_cpu_per_op / alone.ns_cpu_per_op - 1.0) * 100.0;
    let own = |over: f64| format!("; over a pool each {:+.0} %", (over - 1.0) * 100.0);
    let own = ours.over_control.map_or_else(String::new, own);
    let limit = bar.map(|bar| match threads {
        1 => format!("{bar} ns"),
        _ => format!("{bar} ns, no loss"),
    });
    let plural = if threads == 1 { "" } else { "s" };
    Some(Bar {
        what: format!("{what}, {threads} thread{plural}"),
        rival: theirs.map_or_else(|| NONE.to_owned(), |f| format!("{}, durable", cpu(f))),
        firn: match threads {
            1 => all,
            _ => format!("{all} ({:+.0} %{own})", more(ours)),
        },
        ratio: ratio.map_or_else(|| NONE.to_owned(), |ratio| format!("{ratio:.1}x")),
        bar: limit.unwrap_or_else(|| NONE.to_owned()),
        verdict: bar.map_or(NONE, |bar| verdict(ns <= bar && !loss)),
        reason: match alone_on_its_core(ours) {
            None if !loss => NEIGHBOURS,
            _ => UNEXPLAINED,
        },
    })
}

/// The CPU time on undisturbed cores, if that was measured often enough.
fn alone_on_its_core(figure: &Figure) -> Option<f64> {
    let quiet = figure.undisturbed?;
    (quiet.blocks >= FEW_BLOCKS).then_some(quiet.ns_cpu_per_op)
}

fn cpu(figure: &Figure) -> String {
    format!("{:.0} ns", figure.ns_cpu_per_op)
}

/// Bars of reopening: subject of the figures, what was interrupted, milliseconds at most.
pub(super) struct Reopening {
    pub(super) structure: &'static str,
    pub(super) what: &'static str,
    pub(super) most_ms: f64,
}

const REOPENING: Reopening = Reopening {
    structure: reopen::PLAIN.structure,
    what: "reopen after kill -9, to the first insert",
    most_ms: 20.0,
};

pub(super) fn reopenings(bar: &Reopening, options: &Options, figures: &[Figure]) -> Vec<Bar> {
    let all = figures.iter().filter(|f| f.structure == bar.structure);
    let all: Vec<&Figure> = all.collect();
    let ms = |ns: f64| ns / NS_PER_MS;
    let mut bars = Vec::new();
    for figure in &all {
        let median = ms(figure.ns_wall_per_op);
        let (min, max) = (ms(figure.ns_wall_min), ms(figure.ns_wall_max));
        bars.push(Bar::ours(
            match figure.compaction.moved {
                Some(planned) => {
                    format!("{}, {} objects, a cycle of {planned}", bar.what, figure.n)
                }
                None => format!("{}, {} objects", bar.what, figure.n),
            },
            format!("{median:.1} ms ({min:.1} to {max:.1})"),
            format!("{} ms", bar.most_ms),
            median <= bar.most_ms,
        ));
    }
    let of = |n: Option<&u64>| {
        all.iter()
            .find(|f| Some(&f.n) == n)
            .map(|f| f.ns_wall_per_op)
    };
    let (few, many) = (
        of(options.objects.iter().min()),
        of(options.objects.iter().max()),
    );
    if let (Some(few), Some(many), true) = (few, many, all.len() > 1) {
        let ratio = many / few;
        bars.push(Bar {
            ratio: format!("{ratio:.2}"),
            ..Bar::ours(
                "most objects over fewest".to_owned(),
                format!("{:.1} ms, {:.1} ms", ms(many), ms(few)),
                "equal within 20 %".to_owned(),
                (1.0 / REOPEN_EQUAL..=REOPEN_EQUAL).contains(&ratio),
            )
        });
    }
    bars
}
