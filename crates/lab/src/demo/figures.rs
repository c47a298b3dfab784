//! The demo's figures as tables, for the terminal and for the page.

use firn_tools::Standing;
use firn_tools::figures::{bytes, count};

use super::report::DemoReport;
use super::{Comparison, Side};
use crate::kill::KillReport;
use crate::{Spread, Table};

/// The caption of the pictures.
pub(super) const CAPTION: &str = "Each small square is a page, each block of squares 2 MiB. Pale \
    pages waste what dark ones use. Before: most entries were deleted at random, and nothing was \
    moved. After: two threads wrote beside the collector, children were killed in the middle of \
    compactions and lost what the disk had not made durable, as many entries were deleted again, and a last collection compacted what is left.";

/// The demo's work and findings, in a few sentences.
pub fn summary(report: &DemoReport) -> String {
    let kills = report.indexing.kills + report.compactions.kills;
    let power = report.all_power();
    let found = match (report.all_lost().count(), report.all_findings().count()) {
        (0, 0) => "nothing is lost, and the checker finds nothing".to_owned(),
        (lost, findings) => format!("{lost} entries are LOST, and there are {findings} findings"),
    };
    format!(
        "{} paths{} below {} were indexed, with values of up to {} more than a path's size, in a pool \
         on {}. Of {} kills with SIGKILL {} came in the middle of compactions. At {} of them the power \
         failed, too: of {} sectors that were not durable, {} were lost, {} kept an older content than \
         the newest, and {} blocks were torn. {} entries were compared: {found}.",
        count(report.paths),
        if report.cut {
            " (the first of more)"
        } else {
            ""
        },
        report.tree,
        bytes(report.payload_bytes as u64),
        report.medium,
        count(kills),
        count(report.compactions.killed_while_collecting),
        count(power.failures),
        count(power.sectors()),
        count(power.lost),
        count(power.older),
        count(power.torn_blocks),
        count(report.all_compared()),
    )
}

/// All tables.
pub fn tables(report: &DemoReport) -> [Table; 3] {
    [
        standing(&report.fragmented, &report.packed),
        comparison(&report.comparison, report.medium),
        kills(report),
    ]
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "none".into(), |ratio| format!("{ratio:.2}"))
}

fn standing(before: &Standing, after: &Standing) -> Table {
    let mut table = Table::new(["The pool", "before", "after"]);
    let mut row = |name: &str, figure: fn(&Standing) -> String| {
        table.both(name, [before, after], figure);
    };
    row("objects", |s| count(s.objects));
    row("live bytes", |s| bytes(s.live_bytes));
    row("footprint on 4 KiB pages", |s| bytes(s.footprint_4k_bytes));
    row("ratio", |s| ratio(s.ratio_4k));
    row("footprint on 2 MiB pages", |s| bytes(s.footprint_2m_bytes));
    row("ratio", |s| ratio(s.ratio_2m));
    row("blocks on the disk", |s| bytes(s.file_backed_bytes));
    table
}

fn comparison(of: &Comparison, medium: &str) -> Table {
    let title = format!(
        "Two threads on {} processors, {} reads before each transaction, level {}, on {medium}",
        of.processors, of.reads_a_transaction, of.level
    );
    let mut table = Table::new([&title, "without the collector", "with it"]);
    let mut row = |name: &str, figure: fn(&Side) -> String| {
        table.both(name, [&of.without, &of.with], figure);
    };
    row("transactions a second", |s| {
        count(s.per_second.median as u64)
    });
    row("in the slowest block", |s| count(s.per_second.min as u64));
    row("longest transaction", |s| {
        format!("{:.2} ms", s.longest_transaction_ms)
    });
    row("footprint at the end", |s| {
        bytes(s.standing.footprint_2m_bytes)
    });
    row("ratio at the end", |s| ratio(s.standing.ratio_2m));
    let did = &of.collector;
    let objects = format!("{} ({})", count(did.moved_objects), bytes(did.moved_bytes));
    table.second("objects moved", objects);
    let cycles = format!(
        "{} in {} collections",
        count(did.cycles),
        count(did.collections)
    );
    table.second("cycles", cycles);
    table.second("computation", format!("{:.0} ms", did.cpu_ms));
    let stops = format!("{}, total {:.2} ms", count(did.stops), did.stood_ms);
    table.second("stops of the program", stops);
    table.second("longest stop", format!("{:.3} ms", did.longest_stop_ms));
    table
}

fn kills(report: &DemoReport) -> Table {
    let title = format!("Kills, level sync, on {}", report.medium);
    let mut table = Table::new([&title, "while indexing", "in compactions"]);
    let mut row = |name: &str, figure: fn(&KillReport) -> String| {
        table.both(name, [&report.indexing, &report.compactions], figure);
    };
    row("kills with SIGKILL", |k| count(k.kills));
    row("while the pool was opened", |k| {
        count(k.killed_while_opening)
    });
    row("while objects moved", |k| count(k.killed_while_collecting));
    row("with a power failure, too", |k| count(k.power.failures));
    row("sectors then not durable", |k| count(k.power.sectors()));
    row("of them lost", |k| count(k.power.lost));
    row("of them with an older content", |k| count(k.power.older));
    row("of them kept", |k| count(k.power.arrived));
    row("blocks of 4 KiB torn", |k| count(k.power.torn_blocks));
    row("files of another length", |k| count(k.power.other_lengths));
    row("transactions acknowledged", |k| {
        count(k.acknowledged.total())
    });
    row("a second, without power failures", |k| {
        count(k.operations_per_second as u64)
    });
    row("in flight", |k| count(k.in_flight));
    row("reopening, typical", |k| spread(k.reopen_ms, |s| s.median));
    row("reopening, longest", |k| spread(k.reopen_ms, |s| s.max));
    row("entries compared", |k| count(k.compared));
    row("entries lost", |k| count(k.lost.len() as u64));
    table
}

fn spread(of: Spread, which: fn(Spread) -> f64) -> String {
    format!("{:.2} ms", which(of))
}
