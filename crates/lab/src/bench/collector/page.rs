//! The collector's section of the page with all figures.

use super::super::Options;
use super::super::bars::NONE;
use super::super::document::{misses, table};
use super::super::figure::Figure;
use super::bars::bars;

const NOTES: &str = "
- Objects are values of an ordered map (`map`), of a flat array of references (`refs`) or of a singly
  linked list (`list`), of 128 bytes, or (`mixed`) log-uniform from 16 bytes to 32 KiB. The ratio is the
  footprint of pages with an object over the bytes that the program asked for. For a million objects of 128
  bytes, one 2 MiB page is a twentieth of what remains.
- The cost of a moved object includes all CPU time of the collecting thread, from marking to the end of the
  last cycle; the four steps are listed below. For `move`, a second thread gets entries all the
  while. The program's share is how much longer its gets took than the mean of before and after, less how much
  longer they took while another pool was compacted, because cores share the memory.
  `pmemobj_defrag` compacts an AVL tree in turns with that: the caller lists all references, and nothing else
  runs.
- The reduction is FFCCD's equation 1: (footprint without a collector - footprint with one) / (footprint
  without one - live bytes), of means over a phase. It includes samples during a collection, when sources
  and destinations both count. The *highest ratio* excludes those samples, the *peak* does not.
- A stop is the time during which operations may not begin: the wait until open ones have
  ended, at first at most 50 us before the request is *withdrawn*, and the work. The bar is in CPU time of
  the requesting thread; the table below has wall time.
- Without the barrier, objects are read through a view that does not check whether one is being moved.
";

/// Adds the section, if there are figures of the collector.
pub(in super::super) fn section(page: &mut String, options: &Options, figures: &[Figure]) {
    let bars = bars(options, figures);
    if bars.is_empty() {
        return;
    }
    page.push_str("## The collector\n\n");
    let rows = bars.iter().map(|bar| {
        let cells = [&bar.what, &bar.firn, &bar.bar];
        let cells = cells.into_iter().cloned();
        cells.chain([bar.verdict.to_owned()]).collect()
    });
    table(page, &["what", "Firn", "bar", ""], rows);
    misses(page, &bars);
    page.push_str(NOTES);
    page.push('\n');
    let columns = [
        "operation",
        "scheme",
        "ratio 4 KiB",
        "ratio 2 MiB",
        "highest",
        "peak",
        "reduction",
        "moved",
        "ns CPU a moved",
        "mark, plan, move, end",
        "longest stop, us",
        "withdrawn",
    ];
    let compactions = figures.iter().filter(|f| f.compaction.scheme.is_some());
    table(page, &columns, compactions.map(row));
    page.push('\n');
}

fn row(figure: &Figure) -> Vec<String> {
    let all = &figure.compaction;
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
    };
    let count = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let steps = all.ns_cpu_per_step.map(|steps| {
        let steps = steps.map(|ns| format!("{ns:.0}"));
        steps.join(", ")
    });
    vec![
        figure.operation.clone(),
        all.scheme.unwrap_or(NONE).to_owned(),
        number(all.ratio_4k, 3),
        number(all.ratio_2m, 3),
        number(all.ratio_max, 3),
        number(all.ratio_peak, 3),
        number(all.reduction, 3),
        count(all.moved),
        number(all.ns_cpu_per_moved, 0),
        steps.unwrap_or_default(),
        number(all.longest_stop_ns.map(|ns| ns / 1e3), 1),
        count(all.withdrawn),
    ]
}
