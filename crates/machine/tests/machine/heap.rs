//! Does the heap run on the machine, and does it survive the machine's power failures?

use std::sync::{Arc, Mutex};

use firn_heap::collector::scheme::{FFCCD, FFCCD_CHECKLOOKUP, PIGGYBACK, Scheme};
use firn_heap::collector::{CollectOptions, PageSize};
use firn_heap::{Error, Pool, PoolOptions};
use firn_machine::description::{
    Buffer, Cache, Controller, Core, Description, Device, Latency, Translation,
};
use firn_machine::mechanism::{MechanismSpec, NONE, START_GAP, ffccd};
use firn_machine::{Job, Machine, MachineOptions, RunEnd};
use firn_media::{Domain, MediumError, MediumExt, Memory, Runtime, Space, Words};
use firn_structures::List;
use firn_units::{FRAME_BYTES, VirtAddr};

const LAYOUT: &str = "machine";
/// Elements present before a run.
const PRESENT: u64 = 400;
/// Changes of a run.
const CHANGES: u64 = 60;

/// A machine with small caches, so that lines leave them by themselves while the program runs.
fn machine(domain: Domain, seed: u64, mechanism: &'static MechanismSpec) -> Machine {
    let device = |cycles| Device {
        latency: Latency::Fixed {
            read: cycles,
            write: cycles,
        },
        read_megabytes_per_s: 12_000,
        write_megabytes_per_s: 4_000,
        energy: None,
    };
    let cache = |bytes, hit_cycles, shared| Cache {
        name: String::new(),
        bytes,
        ways: 4,
        hit_cycles,
        shared,
    };
    let translation = vec![Buffer {
        entries: 16,
        ways: 4,
        hit_cycles: 0,
    }];
    let description = Description {
        name: "small".into(),
        about: String::new(),
        core: Core {
            count: 3,
            clock_mhz: 2_600,
            millicycles_per_instruction: 1_000,
            parallel_misses: 4,
            store_buffer_entries: 56,
        },
        caches: vec![cache(4 << 10, 4, false), cache(32 << 10, 25, true)],
        translation: Translation {
            small: translation.clone(),
            huge: translation,
            small_walk_cycles: 60,
            huge_walk_cycles: 60,
        },
        controller: Controller {
            queue_entries: 16,
            accept_cycles: 30,
            transfer_cycles: 60,
        },
        dram: device(120),
        nvm: device(360),
    };
    Machine::new(MachineOptions {
        domain,
        seed,
        mechanism,
        capacity: 64 << 20,
        ..MachineOptions::of(description)
    })
}

type Content = Vec<(u64, Vec<u8>)>;

fn value(key: u64) -> Vec<u8> {
    vec![key as u8; 40 + key as usize % 90]
}

/// A pool with a list from which every second element was removed again, and the list's content.
fn set_up(machine: &Machine) -> (Arc<Pool<Machine>>, Content) {
    let pool = Pool::create(machine.clone(), &PoolOptions::new(LAYOUT)).unwrap();
    let mut session = pool.session().unwrap();
    let mut content = Content::new();
    session
        .transaction(|tx| {
            let mut list = List::create(tx, "list")?;
            (0..PRESENT).try_for_each(|key| list.push_back(key, &value(key)))
        })
        .unwrap();
    for key in 0..PRESENT {
        match key % 2 {
            0 => content.push((key, value(key))),
            _ => assert!(
                session
                    .transaction(|tx| List::open(tx, "list")?.remove(key))
                    .unwrap()
            ),
        }
    }
    drop(session);
    (Arc::new(pool), content)
}

fn content_of(pool: &Pool<Machine>) -> Content {
    let mut session = pool.session().unwrap();
    let guard = session.guard();
    let list = List::open(guard.view(), "list").unwrap();
    assert_eq!(list.check().unwrap(), Vec::<String>::new());
    let reader = list.read().unwrap();
    let elements = reader.iter().map(|element| element.unwrap());
    elements
        .map(|element| (element.key(), element.value().unwrap()))
        .collect()
}

/// One thread changes the list, another one collects. The contents that the list may have are recorded.
fn jobs(
    pool: &Arc<Pool<Machine>>,
    states: &Arc<Mutex<Vec<Content>>>,
    scheme: &'static Scheme,
) -> Vec<Job> {
    let (changed, collected) = (Arc::clone(pool), Arc::clone(pool));
    let states = Arc::clone(states);
    let change = move || {
        let mut session = changed.session().unwrap();
        for number in 0..CHANGES {
            let before = states.lock().unwrap().last().unwrap().clone();
            let key = 1_000 + number;
            session
                .transaction(|tx| {
                    let (mut list, mut next) = (List::open(tx, "list")?, before.clone());
                    list.push_front(key, &value(key))?;
                    let back = list.pop_back()?;
                    next.insert(0, (key, value(key)));
                    assert_eq!(back, next.pop());
                    // From here on, the list has this content or the previous one.
                    states.lock().unwrap().push(next);
                    Ok::<_, Error>(())
                })
                .unwrap();
            // Acknowledged: the previous content is gone for good.
            let mut states = states.lock().unwrap();
            let last = states.len() - 1;
            states.drain(..last);
        }
    };
    let collect = move || {
        let options = CollectOptions {
            target: 1.0,
            pages: PageSize::Small,
            scheme,
            ..CollectOptions::default()
        };
        collected.collect(&options).unwrap();
    };
    vec![Box::new(change), Box::new(collect)]
}

/// Mechanisms, each with a scheme that uses it and the counts that it must have.
const CASES: [(&MechanismSpec, &Scheme, &[&str]); 4] = [
    (&NONE, &PIGGYBACK, &[]),
    (
        &ffccd::RELOCATE,
        &FFCCD,
        &["reached buffer hits", "reached buffer misses"],
    ),
    (
        &ffccd::CHECKLOOKUP,
        &FFCCD_CHECKLOOKUP,
        &["reached buffer hits", "checklookup: look-aside hits"],
    ),
    (&START_GAP, &PIGGYBACK, &["gap moves"]),
];
/// Power failures of each case, in each domain.
const FAILURES: u32 = 25;

#[test]
fn the_heap_runs_and_is_compacted() {
    for (mechanism, scheme, uses) in CASES {
        let machine = machine(Domain::Adr, 0, mechanism);
        let (pool, content) = set_up(&machine);
        let states = Arc::new(Mutex::new(vec![content]));
        assert_eq!(machine.run(jobs(&pool, &states, scheme)), RunEnd::Finished);
        assert_eq!(content_of(&pool), states.lock().unwrap()[0]);
        assert_eq!(pool.check().unwrap(), []);
        let statistics = machine.statistics();
        let worked = |core: &&firn_machine::statistics::CoreStatistics| core.counts.loads > 1_000;
        assert_eq!(statistics.cores.iter().filter(worked).count(), 3);
        assert!(statistics.queue.accepted > CHANGES);
        for name in uses {
            let counted = statistics
                .mechanism
                .iter()
                .find(|(counted, _)| counted == name);
            assert!(counted.unwrap().1 > 0, "{}: no {name}", mechanism.name);
        }
    }
}

#[test]
fn one_seed_is_one_execution() {
    for (mechanism, scheme, _) in CASES {
        let run = || {
            let machine = machine(Domain::Adr, 3, mechanism);
            let (pool, content) = set_up(&machine);
            let states = Arc::new(Mutex::new(vec![content]));
            assert_eq!(machine.run(jobs(&pool, &states, scheme)), RunEnd::Finished);
            (machine.statistics(), machine.events())
        };
        assert_eq!(run(), run());
    }
}

#[test]
fn nothing_is_lost_when_the_power_fails() {
    for (mechanism, scheme, _) in CASES {
        for domain in [Domain::Adr, Domain::Eadr] {
            power_fails(domain, mechanism, scheme);
        }
    }
}

fn power_fails(domain: Domain, mechanism: &'static MechanismSpec, scheme: &'static Scheme) {
    let all = {
        let machine = machine(domain, 0, mechanism);
        let (pool, content) = set_up(&machine);
        let begin = machine.events();
        let states = Arc::new(Mutex::new(vec![content]));
        machine.run(jobs(&pool, &states, scheme));
        begin..machine.events()
    };
    let mut random = fastrand::Rng::with_seed(7);
    let mut changed = 0;
    for _ in 0..FAILURES {
        let machine = machine(domain, 0, mechanism);
        let (pool, content) = set_up(&machine);
        let states = Arc::new(Mutex::new(vec![content]));
        let event = random.u64(all.clone());
        let jobs = jobs(&pool, &states, scheme);
        // The pool ends with the threads: nobody closes a pool without power.
        drop(pool);
        let end = machine.run_until(jobs, event);
        let what = format!("{}, {domain}, before event {event}", mechanism.name);
        assert_eq!(end, RunEnd::PowerFailed, "{what}");
        machine.restart();
        let pool = Pool::open(machine.clone(), &PoolOptions::new(LAYOUT)).unwrap();
        let found = content_of(&pool);
        let states = states.lock().unwrap();
        assert!(states.contains(&found), "{what}");
        assert_eq!(pool.check().unwrap(), [], "{what}");
        changed += u32::from(found[0].0 >= 1_000);
    }
    assert!(changed > FAILURES / 2, "{changed}");
}

/// The machine loses stores that the program does not write back. If it could lose nothing, the tests above would prove
/// nothing.
#[test]
fn what_was_not_written_back_is_lost() {
    use firn_media::{MediumExt, Memory, Space};
    use firn_units::VirtAddr;
    let machine = machine(Domain::Adr, 0, &NONE);
    machine.reserve(VirtAddr(0), 4096).unwrap();
    let (kept, lost) = (VirtAddr(0), VirtAddr(64));
    machine.store_u64(kept, 1);
    machine.store_u64(lost, 2);
    machine.persist(kept, 8);
    machine.restart();
    assert_eq!((machine.load_u64(kept), machine.load_u64(lost)), (1, 0));
}

#[test]
fn bytes_that_are_stored_exactly_leave_those_beside_them() {
    let machine = machine(Domain::Adr, 1, &NONE);
    machine.reserve(VirtAddr(0), 4096).unwrap();
    machine.store_bytes(VirtAddr(0), &[7; 16]);
    machine.store_exact(VirtAddr(3), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let mut found = [0; 16];
    machine.load_bytes(VirtAddr(0), &mut found);
    assert_eq!(found, [7, 7, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 7, 7, 7]);
}

/// A device of eight frames has no ninth until one is given back, and a frame that was given back reads as zeros.
#[test]
fn space_that_is_given_back_reads_zeros_and_can_be_had_again() {
    let frame = |number: u64| VirtAddr(number * FRAME_BYTES);
    let machine = Machine::new(MachineOptions {
        space_limit: 8 * FRAME_BYTES,
        capacity: 1 << 20,
        ..MachineOptions::of(Description::of("ffccd").unwrap())
    });
    let frames = |machine: &Machine| machine.backed_bytes().unwrap() / FRAME_BYTES;
    let is_refused = |refused: Result<(), MediumError>| {
        assert!(
            matches!(refused, Err(MediumError::NoSpace { .. })),
            "{refused:?}"
        );
    };
    machine.reserve(frame(0), 8 * FRAME_BYTES).unwrap();
    for number in 0..8 {
        machine.store_u64(frame(number), number + 1);
        machine.persist(frame(number), 8);
    }
    is_refused(machine.reserve(frame(8), FRAME_BYTES));
    assert_eq!((machine.len(), frames(&machine)), (8 * FRAME_BYTES, 8));
    machine.discard(frame(2), FRAME_BYTES).unwrap();
    assert_eq!((machine.load_u64(frame(2)), frames(&machine)), (0, 7));
    is_refused(machine.reserve(frame(8), 2 * FRAME_BYTES));
    machine.restart();
    let found = [1, 2, 3].map(|number| machine.load_u64(frame(number)));
    assert_eq!(found, [2, 0, 4]);
    machine.truncate(4 * FRAME_BYTES).unwrap();
    assert_eq!((machine.len(), frames(&machine)), (4 * FRAME_BYTES, 3));
    machine.reserve(frame(0), 8 * FRAME_BYTES).unwrap();
    let found = [0, 2, 3, 4, 7].map(|number| machine.load_u64(frame(number)));
    assert_eq!((found, frames(&machine)), ([1, 0, 4, 0, 0], 8));
}

#[test]
fn a_locked_instruction_on_a_volatile_word_does_what_its_name_says() {
    let machine = machine(Domain::Adr, 0, &NONE);
    let words = machine.words(2);
    words.store(1, 0b1100);
    let old = [
        words.fetch_and(1, 0b0110),
        words.fetch_or(1, 0b0011),
        words.fetch_add(1, 2),
        words.swap(1, 5),
    ];
    assert_eq!(old, [0b1100, 0b0100, 0b0111, 0b1001]);
    assert_eq!(words.compare_exchange(1, 4, 9), Err(5));
    assert_eq!(words.compare_exchange(1, 5, 9), Ok(5));
    assert_eq!((words.load(0), words.load(1)), (0, 9));
}
