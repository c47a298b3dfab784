//! Do simulated workloads show the differences between the schemes?

use firn_heap::collector::scheme::Scheme;
use firn_lab::simulation::{
    Driver, MOST_OBJECTS, Simulation, SimulationError, SimulationPlan, machine_numbers, machines,
    mechanism_for, simulate, workloads,
};

fn plan(workload: &str, scheme: &str, objects: u64) -> SimulationPlan {
    SimulationPlan {
        scheme: Scheme::named(scheme).unwrap(),
        ..SimulationPlan::of(workload, objects)
    }
}

fn run(workload: &str, scheme: &str, objects: u64) -> Simulation {
    simulate(&plan(workload, scheme, objects)).unwrap()
}

/// Fences of an operation, over all phases.
fn fences(simulation: &Simulation) -> f64 {
    let fences: u64 = simulation.phases.iter().map(|phase| phase.fences).sum();
    let operations: u64 = simulation.phases.iter().map(|phase| phase.operations).sum();
    fences as f64 / operations as f64
}

/// Espresso has two fences per copy, SFCCD one, ours none of its own (FFCCD, figures 5 and 14).
#[test]
fn schemes_differ_in_their_fences() {
    let [none, espresso, sfccd, piggyback] =
        ["none", "espresso", "sfccd", "piggyback"].map(|scheme| run("avl", scheme, 40_000));
    assert_eq!(none.moved, 0);
    for moving in [&espresso, &sfccd, &piggyback] {
        assert!(moving.moved > 10_000, "{}: {}", moving.scheme, moving.moved);
        assert!(
            moving.ratio < none.ratio,
            "{}: {}",
            moving.scheme,
            moving.ratio
        );
    }
    let (base, most) = (fences(&none), fences(&espresso));
    assert!(
        (1.0..1.1).contains(&base),
        "one fence a transaction: {base}"
    );
    assert!(most > fences(&sfccd) + 0.3 && fences(&sfccd) > fences(&piggyback) + 0.3);
    assert!(fences(&piggyback) < base + 0.1, "{}", fences(&piggyback));
}

#[test]
fn every_workload_runs_and_one_seed_is_one_execution() {
    for workload in workloads() {
        let [first, second] = [0, 1].map(|_| run(workload, "none", 400));
        let text = |simulation: &Simulation| serde_json::to_string(simulation).unwrap();
        assert_eq!(text(&first), text(&second));
        assert_eq!(first.phases.len(), 4);
        assert!(
            first
                .phases
                .iter()
                .all(|phase| phase.fences >= phase.operations)
        );
    }
}

#[test]
fn what_cannot_be_simulated_is_told() {
    let error = |plan: &SimulationPlan| simulate(plan).unwrap_err().to_string();
    assert!(error(&plan("trees", "none", 10)).contains("linked_list, avl"));
    for objects in [0, 4, MOST_OBJECTS + 1] {
        let refused = simulate(&plan("avl", "none", objects));
        assert!(matches!(refused, Err(SimulationError::Objects { .. })));
    }
    let mut other = plan("avl", "none", 10);
    other.machine = "pdp11".into();
    assert!(error(&other).contains("`ffccd`"));
    // The machine lacks this hardware.
    assert!(error(&plan("avl", "ffccd", 10)).contains("relocate"));
    let every = SimulationPlan {
        driver: Driver::Program { every: 0 },
        ..plan("avl", "espresso", 10)
    };
    assert!(error(&every).contains("every 0"));
}

/// One program on one machine, with and without hardware that copies without fences and looks up where objects go.
#[test]
fn hardware_takes_the_place_of_fences_and_tables() {
    let with = |scheme| {
        let scheme = Scheme::named(scheme).unwrap();
        let plan = SimulationPlan {
            mechanism: mechanism_for(scheme),
            driver: Driver::Program { every: 64 },
            ..plan("avl", scheme.name, 40_000)
        };
        simulate(&plan).unwrap()
    };
    let [espresso, ffccd, both] = ["espresso", "ffccd", "ffccd+checklookup"].map(with);
    assert!(fences(&espresso) > fences(&ffccd) + 0.5);
    assert_eq!(fences(&ffccd), fences(&both));
    let counted = |simulation: &Simulation, name: &str| {
        let mut counts = simulation.counts.iter();
        counts
            .find(|count| count.0 == name)
            .map_or(0, |count| count.1)
    };
    assert_eq!(espresso.counts.len(), 0);
    assert!(counted(&ffccd, "reached buffer hits") > 10_000);
    assert!(counted(&both, "checklookup: look-aside hits") > 10_000);
    let spent = |simulation: &Simulation| -> u64 {
        simulation
            .phases
            .iter()
            .map(|phase| phase.spent.lookup)
            .sum()
    };
    assert!(spent(&ffccd) > 0 && spent(&both) == 0);
}

#[test]
fn machines_say_where_their_numbers_come_from() {
    let lines = machines().unwrap();
    for line in &lines {
        let numbers = machine_numbers(&line.name).unwrap();
        assert_eq!(line.numbers.iter().sum::<usize>(), numbers.len());
        assert!(numbers.iter().all(|number| !number.source.is_empty()));
    }
    assert_eq!(lines.len(), 3);
}

/// Instructions per operation in each phase, of 20,000 objects, on a real processor
/// (`docs/decisions/calibrated-work.md`).
const EXECUTED: [(&str, [f64; 4]); 7] = [
    ("linked_list", [4520.0, 3410.0, 4454.0, 3410.0]),
    ("avl", [7074.0, 6079.0, 7892.0, 5919.0]),
    ("strings", [3771.0, 2690.0, 3717.0, 2689.0]),
    ("inline_tree", [6056.0, 4251.0, 5779.0, 4266.0]),
    ("red_black", [6727.0, 5680.0, 7063.0, 5631.0]),
    ("hash", [7199.0, 4847.0, 6867.0, 4859.0]),
    ("map", [10600.0, 13428.0, 10651.0, 13481.0]),
];
/// How far simulated values may differ from these.
const DEVIATION: f64 = 0.15;

#[test]
fn as_many_instructions_are_simulated_as_are_executed() {
    for (workload, executed) in EXECUTED {
        let simulation = run(workload, "none", 20_000);
        for (phase, executed) in simulation.phases.iter().zip(executed) {
            let simulated = phase.instructions as f64 / phase.operations as f64;
            assert!(
                (simulated / executed - 1.0).abs() < DEVIATION,
                "{workload}, {}: {simulated:.0} instructions, not about {executed}",
                phase.name
            );
        }
    }
}
