//! Figures and tables of the paper, each made of the outcomes of runs.

mod cost;
mod figure_14;
mod figure_5;
mod forwarding;
mod section_7_1;
mod sweeps;
mod table_3;

use firn_heap::collector::scheme::{NONE, Scheme};
use serde::Serialize;

use super::injections::Injected;
use super::matrix::Cell;
use super::outcome::Outcome;
use super::runner::Outcomes;
use super::scale::Scale;
use super::{Artefact, ReproductionError};

/// A structure, as workloads and as the paper call it.
pub(super) struct Structure {
    pub(super) workload: &'static str,
    pub(super) short: &'static str,
}

const fn structure(workload: &'static str, short: &'static str) -> Structure {
    Structure { workload, short }
}

/// The five micro-benchmarks, in the order of Table 3.
pub(super) const STRUCTURES: [Structure; 5] = [
    structure("linked_list", "LL"),
    structure("avl", "AVL"),
    structure("strings", "SS"),
    structure("inline_tree", "BT"),
    structure("red_black", "RB"),
];

/// An artefact: the runs that it needs, and how it is made of them.
pub(super) struct Made {
    pub(super) name: &'static str,
    pub(super) cells: fn() -> Vec<Cell>,
    make: fn(&Context<'_>) -> Artefact,
    /// Whether it is made of crashes, too.
    pub(super) crashes: bool,
}

impl Made {
    pub(super) fn make(&self, context: &Context<'_>) -> Artefact {
        (self.make)(context)
    }
}

const fn made(
    name: &'static str,
    cells: fn() -> Vec<Cell>,
    make: fn(&Context<'_>) -> Artefact,
) -> Made {
    Made {
        name,
        cells,
        make,
        crashes: false,
    }
}

static ALL: [Made; 7] = [
    made("fig5", figure_5::cells, figure_5::make),
    made("table1", Vec::new, cost::table_1),
    made("table3", table_3::cells, table_3::make),
    made("fig14", figure_14::cells, figure_14::make),
    made("section4.3", forwarding::cells, forwarding::make),
    Made {
        crashes: true,
        ..made("section7.1", Vec::new, section_7_1::make)
    },
    made("sweeps", sweeps::cells, sweeps::make),
];

/// What is reproduced.
pub const NAMES: [&str; ALL.len()] = {
    let (mut names, mut place) = ([""; ALL.len()], 0);
    while place < ALL.len() {
        names[place] = ALL[place].name;
        place += 1;
    }
    names
};

/// The artefacts of these names, all of them if there are none.
///
/// Errors: there is none of a name.
pub(super) fn wanted(only: &[String]) -> Result<Vec<&'static Made>, ReproductionError> {
    if let Some(name) = only.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(ReproductionError::Artefact {
            name: name.clone(),
            known: NAMES.join(", "),
        });
    }
    let is_wanted = |made: &&Made| only.is_empty() || only.iter().any(|name| name == made.name);
    Ok(ALL.iter().filter(is_wanted).collect())
}

/// What artefacts are made of.
pub(super) struct Context<'c> {
    pub(super) outcomes: &'c Outcomes,
    pub(super) scale: Scale,
    pub(super) seed: u64,
    /// Cycles of a read of persistent memory (Table 2).
    pub(super) nvm_read_cycles: f64,
    /// What crashes came to, if something is made of them.
    pub(super) injected: Option<&'c Injected>,
}

impl Context<'_> {
    fn outcome(&self, cell: &Cell) -> &Outcome {
        &self.outcomes[&cell.key(self.scale, self.seed)]
    }

    fn of(&self, structure: &Structure, scheme: &'static Scheme) -> &Outcome {
        self.outcome(&Cell::of(structure.workload, scheme))
    }

    fn baseline(&self, structure: &Structure) -> &Outcome {
        self.of(structure, &NONE)
    }

    /// The mean over the structures.
    fn mean(&self, of: impl Fn(&Structure) -> f64) -> f64 {
        STRUCTURES.iter().map(of).sum::<f64>() / STRUCTURES.len() as f64
    }
}

/// How far ours may be off before the page says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bar {
    /// Fifteen parts of a hundred of what is printed.
    Reduction,
    /// Two percentage points.
    Overhead,
    /// Not at all.
    Exact,
    /// There is nothing to compare.
    None,
}

/// A figure, printed and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is of.
    pub what: String,
    /// As printed.
    pub published: Option<f64>,
    /// Ours.
    pub ours: f64,
    /// Of both.
    pub unit: &'static str,
    /// Whether ours is as close as is asked for; nothing is, of what the paper does not print.
    pub close: Option<bool>,
    /// Where it is not, why.
    pub reason: &'static str,
}

impl Row {
    fn new(
        what: impl Into<String>,
        (published, ours): (Option<f64>, f64),
        unit: &'static str,
        bar: Bar,
        reason: &'static str,
    ) -> Self {
        let close = published.and_then(|published| {
            let off = (ours - published).abs();
            match bar {
                Bar::Reduction => Some(off <= 0.15 * published.abs()),
                Bar::Overhead => Some(off <= 2.0),
                Bar::Exact => Some(off <= 0.005 * published.abs()),
                Bar::None => None,
            }
        });
        Self {
            what: what.into(),
            published,
            ours,
            unit,
            close,
            reason: if close == Some(true) { "" } else { reason },
        }
    }
}

/// Of a hundred.
fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 {
        0.0
    } else {
        100.0 * part / whole
    }
}

/// How much less `now` is than `before`, of a hundred.
fn reduction(before: f64, now: f64) -> f64 {
    percent(before - now, before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_says_why_and_what_is_close_does_not() {
        let row = |ours, bar| Row::new("", (Some(40.0), ours), "%", bar, "because");
        assert_eq!(row(45.9, Bar::Reduction).reason, "");
        assert_eq!(row(46.1, Bar::Reduction).reason, "because");
        assert_eq!(row(42.1, Bar::Overhead).close, Some(false));
        assert_eq!(row(40.1, Bar::Exact).close, Some(true));
        let unprinted = Row::new("", (None, 1.0), "%", Bar::Overhead, "because");
        assert_eq!((unprinted.close, unprinted.reason), (None, "because"));
    }

    #[test]
    fn names_are_known_and_others_are_refused() {
        assert_eq!(wanted(&[]).unwrap().len(), NAMES.len());
        let some = wanted(&["fig14".into(), "table1".into()]).unwrap();
        assert_eq!(some.len(), 2);
        let refused = wanted(&["fig99".into()]).err().unwrap().to_string();
        assert!(refused.contains("fig99") && refused.contains("table3"));
    }
}
