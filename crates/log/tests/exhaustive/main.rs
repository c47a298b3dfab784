//! Does a log whose disk loses power hold a prefix of what was appended, with all that was durable? Every execution of
//! small logs is crashed at every step, with every content of every sector, and again inside the recovery. No write to the
//! log is ever refused for want of space.

mod disk;
mod driver;
mod explorer;
mod faults;
mod pool;

use driver::Config;
use explorer::Explorer;
use faults::Fault;
use pool::Deed::{Discard, Long, Reserve, Store, Truncate};

/// Writes, syncs and a checkpoint at once, in segments of one block: a slot is used again after two blocks.
const AT_ONCE: Config = Config {
    name: "at once",
    segment: 1,
    segments: (2, 3),
    deeds: &[Store(&[0, 1]), Store(&[0, 2]), Store(&[1])],
    one_by_one: false,
    may_fail: true,
};

/// Records of two blocks, which a crash may tear, and a log that grows for them.
const TORN: Config = Config {
    name: "torn",
    segment: 2,
    segments: (1, 3),
    deeds: &[Store(&[0, 2]), Long(0), Truncate, Long(1)],
    one_by_one: true,
    may_fail: false,
};

/// Segments of two blocks that are used again, with older blocks behind newer ones in a slot.
const LAPS: Config = Config {
    name: "laps",
    segment: 2,
    segments: (2, 2),
    deeds: &[
        Store(&[0]),
        Store(&[1]),
        Store(&[0]),
        Store(&[1]),
        Store(&[0, 1]),
    ],
    one_by_one: true,
    may_fail: false,
};

/// Space that is given back and taken again.
const SPACE: Config = Config {
    name: "space",
    segment: 1,
    segments: (2, 3),
    deeds: &[Store(&[2]), Discard, Reserve, Store(&[2])],
    one_by_one: true,
    may_fail: false,
};

const ALL: [Config; 4] = [AT_ONCE, TORN, LAPS, SPACE];

/// Every fault, and where it shows.
const FAULTS: [(Fault, Config); 14] = [
    (Fault::StaleLine, AT_ONCE),
    (Fault::Order, AT_ONCE),
    (Fault::NotDurable, AT_ONCE),
    (Fault::PastTheEnd, AT_ONCE),
    (Fault::DurableAlone, AT_ONCE),
    (Fault::Checksum, TORN),
    (Fault::Lap, LAPS),
    (Fault::SharedBlock, TORN),
    (Fault::HomeBeforeLog, AT_ONCE),
    (Fault::TailBeforeHome, AT_ONCE),
    (Fault::FreeBeforeHead, AT_ONCE),
    (Fault::UnwrittenSlots, TORN),
    (Fault::OldSalt, AT_ONCE),
    (Fault::Poison, AT_ONCE),
];

#[test]
fn every_outcome_of_every_sector_is_a_prefix_with_all_that_was_durable() {
    for config in &ALL {
        let mut explorer = Explorer::new(None);
        explorer.explore(config, 2);
        println!("{}: {:?}", config.name, explorer.counts);
        assert_eq!(explorer.found, None, "{}", config.name);
        assert!(explorer.counts.states > 10_000 && explorer.counts.of_recoveries > 1_000);
        assert!(explorer.counts.second_openings > 100);
    }
}

/// Each of these rules is needed: without it some outcome is wrong.
#[test]
fn a_rule_that_is_broken_is_caught() {
    for (fault, config) in FAULTS {
        let mut explorer = Explorer::new(Some(fault));
        explorer.explore(&config, 1);
        let found = explorer
            .found
            .unwrap_or_else(|| panic!("{fault:?} was not caught"));
        let recoveries = explorer.counts.recoveries;
        println!(
            "{fault:?} in {}, after {recoveries} recoveries: {found}",
            config.name
        );
    }
}
