//! A thread interrupts another at every point.

use firn_crash::Report;
use firn_heap::PoolKind;

use crate::beside::{Case, Run, Stage};
use crate::phases::point;
use crate::program::Op;

/// Runs an operation as a whole at every `stride`th point of a cycle, and at every point of marking, where looking at
/// an object's references takes few points.
pub fn in_the_collector(case: &Case, op: Op, stride: usize) -> Report {
    let bounds = case.stages(&case.image());
    let marking = match case.kind {
        PoolKind::Traced => bounds[Stage::Marking as usize]..bounds[Stage::Reclaiming as usize],
        PoolKind::Explicit => 0..0,
    };
    let mut at = 0;
    case.explore(|last| {
        at += 1;
        while !marking.contains(&at) && at % stride as u64 != 0 {
            at += 1;
        }
        let over = last.is_some_and(|run| at > run.steps);
        (!over).then(|| Run::of([vec![op], vec![]], &[(at, 1)]))
    })
}

/// Points before the plan counts, during which the collector makes homes durable and stops the program.
const LAST: u64 = 300;

/// A thread changes an object at every `stride`th point of the end of the planning, and again when it moves: the first
/// change is not at home yet when the plan begins to count, or only just.
pub fn before_the_plan_counts(case: &Case, stride: usize) -> Report {
    let bounds = case.stages(&case.image());
    let end = bounds[case.stage(Stage::Moving)];
    let script = || [vec![Op::Change(0), Op::Change(0)], vec![]];
    // The second change comes late enough whether or not the first waited for the plan.
    let run = |at| Run::of(script(), &[(at, 1), (end + FURTHER, 1)]);
    case.explore_all((end - LAST..end).step_by(stride).map(run).collect())
}

/// More points than an operation takes.
pub const FURTHER: u64 = 100;

/// Who interrupts an operation of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The other thread's operation, as a whole or until it must wait.
    Other,
    /// The collector, until it must wait for the operation. The other thread's comes after the cycle.
    Collector,
    /// The collector, and this many points later the other thread.
    Both(u64),
}

/// Operations of two threads: the first begins at each of the stages, and is interrupted at every `stride`th of its
/// points.
pub fn in_an_operation(
    case: &Case,
    pairs: &[(Op, Op)],
    stages: &[Stage],
    by: By,
    stride: usize,
) -> Report {
    let image = case.image();
    let bounds = case.stages(&image);
    let mut runs = Vec::new();
    for &(first, second) in pairs {
        for &stage in stages {
            let begin = point(&bounds, case.stage(stage), 6);
            let script = || [vec![first], vec![second]];
            let done = case.run(&image, &Run::of(script(), &[(begin, 1)])).done;
            let of_first = done.into_iter().find(|done| done.thread == 0).unwrap();
            for at in (of_first.begin + 1..of_first.end).step_by(stride) {
                let (start, collector) = ((begin, 1), case.collector());
                runs.push(match by {
                    By::Other => Run::of(script(), &[start, (at, 2)]),
                    By::Collector => Run::of(script(), &[start, (at, collector)]),
                    By::Both(later) => {
                        Run::of(script(), &[start, (at, collector), (at + later, 2)])
                    }
                });
            }
        }
    }
    case.explore_all(runs)
}
