//! The protocols as they are printed.

use firn_crash::RelocateUnit;
use firn_heap::collector::scheme::{ESPRESSO_AS_PRINTED, SFCCD_AS_PRINTED};

use super::{Counterexample, FIRST_IS_THERE, Meets, OUTLIVED, PLAIN};
use crate::program::Op;

#[test]
fn espresso_loses_what_is_committed_before_its_second_fence() {
    Counterexample {
        name: "E1",
        scheme: &ESPRESSO_AS_PRINTED,
        meets: Meets::Thread(Op::Change(0)),
        tells: &[
            "stores moved[0]",
            "thread 2",
            "returns",
            "crash",
            "moved[0]",
        ],
        ..PLAIN
    }
    .find();
}

#[test]
fn espresso_copies_over_what_another_thread_committed() {
    Counterexample {
        name: "E2",
        scheme: &ESPRESSO_AS_PRINTED,
        meets: Meets::Thread(Op::Change(0)),
        then: &OUTLIVED,
        tells: &[
            "thread 1",
            "thread 2",
            "returns",
            "thread 1   stores y0",
            "crash",
        ],
        ..PLAIN
    }
    .find();
}

#[test]
fn sfccd_takes_a_committed_change_for_a_torn_copy() {
    Counterexample {
        name: "S1",
        scheme: &SFCCD_AS_PRINTED,
        first: Op::Change(0),
        then: &OUTLIVED,
        tells: &["returns", "crash", "recovery", "stores y0"],
        ..PLAIN
    }
    .find();
}

/// No other commit writes to the line of the reference to the copy.
#[test]
fn sfccd_loses_a_change_through_a_reference_that_is_not_durable() {
    Counterexample {
        name: "S2",
        scheme: &SFCCD_AS_PRINTED,
        first: Op::Change(0),
        then: &[Op::Change(1); 4],
        tells: &["returns", "crash", "yP", "recovery", "stores y0"],
        ..PLAIN
    }
    .find();
}

#[test]
fn ffccd_counts_an_object_that_shares_a_line_as_reached() {
    Counterexample {
        name: "F1",
        first: Op::Touch(1),
        tells: &["marks", "crash"],
        ..PLAIN
    }
    .find();
}

#[test]
fn ffccd_copies_over_a_line_that_was_committed() {
    Counterexample {
        name: "F3",
        first: Op::Change(1),
        then: &OUTLIVED,
        says: FIRST_IS_THERE,
        tells: &[
            "returns",
            "returns",
            "returns",
            "crash",
            "recovery   stores y1",
        ],
        ..PLAIN
    }
    .find();
}

#[test]
fn ffccd_forgets_what_recovery_completed() {
    Counterexample {
        name: "F4",
        first: Op::Change(1),
        depth: 1,
        says: FIRST_IS_THERE,
        tells: &[
            "returns",
            "crash",
            "recovery",
            "stores y1",
            "crash",
            "stores y1",
        ],
        ..PLAIN
    }
    .find();
}

#[test]
fn ffccd_counts_half_a_line_of_a_loop_of_stores() {
    Counterexample {
        name: "F5",
        relocate: RelocateUnit::Loop,
        tells: &["marks", "crash"],
        ..PLAIN
    }
    .find();
}

#[test]
fn ffccd_replays_a_log_into_a_copy_that_never_arrived() {
    Counterexample {
        name: "F7",
        first: Op::Change(0),
        tells: &["returns", "crash", "recovery", "stores y0", "stores y0"],
        ..PLAIN
    }
    .find();
}
