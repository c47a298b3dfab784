//! Two operations, each as a whole at a stage of the cycle.

use firn_crash::{Image, Report};

use crate::beside::{Case, Run, Stage};
use crate::program::Op;

/// The time of an operation in its stage, in twelfths of the stage's points: the first of a pair comes early, to leave
/// room for the second behind it.
const SOON: u64 = 1;
const LATE: u64 = 8;

/// Pairs of operations at pairs of stages.
pub struct Pairs<'a> {
    pub ops: &'a [(Op, Op)],
    pub stages: &'a [Stage],
}

/// Every pair of `ops`.
pub fn every_pair(ops: &[Op]) -> Vec<(Op, Op)> {
    let with = |&first| ops.iter().map(move |&second| (first, second));
    ops.iter().flat_map(with).collect()
}

impl Pairs<'_> {
    /// Crashes a cycle beside every pair of operations at every pair of stages. The second operation is of the first
    /// one's thread, or of a second thread if the case has one.
    pub fn explore(&self, case: &Case) -> Report {
        let image = case.image();
        let bounds = case.stages(&image);
        let mut runs = Vec::new();
        let mut missed = 0;
        for &(first, second) in self.ops {
            for &early in self.stages {
                let early = case.stage(early);
                let begin = point(&bounds, early, SOON);
                let alone = Run::of([vec![first], vec![]], &[(begin, 1)]);
                let done = case.run(&image, &alone).done[0];
                for late in self.stages.iter().map(|&late| case.stage(late)) {
                    if late < early {
                        continue;
                    }
                    let again = point(&bounds, late, LATE).saturating_add(done.end - done.begin);
                    let run = |again| match case.threads {
                        1 => Run::of([vec![first, second], vec![]], &[(begin, 1), (again, 1)]),
                        _ => Run::of([vec![first], vec![second]], &[(begin, 1), (again, 2)]),
                    };
                    let found = find(case, &image, run, (done.end, again), late);
                    missed += usize::from(found.is_none());
                    runs.push(run(found.unwrap_or(again)));
                }
            }
        }
        // If the first operation leaves nothing to win, there are no later stages.
        assert!(missed * 8 <= runs.len(), "{missed} of {}", runs.len());
        case.explore_all(runs)
    }
}

/// The point of an operation in a stage: after this many twelfths of its points.
pub fn point(bounds: &[u64], stage: usize, twelfths: u64) -> u64 {
    match bounds.get(stage..) {
        Some(&[begin, end, ..]) => begin + (end - begin) * twelfths / 12,
        Some(&[begin]) => begin + twelfths * 4,
        _ => u64::MAX,
    }
}

/// A point for the second operation in the stage `late`: `guess`, unless the first operation has changed the
/// collector's work.
fn find(
    case: &Case,
    image: &Image,
    run: impl Fn(u64) -> Run,
    (low, guess): (u64, u64),
    late: usize,
) -> Option<u64> {
    let stage = |again| {
        let done = case.run(image, &run(again)).done;
        done.last().map_or(0, |done| done.stage)
    };
    if stage(guess) == late {
        return Some(guess);
    }
    let (mut low, mut high) = (low, low + FAR);
    while high - low > 1 {
        let middle = (low + high) / 2;
        match stage(middle).cmp(&late) {
            core::cmp::Ordering::Less => low = middle,
            core::cmp::Ordering::Equal => return Some(middle),
            core::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

/// More points than a cycle has.
const FAR: u64 = 16_384;
