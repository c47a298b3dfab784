//! Does the machine take as long as it should? Closed forms of single parts, each in a pattern that nothing
//! else slows down.

use firn_machine::description::{Description, Latency};
use firn_machine::{Computer, DRAM_START, Overlap, PageSize};
use firn_units::{LINE_BYTES, PhysAddr};

const L2: u32 = 25;
const NVM: u32 = 360;
const DRAM: u32 = 120;
const ACCEPT: u32 = 30;
const TLB2: u32 = 4;
const WALK: u32 = 60;
const SMALL_WALK: u32 = 85;
const CLOCK_MHZ: u32 = 2_600;

/// FFCCD's machine, with one core.
fn ffccd() -> Description {
    let mut described = Description::of("ffccd").unwrap();
    described.core.count = 1;
    described
}

/// FFCCD's machine with one core, and with persistent memory that has rows.
fn with_rows() -> Description {
    let mut described = ffccd();
    described.nvm.latency = Latency::Rows {
        banks: 16,
        row_bytes: 8 << 10,
        hit: 120,
        clean_miss: 384,
        dirty_miss: 1_104,
    };
    described
}

fn line(number: u64) -> PhysAddr {
    PhysAddr(number * LINE_BYTES)
}

/// Average cycles of an access, over `rounds` passes through the addresses after an uncounted one.
fn average(
    computer: &mut Computer,
    addresses: &[PhysAddr],
    rounds: usize,
    mut access: impl FnMut(&mut Computer, PhysAddr),
) -> f64 {
    let mut begin = 0;
    for round in 0..=rounds {
        if round == 1 {
            begin = computer.now(0);
        }
        for &at in addresses {
            access(computer, at);
        }
    }
    (computer.now(0) - begin) as f64 / 1_000.0 / (rounds * addresses.len()) as f64
}

fn chain(computer: &mut Computer, at: PhysAddr) {
    computer.load(0, at, Overlap::Chain);
}

fn stream(computer: &mut Computer, at: PhysAddr) {
    computer.load(0, at, Overlap::Independent);
}

#[track_caller]
fn expect_close(found: f64, expected: f64) {
    let off = (found - expected).abs() / expected;
    assert!(off < 0.01, "{found} cycles, expected {expected}");
}

#[test]
fn a_chain_takes_the_latency_of_its_level() {
    let mut computer = Computer::new(&ffccd());
    let near: Vec<_> = (0..500).map(line).collect();
    expect_close(average(&mut computer, &near, 10, chain), 1.0);
    let second: Vec<_> = (0..20_000).map(line).collect();
    expect_close(
        average(&mut computer, &second, 3, chain),
        1.0 + f64::from(L2),
    );
    let nvm: Vec<_> = (0..200_000).map(line).collect();
    let expected = 1.0 + f64::from(L2 + NVM);
    expect_close(average(&mut computer, &nvm, 1, chain), expected);
    let dram: Vec<_> = (0..200_000).map(|n| DRAM_START + n * LINE_BYTES).collect();
    let expected = 1.0 + f64::from(L2 + DRAM);
    expect_close(average(&mut computer, &dram, 1, chain), expected);
}

#[test]
fn independent_misses_overlap() {
    let mut computer = Computer::new(&ffccd());
    let nvm: Vec<_> = (0..200_000).map(line).collect();
    let expected = 1.0 + f64::from(L2) / 4.0 + f64::from(NVM) / 4.0;
    expect_close(average(&mut computer, &nvm, 1, stream), expected);
}

/// With enough misses in flight, each direction of each device takes the time of its bytes.
#[test]
fn a_stream_takes_the_bandwidth() {
    let mut described = ffccd();
    described.core.parallel_misses = 256;
    let cycles = |megabytes: f64| LINE_BYTES as f64 * f64::from(CLOCK_MHZ) / megabytes;
    let lines = 0..400_000;
    let nvm: Vec<_> = lines.clone().map(line).collect();
    let dram: Vec<_> = lines.map(|n| DRAM_START + n * LINE_BYTES).collect();
    let mut computer = Computer::new(&described);
    expect_close(average(&mut computer, &nvm, 1, stream), cycles(12_000.0));
    let mut computer = Computer::new(&described);
    expect_close(average(&mut computer, &dram, 1, stream), cycles(24_000.0));
    let mut computer = Computer::new(&described);
    let written = average(&mut computer, &nvm, 1, |computer, at| {
        computer.store(0, at);
        computer.write_back(0, at);
        computer.fence(0);
    });
    assert!(written > cycles(4_000.0), "a fence a line waits for more");
    let mut computer = Computer::new(&described);
    let written = average(&mut computer, &nvm[..6_400], 4, |computer, at| {
        computer.store(0, at);
        computer.write_back(0, at);
        if at.bytes() / LINE_BYTES % 640 == 639 {
            computer.fence(0);
        }
    });
    expect_close(written, cycles(4_000.0));
}

/// A persist of a cached line: the store enters the cache, the line goes down, the queue accepts it.
#[test]
fn a_persist_takes_its_way_to_the_queue() {
    let mut computer = Computer::new(&ffccd());
    let at = [line(7)];
    let cycles = average(&mut computer, &at, 1_000, |computer, at| {
        computer.work(0, 1_000);
        computer.store(0, at);
        computer.write_back(0, at);
        computer.fence(0);
    });
    // The store is done a cycle after it was issued, when the write-back begins.
    expect_close(cycles - 1_000.0, f64::from(1 + 1 + L2 + ACCEPT));
    let statistics = computer.statistics();
    assert_eq!(statistics.queue.accepted, 1_001);
    assert_eq!(statistics.nvm.writes, 1_001);
}

#[test]
fn stores_to_a_line_that_waits_go_with_it() {
    let mut computer = Computer::new(&ffccd());
    for at in (0..60).chain([1_000]).map(line) {
        computer.load(0, at, Overlap::Chain);
    }
    for n in 0..60 {
        for at in [line(n), line(1_000)] {
            computer.store(0, at);
            computer.write_back(0, at);
        }
    }
    let statistics = computer.statistics();
    assert_eq!(statistics.queue.accepted, 120);
    assert!(statistics.queue.coalesced >= 40, "{:?}", statistics.queue);
    let writes = statistics.queue.accepted - statistics.queue.coalesced;
    assert_eq!(statistics.nvm.writes, writes);
}

#[test]
fn a_full_queue_holds_up_a_fence() {
    let mut computer = Computer::new(&ffccd());
    let burst = 200;
    for n in 0..burst {
        computer.load(0, line(n), Overlap::Chain);
    }
    let begin = computer.now(0);
    for n in 0..burst {
        computer.store(0, line(n));
        computer.write_back(0, line(n));
    }
    computer.fence(0);
    let cycles = (computer.now(0) - begin) as f64 / 1_000.0;
    // The last line gets an entry when all but 64 of the earlier ones have been written.
    let written = LINE_BYTES as f64 * f64::from(CLOCK_MHZ) / 4_000.0;
    let before = (burst - 64 - 1) as f64;
    let expected = before * written + f64::from(NVM + L2 + 2 * ACCEPT);
    expect_close(cycles, expected);
    assert!(computer.statistics().queue.full_cycles() > 0);
}

#[test]
fn a_full_store_buffer_holds_up_the_core() {
    let mut computer = Computer::new(&ffccd());
    let taken = f64::from(L2 + NVM) / 4.0;
    let nvm: Vec<_> = (0..100_000).map(line).collect();
    let cycles = average(&mut computer, &nvm, 1, |computer, at| computer.store(0, at));
    expect_close(cycles, taken);
    let mut computer = Computer::new(&ffccd());
    for &at in &nvm[..56] {
        computer.store(0, at);
    }
    let walks = computer.statistics().cores[0].counts.stalls.translation / 1_000;
    assert_eq!(
        computer.now(0) / 1_000,
        56 + walks,
        "there was room for all"
    );
}

#[test]
fn a_page_that_no_buffer_has_takes_a_walk() {
    for (size, bytes) in [(PageSize::Small, 4 << 10), (PageSize::Huge, 2 << 20)] {
        let (near, walk) = match size {
            PageSize::Small => (64, SMALL_WALK),
            PageSize::Huge => (32, WALK),
        };
        let expect = |pages: u64, expected: u32| {
            let mut computer = Computer::new(&ffccd()).with_pages(size, size);
            // A line of each page, all in different sets of the caches.
            let page = |n| PhysAddr(n * bytes + n * LINE_BYTES);
            let pages: Vec<_> = (0..pages).map(page).collect();
            average(&mut computer, &pages, 4, chain);
            let before = computer.statistics().cores[0].counts.stalls.translation;
            average(&mut computer, &pages, 4, chain);
            let after = computer.statistics().cores[0].counts.stalls.translation;
            let each = (after - before) as f64 / 1_000.0 / (5 * pages.len()) as f64;
            assert!(
                (each - f64::from(expected)).abs() < 0.01,
                "{size:?}: {each}"
            );
        };
        expect(near, 0);
        expect(1_000, TLB2);
        expect(4_000, TLB2 + walk);
    }
}

#[test]
fn a_row_that_is_open_is_read_sooner() {
    let rows = |stride: u64, access: fn(&mut Computer, PhysAddr)| {
        let mut computer = Computer::new(&with_rows());
        let lines: Vec<_> = (0..102_400).map(|n| line(n * stride)).collect();
        let cycles = average(&mut computer, &lines, 1, access);
        (cycles, computer.statistics().nvm)
    };
    let (cycles, counts) = rows(1, chain);
    // One of a row's 128 lines opens it.
    expect_close(
        cycles,
        1.0 + f64::from(L2) + (127.0 * 120.0 + 384.0) / 128.0,
    );
    assert_eq!(counts.row_hits, 127 * counts.row_misses);
    let (cycles, counts) = rows(128 * 16, chain);
    assert_eq!(counts.row_hits, 0);
    let walks = f64::from(TLB2 + WALK) / 16.0;
    expect_close(cycles, 1.0 + f64::from(L2 + 384) + walks);
}

#[test]
fn a_locked_instruction_waits_for_older_stores() {
    let mut computer = Computer::new(&ffccd());
    computer.load(0, line(0), Overlap::Chain);
    let begin = computer.now(0);
    computer.store(0, line(1));
    computer.locked(0, line(0));
    let cycles = (computer.now(0) - begin) / 1_000;
    assert_eq!(cycles, 1 + u64::from(L2 + NVM) / 4);
}

/// The printed stalls of a core name the device that it waited for.
#[test]
fn a_stall_has_the_name_of_what_was_waited_for() {
    for (start, name, latency) in [(PhysAddr(0), "nvm", NVM), (DRAM_START, "dram", DRAM)] {
        let mut computer = Computer::new(&ffccd());
        for number in 0..100 {
            computer.load(0, start + number * LINE_BYTES, Overlap::Chain);
        }
        let stalls = computer.statistics().cores[0].counts.stalls;
        for (named, cycles) in stalls.named_cycles() {
            match named {
                "nvm" | "dram" if named == name => {
                    assert_eq!(cycles, 100 * u64::from(latency), "{named}");
                }
                "nvm" | "dram" => assert_eq!(cycles, 0, "{named}"),
                _ => {}
            }
        }
    }
}
