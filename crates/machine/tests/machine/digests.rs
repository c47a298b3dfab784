//! Does a machine still compute what it computed before? Digests of all its counts, over seeded programs. They change
//! only with the model, never with its speed.

use core::fmt::Write;

use firn_machine::description::{Buffer, Cache, Description, NAMES};
use firn_machine::statistics::Statistics;
use firn_machine::{Computer, DRAM_START, Job, Machine, MachineOptions, Overlap, PageSize, RunEnd};
use firn_media::{Domain, Memory, Runtime, Space, Words};
use firn_units::{PhysAddr, VirtAddr};
use xxhash_rust::xxh3::xxh3_64;

const OPERATIONS: u64 = 200_000;
const WORKING_SETS: [u64; 6] = [8 << 10, 40 << 10, 1 << 20, 5 << 20, 64 << 20, 1 << 30];

/// All counts, as numbers in a text.
fn numbers(statistics: &Statistics) -> String {
    let mut text = String::new();
    for core in &statistics.cores {
        let counts = core.counts;
        let stalls = counts.stalls;
        let instructions = [
            core.cycles,
            counts.instructions,
            counts.loads,
            counts.stores,
            counts.write_backs,
            counts.fences,
            counts.locked,
            counts.walks,
        ];
        let waits = [
            stalls.translation,
            stalls.caches,
            stalls.transfer,
            stalls.dram,
            stalls.nvm,
            stalls.store_buffer,
            stalls.fence,
        ];
        let found = &counts.found_in;
        writeln!(text, "{instructions:?} {waits:?} {found:?}").unwrap();
    }
    let queue = statistics.queue;
    let queue = [
        queue.accepted,
        queue.coalesced,
        queue.forwarded,
        queue.full_cycles(),
    ];
    write!(text, "{queue:?}").unwrap();
    for device in [statistics.nvm, statistics.dram] {
        let counts = [
            device.reads,
            device.writes,
            device.row_hits,
            device.row_misses,
        ];
        write!(text, " {counts:?}").unwrap();
    }
    text
}

/// A machine whose numbers of ways and sets are no powers of two, and whose buffers are small.
fn odd() -> Description {
    let mut described = Description::of("thynvm").unwrap();
    let cache = |lines: u64, ways, hit_cycles, shared| Cache {
        name: String::new(),
        bytes: lines * 64,
        ways,
        hit_cycles,
        shared,
    };
    described.caches = vec![
        cache(60, 3, 2, false),
        cache(700, 10, 9, false),
        cache(9_400, 20, 30, true),
    ];
    let buffer = |entries, ways, hit_cycles| Buffer {
        entries,
        ways,
        hit_cycles,
    };
    described.translation.small = vec![buffer(12, 12, 1), buffer(119, 17, 7)];
    described.translation.huge = vec![buffer(5, 1, 0)];
    described.controller.queue_entries = 5;
    described.core.store_buffer_entries = 3;
    described.core.parallel_misses = 3;
    described.core.millicycles_per_instruction = 333;
    described
}

/// An address near the program's previous one, in a working set, or in lines that all cores use.
fn address(random: &mut fastrand::Rng, core: u64, before: u64) -> u64 {
    let set = WORKING_SETS[random.usize(..WORKING_SETS.len())];
    match random.u32(..10) {
        0 | 1 => before + 8,
        2 => random.u64(..4 << 10),
        3 => DRAM_START.bytes() + random.u64(..4 << 10),
        4 | 5 => DRAM_START.bytes() + (core << 31) + random.u64(..set),
        _ => (core << 31) + random.u64(..set),
    }
}

fn digest_of_computer(described: &Description, cores: u32, pages: (PageSize, PageSize)) -> u64 {
    let mut described = described.clone();
    described.core.count = cores;
    let mut computer = Computer::new(&described).with_pages(pages.0, pages.1);
    let mut random = fastrand::Rng::with_seed(u64::from(cores));
    let mut before = vec![0; cores as usize];
    for _ in 0..OPERATIONS {
        let core = random.usize(..cores as usize);
        let bytes = address(&mut random, core as u64, before[core]);
        before[core] = bytes;
        let at = PhysAddr(bytes);
        match random.u32(..20) {
            0..7 => computer.load(core, at, Overlap::Chain),
            7..10 => computer.load(core, at, Overlap::Independent),
            10..16 => computer.store(core, at),
            16 => computer.locked(core, at),
            17 => computer.write_back(core, at),
            18 => {
                computer.store(core, at);
                computer.write_back(core, at);
                computer.load(core, at, Overlap::Chain);
            }
            _ if random.bool() => computer.fence(core),
            _ => computer.work(core, random.u64(..300)),
        }
    }
    let clocks: Vec<u64> = (0..cores as usize).map(|core| computer.now(core)).collect();
    let text = format!("{} {clocks:?}", numbers(&computer.statistics()));
    xxh3_64(text.as_bytes())
}

/// The work of one thread of a machine.
fn job(machine: &Machine, seed: u64, bytes: u64) -> Job {
    let machine = machine.clone();
    Box::new(move || {
        let mut random = fastrand::Rng::with_seed(seed);
        let words = machine.words(1_000);
        for turn in 0..OPERATIONS / 8 {
            let at = match random.u32(..4) {
                0 => random.u64(..4 << 10),
                1 => random.u64(..256 << 10),
                _ => random.u64(..bytes - 64),
            };
            let at = VirtAddr(at & !7);
            match random.u32(..16) {
                0..6 => _ = machine.load_u64(at),
                6..10 => machine.store_u64(at, turn),
                10 => machine.write_back(at, 200),
                11 => machine.fence(),
                12 => _ = machine.compare_exchange_u64(at, 0, turn),
                13 => machine.store_bytes(at, &[turn as u8; 61]),
                14 => machine.load_bytes(at, &mut [0; 150]),
                _ => _ = words.fetch_add(random.usize(..1_000), words.load(7)),
            }
        }
    })
}

/// Threads run until the power fails, and again after that; memory is part of the digest.
fn digest_of_machine(described: &Description, cores: u32, domain: Domain) -> u64 {
    let bytes = 16 << 20;
    let mut described = described.clone();
    described.core.count = cores;
    let machine = Machine::new(MachineOptions {
        domain,
        capacity: 64 << 20,
        dram_pages: PageSize::Small,
        ..MachineOptions::of(described)
    });
    machine.reserve(VirtAddr(0), bytes).unwrap();
    let jobs = || (0..u64::from(cores) + 1).map(|seed| job(&machine, seed, bytes));
    let failed = machine.run_until(jobs().collect(), 20_000 * u64::from(cores));
    assert_eq!(failed, RunEnd::PowerFailed);
    let mut text = numbers(&machine.statistics());
    machine.restart();
    assert_eq!(machine.run(jobs().collect()), RunEnd::Finished);
    machine.sync().unwrap();
    text += &numbers(&machine.statistics());
    write!(text, " {} {}", machine.events(), machine.now_ns()).unwrap();
    let mut memory = vec![0; bytes as usize];
    machine.load_bytes(VirtAddr(0), &mut memory);
    machine.restart();
    machine.load_bytes(VirtAddr(0), &mut memory);
    xxh3_64(text.as_bytes()) ^ xxh3_64(&memory)
}

fn machines() -> Vec<(&'static str, Description)> {
    let named = NAMES.map(|name| (name, Description::of(name).unwrap()));
    named.into_iter().chain([("odd", odd())]).collect()
}

#[test]
fn computers_count_what_they_counted() {
    let (small, huge) = (PageSize::Small, PageSize::Huge);
    let mut found = String::new();
    for (name, described) in machines() {
        for cores in [1, 4] {
            for pages in [(huge, huge), (huge, small), (small, small)] {
                let digest = digest_of_computer(&described, cores, pages);
                writeln!(found, "{name} {cores} {pages:?} {digest:016x}").unwrap();
            }
        }
    }
    assert_eq!(found, include_str!("digests/computers.txt"), "{found}");
}

#[test]
fn machines_count_what_they_counted() {
    let mut found = String::new();
    for (name, described) in machines() {
        for cores in [1, 4] {
            for domain in [Domain::Adr, Domain::Eadr] {
                let digest = digest_of_machine(&described, cores, domain);
                writeln!(found, "{name} {cores} {domain:?} {digest:016x}").unwrap();
            }
        }
    }
    assert_eq!(found, include_str!("digests/machines.txt"), "{found}");
}
