//! The cost of the allocator itself: allocating and freeing inside transactions.
//!
//! A round frees some objects in one transaction and allocates as many in another. It gives three figures, each per
//! object:
//!
//! ```text
//! call       the calls alone, on the thread's CPU clock around their loop, less the clock's cost;
//!            allocating fills the object, which is then in the transaction's write set
//! marginal   what one more object adds to a transaction: the slope between few and many objects;
//!            with its share of the commit, of reading or storing its link, and of the log
//! whole      a transaction of many objects over their number, its fence included
//! ```
//!
//! Two threads are measured in one pool and, to tell what the pool makes them share from what the machine does, each in
//! a pool of its own.

use std::sync::Barrier;

use firn_heap::{Pool, PoolKind};
use firn_mapped::Mapped;
use firn_tools::Progress;

use super::clock::Times;
use super::figure::{Figure, Subject, Undisturbed, over};
use super::herd::{Cost, Costs, Herd, Order};
use super::rival::Rival;
use super::{BenchError, Options, cores, pools};

/// The name of this part of the bench, and of the subject of its figures.
pub(super) const SECTION: &str = "allocator";
const POOL_BYTES: u64 = 128 << 20;
/// Objects of a transaction: few and many for the slope, both logged in one piece.
const FEW: usize = 4;
const MANY: usize = 16;
/// Objects of a transaction whose calls are timed: enough to hide the clock's cost.
const CALLS: usize = super::herd::MOST_AT_ONCE;
/// The rival's counterpart: calls that are durable by themselves.
const RIVAL_OPERATIONS: [&str; 2] = ["alloc_128", "free_128"];

/// Blocks are cheap here, and the differences are small.
const BLOCKS: usize = 5;
/// The blocks are repeated up to this many times, until enough of each case ran on undisturbed cores.
const MOST_TIMES: usize = 16;
const ENOUGH: usize = 9;
/// Time of a step in registers on an undisturbed core, over the fastest step, at most.
const UNDISTURBED: f64 = 1.1;
/// Suffix of figures of threads in pools of their own.
const APART: &str = " apart";
/// The figures of the cores' distance from each other, and of their speed.
const ONE_WAY: &str = "a line to the other core";
const STEP: &str = "a step in registers";

/// A case; cases are measured in turns.
struct Case {
    threads: u64,
    /// Objects per thread.
    len: usize,
    order: Order,
    /// Whether each thread has a pool of its own.
    apart: bool,
    /// Suffix of the figures' names.
    suffix: &'static str,
}

impl Case {
    const fn new(
        threads: u64,
        apart: bool,
        len: usize,
        order: Order,
        suffix: &'static str,
    ) -> Self {
        Self {
            threads,
            len,
            order,
            apart,
            suffix,
        }
    }

    fn pools(&self) -> u64 {
        if self.apart { self.threads } else { 1 }
    }

    /// The name of a figure of this case.
    fn operation(&self, verb: &str, kind: &str) -> String {
        let apart = if self.apart { APART } else { "" };
        format!("{verb}_128 {kind}{}{apart}", self.suffix)
    }
}

const FEW_OBJECTS: usize = 1024;
const MANY_OBJECTS: usize = 1 << 16;
const CASES: [Case; 6] = [
    Case::new(1, false, FEW_OBJECTS, Order::InOrder, ""),
    Case::new(2, false, FEW_OBJECTS, Order::InOrder, ""),
    Case::new(2, true, FEW_OBJECTS, Order::InOrder, ""),
    Case::new(1, false, MANY_OBJECTS, Order::Scattered, " scattered"),
    Case::new(2, false, MANY_OBJECTS, Order::Scattered, " scattered"),
    Case::new(2, true, MANY_OBJECTS, Order::Scattered, " scattered"),
];

/// Most threads of a case.
const MOST_THREADS: u64 = 2;

const VERBS: [&str; 2] = ["alloc", "free"];
type Pick = fn(&Blocks) -> &[Vec<Times>; 2];
/// The kind that has a bar.
const CALL: &str = "call";
/// The kinds of figures for each verb, and where their blocks are.
const KINDS: [(&str, Pick); 3] = [
    (CALL, |blocks| &blocks.call),
    ("marginal", |blocks| &blocks.marginal),
    ("whole", |blocks| &blocks.whole),
];
/// How the machine's figures were measured.
const HOW_ONE_WAY: &str = "two threads pass a cache line to and fro between the blocks, one way";
const HOW_STEP: &str = "six short chains of operations on registers, around the calls";
/// How each kind was measured.
const HOW: [&str; 3] = [
    "the calls inside transactions of 64, thread CPU clock around their loop",
    "slope of whole transactions between 4 and 16 objects",
    "transactions of 16 objects, over 16",
];

/// Blocks of one figure, of allocating and of freeing.
#[derive(Default)]
struct Blocks {
    call: [Vec<Times>; 2],
    marginal: [Vec<Times>; 2],
    whole: [Vec<Times>; 2],
    rival: [Vec<Times>; 2],
    /// The slowest step in registers around the calls, and the fastest.
    steps: [Vec<Times>; 2],
}

impl Blocks {
    /// The calls around which no step took longer than `step_ns`.
    fn undisturbed(&self, which: usize, step_ns: f64) -> impl Iterator<Item = Times> {
        let all = self.steps[0].iter().zip(&self.call[which]);
        let quiet = all.filter(move |(slowest, _)| slowest.cpu_ns <= step_ns);
        quiet.map(|(_, times)| *times)
    }
}

/// Time of a step in registers on an undisturbed core, at most: little more than the fastest step seen.
fn undisturbed_step(cases: &[Blocks]) -> f64 {
    let steps = cases.iter().flat_map(|blocks| &blocks.steps[1]);
    steps.map(|step| step.cpu_ns).fold(f64::INFINITY, f64::min) * UNDISTURBED
}

/// Whether each case has been measured often enough on undisturbed cores.
fn enough(cases: &[Blocks]) -> bool {
    let step_ns = undisturbed_step(cases);
    cases
        .iter()
        .all(|blocks| blocks.undisturbed(0, step_ns).count() >= ENOUGH)
}

/// Measures the allocator, if it was asked for.
pub(super) fn measure(
    options: &Options,
    mut rival: Option<&mut Rival>,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    if !options.wants(SECTION, SECTION) {
        return Ok(Vec::new());
    }
    let mut cases: Vec<Blocks> = CASES.iter().map(|_| Blocks::default()).collect();
    let dir = &options.memory_dir;
    let make = || pools::mapped(dir, POOL_BYTES, options.domain, PoolKind::Traced);
    // Each case has pools of its own, so that none inherits another's history.
    let pools: Vec<Vec<Pool<Mapped>>> = CASES
        .iter()
        .map(|case| (0..case.pools()).map(|_| make()).collect())
        .collect::<Result<_, _>>()?;
    let mut one_way = Vec::new();
    let count = options.blocks * BLOCKS;
    progress.begin("allocator", None);
    for round in 0..count * MOST_TIMES {
        if round >= count && enough(&cases) {
            break;
        }
        for ((case, pools), blocks) in CASES.iter().zip(&pools).zip(&mut cases) {
            block(options, pools, case, blocks, rival.as_deref_mut())?;
            one_way.extend(cores::one_way());
            progress.advance(1);
        }
    }
    progress.end();
    let undisturbed = undisturbed_step(&cases);
    let rival = rival.map(|rival| rival.name.clone());
    let mut all: Vec<Figure> = CASES
        .iter()
        .zip(&cases)
        .flat_map(|(case, blocks)| figures(options, case, blocks, undisturbed, rival.as_deref()))
        .collect();
    for (at, case) in CASES.iter().enumerate().filter(|(_, case)| case.apart) {
        // The case of these threads in one pool stands before it, and ran before it in each block.
        compare(
            &mut all,
            [&cases[at - 1], &cases[at]],
            [&CASES[at - 1], case],
        );
    }
    all.extend(of_the_machine(options, &cases, &one_way));
    Ok(all)
}

/// How long a line takes from core to core, and, by number of threads, how long a step in registers takes.
fn of_the_machine(options: &Options, cases: &[Blocks], one_way: &[Times]) -> Vec<Figure> {
    let figure = |operation, threads, how, times: &[Times]| {
        let subject = Subject {
            system: cores::SYSTEM,
            structure: SECTION,
            operation,
            n: options.n,
            threads,
            how,
        };
        (!times.is_empty()).then(|| Figure::of(subject, times))
    };
    let one_way = figure(ONE_WAY, 2, HOW_ONE_WAY, one_way);
    let steps = (1..=MOST_THREADS).filter_map(|threads| {
        let of = CASES.iter().zip(cases);
        let of = of.filter(|(case, _)| case.threads == threads);
        let steps: Vec<Times> = of.flat_map(|(_, blocks)| blocks.steps.concat()).collect();
        figure(STEP, threads, HOW_STEP, &steps)
    });
    one_way.into_iter().chain(steps).collect()
}

fn block(
    options: &Options,
    pools: &[Pool<Mapped>],
    case: &Case,
    blocks: &mut Blocks,
    rival: Option<&mut Rival>,
) -> Result<(), BenchError> {
    let batches = [FEW, MANY, CALLS];
    let ([few, many, calls], steps) = together(pools, case, options.n, batches)?;
    for (all, step) in blocks.steps.iter_mut().zip(steps) {
        all.push(step);
    }
    let threads = case.threads;
    for (which, of) in [pick_alloc, pick_free].into_iter().enumerate() {
        let each = |costs: &Costs, count: usize| {
            let objects = rounds(options.n, count) * count as u64 * threads;
            (of(costs), objects as f64)
        };
        let (cost, objects) = each(&calls, CALLS);
        blocks.call[which].push(Times {
            cpu_ns: cost.call_ns / objects,
            wall_ns: f64::NAN,
        });
        let (cost, objects) = each(&many, MANY);
        let whole_many = cost.whole / objects;
        blocks.whole[which].push(whole_many);
        let (cost, objects) = each(&few, FEW);
        blocks.marginal[which].push(slope(cost.whole / objects, whole_many));
    }
    if let (Some(rival), "", false) = (rival, case.suffix, case.apart) {
        for (which, op) in RIVAL_OPERATIONS.iter().enumerate() {
            blocks.rival[which].push(rival.time(op, options.n, threads)?);
        }
    }
    Ok(())
}

/// The cost of one more object, from the times per object of transactions of few and of many.
fn slope(few: Times, many: Times) -> Times {
    let of = |few: f64, many: f64| (many * MANY as f64 - few * FEW as f64) / (MANY - FEW) as f64;
    Times {
        cpu_ns: of(few.cpu_ns, many.cpu_ns),
        wall_ns: of(few.wall_ns, many.wall_ns),
    }
}

fn pick_alloc(costs: &Costs) -> Cost {
    costs.alloc
}

fn pick_free(costs: &Costs) -> Cost {
    costs.free
}

/// Rounds in which about `objects` objects are freed and allocated.
fn rounds(objects: u64, count: usize) -> u64 {
    (objects / count as u64).max(1)
}

/// The costs of rounds of some sizes, and the slowest and the fastest step in registers around the last.
type Together<const N: usize> = ([Costs; N], [Times; 2]);

/// Runs rounds of each of `batches` objects on `threads` threads at once, and adds up their costs.
fn together<const N: usize>(
    pools: &[Pool<Mapped>],
    case: &Case,
    objects: u64,
    batches: [usize; N],
) -> Result<Together<N>, BenchError> {
    let start = Barrier::new(case.threads as usize);
    let thread = |pool: &Pool<Mapped>| -> Result<Together<N>, BenchError> {
        let herd = Herd::new(pool, case.len, case.order);
        // A thread that failed still waits at the barriers, or the other would wait for ever.
        start.wait();
        let mut herd = herd.inspect_err(|_| {
            for _ in &batches {
                start.wait();
            }
        })?;
        let mut costs = [Costs::default(); N];
        let mut steps = [Times::default(); 2];
        for (cost, count) in costs.iter_mut().zip(batches) {
            // As many again to warm up: freed frames are reused, so that none is cold.
            let warm = herd.rounds(rounds(objects, count), count);
            start.wait();
            warm?;
            let before = cores::step();
            *cost = herd.rounds(rounds(objects, count), count)?;
            steps = slowest_first([before, cores::step()]);
        }
        herd.clear()?;
        Ok((costs, steps))
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..case.threads as usize)
            .map(|i| scope.spawn(move || thread(&pools[i % pools.len()])))
            .collect();
        let mut sum = [Costs::default(); N];
        let mut steps = Vec::new();
        for worker in workers {
            let (costs, around) = worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            for (sum, cost) in sum.iter_mut().zip(costs) {
                sum.add(cost);
            }
            steps.extend(around);
        }
        let ends = slowest_first(steps);
        Ok((sum, ends))
    })
}

/// The slowest and the fastest.
fn slowest_first(steps: impl AsRef<[Times]>) -> [Times; 2] {
    let by_cpu = |a: &&Times, b: &&Times| a.cpu_ns.total_cmp(&b.cpu_ns);
    let steps = steps.as_ref();
    let ends = [steps.iter().max_by(by_cpu), steps.iter().min_by(by_cpu)];
    ends.map(|step| step.copied().unwrap_or_default())
}

/// Adds how the figures of threads in one pool compare with those in a pool each.
fn compare(figures: &mut [Figure], blocks: [&Blocks; 2], cases: [&Case; 2]) {
    for (which, verb) in VERBS.into_iter().enumerate() {
        for (kind, pick) in KINDS {
            let [together, apart] = blocks.map(|blocks| &pick(blocks)[which]);
            let ratio = over(together, apart);
            let operation = cases[0].operation(verb, kind);
            let same = |figure: &&mut Figure| {
                figure.operation == operation && figure.threads == cases[0].threads
            };
            if let Some(figure) = figures.iter_mut().find(same) {
                figure.over_control = Some(ratio);
            }
        }
    }
}

fn figures(
    options: &Options,
    case: &Case,
    blocks: &Blocks,
    undisturbed: f64,
    rival: Option<&str>,
) -> Vec<Figure> {
    let mut all = Vec::new();
    for (which, verb) in VERBS.into_iter().enumerate() {
        for ((kind, pick), how) in KINDS.into_iter().zip(HOW) {
            let times = &pick(blocks)[which];
            let operation = case.operation(verb, kind);
            let subject = Subject {
                system: "firn",
                structure: SECTION,
                operation: &operation,
                n: options.n,
                threads: case.threads,
                how,
            };
            let mut figure = Figure::of(subject, times);
            if kind == CALL {
                figure.undisturbed = Undisturbed::of(blocks.undisturbed(which, undisturbed));
            }
            all.push(figure);
        }
        if let (Some(system), false) = (rival, blocks.rival[which].is_empty()) {
            let how = "a call without a transaction, durable by itself";
            let operation = RIVAL_OPERATIONS[which];
            all.push(Figure::of(
                Subject {
                    system,
                    structure: SECTION,
                    operation,
                    n: options.n,
                    threads: case.threads,
                    how,
                },
                &blocks.rival[which],
            ));
        }
    }
    all
}
