//! What the command line takes, and the help that teaches it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use firn_lab::{FileSystems, MappedOptions, PageSize, churn};

/// Ordered maps in pools that survive crashes
///
/// A pool is one file. On an ordinary disk it survives every death of the program; a power failure
/// may tear it, unless it lies on persistent memory (DAX). `firn stat` says what it lies on.
#[derive(Parser, Debug)]
#[command(name = "firn", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// Prints results as JSON: one object, or where there are many one a line
    #[arg(long, global = true)]
    pub json: bool,
}

const AFTER_HELP: &str = "\
A first round:
  firn demo                             compacts a pool, kills itself all the time, loses nothing
  firn load p.firn --tree /usr/share    every path below, with its size
  firn scan p.firn /usr/share/doc/b     what begins with that
  firn delete p.firn --fraction 0.5     half of the entries, to see fragmentation
  firn stat p.firn                      how full and how fragmented
  firn top p.firn                       the same live, while a program works on it
  firn map p.firn -o p.svg              the same as a picture, page by page
  firn defrag p.firn                    moves objects together, frees the pages they leave

Exit status: 0; 1 when a check finds something or a key is not there; 2 for wrong usage or an error.";

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Loads lines of KEY, a tabulator and VALUE, or the paths of a file tree
    #[command(after_long_help = "\
Some hundred entries are one transaction; a crash loses at most the one in flight. A key that is
there already gets the new value.

In KEY and VALUE `\\\\` is a backslash, `\\t` a tabulator, `\\n` and `\\r` line ends, `\\0` a zero, `\\xHH` any byte
by its hexadecimal digits; --raw takes backslashes as they are. A line may also be JSON, as
`firn scan --json` prints it.

Examples:
  firn load p.firn words.tsv
  cut -f1,3 big.tsv | firn load p.firn
  firn load p.firn --tree /usr")]
    Load(Load),
    /// Prints the values of keys, a line each
    #[command(after_long_help = "\
Values are printed as they are. With --json a line each as of `firn scan --json`, and
`{\"key\":...,\"missing\":true}` for what is not there. Exit status 1 if one of the keys is not there; the others are printed.

Example:
  firn get p.firn /usr/bin/env /usr/bin/sh")]
    Get(Get),
    /// Prints the entries whose keys begin with a prefix, in order
    #[command(after_long_help = "\
Prints KEY, a tabulator and VALUE, as `firn load` reads them: tabulators, line ends, other control
characters, backslashes and what is no UTF-8 are escaped (`firn help load`), so that every byte comes
back. With --json each line is an object: `{\"key\":...,\"value\":...}`; what is no UTF-8 is `key_hex` or
`value_hex` instead, two digits a byte. An empty prefix means all entries.

Some hundred entries are read at a time, and nothing is locked between. An entry that is there all the
while is printed once, in order; one that comes or goes meanwhile may be printed or not.

Examples:
  firn scan p.firn /usr/share/doc --limit 10
  firn scan p.firn '' | firn load copy.firn")]
    Scan(Scan),
    /// Deletes keys, or a fraction of all entries
    #[command(after_long_help = "\
Works in a full pool and on a full disk too. Exit status 1 if one of the keys was not there.

Examples:
  firn delete p.firn /usr/bin/env
  firn delete p.firn --fraction 0.5 --seed 7")]
    Delete(Delete),
    /// Prints how full and how fragmented a pool is, also while a program has it open
    #[command(after_long_help = "\
Takes no lock. The fragmentation ratio is the footprint of the pages that hold a live object, divided
by the live bytes; on pages of 4 KiB and of 2 MiB. What the collector has done is counted since the
pool was made: time and computation by step, and the stops of the program by their length. While a
program has the pool open, and after a crash until the pool is traced, the figures may lag.

Example:
  firn stat p.firn --json | jq .ratio_4k")]
    Stat(Pool),
    /// Shows live what goes on in a pool that a program has open
    #[command(after_long_help = "\
Looks at the pool again and again as `firn stat` does, without a lock, and shows what changed: how
full the pages are, transactions a second, what the collector does, how long the program stood for
it, and the types that take most. q, Esc or Ctrl-C ends it. A pool that grows, is closed, opened
again or out of sight is watched on, and what befell it is told.

A pool that a crash left open looks like one that is open while nothing happens. That objects move is
seen, that they are marked is not; a step is counted when it has ended.

Where standard output is no terminal, with --once and with --json it looks twice, an interval apart,
prints that, and ends.

Examples:
  firn top p.firn
  firn top p.firn --interval 0.2
  firn top p.firn --once
  firn top p.firn --json | jq .change.commits_per_second")]
    Top(Top),
    /// Draws what each page of a pool holds, and how full it is, as an SVG or PNG picture
    #[command(after_long_help = "\
A small square stands for a page of 4 KiB, a block of squares for 2 MiB. Pale squares waste what dark
ones use: a pool of pale squares is fragmented, one of dark squares is dense. In large pools a square
stands for several pages; the legend says for how many. `--beside` puts a second pool at the side, in
the same scale, to compare.

Takes no lock. Of a pool that a program has open, or that was not traced after a crash, it is known
which pages are in use, not how full they are.

Examples:
  firn map p.firn -o p.svg
  firn copy p.firn packed.firn && firn map p.firn --beside packed.firn -o both.png")]
    Map(Map),
    /// Checks every invariant of a pool and of the collections in it
    #[command(after_long_help = "\
Prints what is wrong; exit status 1 if anything is. A pool that was open on an ordinary file when the
machine died is checked in memory: that nothing opens it is the first line then, and `firn copy
--salvage` makes a new pool of what is whole.

Example:
  firn check p.firn && cp p.firn backup.firn")]
    Check(Check),
    /// Changes how far a pool may grow, for whoever opens it
    #[command(after_long_help = "\
A pool keeps the limit that it was made with, and says that it is full there. Pools of the first format have
none. A pool that is longer than its new limit keeps its length.

Examples:
  firn limit p.firn 1000000000
  firn limit p.firn none")]
    Limit(Limit),
    /// Gives a pool of an older version of Firn the present format, in place
    #[command(after_long_help = "\
Opening a pool of an older version for changes converts it as well, and says so. From then on older
programs refuse it: who needs it for them copies the closed pool's file before. A crash at any moment
leaves a pool that opens.

Example:
  firn convert p.firn")]
    Convert(Check),
    /// Makes a compacted copy: the way to back up, and to upgrade a format
    #[command(after_long_help = "\
Examples:
  firn copy p.firn backup.firn
  firn copy --new-id p.firn twin.firn
  firn copy --salvage torn.firn rescued.firn

A copy is the same pool, to take its original's place: one process does not open both for writing. With
--new-id it is another pool, and all its references are rewritten; that is refused where programs store
references that no type declares, as libpmemobj's do. Such a pool is copied page by page, not compacted.")]
    Copy(Copy),
    /// Moves the objects of a pool together and gives the pages that they leave back to the device
    #[command(after_long_help = "\
Prints the fragmentation ratio, footprint divided by live bytes, before and after. A crash at any moment
loses nothing: the next open or `defrag` goes on. Pages of 2 MiB are what huge pages map; pages of 4 KiB
are less work. A target that is below what packing can reach is tried as far as it goes; exit status 1 if more was to be
won, and there was no room for the first objects that would move.

Examples:
  firn defrag p.firn
  firn defrag p.firn --pages 4k --target 1.2
  firn defrag p.firn --map p.svg")]
    Defrag(Defrag),
    /// Inserts, deletes and re-inserts entries beside a collector, and measures both
    #[command(after_long_help = "\
A round inserts N entries, deletes 80 % of them at random, inserts them again, and deletes 80 %. Each
of these operations is a transaction, all of one thread. The entries are in a map of their own, other
content of the pool stays as it is; the figures of pages and blocks are of the whole pool. CPU time
is that of the thread alone, the collector's is told at the end. The collector lets pools below 4 MiB
of pages be.

At the end the entries are removed, which leaves an empty map and free pages. What a killed run
leaves the next one removes. A map that holds other entries is refused.

Examples:
  firn churn p.firn
  firn churn p.firn --no-collect --json | jq .phases[].standing.ratio_2m
  firn churn p.firn --n 1000000 --value-bytes 64 --collect 1.7:1.5 --rounds 3
  firn churn p.firn --keep && firn map p.firn -o p.svg")]
    Churn(Churn),
    /// Fragments and defragments an index of a file tree, kills itself dozens of times, loses nothing
    #[command(after_long_help = "\
A child process indexes every path below DIR in a pool on disk, then deletes, changes and re-inserts
entries from two threads. It tells of each committed operation before it begins the next, and is
killed with SIGKILL at random moments. After each kill the pool is opened again, and everything that
was told must be there.

Then most entries are deleted at random. Two threads read and write, on a copy of the pool without the
collector and on the pool with it, in turn. More children are killed, in the middle of compactions. At
last the pool is packed. Exit status 1 if anything is lost. A page shows the pool before and after.

Examples:
  firn demo
  firn demo /home --pool home.firn --seconds 60 --kills 200 --page home.html")]
    Demo(Demo),
    /// Crashes the heap, its structures and its collector on memory that loses power
    #[command(after_long_help = crate::crash::AFTER_HELP)]
    Crash(crate::crash::Crash),
    /// Damages pools and looks for what is neither a clear error nor a sound answer
    #[command(after_long_help = crate::damage::AFTER_HELP)]
    Damage(crate::damage::Damage),
    /// Lists simulated machines, or the numbers of one, each with where it comes from
    Machines(crate::simulate::Machines),
    /// Lists the mechanisms that simulated machines may have, and what they take of the chip
    Mechanisms,
    /// Lists workloads that can be simulated
    Workloads,
    /// Reproduces a paper's figures and tables on its simulated machine
    #[command(after_long_help = crate::reproduce::AFTER_HELP)]
    Reproduce(crate::reproduce::Reproduce),
    /// Runs a workload on a simulated machine, and tells what the machine counted
    #[command(after_long_help = crate::simulate::AFTER_HELP)]
    Simulate(crate::simulate::Simulate),
    /// Measures what Firn costs, beside another heap in one run
    #[command(after_long_help = crate::bench::AFTER_HELP)]
    Bench(crate::bench::Bench),
    /// The child of the demo
    #[command(hide = true)]
    DemoWriter(DemoWriter),
}

#[derive(Args, Debug)]
pub struct Load {
    /// The pool's file, made if it is not there
    pub pool: PathBuf,
    /// Lines to load; standard input if absent or `-`
    #[arg(conflicts_with = "tree")]
    pub file: Option<PathBuf>,
    /// Loads every path below DIR as a key, its size in bytes as the value
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
    /// Bytes beyond which the pool does not grow
    #[arg(long, value_name = "BYTES")]
    pub max_bytes: Option<u64>,
    /// Takes a backslash in a line of text as one, not as the beginning of an escape
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
    pub pool: PathBuf,
    /// Bytes beyond which it does not grow, or `none`
    #[arg(value_parser = limit)]
    pub limit: Bytes,
    #[command(flatten)]
    pub on: On,
}

/// How many bytes, or as many as there are.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub Option<u64>);

fn limit(text: &str) -> Result<Bytes, String> {
    match text {
        "none" => Ok(Bytes(None)),
        number => {
            let bytes = number.parse();
            let bytes =
                bytes.map_err(|_| format!("`{number}` is neither a number of bytes nor `none`"));
            bytes.map(|bytes| Bytes(Some(bytes)))
        }
    }
}

#[derive(Args, Debug)]
pub struct Get {
    /// The pool's file
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
    pub pool: PathBuf,
    /// What the keys begin with
    pub prefix: std::ffi::OsString,
    /// Entries to print at most
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Prints keys and values as they are, even where they have tabulators and line ends
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
    pub pool: PathBuf,
    /// Keys to delete
    #[arg(required_unless_present = "fraction", value_name = "KEY")]
    pub keys: Vec<std::ffi::OsString>,
    /// Deletes this fraction of all entries instead, between 0 and 1
    #[arg(long, value_name = "F", conflicts_with = "keys")]
    pub fraction: Option<f64>,
    /// Which entries the fraction takes; the same seed takes the same ones
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub map: MapName,
    #[command(flatten)]
    pub on: On,
}

/// Which map of the pool.
#[derive(Args, Debug)]
pub struct MapName {
    /// The root that names the map, where a pool holds several
    #[arg(long = "map", value_name = "NAME", default_value = "map")]
    pub name: String,
}

/// What the pool may lie on.
#[derive(Args, Debug)]
pub struct On {
    /// Works on any file system, also where a full disk may end the program (SIGBUS): btrfs, overlayfs, NFS
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
pub struct Check {
    /// The pool's file
    pub pool: PathBuf,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Pool {
    /// The pool's file
    pub pool: PathBuf,
}

#[derive(Args, Debug)]
pub struct Top {
    /// The pool's file
    pub pool: PathBuf,
    /// Time between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Prints one picture as text, and ends
    #[arg(long)]
    pub once: bool,
}

const INTERVALS: std::ops::RangeInclusive<f64> = 0.05..=3600.0;

/// Seconds.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|s| INTERVALS.contains(s));
    let (least, most) = (INTERVALS.start(), INTERVALS.end());
    let wanted = || format!("seconds from {least} to {most} are wanted");
    seconds.map(Duration::from_secs_f64).ok_or_else(wanted)
}

#[derive(Args, Debug)]
pub struct Map {
    /// The pool's file
    pub pool: PathBuf,
    /// The picture's file, made or replaced; its name ends in .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Draws this pool to the right of the first
    #[arg(long, value_name = "OTHER")]
    pub beside: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Copy {
    /// The pool's file
    pub pool: PathBuf,
    /// The copy's file, which must not exist
    pub new: PathBuf,
    /// Copies what is whole of a pool that was open on an ordinary file when the machine died, and says what is lost;
    /// exit status 1 if something is
    #[arg(long)]
    pub salvage: bool,
    /// Makes it a pool of its own, which a program can use beside the original
    #[arg(long, conflicts_with = "salvage")]
    pub new_id: bool,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Defrag {
    /// The pool's file
    pub pool: PathBuf,
    /// Ratio of page bytes to live bytes at which it is content, 1 or more
    #[arg(long, value_name = "R", default_value_t = 1.05)]
    pub target: f64,
    /// Pages that the ratio counts
    #[arg(long, value_name = "SIZE", default_value = "2m")]
    pub pages: Pages,
    /// How a copy comes to count: espresso, sfccd, piggyback; none reclaims garbage and moves nothing
    #[arg(long, value_name = "S", default_value = "piggyback")]
    pub scheme: String,
    /// Draws the pool before and after, side by side; the name ends in .svg or .png
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args, Debug)]
pub struct Churn {
    /// The pool's file, made if it is not there
    pub pool: PathBuf,
    /// Entries
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(churn::LEAST_ENTRIES..=1_000_000_000))]
    pub n: u64,
    /// Bytes of each value
    #[arg(long, value_name = "B", default_value_t = 128, value_parser = clap::value_parser!(u64).range(0..=churn::MOST_VALUE_BYTES as u64))]
    pub value_bytes: u64,
    /// Decides the order of everything
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Ratios on pages of 2 MiB above which the collector begins, and at which it ends
    #[arg(long, value_name = "TRIGGER:TARGET", default_value = "1.5:1.25", value_parser = ratios)]
    pub collect: (f64, f64),
    /// Lets no collector work
    #[arg(long, conflicts_with_all = ["collect", "scheme"])]
    pub no_collect: bool,
    /// How a copy comes to count: espresso, sfccd, piggyback; none reclaims garbage and moves nothing
    #[arg(long, value_name = "S", default_value = "piggyback")]
    pub scheme: String,
    /// Rounds, each of the four phases
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rounds: u64,
    /// Leaves the last entries in the pool
    #[arg(long)]
    pub keep: bool,
    /// The root that names the map
    #[arg(long, value_name = "NAME", default_value = "churn")]
    pub map: String,
    #[command(flatten)]
    pub on: On,
}

/// Two ratios and a colon between them.
fn ratios(text: &str) -> Result<(f64, f64), String> {
    let parsed = text.split_once(':').and_then(|(trigger, target)| {
        let ratio = |text: &str| text.trim().parse::<f64>().ok();
        Some((ratio(trigger)?, ratio(target)?))
    });
    parsed.ok_or_else(|| "two ratios like 1.5:1.25 are wanted".to_owned())
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

#[derive(Args, Debug)]
pub struct Demo {
    /// The tree to index
    #[arg(default_value = "/usr", value_name = "DIR")]
    pub tree: PathBuf,
    /// The pool's file, kept afterwards; a temporary one if absent
    #[arg(long, value_name = "PATH")]
    pub pool: Option<PathBuf>,
    /// The page with pictures and figures, made or replaced
    #[arg(long, value_name = "FILE", default_value = "firn-demo.html")]
    pub page: PathBuf,
    /// Seconds that it takes, about
    #[arg(long, value_name = "N", default_value_t = 27, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Kills, most of them in the middle of compactions
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub kills: u64,
    /// Decides the moments of the kills and what the writers do
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Args, Debug)]
pub struct DemoWriter {
    #[arg(long)]
    pub pool: PathBuf,
    #[arg(long)]
    pub entries: PathBuf,
    #[arg(long)]
    pub life: u64,
    #[arg(long)]
    pub seed: u64,
    #[arg(long)]
    pub payload_bytes: usize,
    #[arg(long)]
    pub filling: Vec<usize>,
    #[arg(long)]
    pub flood: Vec<usize>,
    #[arg(long, requires = "collect_pages", requires = "collect_pause_us")]
    pub collect: Option<String>,
    #[arg(long)]
    pub collect_pages: Option<Pages>,
    #[arg(long)]
    pub collect_pause_us: Option<u64>,
}
