//! What `firn churn` says.

use firn_lab::churn::{ChurnPlan, ChurnReport, CollectorSetting, Phase, churn};
use firn_lab::demo::Table;
use firn_lab::{CollectorWork, Standing};

use crate::Verdict;
use crate::arguments::Churn;
use crate::bars::Bars;
use crate::failure::Failure;
use crate::figures::{bytes, count, ratio};
use crate::output::Output;

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
        scheme: firn_lab::scheme(&arguments.scheme)?,
    };
    let plan = ChurnPlan {
        pool: arguments.pool.clone(),
        mapped: arguments.on.mapped(),
        map: arguments.map.clone(),
        entries: arguments.n,
        value_bytes: arguments.value_bytes as usize,
        seed: arguments.seed,
        rounds: arguments.rounds,
        collector: (!arguments.no_collect).then_some(setting),
        keep: arguments.keep,
    };
    let report = churn(&plan, &mut Bars::new())?;
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
        "{} entries of {} in the map `{map}` of {pool}, seed {}",
        count(report.entries),
        bytes(report.value_bytes as u64),
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
