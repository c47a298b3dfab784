//! Do simulated workloads show what the schemes differ in?

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

/// Espresso has two fences for a copy, SFCCD one, ours none of its own (FFCCD, figures 5 and 14).
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
    // Hardware that the machine does not have.
    assert!(error(&plan("avl", "ffccd", 10)).contains("relocate"));
    let every = SimulationPlan {
        driver: Driver::Program { every: 0 },
        ..plan("avl", "espresso", 10)
    };
    assert!(error(&every).contains("every 0"));
}

/// The same program on the same machine, with hardware that copies without fences and says where objects go.
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
