//! Do correct protocols pass, and is every planted fault found?
//!
//! Two words in two lines must always be equal after recovery, and hold either the last acknowledged value or the one
//! in flight.

use firn_crash::Exploration::{self, Eager, Lazy};
use firn_crash::{Crash, CrashOptions, CrashState, ExploreOptions, Explorer, Report, SwarmOptions};
use firn_media::{MediumExt, Memory};
use firn_units::VirtAddr;

const DATA: [VirtAddr; 2] = [VirtAddr(0), VirtAddr(64)];
const VALID: VirtAddr = VirtAddr(128);
const APPLIED: VirtAddr = VirtAddr(128);
/// Entries of the undo log: old contents.
const OLD: [VirtAddr; 2] = [VirtAddr(192), VirtAddr(256)];
/// Entry of the redo log over two lines: number, first value; second value, checksum.
const ENTRY: [VirtAddr; 4] = [VirtAddr(192), VirtAddr(200), VirtAddr(256), VirtAddr(264)];
const ROUNDS: u64 = 3;

/// A step that can be left out or done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Nothing,
    LogWriteBack(usize),
    LogFence,
    StoreBeforeLog,
    ValidWriteBack,
    ValidFence,
    DataWriteBack(usize),
    DataFence,
    RetireWriteBack,
    RetireFence,
    EarlyAcknowledgement,
    WriteBackBeforeStore,
    NoChecksum,
    ChecksumWithoutNumber,
    RecoveryWriteBack(usize),
    RecoveryFence,
    RecoveryRetiresFirst,
}
use Fault::*;

struct Steps<'a> {
    crash: &'a Crash,
    fault: Fault,
}

impl Steps<'_> {
    fn write_back(&self, at: VirtAddr, fault: Fault) {
        if self.fault != fault {
            self.crash.write_back(at, 8);
        }
    }

    fn fence(&self, fault: Fault) {
        if self.fault != fault {
            self.crash.fence();
        }
    }

    fn store_data(&self, values: [u64; 2]) {
        for (at, value) in DATA.into_iter().zip(values) {
            self.crash.store_u64(at, value);
        }
    }
}

fn undo_round(crash: &Crash, fault: Fault, value: u64) {
    let steps = Steps { crash, fault };
    if fault == StoreBeforeLog {
        steps.store_data([value; 2]);
        OLD.into_iter()
            .for_each(|at| crash.store_u64(at, value - 1));
    } else {
        OLD.into_iter()
            .zip(DATA)
            .for_each(|(old, data)| crash.store_u64(old, crash.load_u64(data)));
    }
    OLD.into_iter()
        .enumerate()
        .for_each(|(index, at)| steps.write_back(at, LogWriteBack(index)));
    steps.fence(LogFence);
    crash.store_u64(VALID, 1);
    steps.write_back(VALID, ValidWriteBack);
    steps.fence(ValidFence);
    if fault == WriteBackBeforeStore {
        DATA.into_iter().for_each(|at| crash.write_back(at, 8));
    }
    steps.store_data([value; 2]);
    if fault == EarlyAcknowledgement {
        crash.note(value);
    }
    if fault != WriteBackBeforeStore {
        DATA.into_iter()
            .enumerate()
            .for_each(|(index, at)| steps.write_back(at, DataWriteBack(index)));
    }
    steps.fence(DataFence);
    crash.store_u64(VALID, 0);
    steps.write_back(VALID, RetireWriteBack);
    steps.fence(RetireFence);
    crash.note(value);
}

fn undo_recovery(crash: &Crash, fault: Fault) {
    let steps = Steps { crash, fault };
    let retire = || {
        crash.store_u64(VALID, 0);
        crash.persist(VALID, 8);
    };
    if crash.load_u64(VALID) == 1 {
        let old = OLD.map(|at| crash.load_u64(at));
        if fault == RecoveryRetiresFirst {
            retire();
        }
        steps.store_data(old);
        DATA.into_iter()
            .enumerate()
            .for_each(|(index, at)| steps.write_back(at, RecoveryWriteBack(index)));
        steps.fence(RecoveryFence);
        retire();
    }
}

fn checksum(entry: [u64; 3], fault: Fault) -> u64 {
    let number = if fault == ChecksumWithoutNumber {
        0
    } else {
        entry[0]
    };
    (number.wrapping_mul(31) ^ entry[1].wrapping_mul(1009) ^ entry[2].wrapping_mul(77_773))
        | 1 << 63
}

fn redo_round(crash: &Crash, fault: Fault, value: u64) {
    let steps = Steps { crash, fault };
    let values = [value; 2];
    if fault == StoreBeforeLog {
        steps.store_data(values);
    }
    let entry = [value, values[0], values[1]];
    for (at, word) in ENTRY
        .into_iter()
        .zip(entry.into_iter().chain([checksum(entry, fault)]))
    {
        crash.store_u64(at, word);
    }
    [ENTRY[0], ENTRY[2]]
        .into_iter()
        .enumerate()
        .for_each(|(index, at)| steps.write_back(at, LogWriteBack(index)));
    if fault == EarlyAcknowledgement {
        crash.note(value);
    }
    steps.fence(LogFence);
    crash.note(value);
    steps.store_data(values);
    DATA.into_iter()
        .enumerate()
        .for_each(|(index, at)| steps.write_back(at, DataWriteBack(index)));
    steps.fence(DataFence);
    crash.store_u64(APPLIED, value);
    crash.persist(APPLIED, 8);
}

fn redo_recovery(crash: &Crash, fault: Fault) {
    let steps = Steps { crash, fault };
    let [number, first, second, sum] = ENTRY.map(|at| crash.load_u64(at));
    let whole = fault == NoChecksum || sum == checksum([number, first, second], fault);
    let retire = || {
        crash.store_u64(APPLIED, number);
        crash.persist(APPLIED, 8);
    };
    if whole && number > crash.load_u64(APPLIED) {
        if fault == RecoveryRetiresFirst {
            retire();
        }
        steps.store_data([first, second]);
        DATA.into_iter()
            .enumerate()
            .for_each(|(index, at)| steps.write_back(at, RecoveryWriteBack(index)));
        steps.fence(RecoveryFence);
        retire();
    }
}

fn verify(crash: &Crash, state: &CrashState) -> Result<(), String> {
    let [first, second] = DATA.map(|at| crash.load_u64(at));
    let acknowledged = state.note(0);
    if first != second {
        return Err(format!("torn: {first} and {second}"));
    }
    if first < acknowledged || first > acknowledged + 1 {
        return Err(format!(
            "{acknowledged} was acknowledged, {first} came back"
        ));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Protocol {
    round: fn(&Crash, Fault, u64),
    recovery: fn(&Crash, Fault),
}

const UNDO: Protocol = Protocol {
    round: undo_round,
    recovery: undo_recovery,
};
const REDO: Protocol = Protocol {
    round: redo_round,
    recovery: redo_recovery,
};

fn explorer<'a>(
    protocol: Protocol,
    fault: Fault,
    exploration: Exploration,
    recovery_depth: u32,
) -> Explorer<'a> {
    let medium = CrashOptions {
        capacity: 1 << 12,
        ..CrashOptions::default()
    };
    let options = ExploreOptions {
        medium,
        exploration,
        recovery_depth,
        ..ExploreOptions::default()
    };
    Explorer::new(
        options,
        1 << 12,
        |_| {},
        move |crash| (1..=ROUNDS).for_each(|value| (protocol.round)(crash, fault, value)),
        move |crash, state| {
            (protocol.recovery)(&crash, fault);
            crash.end_of_recovery();
            verify(&crash, state)
        },
    )
}

const UNDO_FAULTS: [Fault; 14] = [
    LogWriteBack(0),
    LogWriteBack(1),
    LogFence,
    StoreBeforeLog,
    ValidWriteBack,
    ValidFence,
    DataWriteBack(0),
    DataWriteBack(1),
    DataFence,
    RetireWriteBack,
    RetireFence,
    EarlyAcknowledgement,
    WriteBackBeforeStore,
    RecoveryRetiresFirst,
];
const REDO_FAULTS: [Fault; 10] = [
    LogWriteBack(0),
    LogWriteBack(1),
    LogFence,
    StoreBeforeLog,
    DataWriteBack(0),
    DataWriteBack(1),
    DataFence,
    EarlyAcknowledgement,
    NoChecksum,
    RecoveryRetiresFirst,
];
/// Found only if recovery is crashed.
const RECOVERY_FAULTS: [Fault; 4] = [
    RecoveryWriteBack(0),
    RecoveryWriteBack(1),
    RecoveryFence,
    RecoveryRetiresFirst,
];

#[test]
fn right_protocols_pass_everywhere() {
    for (protocol, states) in [(UNDO, UNDO_STATES), (REDO, REDO_STATES)] {
        for (exploration, states) in [Lazy, Eager].into_iter().zip(states) {
            let report = explorer(protocol, Nothing, exploration, 2).explore();
            assert!(report.expect_clean().exhaustive());
            assert_eq!(
                report.states, states,
                "the number of states is pinned: {report}"
            );
        }
    }
}

/// Courses of the check, and distinct crash states, after the undo log's rounds, including two crashes in recovery.
const UNDO_STATES: [u64; 2] = [15, 25];
/// Courses and crash states after the redo log's rounds.
const REDO_STATES: [u64; 2] = [55, 52];

#[test]
fn every_planted_fault_is_found() {
    let planted = UNDO_FAULTS.map(|fault| (UNDO, fault)).into_iter();
    for (protocol, fault) in planted.chain(REDO_FAULTS.map(|fault| (REDO, fault))) {
        for exploration in [Lazy, Eager] {
            let explorer = explorer(protocol, fault, exploration, 1);
            expect_found(&explorer, &explorer.explore(), protocol, fault);
        }
    }
}

/// Expects a finding, and that its line replays it.
fn expect_found(explorer: &Explorer<'_>, report: &Report, protocol: Protocol, fault: Fault) {
    let finding = report
        .findings
        .first()
        .unwrap_or_else(|| panic!("{fault:?} {protocol:?}: {report}"));
    assert_eq!(
        explorer.replay(&finding.replay).as_ref(),
        Err(&finding.message),
        "{}",
        finding.replay
    );
}

#[test]
fn faults_of_recovery_are_found_by_crashing_it_only() {
    for exploration in [Lazy, Eager] {
        for protocol in [UNDO, REDO] {
            for fault in RECOVERY_FAULTS {
                explorer(protocol, fault, exploration, 0)
                    .explore()
                    .expect_clean();
                let explorer = explorer(protocol, fault, exploration, 1);
                expect_found(&explorer, &explorer.explore(), protocol, fault);
            }
        }
    }
}

#[test]
fn a_swarm_finds_what_the_explorer_finds() {
    let swarm = SwarmOptions {
        seeds: 0..400,
        ..SwarmOptions::default()
    };
    for protocol in [UNDO, REDO] {
        explorer(protocol, Nothing, Eager, 2)
            .swarm(&swarm)
            .expect_clean();
    }
    let planted = UNDO_FAULTS.map(|fault| (UNDO, fault)).into_iter();
    for (protocol, fault) in planted.chain(REDO_FAULTS.map(|fault| (REDO, fault))) {
        let explorer = explorer(protocol, fault, Eager, 1);
        expect_found(&explorer, &explorer.swarm(&swarm), protocol, fault);
    }
}
