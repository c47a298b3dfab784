//! The bench command: prints the lab's measurements.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use firn_lab::LabError;
use firn_lab::bench::durable::{self, DurableOptions, FillPlan};
use firn_lab::bench::simulator::{self, Rate, SimulatorOptions};
use firn_lab::bench::{
    self, BenchError, Build, Domain, Machine, Options, Placed, ReopenPlan, RivalSource,
};

use crate::Verdict;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::output::Output;

pub const AFTER_HELP: &str = "\
Times are CPU time of the measured threads, medians over blocks that alternate between the systems \
compared. With --rival, inside a checkout, the rival's program is built first. With --machine the \
simulated machine itself is measured: memory operations a second on one core of this computer.

--only durable measures pools that are durable on the disk of --dir, in turns with databases: those of \
--rival, or lmdb, redb, sqlite and fjall. Figures are medians of --blocks rounds. Its parts:
  durable_insert   one a transaction beside a bare write, and 100 a transaction
  durable_threads  8 threads on one map
  durable_levels   the level written beside a pool of domain process
  durable_collect  what a collection costs a pool with a log
  durable_reads    gets and scans beside a pool of domain process
  durable_open     a closed pool, and one killed with a full log
  durable_volume   bytes that the block device writes (root: on a loop device)

Examples:
  firn bench --only transactions
  firn bench --only collector --entries 100000 --objects 100000
  firn bench --rival libpmemobj --blocks 15
  firn bench --only tx_snapshot_8 --only tx_alloc_link_128 --domain eadr --json
  firn bench --rival libpmemobj --write docs/performance.md
  firn bench --machine --only mix --only random
  firn bench --machine=thynvm --json
  firn bench --only durable --dir /mnt/disk --blocks 5
  firn bench --only durable_insert --rival fjall --dir /mnt/disk";

/// Operations of a block, on this machine and on a simulated one.
const OPERATIONS: u64 = 20_000;
const SIMULATED_OPERATIONS: u64 = 2_000_000;
const DURABLE_OPERATIONS: u64 = 300;
/// Entries of a map, in memory and on a disk.
const ENTRIES: u64 = 1_000_000;
const DURABLE_ENTRIES: u64 = 200_000;
const MIB: u64 = 1 << 20;
/// Where the rivals' sources lie in a checkout.
const RIVALS: &str = "crates/rivals/Cargo.toml";

#[derive(Args, Debug)]
pub struct Bench {
    /// Also measures these systems, in turns with Firn
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub rival: Vec<RivalName>,
    /// Measures only the speed of a simulated machine: its name, or the path of a description
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "ffccd", conflicts_with_all = ["rival", "structure"])]
    pub machine: Option<String>,
    /// Runs only the phases on this structure
    #[arg(long, value_name = "NAME")]
    pub structure: Vec<String>,
    /// Measures only this section or operation
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Number of blocks; figures are their median
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub blocks: u64,
    /// Operations in a block [default: 20000, 2000000 with --machine, 300 with --only durable]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub n: Option<u64>,
    /// Persistence domain assumed for pools in memory
    #[arg(long, value_name = "DOMAIN", default_value = "adr")]
    pub domain: DomainName,
    /// Directory for pools in memory, on a tmpfs
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    pub memory_dir: PathBuf,
    /// Entries of the map, and objects for the collector [default: 1000000, 200000 with --only durable]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    pub entries: Option<u64>,
    /// Entries of the pools that are reopened after a kill
    #[arg(long, value_name = "N", default_values_t = [1_000_000, 10_000_000], value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub objects: Vec<u64>,
    /// Directory for reopened and for durable pools, on disk [default: beside the program]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// MiB of the log that a killed program leaves, with --only durable
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(4..=65_536))]
    pub log_mib: u64,
    /// Writes machine, bars and figures to this Markdown file
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Reopens this pool and writes to it until killed: what the bench calls itself for
    #[arg(long, value_name = "POOL", hide = true)]
    pub reopen: Option<PathBuf>,
    /// Makes that pool instead, with this many entries
    #[arg(long, value_name = "N", hide = true, requires = "reopen")]
    pub fill: Option<u64>,
    /// In a durable pool, until its log holds this many bytes
    #[arg(long, value_name = "BYTES", hide = true, requires = "fill")]
    pub fill_log: Option<u64>,
    /// With a cycle of the collector open
    #[arg(long, hide = true, requires = "reopen")]
    pub compacting: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum RivalName {
    /// PMDK's libpmemobj
    Libpmemobj,
    /// LMDB
    Lmdb,
    /// redb
    Redb,
    /// SQLite, on a disk only
    Sqlite,
    /// fjall, on a disk only
    Fjall,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum DomainName {
    /// Lines are written back and fenced
    Adr,
    /// Caches survive a power failure
    Eadr,
    /// Only the process may die
    Process,
}

impl RivalName {
    fn source(self) -> RivalSource {
        let name = match self {
            RivalName::Libpmemobj => "libpmemobj",
            RivalName::Lmdb => "lmdb",
            RivalName::Redb => "redb",
            RivalName::Sqlite => "sqlite",
            RivalName::Fjall => "fjall",
        };
        RivalSource {
            name: name.to_owned(),
            build: build(),
        }
    }
}

impl Bench {
    fn options(&self) -> Result<Options, Failure> {
        let program = program()?;
        Ok(Options {
            rivals: self.rival.iter().map(|rival| rival.source()).collect(),
            structures: self.structure.clone(),
            only: self.only.clone(),
            blocks: self.blocks as usize,
            n: self.n.unwrap_or(OPERATIONS),
            domain: match self.domain {
                DomainName::Adr => Domain::Adr,
                DomainName::Eadr => Domain::Eadr,
                DomainName::Process => Domain::Process,
            },
            memory_dir: self.memory_dir.clone(),
            entries: self.entries.unwrap_or(ENTRIES),
            objects: self.objects.clone(),
            disk_dir: self.disk_dir(&program),
            program,
        })
    }

    fn disk_dir(&self, program: &Path) -> PathBuf {
        let beside = || program.parent().map(Path::to_path_buf);
        self.dir.clone().or_else(beside).unwrap_or_default()
    }

    fn durable_options(&self) -> Result<DurableOptions, Failure> {
        let program = program()?;
        let rivals = match &self.rival[..] {
            [] => &DATABASES,
            some => some,
        };
        Ok(DurableOptions {
            rivals: rivals.iter().map(|rival| rival.source()).collect(),
            only: self.only.clone(),
            rounds: self.blocks as usize,
            n: self.n.unwrap_or(DURABLE_OPERATIONS),
            entries: self.entries.unwrap_or(DURABLE_ENTRIES),
            log_bytes: self.log_mib * MIB,
            dir: self.disk_dir(&program),
            program,
        })
    }
}

/// The rivals that are durable on a disk.
const DATABASES: [RivalName; 4] = [
    RivalName::Lmdb,
    RivalName::Redb,
    RivalName::Sqlite,
    RivalName::Fjall,
];

fn program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|source| BenchError::Io {
        doing: "looking for this program".to_owned(),
        source,
    });
    Ok(program.map_err(LabError::from)?)
}

/// Cargo and the checkout that contains the current directory, if there is one.
fn build() -> Option<Build> {
    let here = std::env::current_dir().ok()?;
    let holds = |dir: &&Path| dir.join(RIVALS).is_file();
    let checkout = here.ancestors().find(holds)?.to_path_buf();
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    Some(Build { cargo, checkout })
}

pub fn run(arguments: &Bench, output: &mut Output) -> Result<Verdict, Failure> {
    if let Some(pool) = &arguments.reopen {
        if let (Some(log_bytes), Some(entries)) = (arguments.fill_log, arguments.fill) {
            let pool = pool.clone();
            let plan = FillPlan {
                pool,
                log_bytes,
                entries,
            };
            durable::fill(&plan).map_err(LabError::from)?;
            return Ok(Verdict::Well);
        }
        let plan = ReopenPlan {
            pool: pool.clone(),
            fill: arguments.fill,
            compacting: arguments.compacting,
        };
        bench::reopen(&plan).map_err(LabError::from)?;
        return Ok(Verdict::Well);
    }
    if let Some(machine) = &arguments.machine {
        return simulator(machine, arguments, output);
    }
    if arguments.only.iter().any(|only| durable::knows(only)) {
        return measure_durable(arguments, output);
    }
    let options = arguments.options()?;
    let machine = Machine::here();
    let figures = bench::run(&options, &mut Bars::new()).map_err(LabError::from)?;
    if let Some(path) = &arguments.write {
        bench::write(path, &machine, &options, &figures).map_err(LabError::from)?;
    }
    if output.json() {
        output.object(&figures)?;
    } else {
        output.line(HEADER)?;
        for figure in &figures {
            output.line(&line(figure))?;
        }
    }
    Ok(Verdict::Well)
}

/// Measures durable pools, and prints rows and bars.
fn measure_durable(arguments: &Bench, output: &mut Output) -> Result<Verdict, Failure> {
    let options = arguments.durable_options()?;
    let machine = Machine::here();
    let report = durable::run(&options, &mut Bars::new()).map_err(LabError::from)?;
    if let Some(path) = &arguments.write {
        durable::write(path, &machine, &options, &report).map_err(LabError::from)?;
    }
    if output.json() {
        output.object(&report)?;
        return Ok(Verdict::Well);
    }
    let rows = report.rows.iter().map(durable::row_cells).collect();
    let bars = report.bars.iter().map(durable::bar_cells).collect();
    for line in columns(&durable::ROW_COLUMNS, rows) {
        output.line(&line)?;
    }
    output.line("")?;
    for line in columns(&durable::BAR_COLUMNS, bars) {
        output.line(&line)?;
    }
    Ok(Verdict::Well)
}

/// Lines of a table whose columns are as wide as their widest cell.
fn columns(head: &[&str], rows: Vec<Vec<String>>) -> Vec<String> {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: Vec<Vec<String>> = core::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate();
        let cells: Vec<String> = cells
            .map(|(i, cell)| format!("{cell:<0$}", width(i)))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn simulator(machine: &str, arguments: &Bench, output: &mut Output) -> Result<Verdict, Failure> {
    let options = SimulatorOptions {
        machine: machine.to_owned(),
        only: arguments.only.clone(),
        blocks: arguments.blocks as usize,
        n: arguments.n.unwrap_or(SIMULATED_OPERATIONS),
    };
    let host = Machine::here();
    let rates = simulator::run(&options, &mut Bars::new()).map_err(LabError::from)?;
    if let Some(path) = &arguments.write {
        simulator::write(path, &host, &options, &rates).map_err(LabError::from)?;
    }
    if output.json() {
        output.object(&rates)?;
        return Ok(Verdict::Well);
    }
    output.line(RATES_HEADER)?;
    rates
        .iter()
        .try_for_each(|rate| output.line(&rate_line(rate)))?;
    Ok(Verdict::Well)
}

const RATES_HEADER: &str =
    "pattern                  M op/s  (min to max)      undisturbed  share    bar";

fn rate_line(rate: &Rate) -> String {
    let all = rate.millions_per_s;
    let range = format!("({:.1} to {:.1})", all.min, all.max);
    let quiet = rate.undisturbed.map_or_else(String::new, |quiet| {
        format!("{:.1} ({})", quiet.millions_per_s, quiet.blocks)
    });
    let control = rate.control.as_ref();
    let share = control.map_or_else(String::new, |control| format!("{:.2}", control.share));
    let bar = match (control, rate.bar) {
        (Some(control), _) => control.least.to_string(),
        (None, bar) => bar.map_or_else(String::new, |bar| bar.to_string()),
    };
    let verdict = match rate.met {
        Some(true) => "met",
        Some(false) => "missed",
        None => "",
    };
    let (name, median) = (&rate.name, all.median);
    format!("{name:<22} {median:>8.1}  {range:<17} {quiet:>11} {share:>6} {bar:>6} {verdict}")
        .trim_end()
        .to_owned()
}

const HEADER: &str = "system             operation                        threads   ns CPU  (min to max)           ns wall  fences   lines  rival/Firn  level    medium";

fn line(placed: &Placed) -> String {
    let figure = &placed.figure;
    let optional = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.2}"));
    format!(
        "{:<18} {:<34} {:>5} {:>8.1}  ({:.1} to {:.1}){:>12.1} {:>7} {:>7} {:>11}  {:<8} {}",
        figure.system,
        figure.operation,
        figure.threads,
        figure.ns_cpu_per_op,
        figure.ns_cpu_min,
        figure.ns_cpu_max,
        figure.ns_wall_per_op,
        optional(figure.fences_per_op),
        optional(figure.lines_per_op),
        optional(figure.ratio_to_rival),
        placed.level,
        placed.medium,
    )
}
