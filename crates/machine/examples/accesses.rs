//! How many accesses the simulated computer takes in a second of the host's CPU time, in patterns that each
//! stress another part of it.
//!
//! `speed [PATTERN [MILLIONS [MACHINE]]]`: without a pattern all of them.

use std::hint::black_box;

use firn_machine::description::Description;
use firn_machine::{Computer, DRAM_START, Machine, MachineOptions, Overlap};
use firn_media::Medium;
use firn_units::{LINE_BYTES, PhysAddr, VirtAddr};
use rustix::time::{ClockId, clock_gettime};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const LARGE: u64 = 512 * MIB;
/// One access of so many is a store.
const STORES: u64 = 4;
const MILLIONS: u64 = 20;

/// Does so many accesses on a machine, and returns the CPU seconds that they took.
type Pattern = fn(&Description, u64) -> f64;

const PATTERNS: [(&str, Pattern); 10] = [
    ("l1", |described, count| random(described, 16 * KIB, count)),
    ("mix", mix),
    ("l2", |described, count| random(described, 192 * KIB, count)),
    ("llc", |described, count| random(described, MIB, count)),
    ("random512", |described, count| {
        random(described, LARGE, count)
    }),
    ("store_clwb", store_clwb),
    ("cores8", cores8),
    ("controller", controller),
    ("image_mix", image_mix),
    ("image_random512", image_random),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_default();
    let millions = arguments.next().and_then(|text| text.parse().ok());
    let count = millions.unwrap_or(MILLIONS) * 1_000_000;
    let machine = arguments.next().unwrap_or_else(|| "ffccd".into());
    let described = Description::of(&machine).expect("a machine's name or file");
    for (name, pattern) in PATTERNS {
        if wanted.is_empty() || wanted == name {
            let rate = count as f64 / 1e6 / pattern(&described, count);
            println!("{name:16} {rate:7.1} M accesses/s");
        }
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Does something so often, a tenth of it before the clock starts.
fn timed(count: u64, mut access: impl FnMut(u64)) -> f64 {
    (0..count / 10).for_each(&mut access);
    let begin = cpu_seconds();
    (0..count).for_each(&mut access);
    cpu_seconds() - begin
}

fn one_core(described: &Description) -> Description {
    let mut described = described.clone();
    described.core.count = 1;
    described
}

#[inline(always)]
fn access(computer: &mut Computer, core: usize, turn: u64, at: PhysAddr) {
    match turn % STORES {
        0 => computer.store(core, at),
        _ => computer.load(core, at, Overlap::Chain),
    }
}

fn random(described: &Description, bytes: u64, count: u64) -> f64 {
    let mut computer = Computer::new(&one_core(described));
    let mut random = fastrand::Rng::with_seed(1);
    let taken = timed(count, |turn| {
        let at = PhysAddr(random.u64(..) & (bytes - 1));
        access(&mut computer, 0, turn, at);
    });
    black_box(computer.statistics());
    taken
}

/// Addresses of working sets that fit the nearest cache, the next one, the last one and memory, in 1024ths:
/// 95, 4, 0.9 and 0.1 percent.
struct Mix {
    masks: Box<[u64; 1024]>,
    random: fastrand::Rng,
}

impl Mix {
    fn new(seed: u64) -> Self {
        let mut masks = Box::new([16 * KIB - 1; 1024]);
        masks[..51].fill(128 * KIB - 1);
        masks[..10].fill(MIB - 1);
        masks[..1].fill(LARGE - 1);
        Self {
            masks,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let random = self.random.u64(..);
        (random >> 10) & self.masks[(random & 1023) as usize]
    }
}

fn mix(described: &Description, count: u64) -> f64 {
    let mut computer = Computer::new(&one_core(described));
    let mut mix = Mix::new(1);
    let taken = timed(count, |turn| {
        access(&mut computer, 0, turn, PhysAddr(mix.next()));
    });
    black_box(computer.statistics());
    taken
}

/// Pairs of a store and a write-back, each counted as two.
fn store_clwb(described: &Description, count: u64) -> f64 {
    let mut computer = Computer::new(&one_core(described));
    let mut random = fastrand::Rng::with_seed(1);
    let taken = timed(count / 2, |turn| {
        let at = PhysAddr(random.u64(..) & (MIB - 1));
        computer.store(0, at);
        computer.write_back(0, at);
        if turn.is_multiple_of(8) {
            computer.fence(0);
        }
    });
    black_box(computer.statistics());
    taken
}

/// Each core has its own mix; one access of 32 goes to lines that all share.
fn cores8(described: &Description, count: u64) -> f64 {
    let cores = 8;
    let mut described = described.clone();
    described.core.count = cores;
    let mut computer = Computer::new(&described);
    let mut mix = Mix::new(1);
    let taken = timed(count, |turn| {
        let core = turn % u64::from(cores);
        let own = core << 30 | mix.next();
        let shared = DRAM_START.bytes() | (own & (16 * KIB - 1));
        let at = if (own / LINE_BYTES).is_multiple_of(32) {
            shared
        } else {
            own
        };
        let stores = (turn / u64::from(cores)) % STORES;
        access(&mut computer, core as usize, stores, PhysAddr(at));
    });
    black_box(computer.statistics());
    taken
}

/// Requests that all reach the controller: each line is stored to and written back, or read, once in a while.
fn controller(described: &Description, count: u64) -> f64 {
    let mut computer = Computer::new(&one_core(described));
    let taken = timed(count, |turn| {
        // A stride that no cache holds, and few pages.
        let at = (turn * 17 * LINE_BYTES) & (16 * MIB - 1);
        let far = if turn & 1 == 0 { 0 } else { DRAM_START.bytes() };
        access(&mut computer, 0, turn / 2, PhysAddr(at | far));
    });
    black_box(computer.statistics());
    taken
}

fn machine(described: &Description) -> Machine {
    let machine = Machine::new(MachineOptions::of(one_core(described)));
    machine.reserve(VirtAddr(0), LARGE).expect("it has room");
    // The host gives memory for what is touched: before the clock starts.
    for at in (0..LARGE).step_by(4096).map(VirtAddr) {
        machine.store_u64(at, 1);
        machine.write_back(at, 8);
    }
    machine
}

#[inline(always)]
fn touch(machine: &Machine, turn: u64, at: u64) {
    let at = VirtAddr(at & !7);
    match turn % STORES {
        0 => machine.store_u64(at, turn),
        _ => _ = black_box(machine.load_u64(at)),
    }
    if turn.is_multiple_of(8 * STORES) {
        machine.write_back(at, 8);
    }
}

fn image_mix(described: &Description, count: u64) -> f64 {
    let machine = machine(described);
    let mut mix = Mix::new(1);
    timed(count, |turn| touch(&machine, turn, mix.next()))
}

fn image_random(described: &Description, count: u64) -> f64 {
    let machine = machine(described);
    let mut random = fastrand::Rng::with_seed(1);
    timed(count, |turn| {
        touch(&machine, turn, random.u64(..) & (LARGE - 1));
    })
}
