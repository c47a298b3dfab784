//! The report as tables.

use core::fmt::Write as _;
use std::path::Path;

use super::super::BenchError;
use super::super::document::table;
use super::super::machine::Machine;
use super::DurableOptions;
use super::report::{DurableBar, Report, Row};

const HEAD: &str = "\
# Performance of durable pools

Written by `firn bench --only durable --write`; do not edit it, measure again:

```sh
apt-get install libsqlite3-0 e2fsprogs mount    # a rival, and a device whose writes are counted; be root
cargo build --release -p firn
target/release/firn bench --only durable --dir DISK --write docs/durable-performance.md
```
";

const NOTES: &str = "\
## How to read it

- In a round, all systems do a block of the same work, one after the other. A figure is the median of the rounds; a ratio
  is the median of the rounds' ratios.
- Wall time, except where CPU time is named: then it is the thread's, which other programs do not lengthen.
- An entry has a key of 8 bytes and a value of 120 bytes that no compression shortens. Keys come in no order.
- *Write of 4 KiB* is one block past the page cache, on the disk when it returns, to a file all of whose blocks were
  written before: the least that a durable commit costs here.
- Bytes written are counted by the kernel at a loop device with an ext4 of its own, which a system has to itself: from
  the empty file system until the system's files are closed and synced, journal and metadata included. Updates are
  skewed (Zipf, 0.99) and in batches of 100, as the insertions are. SQLite has checkpointed its log, fjall has flushed
  its memory and finished the compactions that it began; LMDB and redb write pages to where they stay.
- Opening ends when transactions can begin. A log is full when its program was killed before it went home; the time is
  divided by the bytes of the log. With a warm page cache the computer went on, with a cold one it would have started
  again.
";

/// Writes the page of a report to a file.
///
/// Errors: the file cannot be written.
pub fn write(
    path: &Path,
    machine: &Machine,
    options: &DurableOptions,
    report: &Report,
) -> Result<(), BenchError> {
    let text = document(machine, options, report);
    firn_mapped::write_whole(path, text.as_bytes())
        .map_err(BenchError::io(format!("writing {}", path.display())))
}

fn document(machine: &Machine, options: &DurableOptions, report: &Report) -> String {
    let mut page = HEAD.to_owned();
    page.push('\n');
    let processor = format!(
        "{}, {} cores, virtual and shared",
        machine.cpu, machine.cores
    );
    let rows = [
        ("processor", processor),
        ("kernel", machine.kernel.clone()),
        ("commit", format!("`{}`", machine.commit)),
        ("date", machine.date.clone()),
        ("rounds", options.rounds.to_string()),
        ("insertions of a block", options.n.to_string()),
        ("entries of large maps", options.entries.to_string()),
    ];
    table(
        &mut page,
        &["", ""],
        rows.map(|(what, value)| vec![what.to_owned(), value]),
    );
    page.push_str("\n## Bars\n\n");
    table(&mut page, &BAR_COLUMNS, report.bars.iter().map(bar_cells));
    page.push_str("\n## Rivals\n\n");
    for (system, how) in report.how() {
        // Writing to a string does not fail.
        let _ = writeln!(page, "- {system}: {how}");
    }
    page.push('\n');
    page.push_str(NOTES);
    page.push_str("\n## All figures\n\n");
    table(&mut page, &ROW_COLUMNS, report.rows.iter().map(row_cells));
    page
}

/// The columns of [`bar_cells`].
pub const BAR_COLUMNS: [&str; 6] = ["what", "Firn", "against", "ratio", "bar", ""];
/// The columns of [`row_cells`].
pub const ROW_COLUMNS: [&str; 7] = [
    "what",
    "system",
    "medium",
    "level",
    "median",
    "least to most",
    "unit",
];

/// A bar's cells.
pub fn bar_cells(bar: &DurableBar) -> Vec<String> {
    let verdict = if bar.met { "met" } else { "**missed**" };
    let cells = [&bar.what, &bar.firn, &bar.against, &bar.ratio, &bar.bar];
    let mut cells: Vec<String> = cells.map(String::clone).into();
    cells.push(verdict.to_owned());
    cells
}

/// A row's cells.
pub fn row_cells(row: &Row) -> Vec<String> {
    vec![
        row.what.to_owned(),
        row.system.clone(),
        row.medium.clone(),
        row.level.to_owned(),
        number(row.median),
        format!("{} to {}", number(row.least()), number(row.most())),
        row.unit.to_owned(),
    ]
}

fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middling if middling >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

impl Report {
    /// How each rival is configured.
    fn how(&self) -> Vec<(&str, &str)> {
        let rivals = self.rows.iter().filter(|row| !row.how.is_empty());
        let mut all: Vec<_> = rivals
            .map(|row| (row.system.as_str(), row.how.as_str()))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
