//! One measured figure.

use firn_heap::collector::Collected;
use firn_heap::collector::scheme::Scheme;
use firn_heap::{Error, Pool, Statistics};
use firn_media::Medium;
use serde::Serialize;

use super::clock::Times;

/// Steps of a cycle that are timed separately.
const STEPS: usize = 4;

/// One measured figure. Times are medians over blocks, per operation.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The system measured: `firn`, or a rival's name.
    pub system: String,
    /// The subject of the measurement.
    pub structure: &'static str,
    /// The operation measured.
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
    /// Fences, if they were counted.
    pub fences_per_op: Option<f64>,
    /// Lines written back, if they were counted.
    pub lines_per_op: Option<f64>,
    /// The rival's CPU time over this one, both medians, if there is a rival.
    pub ratio_to_rival: Option<f64>,
    /// CPU time over that of the control which was measured in turns with it (threads in a pool each, a get without a
    /// barrier), the median of the blocks' ratios: the machine changes more from block to block than within one.
    pub over_control: Option<f64>,
    /// CPU time over the control's in blocks that ran on undisturbed cores, if that is known.
    pub undisturbed: Option<Undisturbed>,
    /// The result of a collection, if one was measured.
    #[serde(flatten)]
    pub compaction: Compaction,
    /// How it was measured.
    pub how: String,
}

/// Blocks around which the machine was as fast as at its best; they are measured separately.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Undisturbed {
    /// Their number.
    pub blocks: usize,
    /// CPU time of all threads over the operations, the median.
    pub ns_cpu_per_op: f64,
}

impl Undisturbed {
    /// The median of such blocks, if there are any.
    pub(super) fn of(blocks: impl Iterator<Item = Times>) -> Option<Self> {
        let cpu = sorted(blocks.map(|times| times.cpu_ns));
        (!cpu.is_empty()).then(|| Self {
            blocks: cpu.len(),
            ns_cpu_per_op: median(&cpu),
        })
    }
}

/// The result of a collection, the median over blocks; unmeasured fields are absent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Compaction {
    /// How copies came to count.
    pub scheme: Option<&'static str>,
    /// Footprint on 4 KiB pages divided by live bytes, afterwards.
    pub ratio_4k: Option<f64>,
    /// Footprint on 2 MiB pages divided by live bytes, afterwards.
    pub ratio_2m: Option<f64>,
    /// The highest ratio seen outside a collection.
    pub ratio_max: Option<f64>,
    /// The highest ratio seen at any time.
    pub ratio_peak: Option<f64>,
    /// FFCCD's equation 1, the mean of three phases.
    pub reduction: Option<f64>,
    /// Footprint on 2 MiB pages divided by live bytes, the mean over the phases.
    pub ratio_2m_mean: Option<f64>,
    /// Blocks of the file over keys and values, after the phases.
    pub file_over_payload: Option<f64>,
    /// Footprint before, over the footprint afterwards, on the pages that the collection targeted.
    pub footprint_ratio: Option<f64>,
    /// Bytes of the file's blocks before, over those afterwards.
    pub blocks_ratio: Option<f64>,
    /// Objects of another length that fitted into a full pool after half was freed and it was collected, over those
    /// that a fresh pool of the freed size holds.
    pub room: Option<f64>,
    /// Objects that moved.
    pub moved: Option<u64>,
    /// CPU time per object moved: the collector's, and the program's slow-down beside it.
    pub ns_cpu_per_moved: Option<f64>,
    /// The program's share of that time.
    pub ns_program_per_moved: Option<f64>,
    /// The slow-down of as many gets from another pool beside such a collection, per object moved: the share of the
    /// memory that cores have in common. Not in `ns_cpu_per_moved`.
    pub ns_memory_per_moved: Option<f64>,
    /// CPU time of the collector per object moved: marking, summary, compaction, finish.
    pub ns_cpu_per_step: Option<[f64; STEPS]>,
    /// The longest time that the program was stopped.
    pub longest_stop_ns: Option<f64>,
    /// The longest CPU time of a stop.
    pub longest_stop_cpu_ns: Option<f64>,
    /// Requests to stop that were withdrawn, because operations stayed open.
    pub withdrawn: Option<u64>,
}

/// The common part of figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) system: &'a str,
    pub(super) structure: &'static str,
    pub(super) operation: &'a str,
    pub(super) n: u64,
    pub(super) threads: u64,
    pub(super) how: &'a str,
}

impl Compaction {
    /// The result of a collection, with the pool still as the collection left it.
    ///
    /// Errors: the pool is damaged.
    pub(super) fn of<M: Medium>(
        pool: &Pool<M>,
        scheme: &'static Scheme,
        collected: &Collected,
    ) -> Result<Self, Error> {
        let (occupancy, statistics) = (pool.occupancy()?, Statistics::read(pool.medium())?);
        let moved = collected.planned.max(1) as f64;
        let stops = pool.collector_stops();
        Ok(Self {
            scheme: Some(scheme.name),
            ratio_4k: occupancy.ratio_4k(),
            ratio_2m: occupancy.ratio_2m(),
            moved: Some(collected.planned),
            ns_cpu_per_step: Some(collected.cpu_ns.map(|ns| ns as f64 / moved)),
            longest_stop_ns: Some(stops.longest_ns as f64),
            longest_stop_cpu_ns: Some(stops.longest_cpu_ns as f64),
            withdrawn: Some(statistics.starved),
            ..Self::default()
        })
    }

    /// The medians of several, figure by figure.
    pub(super) fn median<'c>(all: impl Iterator<Item = &'c Self>) -> Self {
        let all: Vec<&Self> = all.collect();
        let of = |pick: fn(&Self) -> Option<f64>| {
            let some: Vec<f64> = all.iter().filter_map(|one| pick(one)).collect();
            (!some.is_empty()).then(|| middle(some.into_iter()))
        };
        let count = |pick: fn(&Self) -> Option<u64>| {
            let some = all.iter().filter_map(|one| pick(one));
            let some: Vec<f64> = some.map(|count| count as f64).collect();
            (!some.is_empty()).then(|| middle(some.into_iter()) as u64)
        };
        let steps = || {
            let some = || all.iter().filter_map(|one| one.ns_cpu_per_step);
            let step = |i: usize| middle(some().map(|steps| steps[i]));
            some().next().map(|_| core::array::from_fn(step))
        };
        Self {
            scheme: all.first().and_then(|one| one.scheme),
            ratio_4k: of(|one| one.ratio_4k),
            ratio_2m: of(|one| one.ratio_2m),
            ratio_max: of(|one| one.ratio_max),
            ratio_peak: of(|one| one.ratio_peak),
            reduction: of(|one| one.reduction),
            ratio_2m_mean: of(|one| one.ratio_2m_mean),
            file_over_payload: of(|one| one.file_over_payload),
            footprint_ratio: of(|one| one.footprint_ratio),
            blocks_ratio: of(|one| one.blocks_ratio),
            room: of(|one| one.room),
            moved: count(|one| one.moved),
            ns_cpu_per_moved: of(|one| one.ns_cpu_per_moved),
            ns_program_per_moved: of(|one| one.ns_program_per_moved),
            ns_memory_per_moved: of(|one| one.ns_memory_per_moved),
            ns_cpu_per_step: steps(),
            longest_stop_ns: of(|one| one.longest_stop_ns),
            longest_stop_cpu_ns: of(|one| one.longest_stop_cpu_ns),
            withdrawn: count(|one| one.withdrawn),
        }
    }
}

impl Figure {
    /// The figure of measured blocks, per operation.
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
            over_control: None,
            undisturbed: None,
            compaction: Compaction::default(),
            how: subject.how.to_owned(),
        }
    }
}

/// How blocks compare with those measured in turns with them: the median of the ratios.
pub(super) fn over(blocks: &[Times], control: &[Times]) -> f64 {
    let pairs = blocks.iter().zip(control);
    middle(pairs.map(|(block, control)| block.cpu_ns / control.cpu_ns))
}

/// The middle of values in any order; not a number if there are none.
pub(super) fn middle(values: impl Iterator<Item = f64>) -> f64 {
    median(&sorted(values))
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
