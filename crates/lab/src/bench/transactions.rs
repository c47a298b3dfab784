//! Durable transactions, in turns with the rival's.

use firn_heap::{Error, Pool, PoolKind};
use firn_mapped::Mapped;
use firn_media::Medium;
use firn_tools::Progress;

use super::clock::Times;
use super::figure::{Figure, Subject};
use super::operation::Operation;
use super::pools;
use super::rig::Rig;
use super::rival::{Counted, Rival};
use super::{BenchError, Options};

/// The name of this part of the bench, and of the subject of its figures.
pub(super) const SECTION: &str = "transactions";
/// Bytes of a pool.
const POOL_BYTES: u64 = 256 << 20;
/// Operations that are counted, after their own warm-up.
const COUNTED: u64 = 60;
const WARM_UP: u64 = 20;

/// A kind of pool, and the suffix of its operations' names.
const KINDS: [(PoolKind, &str); 2] = [(PoolKind::Traced, ""), (PoolKind::Explicit, " explicit")];

const HOW: &str = "one session; steady state; each durable on return; pages present; \
                   fences and lines counted on the crash medium, the same code";
const HOW_RIVAL: &str = "in turns with Firn's blocks; fences and lines single-stepped";

/// One operation on one kind of pool, with the times of its blocks.
struct Case {
    operation: Operation,
    kind: usize,
    name: String,
    firn: Vec<Times>,
    rival: Vec<Times>,
}

/// Measures every selected transaction.
pub(super) fn measure(
    options: &Options,
    rival: Option<&mut Rival>,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let mut cases: Vec<Case> = cases()
        .filter(|case| options.wants(SECTION, &case.name))
        .collect();
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let pools: Vec<Pool<Mapped>> = KINDS
        .iter()
        .map(|(kind, _)| pools::mapped(&options.memory_dir, POOL_BYTES, options.domain, *kind))
        .collect::<Result<_, _>>()?;
    let mut rigs: Vec<Rig<Mapped>> = pools.iter().map(Rig::new).collect::<Result<_, _>>()?;
    let mut rival = rival;
    progress.begin("transactions", Some((options.blocks * cases.len()) as u64));
    for _ in 0..options.blocks {
        for case in &mut cases {
            block(options, case, &mut rigs, rival.as_deref_mut())?;
            progress.advance(1);
        }
    }
    progress.end();
    let mut figures = Vec::new();
    for case in &cases {
        figures.extend(figures_of(options, case, rival.as_deref_mut())?);
    }
    Ok(figures)
}

/// Names of all transactions.
pub(super) fn names() -> impl Iterator<Item = String> {
    cases().map(|case| case.name)
}

fn cases() -> impl Iterator<Item = Case> {
    let kinds = KINDS.iter().enumerate();
    kinds.flat_map(|(kind, (_, suffix))| {
        // The kinds differ only in the log records of allocations.
        let differs = move |o: &Operation| kind == 0 || o.object_bytes().is_some();
        Operation::all().filter(differs).map(move |operation| Case {
            operation,
            kind,
            name: format!("{}{suffix}", operation.name()),
            firn: Vec::new(),
            rival: Vec::new(),
        })
    })
}

fn block(
    options: &Options,
    case: &mut Case,
    rigs: &mut [Rig<Mapped>],
    rival: Option<&mut Rival>,
) -> Result<(), BenchError> {
    let count = case.operation.count_of(options.n);
    let rig = &mut rigs[case.kind];
    rig.warm_up(case.operation, count)?;
    let times = rig.timed(case.operation, count)?;
    case.firn.push(times / count as f64);
    if let Some(rival) = rival {
        case.rival
            .push(rival.time(case.operation.name(), count, 1)?);
    }
    Ok(())
}

fn figures_of(
    options: &Options,
    case: &Case,
    rival: Option<&mut Rival>,
) -> Result<Vec<Figure>, BenchError> {
    let how = format!("{}; {HOW}", case.operation.what());
    let mut subject = Subject {
        system: "firn",
        structure: "transaction",
        operation: &case.name,
        n: case.operation.count_of(options.n),
        threads: 1,
        how: &how,
    };
    let counted = counted(options, case)?;
    let mut firn = Figure::of(subject, &case.firn);
    (firn.fences_per_op, firn.lines_per_op) =
        (Some(counted.fences_per_op), Some(counted.lines_per_op));
    let Some(rival) = rival else {
        return Ok(vec![firn]);
    };
    let theirs = rival.count(case.operation.name())?;
    let name = rival.name.clone();
    (subject.system, subject.how) = (&name, HOW_RIVAL);
    let mut other = Figure::of(subject, &case.rival);
    (other.fences_per_op, other.lines_per_op) =
        (Some(theirs.fences_per_op), Some(theirs.lines_per_op));
    firn.ratio_to_rival = Some(other.ns_cpu_per_op / firn.ns_cpu_per_op);
    Ok(vec![firn, other])
}

/// Counts what an operation does, on memory that can lose power.
fn counted(options: &Options, case: &Case) -> Result<Counted, BenchError> {
    let (crash, pool) = pools::counted(options.domain, KINDS[case.kind].0)?;
    let mut rig = Rig::new(&pool)?;
    run_and_clear(&mut rig, case.operation, WARM_UP)?;
    crash.reset_counts();
    rig.run(case.operation, COUNTED)?;
    let counts = crash.counts();
    Ok(Counted {
        fences_per_op: counts.fences as f64 / COUNTED as f64,
        lines_per_op: counts.write_backs as f64 / COUNTED as f64,
    })
}

fn run_and_clear<M: Medium>(rig: &mut Rig<M>, operation: Operation, n: u64) -> Result<(), Error> {
    rig.run(operation, n)?;
    rig.clear(operation, n)
}
