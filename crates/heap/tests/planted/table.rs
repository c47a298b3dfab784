//! Which workload detects which step.

use firn_heap::PoolKind::{Explicit, Traced};
use firn_heap::steps;
use firn_media::Domain;

use crate::fields::Act::{Persist, Store, StoreFar};
use crate::fields::Acts;
use crate::interrupted::{Op, Pair};
use crate::raw::{Part, Raw};
use crate::shared_words::{Does, SharedWords};
use crate::undo::{Long, Undo};
use crate::{Row, cycle, handles, lanes, moving_fields, roots, rounds, row, tables, types};

/// Every workload.
pub fn table() -> Vec<Row> {
    let parts = [
        commits(),
        commits_of_two_threads(),
        roots_of_two_threads(),
        tables_of_a_pool(),
        undo_transactions(),
        undo_transactions_of_two_threads(),
        raw_stores(),
        fields_and_handles(),
        cycle::rows(),
    ];
    parts.into_iter().flatten().collect()
}

/// Objects with in-place stores while they move.
fn raw_stores() -> Vec<Row> {
    let raw = |part| Raw { part, depth: 1 };
    vec![
        row(
            "raw stores beside a cycle",
            move |missing| raw(Part::Moving).explore(missing),
            &[
                &steps::RAW_COPY_WRITE_BACK,
                &steps::RAW_COPY_FENCE,
                &steps::RAW_SETTLED_WRITE_BACK,
                &steps::KEPT_LINK_WRITE_BACK,
                &steps::KEPT_HEAD_PERSIST,
                &steps::KEPT_WORDS,
            ],
        ),
        row(
            "an old address after a cycle",
            move |missing| raw(Part::Moved).explore(missing),
            &[],
        ),
        row(
            "the end of a pool that keeps addresses",
            move |missing| raw(Part::Closing).explore(missing),
            &[
                &steps::KEPT_HEALED,
                &steps::KEPT_HEALED_FENCE,
                &steps::KEPT_WORDS_AFTER_HEAD,
            ],
        ),
    ]
}

/// Transactions of one thread.
fn commits() -> Vec<Row> {
    vec![
        row(
            "rounds",
            |missing| rounds::MIXED.swarm(missing),
            &[
                &steps::ENTRY_WRITE_BACK,
                &steps::ENTRY_FENCE,
                &steps::ENTRY_CHECKSUM,
                &steps::HOMES_WRITE_BACK,
                &steps::OWN_HOMES_AFTER_FENCE,
                &steps::FRAME_HOMES,
                &steps::FRAMES_LOGGED,
                &steps::REPLAY_IN_ORDER,
                &steps::REPLAY_WRITE_BACK,
                &steps::REPLAY_FENCE,
                &steps::SUPERBLOCK_PERSIST,
            ],
        ),
        row(
            "rounds of an explicit pool",
            |missing| rounds::MIXED_EXPLICIT.swarm(missing),
            &[&steps::BITS_LOGGED, &steps::BIT_HOMES],
        ),
        row(
            "rounds after a recovery",
            |missing| rounds::RECOVERED.swarm(missing),
            &[&steps::NUMBERS_GO_ON, &steps::OLDER_COPY_WRITTEN],
        ),
        row(
            "large objects",
            |missing| rounds::LARGE.swarm(missing),
            &[&steps::FRAMES_WAIT],
        ),
        row(
            "a large object",
            |missing| rounds::HOLLOW.explore(missing),
            &[
                &steps::LARGE_WRITE_BACK,
                &steps::LARGE_FENCE,
                &steps::LARGE_FRAMES_WRITE_BACK,
            ],
        ),
        row(
            "long entries",
            |missing| rounds::LONG.swarm(missing),
            &[&steps::OVERFLOW_WRITE_BACK, &steps::LONG_ENTRY_WRITE_BACK],
        ),
        row(
            "two lanes",
            lanes::explore_all,
            &[
                &steps::W_BEFORE_REUSE,
                &steps::ADOPTION,
                &steps::ADOPTED_WRITE_BACK,
                &steps::ADOPTED_AFTER_FENCE,
                &steps::REPLAY_FROM_W,
            ],
        ),
    ]
}

/// A transaction inside another.
fn commits_of_two_threads() -> Vec<Row> {
    let pair = |kind, ops| Pair {
        kind,
        ops,
        domain: Domain::Adr,
        is_full: false,
    };
    vec![
        row(
            "a commit in a commit",
            move |missing| pair(Traced, [Op::Own, Op::Own]).explore(missing),
            &[
                &steps::LOWER_BOUND,
                &steps::SCAN_AFTER_NUMBER,
                &steps::W_BELOW_FLIGHT,
                &steps::GAPS_SKIPPED,
            ],
        ),
        row(
            "a commit in another under its lock",
            move |missing| pair(Traced, [Op::Shared, Op::Shared]).explore(missing),
            &[&steps::LOCKS_UNTIL_NUMBER, &steps::LOCKS_UNTIL_STORED],
        ),
        row(
            "an allocation in a free",
            move |missing| {
                let pair = Pair {
                    domain: Domain::Eadr,
                    is_full: true,
                    ..pair(Explicit, [Op::Free, Op::Alloc])
                };
                pair.explore(missing)
            },
            &[&steps::SLOTS_AFTER_STORES],
        ),
        row(
            "an allocation in a free beside it",
            move |missing| pair(Explicit, [Op::Free, Op::Alloc]).explore(missing),
            &[&steps::BITS_AS_BITS],
        ),
    ]
}

/// Roots that are looked up while they change.
fn roots_of_two_threads() -> Vec<Row> {
    vec![
        row(
            "an object that is counted in while its root changes",
            roots::counted,
            &[
                &steps::ROOT_HELD,
                &steps::ROOT_CHANGE_HEEDED,
                &steps::ROOT_READERS_AWAITED,
            ],
        ),
        row(
            "a root that is read while it changes",
            roots::read,
            &[&steps::ROOT_UNTIL_STORED],
        ),
        row(
            "a root that is looked for while another is removed",
            roots::looked_for,
            &[&steps::ROOT_MISS_CONFIRMED],
        ),
    ]
}

/// A pool's own data.
fn tables_of_a_pool() -> Vec<Row> {
    vec![
        row(
            "blocks that are given back",
            tables::given_back,
            &[
                &steps::FREED_WORDS_WRITE_BACK,
                &steps::HOLES_W_POOL_WRITE_BACK,
                &steps::HOLES_FENCE,
            ],
        ),
        row(
            "a frame that is passed on",
            tables::passed_on,
            &[&steps::PASSED_ON_WRITE_BACK, &steps::PASSED_ON_FENCE],
        ),
        row(
            "a new type",
            tables::new_type,
            &[&steps::RECORD_PERSIST, &steps::REGISTRY_END_PERSIST],
        ),
        row(
            "a type that leads to another",
            types::registered,
            &[&steps::RECORDS_AT_ONCE],
        ),
        row("a migration", types::migrated, &[&steps::MIGRATED_LAST]),
        row(
            "a pool that is closed",
            tables::closed,
            &[&steps::CLOSING_SYNC],
        ),
        row(
            "a pool of an older version",
            tables::converted,
            &[&steps::OLDER_VERSION_OVERWRITTEN],
        ),
    ]
}

/// Undo transactions.
fn undo_transactions() -> Vec<Row> {
    let undo = |kind, aborts, recovers| Undo {
        kind,
        aborts,
        recovers,
    };
    vec![
        row(
            "an undo transaction",
            move |missing| undo(Traced, false, false).explore(missing),
            &[
                &steps::UNDO_LOG_WRITE_BACK,
                &steps::UNDO_LOG_FENCE,
                &steps::UNDO_CONTENTS_WRITE_BACK,
                &steps::UNDO_CONTENTS_FENCE,
                &steps::UNDO_DONE_PERSIST,
                &steps::UNDO_FRAMES_WRITE_BACK,
                &steps::ROLLBACK_FENCE,
            ],
        ),
        row(
            "an undo transaction of an explicit pool",
            move |missing| undo(Explicit, false, false).explore(missing),
            &[&steps::UNDO_BITS_WRITE_BACK],
        ),
        row(
            "an undo transaction that aborts",
            move |missing| undo(Traced, true, false).explore(missing),
            &[&steps::UNDO_ABORT_FENCE],
        ),
        row(
            "an undo transaction after a recovery",
            move |missing| undo(Traced, false, true).explore(missing),
            &[&steps::ROLLBACK_DONE_WRITE_BACK],
        ),
        row(
            "an undo transaction that outgrows its lane",
            |missing| Long.explore(missing),
            &[&steps::UNDO_ZEROS_WRITE_BACK, &steps::UNDO_ZEROS_FENCE],
        ),
    ]
}

/// Undo transactions of two threads, whose fields share words.
fn undo_transactions_of_two_threads() -> Vec<Row> {
    use Does::{Aborts, Commits, Persists};
    let words = |does| move |missing| SharedWords(does).explore(missing);
    vec![
        row(
            "an abort beside a commit to the same words",
            words([Aborts, Commits]),
            &[&steps::UNDO_BYTES_ALONE],
        ),
        row(
            "a commit beside an abort of the same words",
            words([Commits, Aborts]),
            &[],
        ),
        row(
            "two commits to the same words",
            words([Commits, Commits]),
            &[],
        ),
        row(
            "an abort beside plain stores to the same words",
            words([Aborts, Persists]),
            &[],
        ),
        row(
            "plain stores beside an abort of the same words",
            words([Persists, Aborts]),
            &[],
        ),
    ]
}

/// Fields that change outside transactions, and variables outside the pool.
fn fields_and_handles() -> Vec<Row> {
    vec![
        row(
            "a persisted field",
            |missing| {
                let acts = Acts {
                    before: &[],
                    acts: &[Store, Persist, StoreFar, Persist, Persist],
                };
                acts.explore(missing)
            },
            &[
                &steps::FIELD_WRITE_BACK,
                &steps::FIELD_FENCE,
                &steps::FIELD_ENTRIES_RETIRED,
                &steps::SETTLING_FENCE,
                &steps::W_POOL_PERSIST,
            ],
        ),
        row(
            "a persisted field after a recovery",
            |missing| {
                let acts = Acts {
                    before: &[Store, StoreFar],
                    acts: &[Persist],
                };
                acts.explore(missing)
            },
            &[&steps::RECOVERED_W_POOL_PERSIST],
        ),
        row(
            "a persisted field of an object that moves",
            moving_fields::explore_all,
            &[
                &steps::FIELD_SETTLED,
                &steps::FIELD_COPY_FENCE,
                &steps::FIELD_SETTLED_WRITE_BACK,
                &steps::ROOTS_HEALED,
            ],
        ),
        row(
            "handles to objects that move",
            handles::moved,
            &[&steps::HANDLES_ARE_ROOTS, &steps::HANDLES_FORWARDED],
        ),
        row(
            "a weak handle beside marking",
            handles::recalled,
            &[&steps::WEAK_REMEMBERED, &steps::MARKING_ENDS_EMPTY],
        ),
    ]
}
