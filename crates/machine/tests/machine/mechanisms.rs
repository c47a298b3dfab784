//! Do mechanisms take the time that their papers say, and move the right lines? Closed forms of single parts.

use firn_machine::description::Description;
use firn_machine::mechanism::{MechanismSpec, NONE, START_GAP, ffccd};
use firn_machine::{Machine, MachineOptions};
use firn_media::{CheckLookup, Hardware, Lookup, MediumExt, Memory, Move, Relocate, Space};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr};

fn unit(machine: &Machine) -> &dyn Relocate {
    machine.offers().expect()
}

fn lookups(machine: &Machine) -> &dyn CheckLookup {
    machine.offers().expect()
}

const BYTES: u64 = 16 << 20;

fn machine(mechanism: &'static MechanismSpec) -> Machine {
    let mut description = Description::of("ffccd").unwrap();
    description.core.count = 1;
    let machine = Machine::new(MachineOptions {
        mechanism,
        capacity: BYTES,
        ..MachineOptions::of(description)
    });
    machine.reserve(VirtAddr(0), BYTES).unwrap();
    machine
}

fn cycles(machine: &Machine) -> u64 {
    machine.statistics().cores[0].cycles
}

fn counted(machine: &Machine, name: &str) -> u64 {
    let counts = machine.statistics().mechanism;
    counts.iter().find(|count| count.0 == name).unwrap().1
}

/// Cycles of `act`, the second time that it is done.
fn taken(machine: &Machine, act: impl Fn(&Machine)) -> u64 {
    act(machine);
    let before = cycles(machine);
    act(machine);
    cycles(machine) - before
}

fn page(number: u64) -> VirtAddr {
    VirtAddr(number * FRAME_BYTES)
}

/// An object at the start of each of these pages, which moves by a megabyte.
fn moves(pages: impl Iterator<Item = u64>) -> impl Iterator<Item = Move> {
    pages.map(|number| Move {
        from: page(number),
        to: page(number + 256),
    })
}

/// Table 2: 2 cycles to check a filter, 4 for the look-aside buffer, 120 to fetch a filter.
#[test]
fn checklookup_takes_the_cycles_of_table_2() {
    let machine = machine(&ffccd::CHECKLOOKUP);
    // Two filters, with a byte for each page.
    lookups(&machine).install_lookup(&mut moves((0..2_050).step_by(2).chain([3_000])));
    let ask = |at| {
        move |machine: &Machine| {
            lookups(&machine).check_lookup(at);
        }
    };
    assert_eq!(taken(&machine, ask(page(3500))), 1 + 2, "out of range");
    assert_eq!(
        taken(&machine, ask(page(9))),
        1 + 2,
        "no object moves there"
    );
    assert_eq!(taken(&machine, ask(page(2))), 1 + 2 + 4, "a hit");
    let two_filters = |machine: &Machine| {
        lookups(&machine).check_lookup(page(9));
        lookups(&machine).check_lookup(page(2051));
    };
    assert_eq!(taken(&machine, two_filters), 2 * (1 + 2 + 120));
    assert_eq!(
        lookups(&machine).check_lookup(page(2)),
        Lookup::MovesTo(page(258))
    );
    assert_eq!(lookups(&machine).check_lookup(page(3)), Lookup::Stays);
}

/// There are more pages than the look-aside buffer has entries, so each is looked up in the table, in five lines. These
/// are in the nearest cache here, and cost only their loads.
#[test]
fn a_miss_of_the_look_aside_buffer_loads_the_entry() {
    let machine = machine(&ffccd::CHECKLOOKUP);
    let pages = 20;
    lookups(&machine).install_lookup(&mut moves(0..pages));
    let all = |machine: &Machine| {
        for number in 0..pages {
            let answer = lookups(&machine).check_lookup(page(number));
            assert_eq!(answer, Lookup::MovesTo(page(number + 256)));
        }
    };
    assert_eq!(taken(&machine, all), pages * (1 + 2 + 4 + 5));
    assert_eq!(
        counted(&machine, "checklookup: look-aside misses"),
        2 * pages
    );
}

#[test]
fn relocate_takes_a_load_and_a_store_a_line() {
    let machine = machine(&ffccd::RELOCATE);
    let copy = |machine: &Machine| unit(&machine).relocate(page(1), page(2), 1024);
    assert_eq!(taken(&machine, copy), 2 * 1024 / LINE_BYTES);
    let unaligned = |machine: &Machine| unit(&machine).relocate(page(1) + 16, page(2), 1024);
    assert_eq!(taken(&machine, unaligned), 3 * 1024 / LINE_BYTES);
}

/// The buffer holds eight words: a ninth page costs a read of its word and a write of another one.
#[test]
fn lines_that_arrive_cost_the_controller_a_word_a_miss() {
    for (pages, misses_a_round) in [(8, 0), (9, 9)] {
        let machine = machine(&ffccd::RELOCATE);
        let round = |machine: &Machine| {
            for number in 0..pages {
                unit(&machine).relocate(page(100), page(number), 8);
                machine.persist(page(number), 8);
            }
        };
        round(&machine);
        let before = machine.statistics();
        round(&machine);
        let after = machine.statistics();
        // Words that the queue still holds are read from there.
        let read = |of: &firn_machine::statistics::Statistics| of.nvm.reads + of.queue.forwarded;
        let reads = read(&after) - read(&before);
        assert_eq!(reads, misses_a_round, "{pages} pages");
        let lines = after.queue.accepted - before.queue.accepted;
        assert_eq!(lines, pages + misses_a_round, "{pages} pages");
    }
}

/// A pending bit is not a dirty bit: a line that was only relocated is written back once, and the program waits as long
/// as for a store.
#[test]
fn nobody_waits_for_the_reached_bitmap() {
    let store = |machine: &Machine| {
        for number in 0..100 {
            machine.store_u64(page(number), 1);
            machine.persist(page(number), 8);
        }
    };
    let relocate = |machine: &Machine| {
        for number in 0..100 {
            unit(&machine).relocate(page(1_000), page(number), 8);
            machine.persist(page(number), 8);
        }
    };
    let plain = taken(&machine(&NONE), store);
    let marked = taken(&machine(&ffccd::RELOCATE), relocate);
    // One more load each.
    assert_eq!(marked, plain + 100);
}

#[test]
fn what_reached_persistence_is_known_after_a_power_failure() {
    let machine = machine(&ffccd::RELOCATE);
    machine.store_u64(page(1), 7);
    machine.persist(page(1), 8);
    // More pages than the buffer has words.
    for number in 2..40 {
        unit(&machine).relocate(page(1), page(number), 8);
        if number % 3 == 0 {
            machine.persist(page(number), 8);
        }
    }
    machine.restart();
    for number in 2..40 {
        let reached = number % 3 == 0;
        assert_eq!(unit(&machine).reached(page(number)), reached, "{number}");
        assert_eq!(machine.load_u64(page(number)), 7 * u64::from(reached));
    }
    unit(&machine).clear_reached(page(3), 4 * FRAME_BYTES);
    let reached = [3, 6, 9].map(|number| unit(&machine).reached(page(number)));
    assert_eq!(reached, [false, false, true]);
}

#[test]
fn what_a_mechanism_lacks_is_not_offered() {
    let plain = machine(&NONE);
    assert!(plain.offers().get::<dyn Relocate>().is_none());
    assert!(plain.offers().get::<dyn CheckLookup>().is_none());
    let copies = machine(&ffccd::RELOCATE);
    assert!(copies.offers().get::<dyn Relocate>().is_some());
    assert!(copies.offers().get::<dyn CheckLookup>().is_none());
}

/// The gap goes once through all of memory, and every line keeps its content, before and after a power failure.
#[test]
fn a_gap_wanders_through_all_of_memory() {
    let mut description = Description::of("ffccd").unwrap();
    description.core.count = 1;
    let bytes = 2 * FRAME_BYTES;
    let machine = Machine::new(MachineOptions {
        mechanism: &START_GAP,
        capacity: bytes,
        ..MachineOptions::of(description)
    });
    machine.reserve(VirtAddr(0), bytes).unwrap();
    let lines = bytes / LINE_BYTES;
    let line = |number: u64| VirtAddr(number % lines * LINE_BYTES);
    let writes = 100 * (3 * lines + 7);
    for number in 0..writes {
        machine.store_u64(line(number), number);
        machine.persist(line(number), 8);
        if number % 9_973 == 0 {
            machine.restart();
        }
        if number % 997 == 0 {
            for back in 0..lines.min(number) {
                assert_eq!(machine.load_u64(line(number - back)), number - back);
            }
        }
    }
    assert!(counted(&machine, "gap moves") > 0);
}
