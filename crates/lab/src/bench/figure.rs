//! One measured figure.

use serde::Serialize;

use super::clock::Times;

/// One measured figure. Times are medians over blocks, an operation each.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Whose: `firn`, or a rival's name.
    pub system: String,
    /// What it was measured on.
    pub structure: &'static str,
    /// What was measured.
    pub operation: String,
    /// Operations of a block, or entries of the structure.
    pub n: u64,
    /// Threads that took part.
    pub threads: u64,
    /// CPU time of all threads over the operations.
    pub ns_cpu_per_op: f64,
    /// Wall time over the operations.
    pub ns_wall_per_op: f64,
    /// CPU time of the fastest block.
    pub ns_cpu_min: f64,
    /// CPU time of the slowest block.
    pub ns_cpu_max: f64,
    /// Wall time of the fastest block.
    pub ns_wall_min: f64,
    /// Wall time of the slowest block.
    pub ns_wall_max: f64,
    /// Blocks.
    pub blocks: usize,
    /// Fences, where they were counted.
    pub fences_per_op: Option<f64>,
    /// Lines written back, where they were counted.
    pub lines_per_op: Option<f64>,
    /// The rival's CPU time over this one, the median of each, where there is a rival.
    pub ratio_to_rival: Option<f64>,
    /// How it was measured.
    pub how: String,
}

/// What figures have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) system: &'a str,
    pub(super) structure: &'static str,
    pub(super) operation: &'a str,
    pub(super) n: u64,
    pub(super) threads: u64,
    pub(super) how: &'a str,
}

impl Figure {
    /// The figure of blocks that were measured, an operation each.
    pub(super) fn of(subject: Subject<'_>, blocks: &[Times]) -> Self {
        let cpu = sorted(blocks.iter().map(|times| times.cpu_ns));
        let wall = sorted(blocks.iter().map(|times| times.wall_ns));
        Self {
            system: subject.system.to_owned(),
            structure: subject.structure,
            operation: subject.operation.to_owned(),
            n: subject.n,
            threads: subject.threads,
            ns_cpu_per_op: median(&cpu),
            ns_wall_per_op: median(&wall),
            ns_cpu_min: cpu.first().copied().unwrap_or(f64::NAN),
            ns_cpu_max: cpu.last().copied().unwrap_or(f64::NAN),
            ns_wall_min: wall.first().copied().unwrap_or(f64::NAN),
            ns_wall_max: wall.last().copied().unwrap_or(f64::NAN),
            blocks: blocks.len(),
            fences_per_op: None,
            lines_per_op: None,
            ratio_to_rival: None,
            how: subject.how.to_owned(),
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle of sorted values; not a number if there are none.
fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[len / 2],
        len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&sorted([3.0, 1.0, 2.0].into_iter())), 2.0);
        assert_eq!(median(&sorted([4.0, 1.0].into_iter())), 2.5);
        assert!(median(&[]).is_nan());
    }
}
