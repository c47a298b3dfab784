//! The page with all figures, and the bars they have to meet.

use core::fmt::Write as _;
use std::path::Path;

use super::bars::{Bar, MISSED, bars};
use super::figure::Figure;
use super::machine::Machine;
use super::media::Placed;
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

[machine-performance.md](machine-performance.md) says how fast the simulated machine is.
";

const NOTES: &str = "\
## How to read it

- Times are CPU time of the measured threads, except for reopening, which is wall time. Each is the median of
  blocks (of three passes for the map), and Firn's blocks alternate with the rival's. The machine is virtual and
  shared: figures vary by a tenth and more from run to run. Minimum and maximum over blocks are given below.
- Pools lie on a tmpfs that is treated as persistent memory under ADR (`domain`): each line is
  really written back and fenced, in DRAM. A persistent DIMM would add its own cost, for both.
- The kernel gives Firn's pools huge pages on request (docs/decisions/huge-pages.md), and the rivals'
  pages of 4 KiB. Rows *in pages of 4 KiB* use these for Firn's pool too.
- Fences are exact: counted on the crash medium, which runs the same code. The rival's are counted by
  single-stepping its instructions.
- *The call* is the time of `alloc_bytes` (which copies the content in) or of `free` inside a transaction
  of 64 objects, by the thread's clock around the loop of calls. The bar applies to this. *Marginal* is the cost of
  one more object in a whole transaction, the slope between 4 and 16 objects. It includes the link's store and a
  share of the log and of the commit, where the allocator has work too. Where it is above 60 and 40 ns,
  the bar is met for the call and would be missed in this wider reading.
- The rival's allocation and free are calls that are durable by themselves, so these ratios compare
  unlike things. The transactions above compare like with like.
- The percentage is what the second thread adds to the CPU time of one. *Over a pool each* is the control: the
  median over blocks of the ratio of two threads in one pool to the same two in separate pools, which share
  only the machine. This alone measures contention in the pool. The bar says *no loss* and names no
  tolerance; we allow a tenth, about the variation between blocks. Each case has pools of its own, because
  otherwise it would start with the frames as another case left them.
- *A line to the other core* is how long a cache line takes from one core to the other. The host migrates
  this machine's cores: during the measurement their distance varied between minimum and maximum. Data shared by
  threads costs more when the cores are far apart.
- *A step in registers* is six short chains of operations without memory accesses. It shows how fast the host
  lets this machine run; each thread takes it before and after its calls of the allocator. A neighbour on the other
  hyperthread of a core makes it, and everything else, slower by a half and more. Blocks whose surrounding steps took at
  most a tenth longer than the fastest are *undisturbed*. If there are five, the bars of the calls apply to their
  median, with that of all blocks beside it. The percentages are of all blocks.
- Allocating 64 KiB has a bar in fences, not in time: either heap writes back about a thousand lines, and
  the fences that Firn saves hardly show. A ratio below one is slower than the rival.
- Reopening opens the file, recovers, creates a session and commits the first insert, which allocates and
  links an entry. The previous process was killed with SIGKILL in the middle of transactions. Objects are
  entries of a map, 8 bytes of key and 64 of value, in a pool on disk, opened with default options, with a warm page
  cache. Space that the crash may have left free is found by a trace, which runs later beside the program and is
  not included.
";

/// Writes the page of these figures to a file.
///
/// Errors: the file cannot be written.
pub fn write(
    path: &Path,
    machine: &Machine,
    options: &Options,
    placed: &[Placed],
) -> Result<(), BenchError> {
    let text = document(machine, options, placed);
    firn_mapped::write_whole(path, text.as_bytes())
        .map_err(BenchError::io(format!("writing {}", path.display())))
}

fn document(machine: &Machine, options: &Options, placed: &[Placed]) -> String {
    let figures: Vec<Figure> = placed.iter().map(|placed| placed.figure.clone()).collect();
    let figures = &figures[..];
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
        "medium",
        "level",
    ];
    table(&mut page, &columns, placed.iter().map(row));
    page
}

/// Gives the reasons for missed bars: each reason once, with its bars.
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

fn row(placed: &Placed) -> Vec<String> {
    let figure = &placed.figure;
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
        placed.medium.clone(),
        placed.level.to_owned(),
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
