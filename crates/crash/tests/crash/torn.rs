//! Does the exploration that looks at torn entries only as far as their checksum does find everything that trying each
//! image finds?

use std::cell::RefCell;
use std::collections::BTreeSet;

use firn_crash::{
    Crash, CrashOptions, CrashState, Exploration, ExploreOptions, Explorer, Failure, Report,
};
use firn_media::{Domain, MediumExt, Memory, Space};
use firn_units::VirtAddr;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Where entries begin: in the middle of a line, so that header and payload share it.
const SLOTS: [VirtAddr; 2] = [VirtAddr(32), VirtAddr(1024)];
/// Number, words of the payload, checksum.
const HEADER_WORDS: u64 = 3;
/// Words of a payload: up to three lines.
const MOST_WORDS: u64 = 12;
const HOME: VirtAddr = VirtAddr(2048);

/// What a recovery concluded, and what was acknowledged.
type Outcome = (Vec<u64>, u64);

fn checksum(number: u64, payload: &[u8]) -> u64 {
    xxh3_64_with_seed(payload, number << 8 | payload.len() as u64)
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Stores an entry: the header first, as a heap does when it reuses a slot, or last.
fn append(crash: &Crash, slot: VirtAddr, number: u64, payload: &[u64], header_first: bool) {
    let header = [
        number,
        payload.len() as u64,
        checksum(number, &bytes(payload)),
    ];
    let body = slot + HEADER_WORDS * 8;
    if header_first {
        crash.store_bytes(slot, &bytes(&header));
    }
    crash.store_bytes(body, &bytes(payload));
    if !header_first {
        crash.store_bytes(slot, &bytes(&header));
    }
}

/// Mostly zeros, so that lines have few contents.
fn payload(random: &mut fastrand::Rng) -> Vec<u64> {
    let mut words = vec![0; random.usize(1..=MOST_WORDS as usize)];
    for _ in 0..random.usize(1..4) {
        let place = random.usize(..words.len());
        words[place] = random.u64(1..3);
    }
    words
}

fn entries(crash: &Crash, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for number in 1..=random.u64(2..4) {
        let slot = SLOTS[random.usize(..2)];
        append(crash, slot, number, &payload(&mut random), random.bool());
        let some = random.u64(..3) * 64;
        crash.write_back(VirtAddr(slot.bytes() & !63) + some, 64);
        if random.bool() {
            crash.fence();
            crash.note(number);
        }
        match random.u8(..6) {
            // A word that no checksum covers.
            0 => crash.store_u64(slot + 8 * random.u64(3..9), random.u64(..3)),
            1 => crash.store_u64(slot, 0),
            2 => crash.discard(VirtAddr(slot.bytes() & !63), 128).unwrap(),
            3 => crash.sync().unwrap(),
            _ => {}
        }
    }
}

/// The payload of the entry in a slot, if it is whole.
fn load(crash: &Crash, slot: VirtAddr) -> Option<Vec<u64>> {
    let [number, words, sum] = [0, 1, 2].map(|word| crash.load_u64(slot + word * 8));
    if number == 0 || words > MOST_WORDS {
        return None;
    }
    let mut payload = vec![0; words as usize * 8];
    let is_whole = |covered: &[u8]| checksum(number, covered) == sum;
    let whole = crash.load_checked(slot + HEADER_WORDS * 8, &mut payload, is_whole);
    let words = payload
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word));
    whole.then(|| words.collect())
}

/// Stores at home what the slots hold; then, depending on the seed, removes entries, corrupts them, or writes new ones
/// in their places.
fn recover(crash: &Crash, seed: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    for slot in SLOTS {
        let Some(payload) = load(crash, slot) else {
            seen.push(u64::MAX);
            continue;
        };
        crash.store_u64(HOME, payload.iter().sum());
        crash.persist(HOME, 8);
        seen.extend(&payload);
    }
    for slot in SLOTS {
        match seed % 5 {
            0 => crash.store_u64(slot, 0),
            1 => append(crash, slot, 7, &[seen.len() as u64, 0, 0, 0, 0, 0, 2], true),
            2 => crash.store_u64(slot + 8 * 6, 1),
            _ => continue,
        }
        crash.persist(slot, 64);
        // Stored by this run itself.
        seen.extend(load(crash, slot).unwrap_or_default());
    }
    crash.end_of_recovery();
    seen.push(crash.load_u64(HOME));
    // Recovered again in this life.
    seen.extend(load(crash, SLOTS[1]).unwrap_or_default());
    seen
}

fn options(
    domain: Domain,
    failure: Failure,
    exploration: Exploration,
    depth: u32,
) -> ExploreOptions {
    ExploreOptions {
        medium: CrashOptions {
            capacity: 1 << 12,
            ..CrashOptions::with_domain(domain)
        },
        failure,
        exploration,
        recovery_depth: depth,
        max_states: u64::MAX,
        states_per_recovery: u64::MAX,
        ..ExploreOptions::default()
    }
}

/// The results of recoveries of one program.
fn outcomes(options: ExploreOptions, seed: u64) -> (BTreeSet<Outcome>, Report) {
    let found = RefCell::<BTreeSet<Outcome>>::default();
    let explorer = Explorer::new(
        options,
        4096,
        |crash| {
            append(crash, SLOTS[0], 5, &[1, 2, 0, 0, 0, 0, 1], true);
            crash.sync().unwrap();
        },
        |crash| entries(crash, seed),
        |crash: Crash, state: &CrashState| {
            let seen = recover(&crash, seed / 7);
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
    let (mut torn, mut each, mut images) = (0, 0, 0);
    let failures = [
        (Domain::Adr, Failure::Kill),
        (Domain::Eadr, Failure::Kill),
        (Domain::Process, Failure::Power),
    ];
    for (domain, failure) in failures {
        for seed in 0..70 {
            for depth in 0..if seed < 35 { 3 } else { 2 } {
                let explore =
                    |exploration| outcomes(options(domain, failure, exploration, depth), seed);
                let (found, report) = explore(Exploration::Lazy);
                let (expected, whole) = explore(Exploration::EachWord);
                let seed = format!("seed {seed}, {domain}, depth {depth}");
                assert_eq!(found, expected, "{seed}");
                (torn, each) = (torn + report.states, each + whole.states);
            }
            // Every image is tried where there are few.
            let explore = |exploration| outcomes(options(domain, failure, exploration, 0), seed);
            let (found, report) = explore(Exploration::Lazy);
            if report.images < 20_000 {
                let (expected, eager) = explore(Exploration::Eager);
                assert_eq!(found, expected, "seed {seed}, {domain}");
                images += eager.states;
            }
        }
    }
    println!("{torn} runs, {each} of each word, {images} images");
    assert!(torn < each && images > 10_000);
}

#[test]
fn a_torn_entry_of_many_lines_takes_few_runs() {
    const WORDS: usize = 8 * 20;
    let explore = |exploration| {
        let explorer = Explorer::new(
            options(Domain::Adr, Failure::Kill, exploration, 0),
            4096,
            |_| {},
            |crash| append(crash, VirtAddr(0), 1, &[3; WORDS], true),
            |crash: Crash, _: &CrashState| {
                let [number, _, sum] = [0, 1, 2].map(|word| crash.load_u64(VirtAddr(word * 8)));
                if number != 0 {
                    let mut payload = [0; WORDS * 8];
                    let is_whole = |covered: &[u8]| checksum(number, covered) == sum;
                    crash.load_checked(VirtAddr(24), &mut payload, is_whole);
                }
                Ok(())
            },
        );
        explorer.explore()
    };
    let report = explore(Exploration::Lazy);
    assert!(report.expect_clean().exhaustive());
    assert!(report.images > 1 << 60, "{report}");
    assert!(report.states < 200, "{report}");
}

/// A check that is not a checksum of its content, but holds for many contents, is not relied upon where it holds.
#[test]
fn what_is_let_through_is_looked_at() {
    for exploration in [Exploration::Lazy, Exploration::EachWord] {
        let explorer = Explorer::new(
            options(Domain::Adr, Failure::Kill, exploration, 0),
            4096,
            |_| {},
            |crash| crash.store_bytes(VirtAddr(0), &bytes(&[1; 24])),
            |crash: Crash, _: &CrashState| {
                let mut words = [0; 24 * 8];
                crash.load_checked(VirtAddr(0), &mut words, |_| true);
                let last = words[23 * 8];
                match words[8 * 8] {
                    0 if last != 0 => Err("the last word without the first of its line".into()),
                    _ => Ok(()),
                }
            },
        );
        assert!(!explorer.explore().findings.is_empty());
    }
}
