//! Sound protocols, and their losses when a rule is left out.

use firn_heap::collector::scheme::{ESPRESSO, FFCCD, PIGGYBACK};
use firn_heap::steps;

use super::{Counterexample, Meets, PLAIN, expect_told, tells};
use crate::beside::{FINDINGS, Stage};
use crate::program::Op;
use crate::reused;
use crate::story::in_words;

#[test]
fn a_transaction_that_is_open_when_the_cycle_begins_changes_the_source() {
    Counterexample {
        name: "X1",
        scheme: &ESPRESSO,
        leave_out: Some(&steps::STOP_FOR_PLAN),
        first: Op::Change(0),
        during: Stage::Planning,
        meets: Meets::Collector,
        tells: &[
            "begins",
            "collector",
            "stores y0",
            "thread 1",
            "stores x0",
            "returns",
            "crash",
        ],
        ..PLAIN
    }
    .find();
}

#[test]
fn a_reference_that_a_thread_has_healed_is_only_in_its_cache() {
    Counterexample {
        name: "X3",
        scheme: &PIGGYBACK,
        leave_out: Some(&steps::HEALED_BY_OTHERS_WRITE_BACK),
        first: Op::Read,
        tells: &["crash"],
        ..PLAIN
    }
    .find();
}

#[test]
fn a_log_brings_back_a_reference_to_what_never_arrived() {
    Counterexample {
        name: "F2",
        leave_out: Some(&steps::FOUND_BY_DESTINATION),
        first: Op::Swap,
        says: "2, 2, 2]), Some([])",
        tells: &["returns", "crash", "recovery", "stores yP"],
        ..PLAIN
    }
    .find();
}

#[test]
fn a_page_is_used_again_before_its_cycle_has_ended() {
    Counterexample {
        name: "X4",
        scheme: &PIGGYBACK,
        leave_out: Some(&steps::PAGES_AFTER_RELEASE),
        first: Op::Enlarge(1),
        meets: Meets::Stage,
        during: Stage::Healing,
        tells: &["stores x0", "returns", "crash"],
        ..PLAIN
    }
    .find();
}

#[test]
fn recovery_copies_over_what_was_put_in_a_freed_destination() {
    let explorer = reused::explorer(Some(&steps::DESTINATIONS_WAIT), FINDINGS);
    let mut findings = explorer.explore().findings.into_iter();
    let found = findings.find_map(|finding| {
        let story = in_words(&explorer.story(&finding.replay).ok()?, 1);
        let wanted = ["returns", "returns", "crash", "recovery", "stores y0"];
        tells(&story, &wanted).then_some((finding.message, story))
    });
    expect_told("X2", found);
}

#[test]
fn a_mark_of_an_earlier_cycle_counts_in_this_one() {
    Counterexample {
        name: "F6",
        scheme: &FFCCD,
        leave_out: Some(&steps::REACHED_CLEARED),
        earlier: 2,
        tells: &["crash"],
        ..PLAIN
    }
    .find();
}
