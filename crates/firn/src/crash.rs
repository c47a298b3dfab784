//! Campaigns of crashes: their arguments, and their output.

use std::panic;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use firn_lab::LabError;
use firn_lab::Table;
use firn_lab::crash::{
    self, Campaign, CrashError, CrashReport, EXPLORER, Finding, Log, Mode, Program, Row, Setting,
    Structure,
};
use firn_tools::ToolError;

use crate::Verdict;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::figures::count;
use crate::output::Output;

pub const AFTER_HELP: &str = "\
The real heap, its structures, its collector and its recovery run on simulated memory that loses power. \
After every crash, everything acknowledged must be there, and the operation in flight entirely or not at all. \
Structure and pool must be sound, an interrupted collector cycle must end, and nothing may leak.

--exhaustive tries every sequence of up to LEN operations: inserts of three keys, a change, a removal, an \
insert and a removal that are aborted, and the collector starting a cycle, moving one object, and ending it. \
Every sequence is also tried during an open cycle. Each event is crashed, with every image that \
the crash may leave, and again inside the recovery.

--injections makes runs of 500 operations of --threads simulated threads, half of them beside a collector \
thread and half with the collector driven by the program's own changes. Each run is crashed at up to 16 random \
moments with a random image. Moved objects must be where media says, the program continues with its next \
operation, and after a collection the number of live objects must be that of a run without crashes. \
--settings ffccd-7.1 does this in the 26 settings of FFCCD, section 7.1.

--log records what was done, so that the same command continues after --minutes or an interruption. \
--from-run starts with another run, for use on other machines; --logs prints several logs combined.

One seed determines one campaign, whatever the number of processors; a hash of all executions is printed. \
A failure is shortened and saved to a file, the command that replays it is printed, and the exit status is 1.

Examples:
  firn crash
  firn crash --exhaustive 2 --structure avl --domain adr,eadr,process,logged
  firn crash --injections 10000 --structure map --scheme sfccd --threads 4 --seed 7
  firn crash --settings ffccd-7.1 --injections 1000
  firn crash --settings ffccd-7.1 --injections 1000000 --minutes 480 --log injections.log
  firn crash --logs injections.log,other-machine.log
  firn crash --pool explicit --injections 1000
  firn crash --structure list --scheme sfccd-as-printed
  firn crash --structure list --plant entry-fence
  firn crash --replay firn-crash-list-piggyback-adr.json";

/// Options that a finding's file or a log already fixes.
const OF_CAMPAIGNS: [&str; 16] = [
    "settings",
    "structure",
    "scheme",
    "domain",
    "pool",
    "threads",
    "minutes",
    "log",
    "from_run",
    "exhaustive",
    "injections",
    "depth",
    "exploration",
    "seed",
    "plant",
    "out",
];
/// Options that a list of settings already fixes.
const OF_SETTINGS: [&str; 5] = ["structure", "scheme", "domain", "pool", "threads"];

#[derive(Args, Debug)]
pub struct Crash {
    /// The settings of a paper's crash test: ffccd-7.1
    #[arg(long, value_name = "NAME", requires = "injections", conflicts_with_all = OF_SETTINGS)]
    pub settings: Option<String>,
    /// Structures to crash [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub structure: Vec<String>,
    /// Relocation schemes [default: all that keep committed data]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// What survives a crash: adr, eadr, process, logged (a prefix of a log, with all transactions that have
    /// returned), logged-written (a prefix of a log; transactions do not wait for it), logged-mixed (as logged,
    /// but only short transactions are records of the log)
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "adr"
    )]
    pub domain: Vec<String>,
    /// What decides which objects live: traced (reachability), explicit (allocation bits)
    #[arg(long, value_name = "KIND", default_value = "traced")]
    pub pool: String,
    /// Threads of the program, 1, 2, 4 or 8; more than one need --injections
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// Tries every crash of every sequence of up to LEN operations, 1 to 3 [default: 1, without --injections]
    #[arg(long, value_name = "LEN", conflicts_with = "injections")]
    pub exhaustive: Option<usize>,
    /// Injects N crashes into long runs of each combination
    #[arg(long, value_name = "N")]
    pub injections: Option<u64>,
    /// Number of the first run; a run has 16 injections
    #[arg(long, value_name = "RUN", default_value_t = 0, requires = "injections")]
    pub from_run: u64,
    /// Starts nothing new after M minutes
    #[arg(long, value_name = "M", requires = "injections")]
    pub minutes: Option<u64>,
    /// Appends finished work to a log, and skips work that the log has already
    #[arg(long, value_name = "FILE", requires = "injections")]
    pub log: Option<PathBuf>,
    /// Number of successive crashes inside recovery, 0 to 2
    #[arg(long, value_name = "D", default_value_t = 1)]
    pub depth: u32,
    /// How the images of a moment are tried: lazy (only those that recovery distinguishes), each-word (the
    /// same, but torn log entries by each word under their checksum), eager (each by itself)
    #[arg(
        long,
        value_name = "WAY",
        default_value = "lazy",
        conflicts_with = "injections"
    )]
    pub exploration: String,
    /// Random seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Leaves out this step of the heap, to verify that the campaign finds the fault
    #[arg(long, value_name = "NAME")]
    pub plant: Option<String>,
    /// Directory for files of findings
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Replays the finding in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_CAMPAIGNS)]
    pub replay: Option<PathBuf>,
    /// Prints these logs combined
    #[arg(
        long,
        value_name = "FILE",
        value_delimiter = ',',
        conflicts_with = "replay",
        conflicts_with_all = OF_CAMPAIGNS
    )]
    pub logs: Vec<PathBuf>,
}

const DEFAULT_OPS: usize = 1;

pub fn run(arguments: &Crash, output: &mut Output) -> Result<Verdict, Failure> {
    quieten();
    if let Some(file) = &arguments.replay {
        return replay(file, output);
    }
    if !arguments.logs.is_empty() {
        return tell_logs(&arguments.logs, output);
    }
    let campaign = campaign(arguments).map_err(LabError::from)?;
    // A failure to store findings is reported before the work begins.
    std::fs::read_dir(&arguments.out).map_err(|source| ToolError::File {
        path: arguments.out.clone(),
        doing: "opening the directory for findings",
        source,
    })?;
    let log = arguments.log.as_deref();
    let mut log = log
        .map(|path| Log::open(path, &campaign))
        .transpose()
        .map_err(LabError::from)?;
    let report = campaign
        .run_into(log.as_mut(), &mut Bars::new())
        .map_err(LabError::from)?;
    let mut files = Vec::new();
    for finding in &report.findings {
        files.push(finding.write(&arguments.out).map_err(LabError::from)?);
    }
    tell(&report, &files, output)
}

/// Prints a report, whose findings were written to these files.
fn tell(report: &CrashReport, files: &[PathBuf], output: &mut Output) -> Result<Verdict, Failure> {
    if output.json() {
        output.object(&Kept { report, files })?;
    } else {
        print(report, files, output)?;
    }
    Ok(verdict(report.ok))
}

fn tell_logs(logs: &[PathBuf], output: &mut Output) -> Result<Verdict, Failure> {
    let (report, commits) = crash::read_logs(logs).map_err(LabError::from)?;
    if output.json() {
        output.object(&serde_json::json!({ "report": report, "commits": commits }))?;
    } else {
        print(&report, &[], output)?;
        output.line(&format!("commits: {}", commits.join(", ")))?;
    }
    Ok(verdict(report.ok))
}

fn verdict(ok: bool) -> Verdict {
    match ok {
        true => Verdict::Well,
        false => Verdict::Finding,
    }
}

/// Panics of an explorer thread are findings and are reported as such, so they print nothing.
fn quieten() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if thread::current().name() != Some(EXPLORER) {
            tell(panic);
        }
    }));
}

fn campaign(arguments: &Crash) -> Result<Campaign, CrashError> {
    Ok(Campaign {
        settings: settings(arguments)?,
        mode: match (arguments.injections, arguments.from_run) {
            (Some(each), from_run) => Mode::Injections { each, from_run },
            (None, _) => Mode::Exhaustive(arguments.exhaustive.unwrap_or(DEFAULT_OPS)),
        },
        depth: arguments.depth,
        exploration: crash::exploration(&arguments.exploration)?,
        seed: arguments.seed,
        plant: arguments.plant.as_deref().map(crash::plant).transpose()?,
        time: arguments
            .minutes
            .map(|minutes| Duration::from_secs(minutes.saturating_mul(SECONDS))),
    })
}

/// Seconds of a minute.
const SECONDS: u64 = 60;

fn settings(arguments: &Crash) -> Result<Vec<Setting>, CrashError> {
    if let Some(name) = &arguments.settings {
        return crash::settings(name);
    }
    let structures = match &arguments.structure[..] {
        [] => Structure::ALL.to_vec(),
        names => all(names, |name| Ok(Structure::named(name)?))?,
    };
    let schemes = match &arguments.scheme[..] {
        [] => crash::stock_schemes(),
        names => all(names, crash::scheme)?,
    };
    let domains = all(&arguments.domain, crash::domain)?;
    let mut settings = Setting::every(&structures, &schemes, &domains);
    let pool = crash::pool(&arguments.pool)?;
    for setting in &mut settings {
        setting.pool = pool;
        setting.threads = arguments.threads;
    }
    Ok(settings)
}

/// The values of the names, each once.
fn all<T>(
    names: &[String],
    named: impl Fn(&str) -> Result<T, CrashError>,
) -> Result<Vec<T>, CrashError> {
    let is_first = |(place, name): &(usize, &String)| !names[..*place].contains(name);
    let once = names.iter().enumerate().filter(is_first);
    once.map(|(_, name)| named(name)).collect()
}

/// A report with the files that its findings were written to.
#[derive(serde::Serialize)]
struct Kept<'r> {
    #[serde(flatten)]
    report: &'r CrashReport,
    files: &'r [PathBuf],
}

/// The fields that name a setting.
const OF_SETTING: [&str; 5] = ["structure", "scheme", "domain", "pool", "threads"];
const OF_SEQUENCES: [&str; 5] = ["sequences", "states", "images", "states/s", "findings"];
const OF_RUNS: [&str; 9] = [
    "injections",
    "states",
    "in cycles",
    "runs",
    "whole",
    "cycles",
    "reused",
    "findings",
    "inj./s",
];

fn print(report: &CrashReport, files: &[PathBuf], output: &mut Output) -> std::io::Result<()> {
    let figures: &[&str] = match report.exhaustive {
        Some(_) => &OF_SEQUENCES,
        None => &OF_RUNS,
    };
    let head = OF_SETTING.iter().chain(figures);
    let rows = report.rows.iter().map(|row| {
        let figures = match report.exhaustive {
            Some(_) => of_sequences(row),
            None => of_runs(row),
        };
        [setting(row), figures].concat()
    });
    output.table(&Table {
        title: title(report),
        head: head.map(|&name| name.to_owned()).collect(),
        rows: rows.collect(),
    })?;
    for (at, finding) in report.findings.iter().enumerate() {
        output.line("")?;
        print_finding(finding, output)?;
        if let Some(file) = files.get(at) {
            output.line(&format!("  replay: firn crash --replay {}", file.display()))?;
        }
    }
    output.line("")?;
    if report.exhaustive.is_none() {
        output.line(RUNS_LEGEND)?;
    }
    output.line(&summary(report))?;
    output.line(&format!("hash of all executions: {}", report.hash))
}

const RUNS_LEGEND: &str = "\
states: distinct ones that crashes left, also inside recovery; in cycles: of them, while objects moved; whole:
runs with a whole cycle and a page that it released and the program used again; inj./s: of one processor";

fn title(report: &CrashReport) -> String {
    let what = match (report.exhaustive, report.injections) {
        (Some(ops), _) => format!("every crash of every sequence of up to {ops} operations"),
        (None, each) => format!(
            "{} crashes of each setting, seed {}",
            count(each.unwrap_or_default()),
            report.seed
        ),
    };
    let left_out = report.plant.map(|step| format!(", without `{step}`"));
    format!(
        "{what}, {} inside recovery{}",
        report.depth,
        left_out.unwrap_or_default()
    )
}

fn setting(row: &Row) -> Vec<String> {
    let names = [row.structure, row.scheme, row.domain, row.pool];
    let names = names.into_iter().map(str::to_owned);
    names.chain([row.threads.to_string()]).collect()
}

fn of_sequences(row: &Row) -> Vec<String> {
    let mut findings = row.findings.to_string();
    if !row.exhaustive && row.findings == 0 {
        // A limit cut the exploration short, or images were drawn.
        findings.push_str(" (sampled)");
    }
    vec![
        count(row.executions),
        count(row.states),
        images(row.images),
        count(row.states_per_second() as u64),
        findings,
    ]
}

fn of_runs(row: &Row) -> Vec<String> {
    vec![
        count(row.injections),
        count(row.states),
        count(row.in_cycles),
        count(row.executions),
        count(row.whole_runs),
        count(row.cycles),
        count(row.reused),
        row.findings.to_string(),
        count(row.injections_per_second() as u64),
    ]
}

/// Prints a count of any number of digits.
fn images(images: u128) -> String {
    match u64::try_from(images) {
        Ok(images) if images < 1_000_000_000 => count(images),
        _ => format!("{:.1e}", images as f64),
    }
}

fn summary(report: &CrashReport) -> String {
    let per_second = |of| count(report.per_second(of) as u64);
    let injected = report.injected();
    let injections = match injected {
        0 => String::new(),
        _ => format!(
            "{} injections, {} a second of one processor; ",
            count(injected),
            per_second(injected)
        ),
    };
    let found = match report.findings.len() {
        0 => "nothing was found".to_owned(),
        n => format!("{n} FINDINGS"),
    };
    let cut = match report.cut {
        true => "; THE TIME IS UP, the same command with its log goes on",
        false => "",
    };
    format!(
        "{injections}{} states, {} a second of one processor, in {:.1} s: {found}{cut}",
        count(report.states),
        per_second(report.states),
        report.seconds
    )
}

fn print_finding(finding: &Finding, output: &mut Output) -> std::io::Result<()> {
    let Finding {
        structure,
        scheme,
        domain,
        pool,
        threads,
        ..
    } = finding;
    let what = match &finding.program {
        Program::Sequence(ops) => ops.join(", "),
        Program::Operations(operations) => {
            format!("{operations} operations of {threads} threads")
        }
    };
    output.line(&format!(
        "FOUND in {structure}, {scheme}, {domain}, {pool}: {what}"
    ))?;
    output.line(&format!("  {}", finding.message))
}

fn replay(file: &Path, output: &mut Output) -> Result<Verdict, Failure> {
    let finding = Finding::read(file).map_err(LabError::from)?;
    let now = crash::replay(file, &finding).map_err(LabError::from)?;
    if output.json() {
        let (ok, said) = (now.is_ok(), now.as_ref().err());
        output.object(&serde_json::json!({ "ok": ok, "message": said, "finding": finding }))?;
    } else {
        print_finding(&finding, output)?;
        output.line(&match &now {
            Ok(()) => "It passes now.".to_owned(),
            Err(what) if *what == finding.message => "It still fails.".to_owned(),
            Err(what) => format!("It fails in another way now: {what}"),
        })?;
    }
    Ok(verdict(now.is_ok()))
}
