//! One measured rate.

use serde::Serialize;

use super::{Goal, Subject};
use crate::Spread;
use crate::bench::figure::middle;

/// Most time of steps in registers around an undisturbed block, over the fastest step.
const UNDISTURBED: f64 = 1.1;
/// Undisturbed blocks that a median needs.
const FEW_BLOCKS: usize = 3;
/// Operations per nanosecond as millions per second.
const MILLIONS: f64 = 1e3;

/// One block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) operations: u64,
    /// CPU time of the thread.
    pub(super) cpu_ns: f64,
    /// The slowest step in registers before and after it.
    pub(super) slowest_step_ns: f64,
    pub(super) fastest_step_ns: f64,
}

impl Block {
    fn millions_per_s(&self) -> f64 {
        self.operations as f64 / self.cpu_ns * MILLIONS
    }
}

/// The blocks of a pattern.
#[derive(Clone, Default)]
pub(super) struct Samples(pub(super) Vec<Block>);

/// How fast a pattern was simulated, in millions of operations a second of the host's CPU time.
#[derive(Clone, Debug, Serialize)]
pub struct Rate {
    /// The pattern.
    pub name: String,
    /// Its description.
    pub what: String,
    /// The median over blocks, the slowest and the fastest.
    pub millions_per_s: Spread,
    /// The blocks during which the core was not shared.
    pub undisturbed: Option<Undisturbed>,
    /// Memory operations of a block, on average.
    pub operations: u64,
    /// Blocks.
    pub blocks: usize,
    /// Its bar, in the same unit.
    pub bar: Option<f64>,
    /// The pattern that it is compared with block by block, if there is one, the median share that it keeps, and the
    /// least that it must.
    pub control: Option<Control>,
    /// Whether it meets its goal.
    pub met: Option<bool>,
}

/// A comparison with another pattern.
#[derive(Clone, Debug, Serialize)]
pub struct Control {
    /// The other pattern.
    pub name: &'static str,
    /// This one's rate over the other's, the median over blocks.
    pub share: f64,
    /// The least value allowed.
    pub least: f64,
}

/// Blocks around which the host was as fast as at its best.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Undisturbed {
    /// Their number.
    pub blocks: usize,
    /// Their median.
    pub millions_per_s: f64,
}

impl Rate {
    /// The rate compared with the bar: the median of undisturbed blocks if there are several, otherwise of all.
    pub fn decisive(&self) -> f64 {
        let quiet = self.undisturbed.filter(|quiet| quiet.blocks >= FEW_BLOCKS);
        quiet.map_or(self.millions_per_s.median, |quiet| quiet.millions_per_s)
    }

    /// Whether too few blocks were undisturbed to tell.
    pub fn is_disturbed(&self) -> bool {
        self.undisturbed
            .is_none_or(|quiet| quiet.blocks < FEW_BLOCKS)
    }
}

/// The rates of the subjects.
pub(super) fn rates(subjects: &[Subject], samples: &[Samples]) -> Vec<Rate> {
    let blocks = samples.iter().flat_map(|samples| &samples.0);
    let fastest = blocks.map(|block| block.fastest_step_ns);
    let step_ns = fastest.fold(f64::INFINITY, f64::min) * UNDISTURBED;
    let each = subjects.iter().zip(samples);
    each.map(|(subject, own)| {
        let rate = rate(subject, &own.0, step_ns);
        let Goal::ShareOf(name, least) = subject.goal else {
            return rate;
        };
        let other = subjects.iter().position(|other| other.name == name);
        match other.map(|place| &samples[place].0) {
            Some(other) => against(rate, name, least, share(&own.0, other)),
            None => rate,
        }
    })
    .collect()
}

fn rate(subject: &Subject, blocks: &[Block], step_ns: f64) -> Rate {
    let quiet = blocks
        .iter()
        .filter(|block| block.slowest_step_ns <= step_ns);
    let quiet: Vec<f64> = quiet.map(Block::millions_per_s).collect();
    let undisturbed = (!quiet.is_empty()).then(|| Undisturbed {
        blocks: quiet.len(),
        millions_per_s: middle(quiet.iter().copied()),
    });
    let operations: u64 = blocks.iter().map(|block| block.operations).sum();
    let mut rate = Rate {
        name: subject.name.clone(),
        what: subject.what.clone(),
        millions_per_s: Spread::of(blocks.iter().map(Block::millions_per_s).collect()),
        undisturbed,
        operations: operations / blocks.len().max(1) as u64,
        blocks: blocks.len(),
        bar: None,
        control: None,
        met: None,
    };
    if let Goal::Least(bar) = subject.goal {
        rate.bar = Some(bar);
        rate.met = Some(rate.decisive() >= bar);
    }
    rate
}

/// How much of another pattern's rate is left, the median over rounds.
fn share(blocks: &[Block], others: &[Block]) -> f64 {
    let pairs = blocks.iter().zip(others);
    middle(pairs.map(|(block, other)| block.millions_per_s() / other.millions_per_s()))
}

fn against(rate: Rate, name: &'static str, least: f64, share: f64) -> Rate {
    Rate {
        met: Some(share >= least),
        control: Some(Control { name, share, least }),
        ..rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str, goal: Goal) -> Subject {
        Subject::new(name, "", goal, || Box::new(Ok))
    }

    /// Blocks of a thousand operations, each with nanoseconds per operation and per step.
    fn samples(all: &[(f64, f64)]) -> Samples {
        let block = |&(cpu_ns, step_ns): &(f64, f64)| Block {
            operations: 1_000,
            cpu_ns: cpu_ns * 1_000.0,
            slowest_step_ns: step_ns,
            fastest_step_ns: step_ns,
        };
        Samples(all.iter().map(block).collect())
    }

    #[test]
    fn a_bar_is_held_against_what_nobody_disturbed() {
        let subjects = [subject("fast", Goal::Least(60.0))];
        // Ten nanoseconds are a hundred millions a second; half of the blocks had half a core.
        let mixed = samples(&[
            (10.0, 1.0),
            (20.0, 1.9),
            (20.0, 1.9),
            (10.0, 1.05),
            (20.0, 1.9),
            (12.5, 1.0),
        ]);
        let rate = &rates(&subjects, &[mixed])[0];
        assert_eq!(rate.undisturbed.unwrap().blocks, 3);
        assert_eq!(rate.decisive(), 100.0);
        assert_eq!((rate.bar, rate.met), (Some(60.0), Some(true)));
        assert_eq!(
            (rate.millions_per_s.min, rate.millions_per_s.max),
            (50.0, 100.0)
        );
        let slow = &rates(&subjects, &[samples(&[(20.0, 1.0); 4])])[0];
        assert_eq!(slow.met, Some(false));
    }

    #[test]
    fn few_undisturbed_blocks_decide_nothing() {
        let subjects = [subject("fast", Goal::Least(60.0))];
        let mixed = samples(&[(10.0, 1.0), (20.0, 1.9), (20.0, 1.9)]);
        let rate = &rates(&subjects, &[mixed])[0];
        assert!(rate.is_disturbed());
        assert_eq!((rate.decisive(), rate.met), (50.0, Some(false)));
    }

    #[test]
    fn a_mechanism_keeps_its_share_of_the_control_round_by_round() {
        let subjects = [
            subject("control", Goal::None),
            subject("half", Goal::ShareOf("control", 0.5)),
            subject("less", Goal::ShareOf("control", 0.5)),
        ];
        let control = samples(&[(10.0, 1.0), (20.0, 1.0), (40.0, 1.0)]);
        let half = samples(&[(20.0, 1.0), (40.0, 1.0), (80.0, 1.0)]);
        let less = samples(&[(21.0, 1.0), (41.0, 1.0), (10.0, 1.0)]);
        let rates = rates(&subjects, &[control, half, less]);
        let found: Vec<_> = rates.iter().map(|rate| rate.met).collect();
        assert_eq!(found, [None, Some(true), Some(false)]);
        assert_eq!(rates[1].control.as_ref().unwrap().share, 0.5);
    }
}
