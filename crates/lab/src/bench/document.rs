//! The page that tells all figures, with the bars they have to come up to.

use core::fmt::Write as _;
use std::path::Path;

use super::bars::{Bar, MISSED, bars};
use super::figure::Figure;
use super::machine::Machine;
use super::{BenchError, Options, collector, cores, structures};

const HEAD: &str = "\
# Performance

Written by `firn bench --write`; do not edit it, measure again:

```sh
apt-get install libpmemobj-dev    # a rival, on Debian
cargo build --release -p firn
target/release/firn bench --rival libpmemobj,lmdb,redb --write docs/performance.md
cargo xtask test --long           # what tests show
```

How fast the simulated machine is, is on a page of its own: [machine-performance.md](machine-performance.md).
";

const NOTES: &str = "\
## How to read it

- Times are CPU time of the threads that are measured, but for reopening, which is wall time. Each is
  the median of blocks (of three passes for the map), and Firn's blocks alternate with the rival's. The machine is virtual and shared:
  from run to run figures move by a tenth and more. Minimum and maximum over
  blocks stand below.
- Pools lie on a tmpfs that is treated as persistent memory under ADR (`assume_persistent`): each line is
  written back and fenced for real, in DRAM. What a persistent DIMM would add comes on top, for both.
- The kernel gives Firn's pools huge pages, because they ask it to (docs/decisions/huge-pages.md), the rivals'
  pages of 4 KiB. Where it says *in pages of 4 KiB* Firn's pool has them too.
- Fences are exact: counted on the crash medium, which runs the same code. The rival's are counted by
  stepping through its instructions one by one.
- *The call* is the time of `alloc_bytes` (which copies the content in) or of `free` inside a transaction
  of 64 objects, by the thread's clock around their loop. The bar is read as this. *Marginal* is what one
  more object adds to a whole transaction, the slope between 4 and 16 objects: with the link's store, its
  share of the log and of the commit, where the allocator has work too. Where it is above 60 and 40 ns,
  the bar is met for the call and would be missed in that wider reading.
- The rival's allocation and free are calls that are durable by themselves, so their ratio compares
  unlike things; the transactions above compare like with like.
- The percentage is what the second thread adds to the CPU time of one. *Over a pool each* is the control: the
  same two threads in one pool over the same two in pools of their own, which share nothing but the machine,
  the median of the blocks' ratios. Only this is the pool's doing; the bar says *no loss* and names no
  tolerance; a tenth, about what blocks differ by themselves, is ours. Each case has pools of its own, or
  one would find the frames as another left them.
- *A line to the other core* is how long a cache line takes from one core to the other. The host moves
  this machine's cores: while it measured, they were as near and as far from each other as minimum and
  maximum say. Whatever threads share costs more where they are far.
- *A step in registers* is six short chains of operations, and no memory: how fast the host lets this machine
  run, taken by each thread before and after its calls of the allocator. A neighbour on the other half of a
  core makes it, and everything else, longer by a half and more. Blocks around whose calls it took at most a
  tenth more than ever are *undisturbed*; the calls' bars are held against their median if there are five,
  with that of all blocks beside it. The percentages are of all.
- Allocating 64 KiB has a bar in fences, not in time: either heap writes back about a thousand lines, and
  what Firn saves in fences hardly shows; a ratio below one is slower than the rival.
- Reopening opens the file, recovers, makes a session and commits the first insert, which allocates and
  links an entry. The process before was killed with SIGKILL in the middle of transactions. Objects are
  entries of a map, 8 bytes of key and 64 of value, in a pool on disk,
  opened with default options, with the page cache warm. Space that
  the crash may have left free is found by a trace, which runs later beside the program and is not in
  this time.
";

/// Writes the page of these figures to a file.
///
/// Errors: the file cannot be written.
pub fn write(
    path: &Path,
    machine: &Machine,
    options: &Options,
    figures: &[Figure],
) -> Result<(), BenchError> {
    let text = document(machine, options, figures);
    firn_mapped::write_whole(path, text.as_bytes())
        .map_err(BenchError::io(format!("writing {}", path.display())))
}

fn document(machine: &Machine, options: &Options, figures: &[Figure]) -> String {
    let mut page = HEAD.to_owned();
    page.push('\n');
    let rows = [
        (
            "processor",
            format!(
                "{}, {} cores, virtual and shared",
                machine.cpu, machine.cores
            ),
        ),
        ("kernel", machine.kernel.clone()),
        ("commit", format!("`{}`", machine.commit)),
        ("date", machine.date.clone()),
        ("blocks", options.blocks.to_string()),
    ];
    table(
        &mut page,
        &["", ""],
        rows.map(|(what, value)| vec![what.to_owned(), value]),
    );
    page.push_str("\n## Bars\n\n");
    let rival = figures
        .iter()
        .map(|f| f.system.as_str())
        .find(|system| !["firn", cores::SYSTEM].contains(system));
    let columns = ["what", rival.unwrap_or("rival"), "Firn", "ratio", "bar", ""];
    let bars = bars(options, figures);
    table(&mut page, &columns, bars.iter().map(bar));
    misses(&mut page, &bars);
    page.push('\n');
    structures::section(&mut page, figures);
    collector::section(&mut page, options, figures);
    page.push_str(NOTES);
    page.push_str("\n## All figures\n\n");
    let columns = [
        "",
        "operation",
        "threads",
        "n",
        "ns CPU",
        "min to max",
        "ns wall",
        "fences",
        "lines",
    ];
    table(&mut page, &columns, figures.iter().map(row));
    page
}

/// Says why bars are missed: each reason once, with the bars that it is the reason of.
pub(super) fn misses(page: &mut String, bars: &[Bar]) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for bar in bars.iter().filter(|bar| bar.verdict == MISSED) {
        match reasons.iter_mut().find(|(reason, _)| *reason == bar.reason) {
            Some((_, missed)) => missed.push(&bar.what),
            None => reasons.push((bar.reason, vec![&bar.what])),
        }
    }
    for (reason, missed) in reasons {
        // Writing to a string does not fail.
        let _ = write!(page, "\nMissed; {reason}:\n\n");
        missed.iter().for_each(|what| {
            let _ = writeln!(page, "- {what}");
        });
    }
}

pub(super) fn bar(bar: &Bar) -> Vec<String> {
    let cells = [&bar.what, &bar.rival, &bar.firn, &bar.ratio, &bar.bar];
    let mut cells: Vec<String> = cells.map(String::clone).into();
    cells.push(bar.verdict.to_owned());
    cells
}

fn row(figure: &Figure) -> Vec<String> {
    let count = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.2}"));
    vec![
        figure.system.clone(),
        figure.operation.clone(),
        figure.threads.to_string(),
        figure.n.to_string(),
        nanoseconds(figure.ns_cpu_per_op),
        format!(
            "{} to {}",
            nanoseconds(figure.ns_cpu_min),
            nanoseconds(figure.ns_cpu_max)
        ),
        nanoseconds(figure.ns_wall_per_op),
        count(figure.fences_per_op),
        count(figure.lines_per_op),
    ]
}

fn nanoseconds(value: f64) -> String {
    if value.is_nan() {
        String::new()
    } else {
        format!("{value:.1}")
    }
}

/// Adds a table.
pub(super) fn table(
    page: &mut String,
    columns: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) {
    let mut line = |cells: &[&str]| {
        // Writing to a string does not fail.
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    };
    line(columns);
    line(&vec!["---"; columns.len()]);
    for row in rows {
        line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
