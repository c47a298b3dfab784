//! Campaigns of crashes: their arguments, and what they print.

use std::panic;
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use firn_lab::LabError;
use firn_lab::crash::{
    self, Campaign, CrashError, CrashReport, EXPLORER, Finding, Mode, Program, Row, Structure,
};
use firn_lab::demo::Table;

use crate::Verdict;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::figures::count;
use crate::output::Output;

pub const AFTER_HELP: &str = "\
The real heap, its structures, its collector and its recovery run on simulated memory that loses power.
What was acknowledged must be there after every crash, the operation in flight as a whole or not at all;
structure and pool must be sound, an interrupted cycle of the collector must end, and nothing may leak.

--exhaustive tries every sequence of up to LEN letters: inserts of three keys, a change, a removal, an
insert and a removal that are aborted, and the collector's beginning of a cycle, one object moved, and end.
Every sequence also comes while a cycle is under way. Each event of each is crashed, with every image that
the crash may leave, and again inside the recovery.

--injections makes runs of 500 operations of --threads simulated threads beside a collector, and crashes
each of them at up to 16 moments that are drawn, with a drawn image.

One seed gives one campaign, whatever the number of processors: the hash of all executions is printed. What
fails is shortened and kept in a file, and the command that replays it is printed. Exit status 1 then.

Examples:
  firn crash
  firn crash --exhaustive 2 --structure avl --domain adr,eadr,process
  firn crash --injections 10000 --structure map --scheme sfccd --threads 4 --seed 7
  firn crash --structure list --scheme sfccd-as-printed
  firn crash --structure list --plant entry-fence
  firn crash --replay firn-crash-list-piggyback-adr.json";

/// Settings that a finding's file has itself.
const OF_CAMPAIGNS: [&str; 10] = [
    "structure",
    "scheme",
    "domain",
    "threads",
    "exhaustive",
    "injections",
    "depth",
    "seed",
    "plant",
    "out",
];

#[derive(Args, Debug)]
pub struct Crash {
    /// Structures to crash; all if not given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub structure: Vec<String>,
    /// Relocation schemes; all that keep what was committed if not given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// What survives a crash: adr, eadr, process
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "adr"
    )]
    pub domain: Vec<String>,
    /// Threads of the program, 1, 2, 4 or 8; more than one need --injections
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// Tries every crash of every sequence of up to LEN letters, 1 to 3; without --injections, of 1
    #[arg(long, value_name = "LEN", conflicts_with = "injections")]
    pub exhaustive: Option<usize>,
    /// Injects N crashes into long runs of each combination
    #[arg(long, value_name = "N")]
    pub injections: Option<u64>,
    /// Crashes inside recovery, one after the other, 0 to 2
    #[arg(long, value_name = "D", default_value_t = 1)]
    pub depth: u32,
    /// What everything random follows from
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Leaves out a step of the heap's, to see that it is missed
    #[arg(long, value_name = "NAME")]
    pub plant: Option<String>,
    /// Where files of findings go
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Runs again what a file of a finding says
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_CAMPAIGNS)]
    pub replay: Option<PathBuf>,
}

const DEFAULT_LETTERS: usize = 1;

pub fn run(arguments: &Crash, output: &mut Output) -> Result<Verdict, Failure> {
    quieten();
    if let Some(file) = &arguments.replay {
        return replay(file, output);
    }
    let campaign = campaign(arguments).map_err(LabError::from)?;
    // What cannot be kept is told before the work.
    std::fs::read_dir(&arguments.out).map_err(|source| LabError::File {
        path: arguments.out.clone(),
        doing: "opening the directory for findings",
        source,
    })?;
    let report = campaign.run(&mut Bars::new()).map_err(LabError::from)?;
    let mut files = Vec::new();
    for finding in &report.findings {
        files.push(finding.write(&arguments.out).map_err(LabError::from)?);
    }
    if output.json() {
        output.object(&Kept {
            report: &report,
            files: &files,
        })?;
    } else {
        print(&report, &files, output)?;
    }
    Ok(verdict(report.ok))
}

fn verdict(ok: bool) -> Verdict {
    match ok {
        true => Verdict::Well,
        false => Verdict::Finding,
    }
}

/// What panics while it is explored is a finding, and is told as one.
fn quieten() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if thread::current().name() != Some(EXPLORER) {
            tell(panic);
        }
    }));
}

fn campaign(arguments: &Crash) -> Result<Campaign, CrashError> {
    let mut campaign = Campaign {
        threads: arguments.threads,
        depth: arguments.depth,
        seed: arguments.seed,
        mode: match arguments.injections {
            Some(each) => Mode::Injections(each),
            None => Mode::Exhaustive(arguments.exhaustive.unwrap_or(DEFAULT_LETTERS)),
        },
        ..Campaign::default()
    };
    if !arguments.structure.is_empty() {
        campaign.structures = all(&arguments.structure, Structure::named)?;
    }
    if !arguments.scheme.is_empty() {
        campaign.schemes = all(&arguments.scheme, crash::scheme)?;
    }
    campaign.domains = all(&arguments.domain, crash::domain)?;
    campaign.plant = arguments.plant.as_deref().map(crash::plant).transpose()?;
    Ok(campaign)
}

/// What the names stand for, each once.
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

const HEAD: [&str; 9] = [
    "structure",
    "scheme",
    "domain",
    "threads",
    "runs",
    "states",
    "images",
    "states/s",
    "findings",
];

fn print(report: &CrashReport, files: &[PathBuf], output: &mut Output) -> std::io::Result<()> {
    let mut head = HEAD.map(str::to_owned).to_vec();
    if report.exhaustive.is_some() {
        head[4] = "sequences".to_owned();
    }
    output.table(&Table {
        title: title(report),
        head,
        rows: report.rows.iter().map(row).collect(),
    })?;
    for (finding, file) in report.findings.iter().zip(files) {
        output.line("")?;
        print_finding(finding, output)?;
        output.line(&format!("  replay: firn crash --replay {}", file.display()))?;
    }
    output.line("")?;
    output.line(&summary(report))?;
    output.line(&format!("hash of all executions: {}", report.hash))
}

fn title(report: &CrashReport) -> String {
    let what = match (report.exhaustive, report.injections) {
        (Some(letters), _) => format!("every crash of every sequence of up to {letters} letters"),
        (None, each) => format!(
            "{} crashes of each combination, seed {}",
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

fn row(row: &Row) -> Vec<String> {
    let mut findings = row.findings.to_string();
    if !row.exhaustive && row.injections == 0 && row.findings == 0 {
        // A limit cut it short, or images were drawn.
        findings.push_str(" (sampled)");
    }
    vec![
        row.structure.to_owned(),
        row.scheme.to_owned(),
        row.domain.to_owned(),
        row.threads.to_string(),
        count(row.executions),
        count(row.states),
        images(row.images),
        count(row.states_per_second() as u64),
        findings,
    ]
}

/// A count that may have any number of digits.
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
            "{} injections, {} a second; ",
            count(injected),
            per_second(injected)
        ),
    };
    let found = match report.findings.len() {
        0 => "nothing was found".to_owned(),
        n => format!("{n} FINDINGS"),
    };
    format!(
        "{injections}{} states, {} a second, in {:.1} s: {found}",
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
        threads,
        ..
    } = finding;
    let what = match &finding.program {
        Program::Sequence(letters) => letters.join(", "),
        Program::Operations(operations) => {
            format!("{operations} operations of {threads} threads")
        }
    };
    output.line(&format!("FOUND in {structure}, {scheme}, {domain}: {what}"))?;
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
