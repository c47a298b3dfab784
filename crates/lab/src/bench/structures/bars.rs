//! The bars that the structures' figures have to meet.

use firn_workloads::Shape;

use super::super::bars::{Bar, NONE, find};
use super::super::figure::Figure;
use super::super::phases::{DENSE, NORMAL, SMALL_PAGES, Setting, WITHOUT};
use super::{CASES, Case, DATABASES, PMEMOBJ, name, together};

/// Speed-up over libpmemobj, the mean over structures and each, without a collector.
const MEAN: f64 = 2.5;
const EACH: f64 = 1.5;
/// Speed-up with a collector: the list, and the others.
const LIST_COLLECTING: f64 = 1.2;
const EACH_COLLECTING: f64 = 1.5;
/// Fences of an insert.
const FENCES: f64 = 2.0;
/// Speed-up of finding, when everything is there, and when most is deleted and the rest is packed.
const GET: f64 = 1.0;
const GET_AFTER: f64 = 1.2;
/// Throughput of two threads over one.
const TOGETHER: f64 = 1.8;
/// Mean ratio over the phases.
const RATIO: f64 = 1.30;
/// Speed-up over the better database; bytes of the file over the payload.
const DATABASE: f64 = 3.0;
const FILE: f64 = 1.5;

/// Why bars are missed, if they are.
const MISSES: &str = "a single get waits for memory, and the checks of each object keep the \
                      processor from overlapping as many gets as the rival, which checks nothing \
                      (docs/decisions/short-searches.md); values in the nodes would cost more \
                      (docs/decisions/values-beside-nodes.md)";
const LEAVES: &str = "a tree waits for cache misses on the path down, as the rival's does, and for \
                      the leaves beside a sparse one";
const LAGGING: &str = "the ratio rises while the collector works, see the collector's section";
const NODES: &str = "the entries and nodes of the map take 164 bytes for 136 of key and value \
                     after four of five entries were deleted at random, and the collector may have \
                     only begun to compact them";

/// All bars that have figures.
pub(super) fn bars(figures: &[Figure]) -> Vec<Bar> {
    let theirs = |case: &&Case| case.of == PMEMOBJ;
    let mut bars = Vec::new();
    bars.extend(speed(figures, &WITHOUT));
    bars.extend(speed(figures, &NORMAL));
    bars.extend(on_small_pages(figures));
    for case in CASES.iter().filter(theirs) {
        bars.extend(fences(figures, case.shape));
    }
    for case in CASES.iter().filter(theirs) {
        bars.extend(get(figures, case.shape, "get_many", &WITHOUT, GET));
        bars.extend(get(
            figures,
            case.shape,
            "get_many_after",
            &NORMAL,
            GET_AFTER,
        ));
        bars.extend(get(figures, case.shape, "get_each", &WITHOUT, GET));
        bars.extend(get(
            figures,
            case.shape,
            "get_each_after",
            &NORMAL,
            GET_AFTER,
        ));
    }
    bars.extend(together::shapes().filter_map(|shape| both(figures, shape)));
    for case in CASES.iter().filter(theirs) {
        bars.extend(footprint(figures, case.shape));
    }
    bars.extend(databases(figures));
    bars
}

fn ours<'f>(figures: &'f [Figure], shape: Shape, kind: &str, s: &Setting) -> Option<&'f Figure> {
    find(figures, true, &name(shape, kind, s), 1)
}

/// Figures of rivals for an operation.
fn theirs<'f>(figures: &'f [Figure], shape: Shape, kind: &str) -> impl Iterator<Item = &'f Figure> {
    let name = name(shape, kind, &WITHOUT);
    figures
        .iter()
        .filter(move |f| f.system != super::SYSTEM && f.operation == name)
}

/// Insert and delete of a structure, ours and theirs, and the speed-up of ours.
fn times(figures: &[Figure], shape: Shape, setting: &Setting) -> Option<([f64; 4], f64)> {
    let of = |kind| Some(ours(figures, shape, kind, setting)?.ns_cpu_per_op);
    let their = |kind| Some(theirs(figures, shape, kind).next()?.ns_cpu_per_op);
    let (insert, delete) = (of("insert")?, of("delete")?);
    let (their_insert, their_delete) = (their("insert")?, their("delete")?);
    let ratio = (their_insert / insert * their_delete / delete).sqrt();
    Some(([insert, delete, their_insert, their_delete], ratio))
}

fn speed(figures: &[Figure], setting: &Setting) -> Vec<Bar> {
    let collecting = setting.ratios.is_some();
    let with = if collecting { ", collecting" } else { "" };
    let mut ratios = Vec::new();
    let mut bars = Vec::new();
    for case in CASES.iter().filter(|case| case.of == PMEMOBJ) {
        let Some((ns, ratio)) = times(figures, case.shape, setting) else {
            continue;
        };
        let least = match (collecting, case.shape) {
            (true, Shape::Chain) => LIST_COLLECTING,
            (true, _) => EACH_COLLECTING,
            (false, _) => EACH,
        };
        bars.push(
            Bar::against(
                format!("insert and delete, {}{with}", case.shape.name()),
                format!("{:.0} and {:.0} ns", ns[2], ns[3]),
                format!("{:.0} and {:.0} ns", ns[0], ns[1]),
                ratio,
                least,
            )
            .because(LEAVES),
        );
        ratios.push(ratio);
    }
    if !collecting && !ratios.is_empty() {
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        let what = format!("insert and delete, geometric mean of {}", ratios.len());
        bars.push(
            Bar::against(what, String::new(), String::new(), mean.exp(), MEAN).because(LEAVES),
        );
    }
    bars
}

/// Ratios on pages of 4 KiB, which have no bar: they show the effect of the page size.
fn on_small_pages(figures: &[Figure]) -> Vec<Bar> {
    let (mut bars, mut logarithms) = (Vec::new(), Vec::new());
    let told = |what: String, ratio: f64| Bar {
        ratio: format!("{ratio:.1}x"),
        ..Bar::figure(what, NONE.to_owned())
    };
    for case in CASES.iter().filter(|case| case.of == PMEMOBJ) {
        let Some((ns, ratio)) = times(figures, case.shape, &SMALL_PAGES) else {
            continue;
        };
        logarithms.push(ratio.ln());
        bars.push(Bar {
            rival: format!("{:.0} and {:.0} ns", ns[2], ns[3]),
            firn: format!("{:.0} and {:.0} ns", ns[0], ns[1]),
            ..told(
                format!(
                    "insert and delete, {}, in pages of 4 KiB",
                    case.shape.name()
                ),
                ratio,
            )
        });
    }
    if !logarithms.is_empty() {
        let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
        let what = format!(
            "insert and delete, geometric mean of {}, in pages of 4 KiB",
            logarithms.len()
        );
        bars.push(told(what, mean.exp()));
    }
    bars
}

fn fences(figures: &[Figure], shape: Shape) -> Option<Bar> {
    let figure = ours(figures, shape, "insert", &WITHOUT)?;
    let fences = figure.fences_per_op?;
    let rival = theirs(figures, shape, "insert").find_map(|f| f.fences_per_op);
    Some(Bar {
        rival: rival.map_or_else(String::new, |fences| format!("{fences:.1}")),
        ..Bar::ours(
            format!("fences of an insert, {}", shape.name()),
            format!("{fences:.2}"),
            format!("{FENCES}"),
            fences <= FENCES,
        )
    })
}

fn get(figures: &[Figure], shape: Shape, kind: &str, s: &Setting, least: f64) -> Option<Bar> {
    let our = ours(figures, shape, kind, s)?.ns_cpu_per_op;
    let their = theirs(figures, shape, kind).next()?.ns_cpu_per_op;
    let when = match s.ratios {
        None => "all present",
        Some(_) => "80 % deleted, packed",
    };
    let how = if kind.starts_with("get_each") {
        ", 100 at once"
    } else {
        ""
    };
    Some(
        Bar::against(
            format!("get, {}, {when}{how}", shape.name()),
            format!("{their:.0} ns"),
            format!("{our:.0} ns"),
            their / our,
            least,
        )
        .because(MISSES),
    )
}

/// Why two threads are slower than one apart.
const COUNTER: &str = "the loss with a pool each is due to the machine; in one pool each commit \
                       takes the line with the commit counter from the other core, and every \
                       fourth commit of a lane reads the entries of the other (see *a line to the \
                       other core*)";

fn both(figures: &[Figure], shape: Shape) -> Option<Bar> {
    let of = |threads| find(figures, true, &together::name(shape), threads);
    let (one, two) = (of(1)?.ns_wall_per_op, of(2)?.ns_wall_per_op);
    let apart = find(figures, true, &together::apart(shape), 2)?.ns_wall_per_op;
    let throughput = |two: f64| 2.0 * one / two;
    Some(
        Bar::ours(
            format!("two threads on two structures over one, {}", shape.name()),
            format!(
                "{:.2}x (with a pool each {:.2}x)",
                throughput(two),
                throughput(apart)
            ),
            format!("{TOGETHER}x"),
            throughput(two) >= TOGETHER,
        )
        .because(COUNTER),
    )
}

fn footprint(figures: &[Figure], shape: Shape) -> Option<Bar> {
    let mean = |figure: &Figure| figure.compaction.ratio_2m_mean;
    let our = mean(ours(figures, shape, "delete", &NORMAL)?)?;
    let their = theirs(figures, shape, "delete").find_map(mean);
    Some(Bar {
        rival: their.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        ..Bar::ours(
            format!(
                "mean ratio on 2 MiB pages over the phases, {}",
                shape.name()
            ),
            format!("{our:.2}"),
            format!("{RATIO:.2}"),
            our <= RATIO,
        )
        .because(LAGGING)
    })
}

/// The ordered map against databases.
fn databases(figures: &[Figure]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for case in CASES.iter().filter(|case| case.of == DATABASES) {
        let shape = case.shape;
        for (kind, least) in [("insert", DATABASE), ("delete", DATABASE), ("get", 1.0)] {
            let best = theirs(figures, shape, kind)
                .min_by(|a, b| a.ns_cpu_per_op.total_cmp(&b.ns_cpu_per_op));
            let (Some(our), Some(best)) = (ours(figures, shape, kind, &DENSE), best) else {
                continue;
            };
            bars.push(Bar::against(
                format!("{kind}, ordered map, collecting, against {}", best.system),
                format!("{:.0} ns", best.ns_cpu_per_op),
                format!("{:.0} ns", our.ns_cpu_per_op),
                best.ns_cpu_per_op / our.ns_cpu_per_op,
                least,
            ));
        }
        let file = |figure: &Figure| figure.compaction.file_over_payload;
        let our = ours(figures, shape, "delete", &DENSE).and_then(file);
        let their: Vec<String> = theirs(figures, shape, "delete")
            .filter_map(|f| Some(format!("{:.1}", file(f)?)))
            .collect();
        if let Some(our) = our {
            bars.push(Bar {
                rival: their.join(", "),
                ..Bar::ours(
                    "file over payload after 80 % were deleted, collecting, ordered map".to_owned(),
                    format!("{our:.2}"),
                    format!("{FILE}"),
                    our <= FILE,
                )
                .because(NODES)
            });
        }
    }
    bars
}
