//! What the command line takes, and the help that teaches it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use firn_tools::{FileSystems, MappedOptions, PageSize};

use crate::domains::DomainName;
use crate::values::{Bytes, bytes, limit, pool_file};

/// Ordered maps in pools that survive crashes
///
/// A pool is one file. On a disk a new one has a log beside it while it is open, and so survives power failures; on
/// persistent memory (DAX) it needs none. `firn stat` shows what a pool survives.
#[derive(Parser, Debug)]
#[command(name = "firn", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// Prints results as JSON: one object, or one a line if there are many
    #[arg(long, global = true)]
    pub json: bool,
}

const AFTER_HELP: &str = "\
A first round:
  firn demo                             compacts a pool, is killed again and again, loses nothing
  firn load p.firn --tree /usr/share    every path below, with its size
  firn scan p.firn /usr/share/doc/b     entries whose keys begin with that
  firn delete p.firn --fraction 0.5     half of the entries, to see fragmentation
  firn stat p.firn                      how full and how fragmented
  firn top p.firn                       the same, live, while a program works on it
  firn map p.firn -o p.svg              the same as a picture, page by page
  firn defrag p.firn                    compacts the pool, frees the emptied pages

Exit status: 0; 1 if a check finds something or a key is missing; 2 for wrong usage or an error.";

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Loads lines of KEY, a tab and VALUE, or the paths of a file tree
    #[command(after_long_help = "\
A few hundred entries are one transaction; a crash loses at most the one in flight. A key that exists \
already gets the new value.

In KEY and VALUE `\\\\` is a backslash, `\\t` a tab, `\\n` and `\\r` line ends, `\\0` a zero, `\\xHH` any byte \
by its hexadecimal digits; --raw takes backslashes literally. A line may also be JSON, as \
`firn scan --json` prints it.

Examples:
  firn load p.firn words.tsv
  cut -f1,3 big.tsv | firn load p.firn
  firn load p.firn --tree /usr")]
    Load(Load),
    /// Prints the values of keys, one a line
    #[command(after_long_help = "\
Values are printed unescaped. With --json each line has the form of `firn scan --json`, or \
`{\"key\":...,\"missing\":true}` for a missing key. Exit status 1 if a key is missing; the others are printed.

Example:
  firn get p.firn /usr/bin/env /usr/bin/sh")]
    Get(Get),
    /// Prints the entries whose keys begin with a prefix, in order
    #[command(after_long_help = "\
Prints KEY, a tab and VALUE, as `firn load` reads them. Tabs, line ends, other control characters, \
backslashes and invalid UTF-8 are escaped (`firn help load`), so that every byte can be loaded again. \
With --json each line is an object: `{\"key\":...,\"value\":...}`; for invalid UTF-8 it has `key_hex` or \
`value_hex` instead, two digits a byte. An empty prefix selects all entries.

A few hundred entries are read at a time, without a lock in between. An entry that exists throughout is \
printed once, in order; one that is added or removed meanwhile may be printed or not.

Examples:
  firn scan p.firn /usr/share/doc --limit 10
  firn scan p.firn '' | firn load copy.firn")]
    Scan(Scan),
    /// Deletes keys, or a fraction of all entries
    #[command(after_long_help = "\
Also works in a full pool and on a full disk. Exit status 1 if a key was missing.

Examples:
  firn delete p.firn /usr/bin/env
  firn delete p.firn --fraction 0.5 --seed 7")]
    Delete(Delete),
    /// Prints how full and how fragmented a pool is, also while a program has it open
    #[command(after_long_help = "\
Takes no lock. The fragmentation ratio is the footprint of the pages that hold a live object, divided \
by the live bytes, on pages of 4 KiB and of 2 MiB. Collector figures are totals since the pool was \
created: wall and CPU time by step, and the program's stops by duration. While a program has the pool \
open, and after a crash until the pool is traced, the figures may lag.

Example:
  firn stat p.firn --json | jq .ratio_4k")]
    Stat(Pool),
    /// Shows live activity in a pool that a program has open
    #[command(after_long_help = "\
Polls the pool as `firn stat` does, without a lock, and shows what changed: how full the pages are, \
transactions a second, what the collector does, how long it stopped the program, and the largest \
types. q, Esc or Ctrl-C quits. If the pool grows, is closed, is opened again or cannot be read for a \
while, `top` keeps watching and reports it.

A pool that a crash left open looks like an open pool without activity. `top` sees that objects are \
moving but not that they are being marked; it counts a step when the step ends.

If standard output is not a terminal, or with --once or --json, it polls twice, one interval apart, \
prints the result and exits.

Examples:
  firn top p.firn
  firn top p.firn --interval 0.2
  firn top p.firn --once
  firn top p.firn --json | jq .change.commits_per_second")]
    Top(Top),
    /// Draws what each page of a pool holds, and how full it is, as an SVG or PNG picture
    #[command(after_long_help = "\
A small square is a page of 4 KiB, a block of squares is 2 MiB. Pale squares waste space: a fragmented \
pool has pale squares, a dense one dark squares. In large pools a square is several pages; the legend \
says how many. `--beside` draws a second pool next to the first, in the same scale, for comparison.

Takes no lock. For a pool that a program has open, or that was not traced after a crash, the picture \
shows which pages are in use, but not how full they are.

Examples:
  firn map p.firn -o p.svg
  firn copy p.firn packed.firn && firn map p.firn --beside packed.firn -o both.png")]
    Map(Map),
    /// Checks every invariant of a pool, of its log, and of the collections in it
    #[command(after_long_help = "\
Prints what is wrong; exit status 1 if anything is. A log that a crash left beside the pool is checked before it is \
brought home. Blocks of its tail that are not whole are no fault: no program was told that they are durable. Of a pool \
in use only the log is checked: exit status 1 if something is wrong with it, else 2. A pool that was open on an ordinary file when the \
machine died is checked in memory. The first line then says that it cannot be opened; `firn copy \
--salvage` makes a new pool of the intact objects.

Example:
  firn check p.firn && cp p.firn backup.firn")]
    Check(Check),
    /// Changes a pool's size limit for all later opens
    #[command(after_long_help = "\
A pool keeps the limit it was created with, and is full when it reaches it. Pools of format version 1 have \
no limit. A pool that is longer than its new limit keeps its length.

Examples:
  firn limit p.firn 1000000000
  firn limit p.firn none")]
    Limit(Limit),
    /// Converts a pool of an older version of Firn to the current format, or to another domain, in place
    #[command(after_long_help = "\
Opening an older pool for writing converts it too, and says so. Older programs then refuse it; copy the \
closed pool's file first if they still need it. A crash at any moment leaves a pool that opens.

In the domain `logged` a log lies beside the pool while it is open. Its transactions survive power failures on \
any disk. In the domain `process` they survive the death of the program, and are faster.

Examples:
  firn convert p.firn
  firn convert p.firn --domain logged")]
    Convert(Convert),
    /// Makes a compacted copy, as a backup or to upgrade the format
    #[command(after_long_help = "\
Examples:
  firn copy p.firn backup.firn
  firn copy --new-id p.firn twin.firn
  firn copy --salvage torn.firn rescued.firn

A copy is the same pool and can replace its original, so one process cannot open both for writing. With \
--new-id the copy is a different pool, and all its references are rewritten. That is refused for pools \
with references that no type declares, such as those of libpmemobj programs. Such a pool is copied page by page, \
without compaction.")]
    Copy(Copy),
    /// Makes a copy of a pool as it is, also while a program writes to it
    #[command(after_long_help = "\
A program may have the pool open if it has a log (domain `logged`). The copy then holds everything that was \
durable when the backup began, and of later transactions all up to one of them. It is one whole, closed pool. \
A pool that was left by a crash is copied with what its log holds; neither of its files is changed. While the \
pool's file is copied, its program's log grows: only a program that fills it waits. Where the file system can \
share blocks (xfs, btrfs), copying takes moments.

The copy is the same pool and replaces its original: `mv backup.firn p.firn` when p.firn is closed, or when it is \
lost and p.firn.firn-log has been removed. `firn copy --new-id` makes a different pool of it.

Example:
  firn backup p.firn backup.firn && firn check backup.firn")]
    Backup(Backup),
    /// Compacts a pool and gives the emptied pages back to the device
    #[command(after_long_help = "\
Prints the fragmentation ratio, footprint divided by live bytes, before and after. A crash at any moment \
loses nothing: the next open or `defrag` continues. Pages of 2 MiB suit huge pages; pages of 4 KiB \
are less work. If compaction cannot reach the target, it goes as far as possible. Exit status 1 if more \
could be gained, but there was no room to move the first objects.

Examples:
  firn defrag p.firn
  firn defrag p.firn --pages 4k --target 1.2
  firn defrag p.firn --map p.svg")]
    Defrag(Defrag),
    /// Inserts, deletes and re-inserts entries beside a collector, and measures both
    #[command(after_long_help = crate::churn::AFTER_HELP)]
    Churn(crate::churn::Churn),
    /// Fragments and compacts an index of a file tree, is killed dozens of times, loses nothing
    #[command(after_long_help = crate::demo::AFTER_HELP)]
    Demo(crate::demo::Demo),
    /// Crashes the heap, its structures and its collector on memory that loses power
    #[command(after_long_help = crate::crash::AFTER_HELP)]
    Crash(crate::crash::Crash),
    /// Damages pools and looks for results that are neither a clear error nor a correct answer
    #[command(after_long_help = crate::damage::AFTER_HELP)]
    Damage(crate::damage::Damage),
    /// Lists simulated machines, or the parameters of one, each with its source
    Machines(crate::simulate::Machines),
    /// Lists the mechanisms that simulated machines may have, and their cost in chip area
    Mechanisms,
    /// Lists the workloads that can be simulated
    Workloads,
    /// Reproduces a paper's figures and tables on its simulated machine
    #[command(after_long_help = crate::reproduce::AFTER_HELP)]
    Reproduce(crate::reproduce::Reproduce),
    /// Runs a workload on a simulated machine and prints the machine's counts
    #[command(after_long_help = crate::simulate::AFTER_HELP)]
    Simulate(crate::simulate::Simulate),
    /// Measures the cost of Firn, beside other stores in the same run
    #[command(after_long_help = crate::bench::AFTER_HELP)]
    Bench(crate::bench::Bench),
    /// The child of the demo
    #[command(hide = true)]
    DemoWriter(crate::demo::DemoWriter),
}

#[derive(Args, Debug)]
pub struct Load {
    /// The pool's file, created if missing
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// Lines to load; standard input if absent or `-`
    #[arg(conflicts_with = "tree")]
    pub file: Option<PathBuf>,
    /// Loads every path below DIR as a key, its size in bytes as the value
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
    /// The pool's maximum size in bytes, or with K, M, G or T behind the number
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_bytes: Option<u64>,
    /// What the transactions of a new pool survive: on a disk power failures, if this is not given
    #[arg(long)]
    pub domain: Option<DomainName>,
    /// Takes backslashes in text lines literally, not as escapes
    #[arg(long, conflicts_with = "tree")]
    pub raw: bool,
    #[command(flatten)]
    pub map: MapName,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Limit {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// Its maximum size in bytes, or with K, M, G or T behind the number; or `none`
    #[arg(value_parser = limit)]
    pub limit: Bytes,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Get {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// Keys to look up
    #[arg(required = true, value_name = "KEY")]
    pub keys: Vec<std::ffi::OsString>,
    #[command(flatten)]
    pub map: MapName,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Scan {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// Prefix of the keys
    pub prefix: std::ffi::OsString,
    /// Maximum number of entries to print
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Prints keys and values unescaped, even if they contain tabs and line ends
    #[arg(long)]
    pub raw: bool,
    #[command(flatten)]
    pub map: MapName,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Delete {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// Keys to delete
    #[arg(required_unless_present = "fraction", value_name = "KEY")]
    pub keys: Vec<std::ffi::OsString>,
    /// Deletes this fraction of all entries instead, between 0 and 1
    #[arg(long, value_name = "F", conflicts_with = "keys")]
    pub fraction: Option<f64>,
    /// Selects the entries of the fraction; a seed always selects the same ones
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub map: MapName,
    #[command(flatten)]
    pub on: On,
}

/// Selects a map of the pool.
#[derive(Args, Debug)]
pub struct MapName {
    /// The root that names the map, if a pool has several
    #[arg(long = "map", value_name = "NAME", default_value = "map")]
    pub name: String,
}

/// File systems that the pool may lie on.
#[derive(Args, Debug)]
pub struct On {
    /// Accepts any file system for a pool without a log, even if a full disk may kill the program (SIGBUS): btrfs, overlayfs, NFS
    #[arg(long)]
    pub any_file_system: bool,
}

impl On {
    pub fn mapped(&self) -> MappedOptions {
        match self.any_file_system {
            true => MappedOptions::default().file_systems(FileSystems::Any),
            false => MappedOptions::default(),
        }
    }
}

#[derive(Args, Debug)]
pub struct Convert {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// What the pool's transactions survive from now on
    #[arg(long)]
    pub domain: Option<DomainName>,
    #[command(flatten)]
    pub on: On,
}

impl Convert {
    pub fn mapped(&self) -> MappedOptions {
        match self.domain {
            Some(name) => self.on.mapped().domain(name.into()),
            None => self.on.mapped(),
        }
    }
}

#[derive(Args, Debug)]
pub struct Check {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Pool {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
}

#[derive(Args, Debug)]
pub struct Top {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// Time between two polls
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Prints the state once as text and exits
    #[arg(long)]
    pub once: bool,
}

const INTERVALS: std::ops::RangeInclusive<f64> = 0.05..=3600.0;

/// Seconds.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|s| INTERVALS.contains(s));
    let (least, most) = (INTERVALS.start(), INTERVALS.end());
    let wanted = || format!("expected a number of seconds from {least} to {most}");
    seconds.map(Duration::from_secs_f64).ok_or_else(wanted)
}

#[derive(Args, Debug)]
pub struct Map {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// The picture's file, created or replaced; its name must end in .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Draws this pool to the right of the first
    #[arg(long, value_name = "OTHER")]
    pub beside: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Copy {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// The copy's file, which must not exist
    pub new: PathBuf,
    /// Copies the intact objects of a pool that was open on an ordinary file when the machine died, or whose log is
    /// lost, and lists what is lost; exit status 1 if anything is
    #[arg(long)]
    pub salvage: bool,
    /// Gives the copy a new identity, so that a program can use it beside the original
    #[arg(long, conflicts_with = "salvage")]
    pub new_id: bool,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Backup {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// The copy's file, which must not exist
    pub new: PathBuf,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Defrag {
    /// The pool's file
    #[arg(value_parser = pool_file())]
    pub pool: PathBuf,
    /// Ratio of page bytes to live bytes at which it stops, 1 or more
    #[arg(long, value_name = "R", default_value_t = 1.05)]
    pub target: f64,
    /// Pages that the ratio counts
    #[arg(long, value_name = "SIZE", default_value = "2m")]
    pub pages: Pages,
    /// Relocation scheme: espresso, sfccd, piggyback; none reclaims garbage and moves nothing
    #[arg(long, value_name = "S", default_value = "piggyback")]
    pub scheme: String,
    /// Draws the pool before and after, side by side; the name must end in .svg or .png
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    #[command(flatten)]
    pub on: On,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Pages {
    /// 4 KiB
    #[value(name = "4k")]
    Small,
    /// 2 MiB
    #[value(name = "2m")]
    Huge,
}

impl From<Pages> for PageSize {
    fn from(pages: Pages) -> Self {
        match pages {
            Pages::Small => Self::Small,
            Pages::Huge => Self::Huge,
        }
    }
}
