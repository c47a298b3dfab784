//! A cycle of the collector beside a program, crashed everywhere, again in recovery.

use firn_crash::{Report, Turn};
use firn_heap::PoolKind::{self, Explicit, Traced};
use firn_heap::collector::scheme::{ESPRESSO, FFCCD, FFCCD_CHECKLOOKUP, PIGGYBACK, SFCCD, Scheme};
use firn_heap::steps;
use firn_media::Domain;

use crate::beside::{Case, Run, Stage};
use crate::moments::{By, FURTHER, in_an_operation, in_the_collector};
use crate::phases::point;
use crate::pools::Missing;
use crate::program::Op;
use crate::{Row, emptied, lookup, reused, row};

fn case(missing: Missing, kind: PoolKind, scheme: &'static Scheme) -> Case {
    Case {
        kind,
        scheme,
        leave_out: missing,
        ..Case::default()
    }
}

/// For losses that show without a crash: where caches survive there are few images.
fn volatile(missing: Missing) -> Case {
    Case {
        domain: Domain::Eadr,
        depth: 0,
        ..case(missing, Traced, &PIGGYBACK)
    }
}

/// Operations of threads, one after the other, from the middle of a stage on. Between them the collector runs for a
/// moment.
fn in_stage(case: &Case, stage: Stage, ops: &[(usize, Op)]) -> Report {
    let image = case.image();
    let mut next = point(&case.stages(&image), case.stage(stage), 1);
    let mut run = Run::default();
    for &(thread, op) in ops {
        run.script[thread - 1].push(op);
        run.turns.push(Turn {
            after: next,
            thread,
        });
        let done = case.run(&image, &run).done;
        next = done[done.len() - 1].end + 1;
    }
    case.explore_all(vec![run])
}

/// Points before the plan counts at which the program is stopped.
const LAST: u64 = 60;
/// Points after that moment at which the program continues.
const LATER: [u64; 5] = [20, 40, 60, 80, FURTHER];

/// Changes of moving objects: the fifth entry publishes that the first one's homes are durable, and the sixth changes
/// its object once more.
const CHANGES: [(usize, Op); 6] = [
    (1, Op::Change(0)),
    (1, Op::Change(1)),
    (1, Op::Change(1)),
    (1, Op::Change(1)),
    (1, Op::Change(1)),
    (1, Op::Change(0)),
];

/// A thread copies, without a fence afterwards; another one changes the copy.
const COPIED_AND_CHANGED: [(usize, Op); 2] = [(2, Op::Touch(0)), (1, Op::Change(0))];

/// Two threads, the first interrupted by the other at each of its points.
fn conflict(missing: Missing, pair: (Op, Op)) -> Report {
    let case = Case {
        threads: 2,
        ..case(missing, Traced, &PIGGYBACK)
    };
    in_an_operation(&case, &[pair], &[Stage::Moving], By::Other, 1)
}

/// An operation that begins in each of the stages, and is interrupted by the collector at each point.
fn around(missing: Missing, op: Op) -> Report {
    let case = Case {
        threads: 2,
        ..volatile(missing)
    };
    let image = case.image();
    let bounds = case.stages(&image);
    let mut runs = Vec::new();
    for stage in 0..case.stage(Stage::Releasing) {
        let begin = point(&bounds, stage, 6);
        let alone = Run::of([vec![op], vec![]], &[(begin, 1)]);
        let done = case.run(&image, &alone).done[0];
        for at in done.begin + 1..done.end {
            let turns = [(begin, 1), (at, case.collector())];
            runs.push(Run::of([vec![op], vec![]], &turns));
        }
    }
    case.explore_all(runs)
}

/// Every workload with a cycle.
pub fn rows() -> Vec<Row> {
    let parts = [
        alone_or_beside_changes(),
        beside_two_threads(),
        beside_the_collector(),
        beside_new_objects(),
        found_by_hardware(),
    ];
    parts.into_iter().flatten().collect()
}

/// A cycle alone, or beside changes of moving objects.
fn alone_or_beside_changes() -> Vec<Row> {
    vec![
        row(
            "a cycle alone",
            |missing| case(missing, Traced, &PIGGYBACK).explore_all(vec![Run::default()]),
            &[
                &steps::PLAN_WRITE_BACK,
                &steps::PLAN_WORDS_WRITE_BACK,
                &steps::COPIES_WRITE_BACK,
                &steps::COPIES_FENCE,
                &steps::HEALED_WRITE_BACK,
                &steps::FILLED_WRITE_BACK,
                &steps::RELEASED_FENCE,
                &steps::RELEASE_PERSIST,
            ],
        ),
        row(
            "a cycle that fills pages of an earlier one",
            |missing| {
                let case = Case {
                    earlier: 2,
                    depth: 0,
                    ..case(missing, Traced, &FFCCD)
                };
                case.explore_all(vec![Run::default()])
            },
            &[&steps::REACHED_CLEARED],
        ),
        row(
            "a cycle of an explicit pool alone",
            |missing| case(missing, Explicit, &PIGGYBACK).explore_all(vec![Run::default()]),
            &[&steps::DESTINATION_BITS_WRITE_BACK],
        ),
        row(
            "changes of what moves",
            |missing| in_stage(&case(missing, Traced, &PIGGYBACK), Stage::Moving, &CHANGES),
            &[
                &steps::ACTIVE_PERSIST,
                &steps::COPY_WRITE_BACK,
                &steps::SETTLED_AFTER_FENCE,
                &steps::SETTLED_LOGGED,
                &steps::SETTLED_HOMES,
                &steps::COPY_BEFORE_REPLAY,
                &steps::RECOVERED_COPY_WRITE_BACK,
                &steps::RECOVERED_COPY_FENCE,
                &steps::SETTLED_STAYS,
                &steps::FOUND_BY_DESTINATION,
            ],
        ),
        row(
            "changes of what moves with two fences",
            |missing| in_stage(&case(missing, Traced, &ESPRESSO), Stage::Moving, &CHANGES),
            &[
                &steps::SCHEME_COPY_WRITE_BACK,
                &steps::SCHEME_COPY_FENCE,
                &steps::SCHEME_SETTLED_WRITE_BACK,
            ],
        ),
        row(
            "a change before the plan counts",
            |missing| {
                let case = case(missing, Traced, &PIGGYBACK);
                let end = case.stages(&case.image())[case.stage(Stage::Moving)];
                let script = || [vec![Op::Change(0), Op::Change(0)], vec![]];
                // The second change must come before the collector has made the copy durable, which happens soon.
                let run = |(at, later)| Run::of(script(), &[(at, 1), (end + later, 1)]);
                let moments = (end - LAST..end).step_by(3);
                let pairs = moments.flat_map(|at| LATER.map(|later| (at, later)));
                case.explore_all(pairs.map(run).collect())
            },
            &[&steps::HOMES_BEFORE_ACTIVE],
        ),
    ]
}

/// Two threads, or a thread and the collector, meet at a moving object.
fn beside_two_threads() -> Vec<Row> {
    vec![
        row(
            "a copy in a change",
            |missing| conflict(missing, (Op::Touch(0), Op::Change(0))),
            &[&steps::CLAIM],
        ),
        row(
            "an exchange of references in a copy",
            |missing| conflict(missing, (Op::Touch(0), Op::Swap)),
            &[&steps::HEAL_BY_EXCHANGE],
        ),
        row(
            "a reader while objects move",
            |missing| {
                in_stage(
                    &case(missing, Traced, &PIGGYBACK),
                    Stage::Moving,
                    &[(1, Op::Read)],
                )
            },
            &[&steps::HEALED_BY_OTHERS_WRITE_BACK],
        ),
        row(
            "a change of what another thread has copied with a fence",
            |missing| {
                let case = Case {
                    threads: 2,
                    ..case(missing, Traced, &SFCCD)
                };
                in_stage(&case, Stage::Moving, &COPIED_AND_CHANGED)
            },
            &[&steps::SETTLED_BY_EVERY_ENTRY],
        ),
        row(
            "a change of what another thread has copied with two fences",
            |missing| {
                let case = Case {
                    threads: 2,
                    ..case(missing, Traced, &ESPRESSO)
                };
                in_stage(&case, Stage::Moving, &COPIED_AND_CHANGED)
            },
            &[&steps::SCHEME_SETTLED_FENCE],
        ),
    ]
}

/// Operations at points of the whole cycle, and the collector at points of operations.
fn beside_the_collector() -> Vec<Row> {
    vec![
        row(
            "an exchange of references anywhere",
            |missing| in_the_collector(&volatile(missing), Op::Swap, 17),
            &[&steps::REPLACED_REMEMBERED],
        ),
        row(
            "a new object anywhere",
            |missing| in_the_collector(&volatile(missing), Op::Replace(0), 17),
            &[&steps::NEW_LIVE],
        ),
        row(
            "an exchange of references around the collector",
            |missing| around(missing, Op::Swap),
            &[&steps::STOP_FOR_MARKING],
        ),
        row(
            "a change around the collector",
            |missing| around(missing, Op::Change(0)),
            &[&steps::STOP_FOR_PLAN],
        ),
        row(
            "a new object around the collector",
            |missing| around(missing, Op::Replace(0)),
            &[&steps::STOP_FOR_SOURCES],
        ),
        row(
            "a free in the planning",
            |missing| {
                let case = case(missing, Explicit, &PIGGYBACK);
                in_stage(&case, Stage::Planning, &[(1, Op::Remove(0))])
            },
            &[&steps::FREED_LEFT_OUT, &steps::LEFT_OUT_BITS_WRITE_BACK],
        ),
    ]
}

/// New objects after others have moved.
fn beside_new_objects() -> Vec<Row> {
    vec![
        row(
            "new objects after a cycle",
            |missing| {
                let run = Run::of([vec![Op::Read, Op::Read, Op::Enlarge(1)], vec![]], &[]);
                let case = Case {
                    depth: 0,
                    ..case(missing, Traced, &PIGGYBACK)
                };
                case.explore_all(vec![run])
            },
            &[&steps::IDLE_PERSIST],
        ),
        row(
            "new objects after a cycle of an explicit pool",
            |missing| {
                let run = Run::of([vec![Op::Enlarge(1)], vec![]], &[]);
                let case = Case {
                    depth: 0,
                    ..case(missing, Explicit, &PIGGYBACK)
                };
                case.explore_all(vec![run])
            },
            &[&steps::SOURCE_BITS_WRITE_BACK],
        ),
        row(
            "an emptied run is a destination at once",
            |missing| emptied::explorer(missing, 1).explore(),
            &[&steps::DESTINATION_WORDS_FENCE],
        ),
        row(
            "a freed destination is used again",
            |missing| reused::explorer(missing, 1).explore(),
            &[&steps::DESTINATIONS_WAIT],
        ),
        row(
            "new pages before others are released",
            |missing| {
                let case = volatile(missing);
                let bounds = case.stages(&case.image());
                let end = bounds[case.stage(Stage::Healing) + 1];
                let run = |at| Run::of([vec![Op::Enlarge(1)], vec![]], &[(at, 1)]);
                case.explore_all((end - LAST..=end).map(run).collect())
            },
            &[&steps::PAGES_AFTER_RELEASE],
        ),
        row(
            "new pages while others are released",
            |missing| {
                let case = volatile(missing);
                let bounds = case.stages(&case.image());
                let stage = case.stage(Stage::Releasing);
                let run = |at| Run::of([vec![Op::Enlarge(1)], vec![]], &[(at, 1)]);
                case.explore_all((bounds[stage]..bounds[stage + 1]).map(run).collect())
            },
            &[&steps::PAGES_AFTER_IDLE],
        ),
    ]
}

/// Cycles in which the hardware says where objects go.
fn found_by_hardware() -> Vec<Row> {
    vec![
        row(
            "changes of what the hardware finds",
            |missing| {
                let case = Case {
                    domain: Domain::Eadr,
                    ..case(missing, Traced, &FFCCD_CHECKLOOKUP)
                };
                in_stage(&case, Stage::Moving, &CHANGES)
            },
            &[&steps::LOOKUP_INSTALLED, &steps::LOOKUP_RESTORED],
        ),
        row(
            "pages that are emptied twice",
            lookup::emptied_twice,
            &[&steps::LOOKUP_RETIRED],
        ),
    ]
}
