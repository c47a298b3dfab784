//! A thread interrupts another at every point.

use firn_crash::Report;

use crate::beside::{Case, Run, Stage};
use crate::phases::point;
use crate::program::Op;

/// An operation as a whole at every `stride`th point of a cycle.
pub fn in_the_collector(case: &Case, op: Op, stride: u64) -> Report {
    let mut at = 0;
    case.explore(|last| {
        at += stride;
        let over = last.is_some_and(|run| at > run.steps);
        (!over).then(|| Run::of([vec![op], vec![]], &[(at, 1)]))
    })
}

/// Who interrupts an operation of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The other thread's operation, as a whole or until it must wait.
    Other,
    /// The collector, until it must wait for the operation. The other thread's comes after the cycle.
    Collector,
    /// The collector, and so many points later the other thread.
    Both(u64),
}

/// Operations of two threads: the first begins at each of the stages, and is interrupted at each
/// `stride`th of its points.
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
