//! Simulated machines: arguments and output.

use clap::Args;
use firn_lab::LabError;
use firn_lab::Table;
use firn_lab::simulation::{self, Driver, MachineLine, Named, Phase, Simulation, SimulationPlan};

use crate::Verdict;
use crate::failure::Failure;
use crate::figures::count;
use crate::output::Output;

pub const AFTER_HELP: &str = "\
The real heap and one of its structures run on a simulated computer: cores with store buffers, caches, \
translation, a write-pending queue, DRAM and persistent memory, with the parameters of a paper's machine. Objects \
with values of 128 bytes are inserted; then four of five are deleted at random, inserted again and deleted \
again, one a transaction (FFCCD, section 6). With a scheme, another core moves objects meanwhile.

Cores are in order, unlike those that gem5 and Sniper model; docs/decisions/simulated-machine.md lists the \
assumptions. One seed determines one execution.

Examples:
  firn simulate
  firn simulate --machine thynvm --workload avl --n 100000 --scheme espresso
  firn simulate --machine my.toml --json | jq '.phases[] | .waited, .bytes.nvm.written'
  firn machines ffccd";

#[derive(Args, Debug)]
pub struct Simulate {
    /// The machine: a name, or the path of a description that ends in .toml
    #[arg(long, value_name = "NAME", default_value = "ffccd")]
    pub machine: String,
    /// The workload
    #[arg(long, value_name = "NAME", default_value = "linked_list")]
    pub workload: String,
    /// Number of objects inserted at first
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub n: u64,
    /// Additional hardware of the machine [default: what the scheme needs]
    #[arg(long, value_name = "NAME")]
    pub mechanism: Option<String>,
    /// How objects move while the program runs; `none` if they do not
    #[arg(long, value_name = "NAME", default_value = "none")]
    pub scheme: String,
    /// Who collects: a thread with a core of its own, or the program as FFCCD prints it (section 5)
    #[arg(long, value_name = "WHO", default_value = "thread", value_parser = ["thread", "program"])]
    pub driver: String,
    /// Allocations and frees between two polls, with --driver program
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub every: u64,
    /// Ratio of page bytes to live bytes above which objects move
    #[arg(long, value_name = "RATIO", default_value_t = 1.5)]
    pub trigger: f64,
    /// Ratio at which they stop moving
    #[arg(long, value_name = "RATIO", default_value_t = 1.25)]
    pub target: f64,
    /// Random seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Args, Debug)]
pub struct Machines {
    /// The machine whose parameters are printed [default: a list of all machines]
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
    print_phases(simulation, output)?;
    print_waited(simulation, output)?;
    print_bytes(simulation, output)?;
    print_energy(simulation, output)?;
    let collects = |phase: &Phase| phase.spent.total() > 0;
    if simulation.phases.iter().any(collects) {
        print_spent(simulation, output)?;
    }
    output.line("")?;
    for (name, number) in &simulation.counts {
        output.line(&format!("{name}: {}", count(*number)))?;
    }
    output.line(
        "cycles and waits are those of the program's core, the rest those of all cores and devices",
    )?;
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

/// A phase's total divided by its operations.
fn each(phase: &Phase, what: f64) -> String {
    format!("{:.1}", what / phase.operations.max(1) as f64)
}

/// A figure's name in words.
fn spoken(name: &str) -> String {
    name.replace('_', " ")
}

fn print_phases(simulation: &Simulation, output: &mut Output) -> Result<(), Failure> {
    let rows = simulation.phases.iter().map(|phase| {
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
        let figures = figures.map(|what| each(phase, what as f64));
        names.into_iter().chain(figures).collect()
    });
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
        rows: rows.collect(),
    })?;
    Ok(())
}

/// A table of named numbers. Each row has a label, the phase it belongs to, and its numbers.
fn print_named(
    title: &str,
    rows: &[(String, &Phase, &Named)],
    output: &mut Output,
) -> Result<(), Failure> {
    let names = rows.iter().map(|(_, _, named)| &named.0).next();
    let names = names.into_iter().flatten().map(|(name, _)| spoken(name));
    let row = |(what, phase, named): &(String, &Phase, &Named)| {
        let figures = named
            .0
            .iter()
            .map(|(_, number)| each(phase, *number as f64));
        [what.clone()].into_iter().chain(figures).collect()
    };
    output.table(&Table {
        title: title.to_owned(),
        head: ["phase".to_owned()].into_iter().chain(names).collect(),
        rows: rows.iter().map(row).collect(),
    })?;
    Ok(())
}

fn print_waited(simulation: &Simulation, output: &mut Output) -> Result<(), Failure> {
    let phases = simulation.phases.iter();
    let rows: Vec<_> = phases
        .map(|phase| (phase.name.to_owned(), phase, &phase.waited))
        .collect();
    let title = "cycles that the program's core waited for, an operation each";
    print_named(title, &rows, output)
}

fn print_bytes(simulation: &Simulation, output: &mut Output) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for phase in &simulation.phases {
        let devices = [("NVM", &phase.bytes.nvm), ("DRAM", &phase.bytes.dram)];
        for (device, bytes) in devices {
            for (direction, named) in [("read", &bytes.read), ("written", &bytes.written)] {
                let what = format!("{}: {device} {direction}", phase.name);
                rows.push((what, phase, named));
            }
        }
    }
    let title = "bytes that devices moved, by cause, an operation each";
    print_named(title, &rows, output)
}

/// Energy of the devices for which the machine's description has numbers.
fn print_energy(simulation: &Simulation, output: &mut Output) -> Result<(), Failure> {
    let of = |phase: &Phase| [("NVM", phase.energy.nvm_nj), ("DRAM", phase.energy.dram_nj)];
    let known = |phase: &Phase| of(phase).into_iter().filter(|(_, energy)| energy.is_some());
    let names = simulation.phases.first().map(|phase| known(phase));
    let names: Vec<String> = names
        .into_iter()
        .flatten()
        .map(|(name, _)| name.to_owned())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let rows = simulation.phases.iter().map(|phase| {
        let figures = known(phase).filter_map(|(_, energy)| Some(each(phase, energy?)));
        [phase.name.to_owned()].into_iter().chain(figures).collect()
    });
    output.table(&Table {
        title: "energy of devices, nanojoules, an operation each".to_owned(),
        head: ["phase".to_owned()].into_iter().chain(names).collect(),
        rows: rows.collect(),
    })?;
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
    match &arguments.name {
        Some(name) => numbers_of(name, output),
        None => all_machines(output),
    }
}

/// Each number of a machine, with its source.
fn numbers_of(machine: &str, output: &mut Output) -> Result<Verdict, Failure> {
    let numbers = simulation::machine_numbers(machine).map_err(LabError::from)?;
    if output.json() {
        output.object(&numbers)?;
        return Ok(Verdict::Well);
    }
    let widest = numbers.iter().map(|number| number.field.len()).max();
    let (widest, value) = (widest.unwrap_or(0), 18);
    for number in &numbers {
        let found = format!("{} {}", number.value, number.unit);
        let (field, kind, source) = (&number.field, &number.kind, &number.source);
        output.line(&format!(
            "{field:<widest$}  {found:<value$}  {kind:<8}  {source}"
        ))?;
    }
    Ok(Verdict::Well)
}

/// One line per machine.
fn all_machines(output: &mut Output) -> Result<Verdict, Failure> {
    let machines = simulation::machines().map_err(LabError::from)?;
    if output.json() {
        output.object(&machines)?;
        return Ok(Verdict::Well);
    }
    let row = |machine: &MachineLine| {
        let [spec, measured, assumed] = machine.numbers.map(|count| count.to_string());
        let (cores, mhz) = (machine.cores.to_string(), machine.clock_mhz.to_string());
        let (caches, energy) = (machine.caches.to_string(), machine.energy.join(", "));
        let name = machine.name.clone();
        vec![name, cores, mhz, caches, energy, spec, measured, assumed]
    };
    let head = [
        "machine", "cores", "MHz", "caches", "energy", "SPEC", "MEASURED", "ASSUMED",
    ];
    output.table(&Table {
        title: "machines; `firn machines NAME` says where each number comes from".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: machines.iter().map(row).collect(),
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
