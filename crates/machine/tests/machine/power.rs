//! Does a power failure leave what it should: of caches, of the queue, and of stores that no cache has seen?

use firn_machine::description::Description;
use firn_machine::mechanism::{MechanismSpec, NONE, ffccd};
use firn_machine::{Job, Machine, MachineOptions, RunEnd};
use firn_media::{Domain, Hardware, MediumExt, Memory, Probe, Relocate, Runtime, Space, Words};
use firn_units::{LINE_BYTES, VirtAddr};

fn unit(machine: &Machine) -> &dyn Relocate {
    machine.offers().expect()
}

const BYTES: u64 = 1 << 20;
/// Cycles until a store to a line of persistent memory that no cache has enters the nearest cache.
const ENTERS: u64 = (25 + 360) / 4;

fn machine_with(domain: Domain, cores: u32, mechanism: &'static MechanismSpec) -> Machine {
    let mut description = Description::of("ffccd").unwrap();
    description.core.count = cores;
    let machine = Machine::new(MachineOptions {
        domain,
        mechanism,
        capacity: BYTES,
        ..MachineOptions::of(description)
    });
    machine.reserve(VirtAddr(0), BYTES).unwrap();
    machine
}

fn machine(domain: Domain) -> Machine {
    machine_with(domain, 1, &NONE)
}

fn line(number: u64) -> VirtAddr {
    VirtAddr(number * LINE_BYTES)
}

/// What is left of a store after `act` and a power failure.
fn left(domain: Domain, act: impl FnOnce(&Machine)) -> u64 {
    let machine = machine(domain);
    machine.store_u64(line(3), 7);
    act(&machine);
    machine.restart();
    machine.load_u64(line(3))
}

#[test]
fn a_store_right_before_the_failure_is_lost() {
    for domain in [Domain::Adr, Domain::Eadr] {
        assert_eq!(left(domain, |_| ()), 0, "{domain}");
    }
    assert_eq!(left(Domain::Process, |_| ()), 7, "the power stays on");
}

#[test]
fn a_store_before_a_fence_is_in_the_caches() {
    assert_eq!(left(Domain::Eadr, Machine::fence), 7);
    assert_eq!(left(Domain::Adr, Machine::fence), 0);
}

#[test]
fn a_store_that_is_old_enough_is_in_the_caches() {
    // The store was issued a cycle ago.
    assert_eq!(left(Domain::Eadr, |machine| machine.work(ENTERS - 1)), 0);
    assert_eq!(left(Domain::Eadr, |machine| machine.work(ENTERS + 1)), 7);
    assert_eq!(left(Domain::Adr, |machine| machine.work(ENTERS + 1)), 0);
}

#[test]
fn what_is_made_persistent_is_kept() {
    let persist = |machine: &Machine| machine.persist(line(3), 8);
    let locked = |machine: &Machine| {
        machine.compare_exchange_u64(line(9), 0, 1).unwrap();
    };
    assert_eq!(left(Domain::Adr, persist), 7);
    assert_eq!(left(Domain::Eadr, persist), 7);
    assert_eq!(left(Domain::Eadr, locked), 7, "older stores go first");
    assert_eq!(left(Domain::Eadr, |machine| machine.sync().unwrap()), 7);
}

/// Stores enter the cache in order, each after the one before it.
#[test]
fn a_prefix_of_the_stores_is_kept() {
    const STORES: u64 = 20;
    let survivors = |cycles: u64| {
        let machine = machine(Domain::Eadr);
        for number in 0..STORES {
            machine.store_u64(line(number), number + 1);
        }
        machine.work(cycles);
        machine.restart();
        let found: Vec<u64> = (0..STORES)
            .map(|number| machine.load_u64(line(number)))
            .collect();
        let kept = found.iter().take_while(|&&found| found != 0).count();
        assert!(found[kept..].iter().all(|&found| found == 0), "{found:?}");
        kept as u64
    };
    let mut kept: Vec<u64> = (0..2 * STORES * ENTERS)
        .step_by(20)
        .map(survivors)
        .collect();
    assert!(kept.is_sorted(), "{kept:?}");
    kept.dedup();
    assert_eq!(kept, (0..=STORES).collect::<Vec<u64>>());
}

/// A word that is stored to several times keeps the value that entered last.
#[test]
fn a_word_has_the_value_that_entered_last() {
    let machine = machine(Domain::Eadr);
    machine.store_u64(line(0), 1);
    machine.fence();
    // A store that takes long to enter holds up later ones.
    machine.store_u64(line(100), 1);
    machine.store_bytes(line(0), &[2; 24]);
    machine.store_u64(line(0), 3);
    machine.store_u64(line(0) + 8, 4);
    machine.restart();
    let words = [0, 8, 16].map(|byte| machine.load_u64(line(0) + byte));
    assert_eq!(words, [1, 0, 0]);
}

/// One core's stores take long to enter. The other core learns of the last one, and then makes a store of its own.
fn cause_and_effect(machine: &Machine, learn_by_word: bool) -> Vec<Job> {
    let (causing, caused) = (machine.clone(), machine.clone());
    let words = std::sync::Arc::new(machine.words(1));
    let seen = std::sync::Arc::clone(&words);
    let cause = move || {
        (10..50).for_each(|number| causing.store_u64(line(number), 1));
        causing.store_u64(line(0), 1);
        words.store(0, 1);
        causing.work(5_000);
    };
    let effect = move || {
        let mut attempt = 0;
        let has_learned = || match learn_by_word {
            true => seen.load(0) == 1,
            false => caused.load_u64(line(0)) == 1,
        };
        while !has_learned() {
            caused.pause(attempt);
            attempt += 1;
        }
        caused.store_u64(line(1), 1);
        caused.fence();
        (0..40).for_each(|number| _ = caused.load_u64(line(1_000 + number)));
    };
    vec![Box::new(cause), Box::new(effect)]
}

#[test]
fn what_another_core_has_seen_is_kept_with_what_follows_from_it() {
    for learn_by_word in [false, true] {
        let begun = || {
            let machine = machine_with(Domain::Eadr, 3, &NONE);
            (machine.events(), machine)
        };
        let (first, whole) = begun();
        assert_eq!(
            whole.run(cause_and_effect(&whole, learn_by_word)),
            RunEnd::Finished
        );
        let mut both = 0;
        for event in first..whole.events() {
            let (_, machine) = begun();
            machine.run_until(cause_and_effect(&machine, learn_by_word), event);
            machine.restart();
            let [cause, effect] = [0, 1].map(|number| machine.load_u64(line(number)));
            assert!(effect <= cause, "before event {event}: {cause} {effect}");
            both += effect;
        }
        assert!(both > 0, "the effect is seen");
    }
}

/// A copy by `relocate` that no cache has seen has not reached persistence, whatever the caches keep.
#[test]
fn a_copy_that_is_lost_was_not_reached() {
    for (cycles, reached) in [(0, false), (10 * ENTERS, true)] {
        let machine = machine_with(Domain::Eadr, 1, &ffccd::RELOCATE);
        machine.store_u64(line(0), 7);
        machine.fence();
        let to = line(640);
        unit(&machine).relocate(line(0), to, LINE_BYTES);
        machine.work(cycles);
        machine.restart();
        assert_eq!(unit(&machine).reached(to), reached);
        assert_eq!(machine.load_u64(to), 7 * u64::from(reached));
    }
}
