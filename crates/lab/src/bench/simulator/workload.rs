//! The heap on the machine: a list that is filled and thinned out while its objects move, as `firn simulate` runs it,
//! with each mechanism and without.

use firn_heap::collector::PageSize;
use firn_heap::collector::scheme::{FFCCD, FFCCD_CHECKLOOKUP, PIGGYBACK, Scheme};
use firn_machine::description::Description;
use firn_machine::mechanism::{MechanismSpec, NONE};

use super::{Goal, Run, Subject, mechanisms};
use crate::simulation::{Driver, SimulationPlan, mechanism_for, simulate_on};

/// The name of the workload with which mechanisms are compared.
const CONTROL: &str = "list_none";
/// The least share of the speed without a mechanism that remains with one.
const KEPT: f64 = 0.5;
/// Allocations and frees between two polls.
const EVERY: u64 = 64;
/// Memory operations per object, about: with this a block lasts as long as others.
const OPERATIONS: u64 = 300;
/// Fewest objects for which enough pages become sparse that objects move.
const FEWEST: u64 = 1_000;

pub(super) fn subjects(described: &Description) -> Vec<Subject> {
    let with = |spec: &'static MechanismSpec| {
        let described = described.clone();
        move || listed(&described, spec)
    };
    let about = |name: &str| format!("the heap with a list, simulated: {name}");
    let control = Subject::new(CONTROL, &about("no mechanism"), Goal::None, with(&NONE));
    let others = mechanisms().map(|spec| {
        let name = format!("list_{}", spec.name);
        let goal = Goal::ShareOf(CONTROL, KEPT);
        Subject::new(&name, &about(spec.name), goal, with(spec))
    });
    [control].into_iter().chain(others).collect()
}

/// The scheme that uses a mechanism, or the one that needs none.
fn scheme_for(spec: &'static MechanismSpec) -> &'static Scheme {
    let schemes = [&FFCCD_CHECKLOOKUP, &FFCCD].into_iter();
    let mut using = schemes.filter(|scheme| core::ptr::eq(mechanism_for(scheme), spec));
    using.next().unwrap_or(&PIGGYBACK)
}

fn listed(described: &Description, spec: &'static MechanismSpec) -> Run {
    let described = described.clone();
    Box::new(move |count| {
        let objects = (count / OPERATIONS).max(FEWEST);
        Ok(simulate_on(described.clone(), &plan(spec, objects))?.events)
    })
}

/// The program polls its pool itself, so the length of a run follows from its objects; they move on pages of 4 KiB,
/// which become sparse soon.
fn plan(spec: &'static MechanismSpec, objects: u64) -> SimulationPlan {
    SimulationPlan {
        mechanism: spec,
        scheme: scheme_for(spec),
        driver: Driver::Program { every: EVERY },
        pages: PageSize::Small,
        ..SimulationPlan::of("linked_list", objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mechanism that has nothing to do would keep any share.
    #[test]
    fn every_mechanism_has_something_to_do() {
        let described = Description::of("ffccd").unwrap();
        for spec in [&NONE].into_iter().chain(mechanisms()) {
            let simulated = simulate_on(described.clone(), &plan(spec, FEWEST)).unwrap();
            assert!(simulated.moved > 0, "{}", spec.name);
            let counted: u64 = simulated.counts.iter().map(|(_, count)| count).sum();
            assert_eq!(counted > 0, !core::ptr::eq(spec, &NONE), "{}", spec.name);
        }
    }
}
