//! What the published protocols lose, found by the explorer in them as they are printed. `docs/protocol.md`
//! tells each as it is found here.

use firn_crash::{Image, RelocateUnit, Turn};
use firn_heap::collector::scheme::{
    ESPRESSO_AS_PRINTED, FFCCD_AS_PRINTED, SFCCD_AS_PRINTED, Scheme,
};

use crate::beside::{Case, Run, Stage};
use crate::phases::point;
use crate::program::Op;

const PAGE: &str = include_str!("../../../../docs/protocol.md");

/// A hole in a protocol.
struct Counterexample {
    name: &'static str,
    scheme: &'static Scheme,
    relocate: RelocateUnit,
    /// What the first thread does while objects move, and the second one at some point of that.
    first: Op,
    second: Option<Op>,
    /// What whoever came last does then, until the log no longer names what was changed first.
    then: &'static [Op],
    /// Crashes inside recovery.
    depth: u32,
    /// What the check says.
    says: &'static str,
    /// What its story must have, in this order.
    tells: &'static [&'static str],
}

/// The object beside the one that was changed is as it was.
const FIRST_IS_THERE: &str = "found [Some([1, 1, 1,";
/// Commits after which the first one's home is all there is.
const OUTLIVED: [Op; 4] = [Op::Change(2); 4];
/// Points that the collector, or who was interrupted, goes on between two operations.
const BETWEEN: u64 = 4;

impl Counterexample {
    fn case(&self) -> Case {
        Case {
            scheme: self.scheme,
            relocate: self.relocate,
            threads: 1 + usize::from(self.second.is_some()),
            depth: self.depth,
            ..Case::default()
        }
    }

    /// What the second thread may interrupt: every point of the first one's operation.
    fn runs(&self, case: &Case) -> Vec<Run> {
        let image = case.image();
        let begin = point(&case.stages(&image), case.stage(Stage::Moving), 6);
        let start = |at: Option<u64>| {
            let interrupts = at.map(|at| (at, 2));
            let turns: Vec<_> = [(begin, 1)].into_iter().chain(interrupts).collect();
            Run::of(
                [vec![self.first], self.second.into_iter().collect()],
                &turns,
            )
        };
        let Some(_) = self.second else {
            return vec![self.go_on(case, &image, start(None))];
        };
        let done = case.run(&image, &start(None)).done;
        let of_first = done.into_iter().find(|done| done.thread == 0).unwrap();
        let points = of_first.begin + 1..of_first.end;
        points
            .map(|at| self.go_on(case, &image, start(Some(at))))
            .collect()
    }

    /// The same, with what comes then.
    fn go_on(&self, case: &Case, image: &Image, run: Run) -> Run {
        let (mut run, thread) = (run, case.threads);
        for &op in self.then {
            let done = case.run(image, &run).done;
            let last = done.iter().rfind(|done| done.thread == thread - 1);
            run.script[thread - 1].push(op);
            run.turns.push(Turn {
                after: last.map_or(0, |last| last.end) + BETWEEN,
                thread,
            });
        }
        run
    }

    /// Its story, which the page must tell.
    fn find(&self) {
        let case = self.case();
        let told = |story: &str| {
            let mut rest = story;
            self.tells.iter().all(|part| match rest.split_once(part) {
                Some((_, after)) => {
                    rest = after;
                    true
                }
                None => false,
            })
        };
        let found = case.find(self.runs(&case), self.says, told);
        let (message, story) = found.unwrap_or_else(|| panic!("{} is not found", self.name));
        println!("{}: {message}\n{story}", self.name);
        assert!(
            PAGE.contains(&story),
            "docs/protocol.md does not tell {} as it is found:\n{story}",
            self.name
        );
    }
}

/// What most have in common.
const PLAIN: Counterexample = Counterexample {
    name: "",
    scheme: &FFCCD_AS_PRINTED,
    relocate: RelocateUnit::Functional,
    first: Op::Touch(0),
    second: None,
    then: &[],
    depth: 0,
    says: "",
    tells: &[],
};

#[test]
fn espresso_loses_what_is_committed_before_its_second_fence() {
    Counterexample {
        name: "E1",
        scheme: &ESPRESSO_AS_PRINTED,
        second: Some(Op::Change(0)),
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
        second: Some(Op::Change(0)),
        then: &OUTLIVED,
        tells: &[
            "thread 1",
            "thread 2",
            "returns",
            "thread 1",
            "stores y0",
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
