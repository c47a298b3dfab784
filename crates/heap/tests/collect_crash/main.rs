//! Is every legal crash image of a collection recoverable: in every phase, beside a program that changes moving
//! objects, with crashes during recovery?

mod beside;
mod counterexamples;
mod emptied;
mod moments;
mod phases;
mod program;
mod reused;
mod story;

use firn_crash::Turn;
use firn_heap::PoolKind;
use firn_heap::collector::scheme::{ESPRESSO, FFCCD, FFCCD_CHECKLOOKUP, PIGGYBACK, SFCCD, Scheme};
use firn_media::Domain;

use beside::{Case, Run, Stage};
use moments::{By, before_the_plan_counts, in_an_operation, in_the_collector};
use phases::{Pairs, every_pair, point};
use program::Op;

const KINDS: [PoolKind; 2] = [PoolKind::Traced, PoolKind::Explicit];
const DOMAINS: [Domain; 3] = [Domain::Adr, Domain::Eadr, Domain::Process];
const SCHEMES: [&Scheme; 5] = [&ESPRESSO, &SFCCD, &PIGGYBACK, &FFCCD, &FFCCD_CHECKLOOKUP];

const OPS: [Op; 6] = [
    Op::Change(0),
    Op::Replace(1),
    Op::Remove(0),
    Op::Swap,
    Op::Abort,
    Op::Read,
];
/// The operations that differ most in what they leave in flight.
const FEW_OPS: [Op; 3] = [Op::Change(0), Op::Replace(1), Op::Swap];

/// A stage of each phase.
const PHASES: [Stage; 6] = [
    Stage::Marking,
    Stage::Planning,
    Stage::Moved,
    Stage::Healing,
    Stage::Releasing,
    Stage::After,
];
/// The stages in which the collector has begun work that a crash or an operation may meet.
const UNDER_WAY: [Stage; 5] = [
    Stage::Marking,
    Stage::Planning,
    Stage::Moving,
    Stage::Moved,
    Stage::Healing,
];

/// Conflicting operations: on one object, on references to it, and on its neighbour; two threads move one object.
const CONFLICTS: [(Op, Op); 11] = [
    (Op::Change(0), Op::Change(0)),
    (Op::Change(0), Op::Change(1)),
    (Op::Change(0), Op::Swap),
    (Op::Swap, Op::Change(0)),
    (Op::Change(0), Op::Replace(0)),
    (Op::Replace(0), Op::Change(0)),
    (Op::Remove(0), Op::Swap),
    (Op::Read, Op::Read),
    (Op::Touch(0), Op::Change(0)),
    (Op::Touch(0), Op::Swap),
    (Op::Change(0), Op::Touch(0)),
];

/// Points from one interruption to the next outside the long runs: fewer than it takes to copy an
/// object, or to commit.
const STRIDE: usize = 17;

/// A race of two threads is independent of the domain, and `eadr` has the fewest images: there every point is tried.
fn stride(domain: Domain) -> usize {
    match domain {
        Domain::Eadr => 1,
        Domain::Adr | Domain::Process | Domain::Logged => STRIDE,
    }
}

/// The stages that a pool of the kind has: an explicit one has no marking.
fn stages_of(kind: PoolKind, stages: &[Stage]) -> &[Stage] {
    match kind {
        PoolKind::Traced => stages,
        PoolKind::Explicit => stages.strip_prefix(&[Stage::Marking]).unwrap_or(stages),
    }
}

/// Every kind and scheme in these domains.
fn cases(domains: &[Domain]) -> impl Iterator<Item = Case> {
    let of_kind = |kind| domains.iter().map(move |&domain| (kind, domain));
    let of_domain = |(kind, domain)| SCHEMES.map(|scheme| (kind, domain, scheme));
    let all = KINDS.into_iter().flat_map(of_kind).flat_map(of_domain);
    all.map(|(kind, domain, scheme)| Case {
        kind,
        domain,
        scheme,
        depth: depth(domain, scheme),
        ..Case::default()
    })
}

/// Crashes inside recovery beside a program. Recovery under the hardware's scheme looks at each line of each copy, so a
/// crash has fifty times the images of another scheme's. There, crashes inside recovery are tried only in a cycle
/// alone, and where caches survive.
fn depth(domain: Domain, scheme: &Scheme) -> u32 {
    u32::from(domain != Domain::Adr || !scheme.relocates())
}

fn with_piggyback(kind: PoolKind, domain: Domain) -> Case {
    Case {
        kind,
        domain,
        ..Case::default()
    }
}

#[test]
fn one_cycle_alone() {
    for case in cases(&DOMAINS) {
        let case = Case { depth: 2, ..case };
        case.explore_all(vec![Run::default()]).expect_clean();
    }
}

fn beside_pairs(case: &Case, ops: &[Op], stages: &[Stage]) {
    let ops = &every_pair(ops);
    let stages = stages_of(case.kind, stages);
    Pairs { ops, stages }.explore(case).expect_clean();
}

#[test]
fn objects_move_beside_every_two_operations() {
    let stages = [Stage::Moving, Stage::Moved];
    beside_pairs(&Case::default(), &OPS, &stages);
    for scheme in [&ESPRESSO, &SFCCD, &FFCCD, &FFCCD_CHECKLOOKUP] {
        let case = Case {
            scheme,
            depth: depth(Domain::Adr, scheme),
            ..Case::default()
        };
        beside_pairs(&case, &FEW_OPS, &stages);
    }
}

#[test]
fn a_cycle_beside_two_operations_in_all_its_phases() {
    beside_pairs(&Case::default(), &FEW_OPS, &PHASES);
    let explicit = with_piggyback(PoolKind::Explicit, Domain::Adr);
    beside_pairs(&explicit, &[Op::Change(0), Op::Swap], &PHASES);
}

#[test]
fn a_cycle_beside_two_operations_where_caches_or_the_page_cache_survive() {
    for case in cases(&[Domain::Eadr, Domain::Process]) {
        beside_pairs(&case, &FEW_OPS, &PHASES);
    }
}

/// Every pair of all operations under the default scheme and where nothing needs a write-back and schemes differ
/// little; pairs of few operations under the others.
fn every_pair_in_every_phase(kind: PoolKind) {
    for case in cases(&DOMAINS).filter(|case| case.kind == kind) {
        let few = case.domain == Domain::Adr && case.scheme != &PIGGYBACK;
        beside_pairs(&case, if few { &FEW_OPS } else { &OPS }, &PHASES);
        if few {
            beside_pairs(&case, &OPS, &[Stage::Moving, Stage::Moved]);
        }
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_cycle_of_a_traced_pool_beside_every_two_operations() {
    every_pair_in_every_phase(PoolKind::Traced);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_cycle_of_an_explicit_pool_beside_every_two_operations() {
    every_pair_in_every_phase(PoolKind::Explicit);
}

#[test]
fn an_operation_interrupts_the_collector() {
    for domain in DOMAINS {
        for kind in KINDS {
            let case = with_piggyback(kind, domain);
            in_the_collector(&case, Op::Swap, stride(domain)).expect_clean();
            in_the_collector(&case, Op::Change(0), STRIDE).expect_clean();
        }
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn an_operation_interrupts_the_collector_at_every_point() {
    for case in cases(&DOMAINS) {
        let all: &[Op] = match (case.scheme == &PIGGYBACK, case.domain, case.kind) {
            (true, Domain::Adr, PoolKind::Traced) => &[&OPS[..], &[Op::Unlink(2)]].concat(),
            (true, Domain::Adr, PoolKind::Explicit) => &OPS,
            (true, ..) => &FEW_OPS,
            (false, ..) => &[],
        };
        for &op in all {
            in_the_collector(&case, op, 1).expect_clean();
        }
        if all.is_empty() {
            in_the_collector(&case, Op::Change(0), STRIDE).expect_clean();
        }
    }
}

#[test]
fn changes_around_the_moment_when_the_plan_begins_to_count() {
    for case in cases(&[Domain::Adr]) {
        before_the_plan_counts(&case, 5).expect_clean();
    }
}

/// The fifth commit looks for W, and publishes that the first one's homes are durable: from then on they are its only
/// copy.
#[test]
fn a_change_of_a_copy_outlives_its_log_entry() {
    for case in cases(&[Domain::Adr]) {
        let image = case.image();
        let begin = point(&case.stages(&image), case.stage(Stage::Moving), 1);
        let mut ops = [Op::Change(1); 5];
        ops[0] = Op::Change(0);
        let mut run = Run::default();
        let mut next = begin;
        for op in ops {
            run.script[0].push(op);
            run.turns.push(Turn {
                after: next,
                thread: 1,
            });
            let done = case.run(&image, &run).done;
            let last = done[done.len() - 1];
            assert!(last.stage < case.stage(Stage::Healing), "{done:?}");
            // The collector runs for a moment.
            next = last.end + 1;
        }
        case.explore_all(vec![run]).expect_clean();
    }
}

fn interrupted(case: &Case, stages: &[Stage], by: &[By], stride: usize) {
    let case = Case {
        threads: 2,
        ..*case
    };
    for &by in by {
        in_an_operation(&case, &CONFLICTS, stages, by, stride).expect_clean();
    }
}

#[test]
fn operations_of_two_threads_interrupt_each_other() {
    for domain in DOMAINS {
        for kind in KINDS {
            let case = with_piggyback(kind, domain);
            interrupted(&case, &[Stage::Moving], &[By::Other], stride(domain));
        }
    }
}

#[test]
fn the_collector_interrupts_operations() {
    for domain in DOMAINS {
        let case = with_piggyback(PoolKind::Traced, domain);
        interrupted(&case, &[Stage::Moving], &[By::Collector], stride(domain));
    }
}

/// The schemes for a medium with a log: no disk has the hardware of the others.
const STOCK: [&Scheme; 3] = [&ESPRESSO, &SFCCD, &PIGGYBACK];

/// A line is read for its record word by word, while another thread stores to it.
#[test]
fn threads_interrupt_each_other_on_a_medium_with_a_log() {
    for kind in KINDS {
        let case = with_piggyback(kind, Domain::Logged);
        let by = [By::Other, By::Collector];
        interrupted(&case, &[Stage::Moving], &by, STRIDE);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn threads_interrupt_each_other_at_every_point_on_a_medium_with_a_log() {
    let is_stock = |case: &Case| STOCK.iter().any(|stock| stock.name == case.scheme.name);
    for case in cases(&[Domain::Logged]).filter(is_stock) {
        let stages = stages_of(case.kind, &UNDER_WAY);
        let every = (case.scheme, case.kind) == (&PIGGYBACK, PoolKind::Traced);
        let stride = if every { 1 } else { STRIDE };
        interrupted(&case, stages, &[By::Other, By::Collector], stride);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn threads_interrupt_each_other_at_every_point_of_an_operation() {
    for case in cases(&DOMAINS) {
        let stages = stages_of(case.kind, &UNDER_WAY);
        let every = (case.scheme, case.kind) == (&PIGGYBACK, PoolKind::Traced);
        let stride = if every { 1 } else { STRIDE };
        interrupted(&case, stages, &[By::Other, By::Collector], stride);
        interrupted(&case, stages, &[By::Both(60)], 2 * STRIDE);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_cycle_beside_operations_of_two_threads_in_all_its_phases() {
    for case in cases(&DOMAINS) {
        let case = Case { threads: 2, ..case };
        let (ops, stages) = (&CONFLICTS, stages_of(case.kind, &PHASES));
        Pairs { ops, stages }.explore(&case).expect_clean();
    }
}

#[test]
fn a_run_that_was_emptied_is_a_destination_at_once() {
    let report = emptied::explorer(None, 1).explore();
    assert!(report.expect_clean().exhaustive());
}
