//! `firn churn`: its arguments, and its output.

use std::path::PathBuf;

use clap::Args;
use firn_lab::churn::{self, ChurnPlan, ChurnReport, CollectorSetting, Phase};
use firn_lab::{CollectorWork, Table};
use firn_tools::Standing;

use crate::Verdict;
use crate::arguments::On;
use crate::bars::Bars;
use crate::domains::DomainName;
use crate::failure::Failure;
use crate::figures::{bytes, count, ratio};
use crate::output::Output;

pub const AFTER_HELP: &str = "\
A round inserts N entries, deletes 80 % of them at random, inserts them again, and deletes 80 %. Each \
operation is one transaction; all are made by one thread. The entries are in a map of their own, and \
other content of the pool is not changed; figures of pages and blocks are for the whole pool. CPU time \
is that of the thread; the collector's is printed at the end. The collector ignores pools below 4 MiB \
of pages.

At the end the entries are removed, which leaves an empty map and free pages. The next run removes \
what a killed run left. A map with other entries is refused.

Examples:
  firn churn p.firn
  firn churn p.firn --no-collect --json | jq .phases[].standing.ratio_2m
  firn churn p.firn --n 1000000 --value-bytes 64 --collect 1.7:1.5 --rounds 3
  firn churn p.firn --keep && firn map p.firn -o p.svg";

#[derive(Args, Debug)]
pub struct Churn {
    /// The pool's file, created if missing
    pub pool: PathBuf,
    /// Entries
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(churn::LEAST_ENTRIES..=1_000_000_000))]
    pub n: u64,
    /// Bytes of each value
    #[arg(long, value_name = "B", default_value_t = 128, value_parser = clap::value_parser!(u64).range(0..=churn::MOST_VALUE_BYTES as u64))]
    pub value_bytes: u64,
    /// Random seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Ratios on pages of 2 MiB above which the collector starts, and at which it stops
    #[arg(long, value_name = "TRIGGER:TARGET", default_value = "1.5:1.25", value_parser = ratios)]
    pub collect: (f64, f64),
    /// Runs without a collector
    #[arg(long, conflicts_with_all = ["collect", "scheme"])]
    pub no_collect: bool,
    /// Relocation scheme: espresso, sfccd, piggyback; none reclaims garbage and moves nothing
    #[arg(long, value_name = "S", default_value = "piggyback")]
    pub scheme: String,
    /// Number of rounds of four phases
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rounds: u64,
    /// What the transactions of a new pool survive; with a log each waits for the disk
    #[arg(long, default_value = "process")]
    pub domain: DomainName,
    /// Leaves the last entries in the pool
    #[arg(long)]
    pub keep: bool,
    /// The root that names the map
    #[arg(long, value_name = "NAME", default_value = "churn")]
    pub map: String,
    #[command(flatten)]
    pub on: On,
}

/// Parses two ratios with a colon between them.
fn ratios(text: &str) -> Result<(f64, f64), String> {
    let parsed = text.split_once(':').and_then(|(trigger, target)| {
        let ratio = |text: &str| text.trim().parse::<f64>().ok();
        Some((ratio(trigger)?, ratio(target)?))
    });
    parsed.ok_or_else(|| "expected two ratios like 1.5:1.25".to_owned())
}

const HEAD: [&str; 9] = [
    "phase",
    "operations",
    "ns CPU each",
    "a second",
    "2 MiB pages",
    "ratio",
    "4 KiB pages",
    "ratio",
    "file blocks",
];

pub fn run(arguments: &Churn, output: &mut Output) -> Result<Verdict, Failure> {
    let (trigger, target) = arguments.collect;
    let setting = CollectorSetting {
        trigger,
        target,
        scheme: firn_tools::scheme(&arguments.scheme)?,
    };
    let plan = ChurnPlan {
        pool: arguments.pool.clone(),
        mapped: arguments.on.mapped(),
        new_domain: Some(arguments.domain.into()),
        map: arguments.map.clone(),
        entries: arguments.n,
        value_bytes: arguments.value_bytes as usize,
        seed: arguments.seed,
        rounds: arguments.rounds,
        collector: (!arguments.no_collect).then_some(setting),
        keep: arguments.keep,
    };
    let report = churn::churn(&plan, &mut Bars::new())?;
    if output.json() {
        output.object(&report)?;
    } else {
        print(&report, output)?;
    }
    Ok(Verdict::Well)
}

fn print(report: &ChurnReport, output: &mut Output) -> std::io::Result<()> {
    let (pool, map) = (&report.pool, &report.map);
    output.line(&format!(
        "{} entries of {} in the map `{map}` of {pool} (domain {}), seed {}",
        count(report.entries),
        bytes(report.value_bytes as u64),
        report.domain,
        report.seed
    ))?;
    output.line(&setting(report.setting.as_ref()))?;
    for round in 1..=report.rounds {
        let phases = report.phases.iter().filter(|phase| phase.round == round);
        let mut rows: Vec<Vec<String>> = phases.map(row).collect();
        if round == report.rounds {
            rows.push(end(&report.end));
        }
        output.table(&Table {
            title: format!("round {round}"),
            head: HEAD.map(str::to_owned).to_vec(),
            rows,
        })?;
    }
    output.line("")?;
    if let Some(work) = &report.collector {
        output.line(&collector(work))?;
    }
    let fate = match report.kept {
        true => "The remaining entries were kept".to_owned(),
        false => format!("{} entries were removed at the end", count(report.cleaned)),
    };
    output.line(&format!("{fate}; it took {:.1} s.", report.seconds))
}

fn setting(setting: Option<&CollectorSetting>) -> String {
    match setting {
        Some(CollectorSetting {
            trigger,
            target,
            scheme,
        }) => format!(
            "collector {}, from a ratio of {trigger} to {target} on pages of 2 MiB",
            scheme.name
        ),
        None => "no collector".to_owned(),
    }
}

fn row(phase: &Phase) -> Vec<String> {
    let what = [
        phase.phase.to_owned(),
        count(phase.operations),
        count(phase.cpu_ns_an_operation as u64),
        count(phase.per_second as u64),
    ];
    what.into_iter().chain(standing(&phase.standing)).collect()
}

fn end(at_end: &Standing) -> Vec<String> {
    let what = ["at the end", "", "", ""].map(str::to_owned);
    what.into_iter().chain(standing(at_end)).collect()
}

fn standing(standing: &Standing) -> [String; 5] {
    [
        bytes(standing.footprint_2m_bytes),
        ratio(standing.ratio_2m),
        bytes(standing.footprint_4k_bytes),
        ratio(standing.ratio_4k),
        bytes(standing.file_backed_bytes),
    ]
}

fn collector(work: &CollectorWork) -> String {
    format!(
        "The collector: {} cycles, {} objects ({}) moved, {} given back to the device, {:.1} ms of CPU time.\n\
         The program was stopped {} times, total {:.3} ms, longest {:.3} ms.",
        count(work.cycles),
        count(work.moved_objects),
        bytes(work.moved_bytes),
        bytes(work.released_bytes),
        work.cpu_ms,
        count(work.stops),
        work.stood_ms,
        work.longest_stop_ms
    )
}
