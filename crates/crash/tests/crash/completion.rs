//! Does the exploration that does not tell apart which lines of a copy reached persistence find everything that trying
//! each image finds?

use std::cell::RefCell;
use std::collections::BTreeSet;

use firn_crash::{
    Crash, CrashOptions, CrashState, Exploration, ExploreOptions, Explorer, RelocateUnit, Report,
};
use firn_media::{Domain, Hardware, MediumExt, Memory, Relocate, Space};
use firn_units::{LINE_BYTES, VirtAddr};

fn unit(crash: &Crash) -> &dyn Relocate {
    crash.offers().expect()
}

/// Two copies: three lines, and two.
const COPIES: [(VirtAddr, VirtAddr, u64); 2] = [
    (VirtAddr(0), VirtAddr(1024), 3),
    (VirtAddr(512), VirtAddr(1536), 2),
];
/// A log of one change: its address, its value, and whether it is valid.
const LOG: VirtAddr = VirtAddr(2048);

/// What a recovery concluded, and what was acknowledged.
type Outcome = (Vec<u64>, u64);

fn lines(to: VirtAddr, count: u64) -> impl Iterator<Item = VirtAddr> {
    (0..count).map(move |nth| to + nth * LINE_BYTES)
}

fn setup(crash: &Crash) {
    for (from, _, count) in COPIES {
        for (nth, line) in lines(from, count).enumerate() {
            crash.store_u64(line + 8, nth as u64 + 1);
        }
    }
    crash.sync().unwrap();
}

fn copy_line(crash: &Crash, seed: u64, from: VirtAddr, to: VirtAddr) {
    if seed.is_multiple_of(2) {
        unit(crash).relocate(from, to, LINE_BYTES);
    } else {
        // Plain stores, and the mark last.
        crash.store_u64(to + 8, crash.load_u64(from + 8));
        unit(crash).relocate(from + 56, to + 56, 8);
    }
}

/// Copies, with their lines in any order, followed by logged changes.
fn program(crash: &Crash, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for (from, to, count) in COPIES {
        let mut order: Vec<u64> = (0..count).collect();
        random.shuffle(&mut order);
        if random.u8(..6) == 0 {
            order.pop();
        }
        for nth in order.iter().map(|nth| nth * LINE_BYTES) {
            copy_line(crash, seed, from + nth, to + nth);
            if random.u8(..3) == 0 {
                crash.write_back(to + random.u64(..count) * LINE_BYTES, 1);
            }
            if random.u8(..4) == 0 {
                crash.fence();
            }
        }
        if random.bool() {
            let home = to + random.u64(..count) * LINE_BYTES + random.u64(..3) * 8;
            crash.store_u64(LOG, home.bytes());
            crash.store_u64(LOG + 8, 9);
            crash.persist(LOG, 16);
            crash.note(home.bytes());
            crash.store_u64(home, 9);
            crash.write_back(home, 8);
        }
    }
}

/// Completes copies that arrived in part or are named by the log; then applies the log.
fn recover(crash: &Crash, seed: u64) -> Vec<u64> {
    let logged = crash.load_u64(LOG);
    let mut seen = Vec::new();
    for (from, to, count) in COPIES {
        let bytes = count * LINE_BYTES;
        let is_named = (to.bytes()..to.bytes() + bytes).contains(&logged);
        let claimed = is_named || unit(crash).any_reached(to, bytes);
        seen.push(u64::from(claimed));
        if claimed {
            for (from, to) in lines(from, count).zip(lines(to, count)) {
                let mut copy = || copy_line(crash, seed, from, to);
                unit(crash).unless_reached(to, &mut copy);
            }
            crash.write_back(to, bytes);
        }
    }
    crash.fence();
    if logged != 0 && crash.load_u64(LOG + 8) != 0 {
        crash.store_u64(VirtAddr(logged), 9);
        crash.persist(VirtAddr(logged), 8);
    }
    crash.end_of_recovery();
    for (nth, (_, to, count)) in COPIES.iter().enumerate() {
        let claimed = seen[nth] == 1;
        for line in lines(*to, *count).filter(|_| claimed) {
            seen.extend([0, 8, 16].map(|word| crash.load_u64(line + word)));
        }
    }
    seen
}

fn outcomes(
    exploration: Exploration,
    domain: Domain,
    depth: u32,
    seed: u64,
) -> (BTreeSet<Outcome>, Report) {
    let found = RefCell::<BTreeSet<Outcome>>::default();
    let options = ExploreOptions {
        medium: CrashOptions {
            capacity: 1 << 12,
            relocate: Some(RelocateUnit::Functional),
            ..CrashOptions::with_domain(domain)
        },
        exploration,
        recovery_depth: depth,
        max_states: u64::MAX,
        states_per_recovery: u64::MAX,
        ..ExploreOptions::default()
    };
    let explorer = Explorer::new(
        options,
        4096,
        setup,
        |crash| program(crash, seed),
        |crash: Crash, state: &CrashState| {
            let seen = recover(&crash, seed);
            found.borrow_mut().insert((seen, state.note(0)));
            Ok(())
        },
    );
    let report = explorer.explore();
    assert!(report.expect_clean().exhaustive(), "{report}");
    drop(explorer);
    (found.into_inner(), report)
}

#[test]
fn the_outcomes_are_those_of_each_image() {
    let (mut joined, mut each, mut images) = (0, 0, 0);
    for domain in [Domain::Adr, Domain::Eadr] {
        for seed in 0..400 {
            for depth in 0..if seed < 100 { 3 } else { 2 } {
                let (found, report) = outcomes(Exploration::Lazy, domain, depth, seed);
                let (expected, whole) = outcomes(Exploration::EachWord, domain, depth, seed);
                assert_eq!(found, expected, "seed {seed}, {domain}, depth {depth}");
                (joined, each) = (joined + report.states, each + whole.states);
            }
            let (found, report) = outcomes(Exploration::Lazy, domain, 0, seed);
            if report.images < 20_000 {
                let (expected, eager) = outcomes(Exploration::Eager, domain, 0, seed);
                assert_eq!(found, expected, "seed {seed}, {domain}");
                images += eager.states;
            }
        }
    }
    println!("{joined} runs, {each} of each word, {images} images");
    assert!(joined < each && images > 10_000);
}

/// A line that is completed with other content than it would have held is told apart from one that had arrived.
#[test]
fn a_wrong_completion_is_found() {
    let (from, to, count) = COPIES[0];
    let explorations = [Exploration::Lazy, Exploration::EachWord];
    for (exploration, wrong) in explorations
        .map(|one| (0..count).map(move |nth| (one, nth)))
        .into_iter()
        .flatten()
    {
        let explorer = Explorer::new(
            ExploreOptions {
                medium: CrashOptions {
                    capacity: 1 << 12,
                    relocate: Some(RelocateUnit::Functional),
                    ..CrashOptions::with_domain(Domain::Adr)
                },
                exploration,
                ..ExploreOptions::default()
            },
            4096,
            setup,
            |crash| unit(crash).relocate(from, to, count * LINE_BYTES),
            |crash: Crash, _: &CrashState| {
                if unit(&crash).any_reached(to, count * LINE_BYTES) {
                    for nth in 0..count {
                        let to = to + nth * LINE_BYTES;
                        let nth = nth + u64::from(nth == wrong);
                        let from = from + nth * LINE_BYTES;
                        let mut copy = || unit(&crash).relocate(from, to, LINE_BYTES);
                        unit(&crash).unless_reached(to, &mut copy);
                    }
                }
                crash.end_of_recovery();
                let (wrong, expected) = (to + wrong * LINE_BYTES, wrong + 1);
                match (crash.load_u64(wrong + 8), unit(&crash).reached(wrong)) {
                    (value, true) if value != expected => Err(format!("found {value}")),
                    _ => Ok(()),
                }
            },
        );
        assert!(!explorer.explore().findings.is_empty(), "{exploration:?}");
    }
}
