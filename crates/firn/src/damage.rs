//! Damaged pools: arguments and output.

use std::panic;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use firn_lab::LabError;
use firn_lab::Table;
use firn_lab::crash::Structure;
use firn_lab::damage::{
    DAMAGER, DamageCampaign, DamageError, DamageFinding, DamageReport, DamageRow, Until,
};

use crate::Verdict;
use crate::failure::Failure;
use crate::figures::count;
use crate::output::Output;

pub const AFTER_HELP: &str = "\
Makes small real pools of every structure, traced and explicit: closed, or crashed with entries in their logs, \
in the middle of transactions with undo logs, or in the middle of a collector cycle. Then damages them: flips \
bits, replaces words and lines by others or zeros, changes references, swaps frames, cuts off the end, \
and changes fields of superblock, registry, logs, plan, frame table and bitmaps with valid checksums. Each pool \
is opened, checked, read, changed, collected and closed. A clear error is acceptable, and so is a correct answer. \
A panic, an address beyond the pool, an endless loop, or a sound pool that loses data is a finding; the exit \
status is 1 then.

Damage that leads to a new answer is damaged further. With --runs one seed determines one campaign.

Examples:
  firn damage
  firn damage --seconds 600 --seed 7 --corpus corpus
  firn damage --runs 20000 --structure avl,map
  firn damage --replay firn-damage-map-1.json";

/// Options that a file of damage already fixes.
const OF_CAMPAIGNS: [&str; 6] = ["structure", "seconds", "runs", "seed", "corpus", "out"];

#[derive(Args, Debug)]
pub struct Damage {
    /// Structures to damage [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub structure: Vec<String>,
    /// Runs for N seconds
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        conflicts_with = "runs",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub seconds: u64,
    /// Damages N pools
    #[arg(long, value_name = "N")]
    pub runs: Option<u64>,
    /// Random seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Directory from which damage that led to new answers is read, and to which it is saved
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// Directory for files of findings
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Replays the damage in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_CAMPAIGNS)]
    pub replay: Option<PathBuf>,
}

pub fn run(arguments: &Damage, output: &mut Output) -> Result<Verdict, Failure> {
    quieten();
    if let Some(file) = &arguments.replay {
        return replay(file, output);
    }
    let report = campaign(arguments)?.run().map_err(LabError::from)?;
    let mut files = Vec::new();
    for (finding, nth) in report.findings.iter().zip(1..) {
        let name = format!("firn-damage-{}-{nth}", finding.structure);
        files.push(
            finding
                .write(&arguments.out, &name)
                .map_err(LabError::from)?,
        );
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

/// Panics over a damaged pool are findings and are reported as such, so they print nothing.
fn quieten() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if thread::current().name() != Some(DAMAGER) {
            tell(panic);
        }
    }));
}

fn campaign(arguments: &Damage) -> Result<DamageCampaign, LabError> {
    let named = |name: &String| Structure::named(name).map_err(DamageError::from);
    let structures = match arguments.structure.is_empty() {
        true => Structure::ALL.to_vec(),
        false => arguments
            .structure
            .iter()
            .map(named)
            .collect::<Result<_, _>>()?,
    };
    Ok(DamageCampaign {
        structures,
        until: match arguments.runs {
            Some(runs) => Until::Runs(runs),
            None => Until::Time(Duration::from_secs(arguments.seconds)),
        },
        seed: arguments.seed,
        corpus: arguments.corpus.clone(),
    })
}

/// A report with the files that its findings were written to.
#[derive(serde::Serialize)]
struct Kept<'r> {
    #[serde(flatten)]
    report: &'r DamageReport,
    files: &'r [PathBuf],
}

const HEAD: [&str; 6] = [
    "structure",
    "condition",
    "pools",
    "unnoticed",
    "answers",
    "failures",
];

fn print(report: &DamageReport, files: &[PathBuf], output: &mut Output) -> std::io::Result<()> {
    output.table(&Table {
        title: format!("damaged pools, seed {}", report.seed),
        head: HEAD.map(str::to_owned).to_vec(),
        rows: report.rows.iter().map(row).collect(),
    })?;
    for (finding, file) in report.findings.iter().zip(files) {
        output.line("")?;
        print_finding(finding, output)?;
        output.line(&format!(
            "  replay: firn damage --replay {}",
            file.display()
        ))?;
    }
    output.line("")?;
    let found = match report.findings.len() {
        0 => "nothing was found".to_owned(),
        n => format!("{n} FINDINGS"),
    };
    output.line(&format!(
        "{} pools, {} a second, in {:.1} s; {} answers, {} kept: {found}",
        count(report.runs),
        count(report.per_second() as u64),
        report.seconds,
        count(report.answers as u64),
        count(report.corpus as u64),
    ))
}

fn row(row: &DamageRow) -> Vec<String> {
    vec![
        row.structure.to_owned(),
        row.condition.name().to_owned(),
        count(row.runs),
        count(row.unnoticed),
        count(row.answers as u64),
        count(row.findings as u64),
    ]
}

fn print_finding(finding: &DamageFinding, output: &mut Output) -> std::io::Result<()> {
    let of: Vec<&str> = finding
        .mutations
        .iter()
        .map(|one| one.what.as_str())
        .collect();
    output.line(&format!(
        "FOUND in {}, {}: {} ({} words)",
        finding.structure,
        finding.condition.name(),
        of.join(", "),
        finding.words()
    ))?;
    output.line(&format!("  {}", finding.message))
}

fn replay(file: &Path, output: &mut Output) -> Result<Verdict, Failure> {
    let finding = DamageFinding::read(file).map_err(LabError::from)?;
    let now = finding.replay().map_err(LabError::from)?;
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
