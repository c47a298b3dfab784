//! FFCCD's phases on every structure, with and without a collector, in turns with the rivals'.
//!
//! ```text
//! together     two threads on two structures
//! bars, page   the bars of the figures, and their section of docs/performance.md
//! ```

mod bars;
mod page;
mod together;

use firn_heap::PoolKind;
use firn_mapped::HugePages;
use firn_tools::Progress;
use firn_workloads::{Population, SEED, Shape, Sizes};

pub(super) use page::section;

use super::clock::Times;
use super::figure::{Compaction, Figure, Subject};
use super::phases::{DENSE, Gets, NORMAL, Run, SMALL_PAGES, Setting, WITHOUT};
use super::rival::{Counted, Phased, Rival};
use super::{BenchError, Options, pools};

/// The name of this part of the bench.
pub(super) const SECTION: &str = "structures";
/// The system that these figures are of.
const SYSTEM: &str = "firn";
/// Further passes over this many objects add nothing.
const MOST_PASSES: usize = 3;
/// Passes of a database, whose operations take tens of microseconds.
const DATABASE_PASSES: usize = 1;
/// Objects among which fences and lines are counted.
const COUNTED: usize = 4000;
/// Shares of the operations of a kind: those on a structure that was full or empty, and those on one of which a fifth
/// was left.
const FIRST: f64 = 1.0 / 1.8;
const SECOND: f64 = 0.8 / 1.8;

/// A structure, and the rivals that have one like it.
struct Case {
    shape: Shape,
    /// The rivals' name for it.
    rivals: &'static str,
    /// The rivals that have it.
    of: &'static [&'static str],
}

const PMEMOBJ: &[&str] = &[super::rival::LIBPMEMOBJ];
const DATABASES: &[&str] = &["lmdb", "redb"];

const CASES: [Case; 7] = [
    Case {
        shape: Shape::Chain,
        rivals: "list",
        of: PMEMOBJ,
    },
    Case {
        shape: Shape::Avl,
        rivals: "avl",
        of: PMEMOBJ,
    },
    Case {
        shape: Shape::RedBlack,
        rivals: "red_black",
        of: PMEMOBJ,
    },
    Case {
        shape: Shape::Strings,
        rivals: "string_swap",
        of: PMEMOBJ,
    },
    Case {
        shape: Shape::InlineTree,
        rivals: "btree",
        of: PMEMOBJ,
    },
    Case {
        shape: Shape::Hash,
        rivals: "hash",
        of: &[],
    },
    Case {
        shape: Shape::Map,
        rivals: "map",
        of: DATABASES,
    },
];

/// Without a collector, with one, and on small pages.
const SETTINGS: usize = 3;

impl Case {
    /// The settings it is measured with. Beside databases the file's size counts.
    fn settings(&self) -> [Setting; SETTINGS] {
        if self.of == DATABASES {
            [WITHOUT, DENSE, SMALL_PAGES]
        } else {
            [WITHOUT, NORMAL, SMALL_PAGES]
        }
    }

    /// How its figures were measured.
    fn how(&self) -> String {
        let [_, collecting, _] = self.settings();
        let (trigger, target) = collecting.ratios.unwrap_or_default();
        format!(
            "{HOW}; with one from {trigger} to {target} where it says collecting; in pages of 4 KiB where it says so"
        )
    }
}

/// The kinds of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Insert,
    Delete,
    /// Finding while all are there: a guard each, many under one, and as many all requested at once.
    Get,
    GetMany,
    GetEach,
    /// Finding after four of five are deleted, and after packing if there is a collector.
    GetAfter,
    GetManyAfter,
    GetEachAfter,
}

const KINDS: [(Kind, &str); 8] = [
    (Kind::Insert, "insert"),
    (Kind::Delete, "delete"),
    (Kind::Get, "get"),
    (Kind::GetMany, "get_many"),
    (Kind::GetAfter, "get_after"),
    (Kind::GetManyAfter, "get_many_after"),
    (Kind::GetEach, "get_each"),
    (Kind::GetEachAfter, "get_each_after"),
];

/// The figure that describes the pool's state: that of the last phase.
const TELLS_COMPACTION: Kind = Kind::Delete;

const COLLECTING: &str = "_collecting";
const ON_SMALL_PAGES: &str = "_4k";

/// The name of a figure.
fn name(shape: Shape, kind: &str, setting: &Setting) -> String {
    let suffix = match setting {
        Setting {
            ratios: Some(_), ..
        } => COLLECTING,
        Setting {
            huge_pages: HugePages::Refuse,
            ..
        } => ON_SMALL_PAGES,
        _ => "",
    };
    format!("{}_{kind}{suffix}", shape.name())
}

/// Names of all figures.
pub(super) fn names() -> impl Iterator<Item = String> {
    let each = |case: &'static Case| {
        case.settings().into_iter().flat_map(move |setting| {
            let kinds = KINDS.iter();
            kinds.map(move |(_, kind)| name(case.shape, kind, &setting))
        })
    };
    CASES.iter().flat_map(each).chain(together::names())
}

/// Memory that a pass newly takes, and more.
fn warm_bytes(options: &Options) -> u64 {
    const BYTES_OF_AN_ENTRY: u64 = 512;
    options.entries * BYTES_OF_AN_ENTRY
}

/// The results of passes: of Firn by setting, of the rivals by their place among them.
struct Passes {
    firn: [Vec<Run>; SETTINGS],
    rivals: Vec<Vec<Phased>>,
}

/// Measures the selected structures.
pub(super) fn measure(
    options: &Options,
    rivals: &mut [Rival],
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let passes = options.blocks.min(MOST_PASSES);
    let wanted: Vec<&Case> = CASES.iter().filter(|case| wants(options, case)).collect();
    let mut figures = Vec::new();
    let steps = passes * wanted.len() * SETTINGS;
    progress.begin("structures", Some(steps as u64));
    for case in wanted {
        let mut taken = Passes {
            firn: Default::default(),
            rivals: rivals.iter().map(|_| Vec::new()).collect(),
        };
        for pass in 0..passes {
            for (setting, runs) in case.settings().iter().zip(&mut taken.firn) {
                pools::warm(warm_bytes(options))?;
                runs.push(Run::new(options, case.shape, setting, Gets::FullAndAfter)?);
                progress.advance(1);
            }
            for (rival, runs) in rivals.iter_mut().zip(&mut taken.rivals) {
                let is_database = DATABASES.contains(&rival.id.as_str());
                if case.of.contains(&rival.id.as_str()) && (pass < DATABASE_PASSES || !is_database)
                {
                    pools::warm(warm_bytes(options))?;
                    runs.push(rival.phases(case.rivals, options.entries, SEED)?);
                }
            }
        }
        figures.extend(figures_of(options, case, rivals, &taken)?);
    }
    progress.end();
    figures.extend(together::measure(options, progress)?);
    Ok(figures)
}

fn wants(options: &Options, case: &Case) -> bool {
    let shape = case.shape.name();
    if !options.structures.is_empty() {
        let named = |name: &String| name == shape || name == case.rivals;
        return options.structures.iter().any(named);
    }
    options.wants(SECTION, shape)
        || case.settings().iter().any(|setting| {
            KINDS
                .iter()
                .any(|(_, kind)| options.wants(SECTION, &name(case.shape, kind, setting)))
        })
}

/// Names that `--structure` takes.
pub(super) fn structures() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.shape.name())
}

impl Kind {
    fn of(self, run: &Run) -> Times {
        let [delete, insert, delete_again] = run.phases;
        let [get, get_after] = run.gets.unwrap_or_default();
        match self {
            Kind::Insert => mixed(run.filled, insert, FIRST, SECOND),
            Kind::Delete => mixed(delete, delete_again, 0.5, 0.5),
            Kind::Get => get.alone,
            Kind::GetMany => get.many,
            Kind::GetEach => get.each,
            Kind::GetEachAfter => get_after.each,
            Kind::GetAfter => get_after.alone,
            Kind::GetManyAfter => get_after.many,
        }
    }

    fn of_rival(self, run: &Phased) -> Times {
        let of = |pick: fn(&super::rival::PhaseTimes) -> f64| Times {
            cpu_ns: pick(&run.ns_cpu),
            wall_ns: pick(&run.ns_wall),
        };
        match self {
            Kind::Insert => mixed(of(|t| t.insert), of(|t| t.reinsert), FIRST, SECOND),
            Kind::Delete => mixed(of(|t| t.delete), of(|t| t.redelete), 0.5, 0.5),
            Kind::Get | Kind::GetMany | Kind::GetEach => of(|t| t.get_full),
            Kind::GetAfter | Kind::GetManyAfter | Kind::GetEachAfter => of(|t| t.get_after),
        }
    }
}

fn mixed(one: Times, other: Times, first: f64, second: f64) -> Times {
    Times {
        cpu_ns: one.cpu_ns * first + other.cpu_ns * second,
        wall_ns: one.wall_ns * first + other.wall_ns * second,
    }
}

fn figures_of(
    options: &Options,
    case: &Case,
    rivals: &mut [Rival],
    taken: &Passes,
) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for (setting, runs) in case.settings().iter().zip(&taken.firn) {
        for (kind, word) in KINDS {
            figures.push(ours(options, case, setting, runs, kind, word)?);
        }
    }
    for (rival, runs) in rivals.iter_mut().zip(&taken.rivals) {
        if runs.is_empty() {
            continue;
        }
        for (kind, word) in KINDS {
            let figure = theirs(options, case, rival, runs, kind, word)?;
            compare(&mut figures, &figure);
            figures.push(figure);
        }
    }
    Ok(figures)
}

/// The times of a setting's runs for an operation.
fn ours(
    options: &Options,
    case: &Case,
    setting: &Setting,
    runs: &[Run],
    kind: Kind,
    word: &str,
) -> Result<Figure, BenchError> {
    let subject = Subject {
        system: SYSTEM,
        structure: case.shape.name(),
        operation: &name(case.shape, word, setting),
        n: options.entries,
        threads: 1,
        how: &case.how(),
    };
    let times: Vec<Times> = runs.iter().map(|run| kind.of(run)).collect();
    let mut figure = Figure::of(subject, &times);
    if kind == TELLS_COMPACTION {
        let seen: Vec<Compaction> = runs.iter().map(seen).collect();
        figure.compaction = Compaction::median(seen.iter());
    }
    if setting.ratios.is_none()
        && setting.huge_pages == HugePages::Ask
        && let Some(counted) = counted(options, case.shape, kind)?
    {
        figure.fences_per_op = Some(counted.fences_per_op);
        figure.lines_per_op = Some(counted.lines_per_op);
    }
    Ok(figure)
}

/// The times of a rival's runs for it.
fn theirs(
    options: &Options,
    case: &Case,
    rival: &mut Rival,
    runs: &[Phased],
    kind: Kind,
    word: &str,
) -> Result<Figure, BenchError> {
    let structure = case.shape.name();
    let subject = Subject {
        system: &rival.name,
        structure,
        operation: &format!("{structure}_{word}"),
        n: options.entries,
        threads: 1,
        how: &runs[0].how,
    };
    let times: Vec<Times> = runs.iter().map(|run| kind.of_rival(run)).collect();
    let mut figure = Figure::of(subject, &times);
    if kind == TELLS_COMPACTION {
        let seen: Vec<Compaction> = runs.iter().map(seen_of_rival).collect();
        figure.compaction = Compaction::median(seen.iter());
    }
    if kind == Kind::Insert && rival.id == super::rival::LIBPMEMOBJ {
        let counted = rival.count(&format!("{}_insert", case.rivals))?;
        figure.fences_per_op = Some(counted.fences_per_op);
        figure.lines_per_op = Some(counted.lines_per_op);
    }
    Ok(figure)
}

/// Compares our figures of an operation with a rival's, unless they have been compared already.
fn compare(figures: &mut [Figure], theirs: &Figure) {
    let ours = figures.iter_mut().filter(|f| {
        f.system == SYSTEM
            && f.operation
                .trim_end_matches(COLLECTING)
                .trim_end_matches(ON_SMALL_PAGES)
                == theirs.operation
            && f.ratio_to_rival.is_none()
    });
    ours.for_each(|f| f.ratio_to_rival = Some(theirs.ns_cpu_per_op / f.ns_cpu_per_op));
}

const HOW: &str = "FFCCD's phases: all inserted, 80 % deleted at random, inserted, deleted, one a \
                   transaction, values of 128 bytes; insert and delete are means over all of their \
                   kind; get_after when 80 % are deleted, packed first where there is a collector; \
                   many: 100 in one guard, by one reader; each: as many, asked for at once";

fn seen(run: &Run) -> Compaction {
    Compaction {
        ratio_2m_mean: Some(run.ratio_mean),
        file_over_payload: Some(run.file_over_payload),
        ..run.seen.clone()
    }
}

fn seen_of_rival(run: &Phased) -> Compaction {
    Compaction {
        ratio_2m: run.ratio_2m_after,
        ratio_4k: run.ratio_4k_after,
        ratio_2m_mean: run.ratio_2m_mean,
        file_over_payload: run.file_over_payload,
        ..Compaction::default()
    }
}

/// Counts what inserting or deleting does, on memory that can lose power.
fn counted(options: &Options, shape: Shape, kind: Kind) -> Result<Option<Counted>, BenchError> {
    let all: Vec<u32> = (0..COUNTED as u32).collect();
    let (first, rest) = all.split_at(COUNTED / 2);
    let (crash, pool) = pools::counted(options.domain, PoolKind::Traced)?;
    let mut population = Population::new(&pool, shape, Sizes::Fixed, COUNTED as u64)?;
    population.take_one_a_transaction();
    population.add(first)?;
    match kind {
        Kind::Insert => {
            crash.reset_counts();
            population.add(rest)?;
        }
        Kind::Delete => {
            population.add(rest)?;
            crash.reset_counts();
            population.remove(rest)?;
        }
        _ => return Ok(None),
    }
    let counts = crash.counts();
    Ok(Some(Counted {
        fences_per_op: counts.fences as f64 / rest.len() as f64,
        lines_per_op: counts.write_backs as f64 / rest.len() as f64,
    }))
}
