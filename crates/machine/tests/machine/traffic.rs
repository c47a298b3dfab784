//! Is every line that a device moves counted once, under its cause, and is its energy what the paper says?

use firn_machine::description::{BitEnergy, Description, Latency};
use firn_machine::mechanism::{MECHANISMS, MechanismSpec, NONE, START_GAP, Site};
use firn_machine::statistics::{Cause, DeviceCounts, Energy, Statistics, Traffic};
use firn_machine::{Computer, DRAM_START, Overlap, Request};
use firn_units::{LINE_BYTES, PhysAddr};

const CAPACITY: u64 = 1 << 26;
/// Lines of the last cache of FFCCD's machine.
const LAST_CACHE: u64 = (3 << 20) / LINE_BYTES;

fn described() -> Description {
    let mut described = Description::of("ffccd").unwrap();
    described.core.count = 1;
    described
}

fn computer(mechanism: &'static MechanismSpec) -> Computer {
    let described = described();
    let site = Site {
        description: &described,
        capacity: CAPACITY,
    };
    Computer::new(&described).with_mechanism(mechanism, &site)
}

fn line(number: u64) -> PhysAddr {
    PhysAddr(number * LINE_BYTES)
}

fn in_dram(number: u64) -> PhysAddr {
    DRAM_START + number * LINE_BYTES
}

/// Lines by cause, in the order of causes.
fn lines(traffic: &Traffic) -> [u64; 6] {
    Cause::ALL.map(|cause| traffic.lines(cause))
}

fn total(traffic: &Traffic) -> u64 {
    lines(traffic).iter().sum()
}

/// Random accesses to so many lines that they are evicted, but so few that they are requested again.
fn run(computer: &mut Computer) -> Statistics {
    let mut random = fastrand::Rng::with_seed(5);
    for turn in 0..400_000 {
        let number = random.u64(..4 * LAST_CACHE);
        let at = match random.bool() {
            true => line(number),
            false => in_dram(number),
        };
        match random.u32(..8) {
            0..3 => computer.load(0, at, Overlap::Independent),
            3..5 => computer.store(0, at),
            5 => computer.locked(0, at),
            6 => computer.write_back(0, at),
            _ => {
                // Beyond the lines that cores touch.
                let (request, far) = match turn % 2 {
                    0 => (Request::Read, line(5 * LAST_CACHE + number)),
                    _ => (Request::Write, in_dram(5 * LAST_CACHE + number)),
                };
                let now = computer.now(0);
                computer.request(far, request, now);
            }
        }
    }
    computer.statistics()
}

#[test]
fn causes_sum_up_to_what_devices_moved() {
    for mechanism in MECHANISMS {
        let counted = run(&mut computer(mechanism));
        for device in [counted.nvm, counted.dram] {
            assert_eq!(total(&device.read), device.reads, "{}", mechanism.name);
            assert_eq!(total(&device.written), device.writes, "{}", mechanism.name);
            let bytes: u64 = device.read.named_bytes().iter().map(|(_, n)| n).sum();
            assert_eq!(bytes, device.reads * LINE_BYTES);
            assert!(device.reads > 10_000 && device.writes > 10_000);
        }
    }
}

/// The causes agree with the counts of caches and queue.
#[test]
fn causes_agree_with_what_caches_and_queue_counted() {
    let counted = run(&mut computer(&NONE));
    let (nvm, dram, queue) = (&counted.nvm, &counted.dram, &counted.queue);
    let core = &counted.cores[0].counts;
    let memory = core.found_in[2];
    let of = |device: &DeviceCounts, causes: &[Cause], written: bool| -> u64 {
        let traffic = if written {
            &device.written
        } else {
            &device.read
        };
        causes.iter().map(|&cause| traffic.lines(cause)).sum()
    };
    let fills = [Cause::Load, Cause::Store];
    let filled = of(nvm, &fills, false) + of(dram, &fills, false);
    assert!(of(nvm, &[Cause::Outside], false) > 0);
    // Reads that the queue answered reach no device. The queue holds no line that is requested from outside.
    assert_eq!(filled + queue.forwarded, memory);
    let leaving = [Cause::WriteBack, Cause::Eviction];
    assert_eq!(of(nvm, &leaving, true) + queue.coalesced, queue.accepted);
    for device in [nvm, dram] {
        assert_eq!(of(device, &leaving, false), 0, "who writes reads nothing");
        assert_eq!(of(device, &fills, true), 0);
        assert_eq!(of(device, &[Cause::Mechanism], true), 0);
    }
}

#[test]
fn each_cause_has_its_lines() {
    let mut computer = computer(&NONE);
    for number in 0..100 {
        computer.load(0, line(number), Overlap::Chain);
        computer.store(0, line(1_000 + number));
        computer.locked(0, line(2_000 + number));
        computer.load(0, in_dram(number), Overlap::Chain);
    }
    let nvm = computer.statistics().nvm;
    assert_eq!(lines(&nvm.read), [100, 200, 0, 0, 0, 0]);
    assert_eq!(total(&nvm.written), 0);
    for number in 0..100 {
        computer.write_back(0, line(1_000 + number));
        // None of these lines is dirty.
        computer.write_back(0, line(number));
    }
    assert_eq!(
        lines(&computer.statistics().nvm.written),
        [0, 0, 100, 0, 0, 0]
    );
    // The last cache is filled anew, and only lines that were stored to leave for memory.
    for number in 0..2 * LAST_CACHE {
        computer.load(0, in_dram(10_000 + number), Overlap::Independent);
    }
    let counted = computer.statistics();
    assert_eq!(lines(&counted.nvm.written), [0, 0, 100, 100, 0, 0]);
    assert_eq!(
        lines(&counted.dram.read),
        [100 + 2 * LAST_CACHE, 0, 0, 0, 0, 0]
    );
    assert_eq!(total(&counted.dram.written), 0);
}

/// Start-Gap moves a line after every hundredth write, and writes its registers.
#[test]
fn a_mechanism_moves_lines_for_itself() {
    let mut computer = computer(&START_GAP);
    for number in 0..250 {
        computer.store(0, line(number));
        computer.write_back(0, line(number));
        computer.work(0, 10_000);
    }
    let nvm = computer.statistics().nvm;
    assert_eq!(lines(&nvm.read), [0, 250, 0, 0, 2, 0]);
    assert_eq!(lines(&nvm.written), [0, 0, 250, 0, 4, 0]);
}

const ENERGY: BitEnergy = BitEnergy {
    buffer_read: 930,
    buffer_write: 1_020,
    array_read: 2_470,
    array_write: 16_820,
};

#[track_caller]
fn expect_nj(found: f64, expected_pj: f64) {
    let expected = expected_pj / 1_000.0;
    assert!(
        (found - expected).abs() < 1e-9 * expected,
        "{found} {expected}"
    );
}

/// A line has 512 bits. The buffer and the array take energy for each of them.
#[test]
fn a_line_takes_the_energy_of_its_bits() {
    let hoop = Description::of("hoop").unwrap();
    let mut computer = Computer::new(&hoop);
    for number in 0..1_000 {
        computer.load(0, line(number), Overlap::Chain);
    }
    for number in 0..10 {
        computer.store(0, line(number));
        computer.write_back(0, line(number));
        computer.work(0, 10_000);
    }
    let counted = computer.statistics();
    let energy = Energy::of(&hoop.nvm, &counted.nvm).unwrap();
    expect_nj(energy.read_nj, 1_000.0 * 512.0 * (0.93 + 2.47));
    expect_nj(energy.write_nj, 10.0 * 512.0 * (1.02 + 16.82));
    assert_eq!(energy.total_nj(), energy.read_nj + energy.write_nj);
    assert_eq!(Energy::of(&hoop.dram, &counted.dram), None, "nobody says");
}

/// A row of 128 lines is read from the array once, then from its buffer.
#[test]
fn an_open_row_takes_its_buffer_alone() {
    let mut described = described();
    described.nvm.energy = Some(ENERGY);
    described.nvm.latency = Latency::Rows {
        banks: 16,
        row_bytes: 8 << 10,
        hit: 120,
        clean_miss: 384,
        dirty_miss: 1_104,
    };
    let mut computer = Computer::new(&described);
    for number in 0..10 * 128 {
        computer.load(0, line(number), Overlap::Chain);
    }
    let counted = computer.statistics().nvm;
    let energy = Energy::of(&described.nvm, &counted).unwrap();
    expect_nj(energy.read_nj, 512.0 * (1_280.0 * 0.93 + 10.0 * 2.47));
    assert_eq!(energy.write_nj, 0.0);
}

#[test]
fn what_a_device_moved_since_is_counted_from_there_on() {
    let mut computer = computer(&NONE);
    let mut act = |first: u64, loads: u64, stores: u64| {
        (first..first + loads).for_each(|n| computer.load(0, line(n), Overlap::Chain));
        for n in (first..first + stores).map(|n| line(1_000 + n)) {
            computer.store(0, n);
            computer.write_back(0, n);
        }
        computer.work(0, 100_000);
        computer.statistics().nvm
    };
    let before = act(0, 100, 30);
    let after = act(500, 10, 5);
    let since = after.since(&before);
    assert_eq!((since.reads, since.writes), (15, 5));
    assert_eq!(lines(&since.read), [10, 5, 0, 0, 0, 0]);
    assert_eq!(lines(&since.written), [0, 0, 5, 0, 0, 0]);
}
