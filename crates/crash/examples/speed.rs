//! Measures the explorer: crash states a second with a trivial check, and with a redo log's
//! recovery on a pool of many mebibytes.

use firn_crash::{Crash, CrashOptions, ExploreOptions, Explorer, Report};
use firn_media::{MediumExt, Memory};
use firn_units::VirtAddr;

const POOL_BYTES: u64 = 16 << 20;
const LINES: u64 = 10;

fn home(line: u64) -> VirtAddr {
    VirtAddr(4096 + line * 4096)
}

/// Rounds of a redo log: append an entry of several lines, fence, store the homes, fence, store the mark.
fn rounds(crash: &Crash) {
    for round in 1..=3 {
        for line in 0..LINES {
            crash.store_u64(VirtAddr(64 + line * 64), round * 100 + line);
        }
        crash.persist(VirtAddr(64), LINES * 64);
        crash.note(round);
        for line in 0..LINES {
            crash.store_u64(home(line), round * 100 + line);
            crash.write_back(home(line), 8);
        }
        crash.fence();
        crash.store_u64(VirtAddr(0), round);
        crash.persist(VirtAddr(0), 8);
    }
}

fn recover(crash: &Crash) {
    for line in 0..LINES {
        let value = crash.load_u64(VirtAddr(64 + line * 64));
        if value != 0 {
            crash.store_u64(home(line), value);
            crash.write_back(home(line), 8);
        }
    }
    crash.fence();
    crash.end_of_recovery();
}

fn measure(name: &str, recovery_depth: u32, check: impl Fn(&Crash)) -> Report {
    let medium = CrashOptions {
        capacity: POOL_BYTES,
        ..CrashOptions::default()
    };
    let options = ExploreOptions {
        medium,
        recovery_depth,
        ..ExploreOptions::default()
    };
    let fill = |crash: &Crash| {
        (0..POOL_BYTES / 4096).for_each(|page| crash.store_u64(VirtAddr(page * 4096 + 2048), 1))
    };
    let report = Explorer::new(options, POOL_BYTES, fill, rounds, |crash, _| {
        check(&crash);
        Ok(())
    })
    .explore();
    println!("{name}: {report}");
    report
}

fn main() {
    measure("trivial check", 0, |crash| {
        crash.load_u64(home(0));
    });
    measure("recovery of ten lines", 0, recover);
    measure("recovery of ten lines, crashed once", 1, recover);
    measure("a thousand loads", 0, |crash| {
        let sum: u64 = (0..1000)
            .map(|word| crash.load_u64(VirtAddr(word * 8)))
            .sum();
        assert!(sum > 0);
    });
}
