//! Patterns of addresses on the computer by itself: memory has no content, and only time is asked for.

use firn_machine::description::Description;
use firn_machine::{Computer, DRAM_START, Overlap, Request};
use firn_units::{LINE_BYTES, PhysAddr};

use super::address::{KIB, LARGE, MIB, Mix, STORES};
use super::{Goal, Run, Subject};

/// Cores of the pattern that has several.
const CORES: u32 = 8;
/// One access in this many goes to a line that all cores use.
const SHARED: u64 = 32;
/// A fence follows this many pairs of a store and a write-back.
const PAIRS: u64 = 8;
/// Lines from one request to the next, so that close requests are not in consecutive rows.
const STRIDE: u64 = 17;
/// Requests that wait for the controller at the same time.
const UNDER_WAY: usize = 32;
/// Bytes of each device that requests go to.
const REQUESTED: u64 = 16 * MIB;

pub(super) fn subjects(described: &Description) -> Vec<Subject> {
    let one = one_core(described);
    let random = |bytes: u64| {
        let one = one.clone();
        move || random(&one, bytes)
    };
    let of = |make: fn(&Description) -> Run, described: &Description| {
        let described = described.clone();
        move || make(&described)
    };
    let several = with_cores(described, CORES);
    let rows = Description::of("thynvm").expect("it comes with the program");
    vec![
        Subject::new("l1", "L1 hits", Goal::Least(80.0), random(16 * KIB)),
        Subject::new(
            "mix",
            "95 / 4 / 0.9 / 0.1 % from L1, L2, the last cache, memory",
            Goal::Least(60.0),
            of(mix, &one),
        ),
        Subject::new("192k", "random over 192 KiB", Goal::None, random(192 * KIB)),
        Subject::new("1m", "random over 1 MiB", Goal::None, random(MIB)),
        Subject::new(
            "random",
            "random over 512 MiB",
            Goal::Least(15.0),
            random(LARGE),
        )
        .slow(),
        Subject::new(
            "store_clwb",
            "stores, each written back, a fence for eight",
            Goal::None,
            of(store_clwb, &one),
        ),
        Subject::new("cores8", "8 cores", Goal::Least(20.0), of(cores, &several)),
        Subject::new(
            "requests",
            "requests to the controller, fixed latencies",
            Goal::Least(10.0),
            of(requests, &one),
        ),
        Subject::new(
            "requests_rows",
            "requests to the controller, banks and rows (ThyNVM's machine)",
            Goal::Least(10.0),
            of(requests, &rows),
        ),
        Subject::new(
            "misses",
            "accesses of a core that all miss: requests and their way through the caches",
            Goal::None,
            of(misses, &one),
        )
        .slow(),
    ]
}

pub(super) fn with_cores(described: &Description, count: u32) -> Description {
    let mut described = described.clone();
    described.core.count = count;
    described
}

pub(super) fn one_core(described: &Description) -> Description {
    with_cores(described, 1)
}

#[inline(always)]
fn access(computer: &mut Computer, core: usize, turn: u64, at: PhysAddr) {
    match turn % STORES {
        0 => computer.store(core, at),
        _ => computer.load(core, at, Overlap::Chain),
    }
}

/// Continues a pattern in which each turn is this many operations.
fn turns(
    described: &Description,
    operations: u64,
    mut turn: impl FnMut(&mut Computer, u64) + 'static,
) -> Run {
    let mut computer = Computer::new(described);
    let mut next = 0;
    Box::new(move |count| {
        let end = next + count / operations;
        (next..end).for_each(|number| turn(&mut computer, number));
        let done = (end - next) * operations;
        next = end;
        core::hint::black_box(computer.statistics());
        Ok(done)
    })
}

fn random(described: &Description, bytes: u64) -> Run {
    let mut random = fastrand::Rng::with_seed(1);
    turns(described, 1, move |computer, turn| {
        let at = PhysAddr(random.u64(..) & (bytes - 1));
        access(computer, 0, turn, at);
    })
}

fn mix(described: &Description) -> Run {
    let mut mix = Mix::new(1, LARGE);
    turns(described, 1, move |computer, turn| {
        access(computer, 0, turn, PhysAddr(mix.next()));
    })
}

fn store_clwb(described: &Description) -> Run {
    let mut random = fastrand::Rng::with_seed(1);
    turns(described, 2, move |computer, turn| {
        let at = PhysAddr(random.u64(..) & (MIB - 1));
        computer.store(0, at);
        computer.write_back(0, at);
        if turn.is_multiple_of(PAIRS) {
            computer.fence(0);
        }
    })
}

/// Each core has its own mix; some accesses go to lines that all share.
fn cores(described: &Description) -> Run {
    let cores = u64::from(described.core.count);
    let mut mix = Mix::new(1, LARGE);
    turns(described, 1, move |computer, turn| {
        let core = turn % cores;
        let own = core << 30 | mix.next();
        let at = match (own / LINE_BYTES).is_multiple_of(SHARED) {
            true => DRAM_START.bytes() | (own & (16 * KIB - 1)),
            false => own,
        };
        access(computer, core as usize, turn / cores, PhysAddr(at));
    })
}

/// The address of a request: to both devices in turns, with a stride that no cache holds, within few pages.
fn requested(turn: u64) -> PhysAddr {
    let at = (turn * STRIDE * LINE_BYTES) & (REQUESTED - 1);
    let device = if turn & 1 == 0 { 0 } else { DRAM_START.bytes() };
    PhysAddr(at | device)
}

/// Requests as in a trace: straight to the controller, as soon as few enough are under way.
fn requests(described: &Description) -> Run {
    let mut now = 0;
    let mut under_way = [0; UNDER_WAY];
    turns(described, 1, move |computer, turn| {
        let request = match (turn / 2) % STORES {
            0 => Request::Write,
            _ => Request::Read,
        };
        let done_at = &mut under_way[turn as usize % UNDER_WAY];
        now = now.max(*done_at);
        *done_at = computer.request(requested(turn), request, now);
    })
}

fn misses(described: &Description) -> Run {
    turns(described, 1, |computer, turn| {
        access(computer, 0, turn / 2, requested(turn));
    })
}
