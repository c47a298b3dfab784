//! Simulated machines: their arguments, and what is printed of them.

use clap::Args;
use firn_lab::LabError;
use firn_lab::demo::Table;
use firn_lab::simulation::{self, Driver, Phase, Simulation, SimulationPlan};

use crate::Verdict;
use crate::failure::Failure;
use crate::figures::count;
use crate::output::Output;

pub const AFTER_HELP: &str = "\
The real heap and a structure of it run on a simulated computer: cores with store buffers, caches,
translation, a write-pending queue, DRAM and persistent memory, with the numbers of a paper's machine. Objects
with values of 128 bytes are inserted; then four of five are deleted at random, inserted again and deleted
again, one a transaction (FFCCD, section 6). With a scheme objects move on another core meanwhile.

Cores are in order, unlike those that gem5 and Sniper model; docs/decisions/simulated-machine.md says what is
assumed. One seed is one execution.

Examples:
  firn simulate
  firn simulate --machine thynvm --workload avl --n 100000 --scheme espresso
  firn simulate --machine my.toml --json | jq .phases[].waited
  firn machines ffccd";

#[derive(Args, Debug)]
pub struct Simulate {
    /// The machine: a name, or the path of a description that ends in .toml
    #[arg(long, value_name = "NAME", default_value = "ffccd")]
    pub machine: String,
    /// The workload
    #[arg(long, value_name = "NAME", default_value = "linked_list")]
    pub workload: String,
    /// Objects that are inserted first
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub n: u64,
    /// The hardware that the machine has besides; what the scheme needs if not given
    #[arg(long, value_name = "NAME")]
    pub mechanism: Option<String>,
    /// How objects move while the program runs; `none` if they stay
    #[arg(long, value_name = "NAME", default_value = "none")]
    pub scheme: String,
    /// Who collects: a thread with a core of its own, or the program as FFCCD prints it (section 5)
    #[arg(long, value_name = "WHO", default_value = "thread", value_parser = ["thread", "program"])]
    pub driver: String,
    /// Allocations and frees between two looks of a program that collects
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub every: u64,
    /// Ratio of page bytes to live bytes above which they move
    #[arg(long, value_name = "RATIO", default_value_t = 1.5)]
    pub trigger: f64,
    /// Ratio at which they stop
    #[arg(long, value_name = "RATIO", default_value_t = 1.25)]
    pub target: f64,
    /// What everything random follows from
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Args, Debug)]
pub struct Machines {
    /// The machine whose numbers are printed; all machines if not given
    pub name: Option<String>,
}

pub fn run(arguments: &Simulate, output: &mut Output) -> Result<Verdict, Failure> {
    let scheme = firn_lab::crash::scheme(&arguments.scheme).map_err(LabError::from)?;
    let mechanism = match &arguments.mechanism {
        Some(name) => simulation::mechanism(name).map_err(LabError::from)?,
        None => simulation::mechanism_for(scheme),
    };
    let plan = SimulationPlan {
        machine: arguments.machine.clone(),
        mechanism,
        scheme,
        driver: match arguments.driver.as_str() {
            "program" => Driver::Program {
                every: arguments.every,
            },
            _ => Driver::Thread,
        },
        trigger: arguments.trigger,
        target: arguments.target,
        seed: arguments.seed,
        ..SimulationPlan::of(&arguments.workload, arguments.n)
    };
    let simulation = simulation::simulate(&plan).map_err(LabError::from)?;
    match output.json() {
        true => output.object(&simulation)?,
        false => print(&simulation, output)?,
    }
    Ok(Verdict::Well)
}

fn print(simulation: &Simulation, output: &mut Output) -> Result<(), Failure> {
    let operations = |phase: &Phase| phase.operations.max(1) as f64;
    let each = |phase: &Phase, what: u64| format!("{:.1}", what as f64 / operations(phase));
    output.table(&Table {
        title: format!(
            "{} of {} objects on {}, mechanism {}, scheme {}, seed {}: an operation each",
            simulation.workload,
            count(simulation.objects),
            simulation.machine,
            simulation.mechanism,
            simulation.scheme,
            simulation.seed
        ),
        head: [
            "phase",
            "operations",
            "cycles",
            "instr.",
            "accesses",
            "fences",
            "clwb",
            "NVM read",
            "NVM written",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: simulation
            .phases
            .iter()
            .map(|phase| {
                let figures = [
                    phase.cycles,
                    phase.instructions,
                    phase.accesses,
                    phase.fences,
                    phase.write_backs,
                    phase.nvm_reads,
                    phase.nvm_writes,
                ];
                let names = [phase.name.to_owned(), count(phase.operations)];
                let figures = figures.map(|what| each(phase, what));
                names.into_iter().chain(figures).collect()
            })
            .collect(),
    })?;
    output.table(&Table {
        title: "cycles that the program's core waited for, an operation each".to_owned(),
        head: [
            "phase",
            "NVM",
            "DRAM",
            "caches",
            "other cores",
            "translation",
            "store buffer",
            "fences",
            "mechanism",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: simulation
            .phases
            .iter()
            .map(|phase| {
                let waited = &phase.waited;
                let figures = [
                    waited.nvm,
                    waited.dram,
                    waited.caches,
                    waited.transfer,
                    waited.translation,
                    waited.store_buffer,
                    waited.fence,
                    waited.mechanism,
                ];
                let figures = figures.map(|what| each(phase, what));
                [phase.name.to_owned()].into_iter().chain(figures).collect()
            })
            .collect(),
    })?;
    if simulation
        .phases
        .iter()
        .any(|phase| phase.spent.total() > 0)
    {
        print_spent(simulation, output)?;
    }
    output.line("")?;
    for (name, number) in &simulation.counts {
        output.line(&format!("{name}: {}", count(*number)))?;
    }
    output.line("cycles and waits: of the program's core; the rest: of all cores and devices")?;
    output.line(&format!(
        "{} memory operations; {} objects were to move; pages are {:.2} times the live bytes at the end",
        count(simulation.events),
        count(simulation.moved),
        simulation.ratio
    ))?;
    output.line(&format!(
        "digest of the machine's description: {}",
        simulation.digest
    ))?;
    Ok(())
}

fn print_spent(simulation: &Simulation, output: &mut Output) -> Result<(), Failure> {
    let head = [
        "phase",
        "copy",
        "check",
        "lookup",
        "state",
        "references",
        "mark",
        "plan",
        "finish",
        "pages / live",
    ];
    let rows = simulation.phases.iter().map(|phase| {
        let spent = &phase.spent;
        let figures = [
            spent.copy,
            spent.check,
            spent.lookup,
            spent.state,
            spent.reference,
            spent.mark,
            spent.summary,
            spent.finish,
        ];
        let each = |cycles| format!("{:.1}", cycles as f64 / phase.operations.max(1) as f64);
        let ratio = format!("{:.2}", phase.page_bytes / phase.live_bytes);
        let names = [phase.name.to_owned()].into_iter();
        names.chain(figures.map(each)).chain([ratio]).collect()
    });
    output.table(&Table {
        title: "cycles of all cores that the collector took, an operation each".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    })?;
    Ok(())
}

pub fn mechanisms(output: &mut Output) -> Result<Verdict, Failure> {
    let all = simulation::mechanisms();
    if output.json() {
        output.object(&all)?;
        return Ok(Verdict::Well);
    }
    for mechanism in &all {
        output.line(&format!("{}: {}", mechanism.name, mechanism.about))?;
        if !mechanism.source.is_empty() {
            output.line(&format!("  {}", mechanism.source))?;
        }
        for part in &mechanism.parts {
            let printed = match (part.printed_bytes, part.printed_area_mm2) {
                (Some(bytes), Some(area)) => format!(" (printed: {bytes} bytes, {area} mm2)"),
                _ => String::new(),
            };
            let (name, bytes) = (part.name, count(part.bytes));
            output.line(&format!("  on the chip: {name}, {bytes} bytes{printed}"))?;
        }
    }
    Ok(Verdict::Well)
}

pub fn machines(arguments: &Machines, output: &mut Output) -> Result<Verdict, Failure> {
    if let Some(name) = &arguments.name {
        let numbers = simulation::machine_numbers(name).map_err(LabError::from)?;
        if output.json() {
            output.object(&numbers)?;
            return Ok(Verdict::Well);
        }
        let (widest, value) = (
            numbers
                .iter()
                .map(|number| number.field.len())
                .max()
                .unwrap_or(0),
            18,
        );
        for number in &numbers {
            let found = format!("{} {}", number.value, number.unit);
            let (field, kind, source) = (&number.field, &number.kind, &number.source);
            output.line(&format!(
                "{field:<widest$}  {found:<value$}  {kind:<8}  {source}"
            ))?;
        }
        return Ok(Verdict::Well);
    }
    let machines = simulation::machines().map_err(LabError::from)?;
    if output.json() {
        output.object(&machines)?;
        return Ok(Verdict::Well);
    }
    output.table(&Table {
        title: "machines; `firn machines NAME` says where each number comes from".to_owned(),
        head: [
            "machine", "cores", "MHz", "caches", "SPEC", "MEASURED", "ASSUMED",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: machines
            .iter()
            .map(|machine| {
                let [spec, measured, assumed] = machine.numbers.map(|count| count.to_string());
                let (cores, mhz) = (machine.cores.to_string(), machine.clock_mhz.to_string());
                let caches = machine.caches.to_string();
                vec![
                    machine.name.clone(),
                    cores,
                    mhz,
                    caches,
                    spec,
                    measured,
                    assumed,
                ]
            })
            .collect(),
    })?;
    output.line("")?;
    for machine in &machines {
        output.line(&format!("{}: {}", machine.name, machine.about))?;
    }
    Ok(Verdict::Well)
}

pub fn workloads(output: &mut Output) -> Result<Verdict, Failure> {
    let names: Vec<_> = simulation::workloads().collect();
    match output.json() {
        true => output.object(&names)?,
        false => names.iter().try_for_each(|name| output.line(name))?,
    }
    Ok(Verdict::Well)
}
