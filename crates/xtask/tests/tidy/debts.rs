//! What is not in order yet, and may only get better.

/// Files of more than 500 lines, and how many they have.
pub const LONG_FILES: &[(&str, usize)] = &[
    ("crates/crash/src/lazy.rs", 575),
    ("crates/firn/src/arguments.rs", 549),
    ("crates/firn/tests/cli.rs", 529),
    ("crates/heap/src/untyped.rs", 512),
    ("crates/heap/tests/objects/basics.rs", 773),
    ("crates/heap/tests/collect_races/program.rs", 588),
    ("crates/heap/tests/crash.rs", 665),
    ("crates/heap/tests/objects/layouts.rs", 668),
    ("crates/heap/tests/collecting/raw_collect.rs", 710),
    ("crates/heap/tests/objects/undo.rs", 752),
    ("crates/lab/src/bench/population.rs", 503),
    ("crates/structures/tests/crash.rs", 504),
    ("crates/structures/tests/collections/damage.rs", 509),
];

/// Functions of more than 60 lines, and how many they have.
pub const LONG_FUNCTIONS: &[(&str, usize)] = &[
    ("crates/crash/src/replay.rs replay", 73),
    ("crates/firn/src/figures.rs defragmented", 83),
    ("crates/firn/src/simulate.rs machines", 61),
    (
        "crates/heap/tests/objects/basics.rs roots_equal_a_map_whoever_looks_them_up",
        65,
    ),
    ("crates/heap/tests/collecting/moving.rs keeps_and_frees", 61),
    (
        "crates/heap/tests/crash.rs an_object_stored_at_home_is_not_overwritten_by_an_older_entry",
        77,
    ),
    ("crates/heap/tests/crash.rs explore", 76),
    (
        "crates/heap/tests/planted/cycle.rs alone_or_beside_changes",
        71,
    ),
    ("crates/heap/tests/planted/table.rs commits", 61),
    (
        "crates/heap/tests/collecting/raw_collect.rs listed_objects_move_together_and_nothing_else_does",
        66,
    ),
    (
        "crates/heap/tests/objects/undo.rs every_image_of_gathering_has_each_object_where_its_table_says",
        80,
    ),
    (
        "crates/heap/tests/objects/undo.rs every_image_of_two_batches_is_all_or_nothing",
        68,
    ),
    (
        "crates/heap/tests/objects/untyped.rs copies_of_references_hold_while_objects_move",
        64,
    ),
    (
        "crates/heap/tests/objects/untyped.rs references_are_checked_wherever_they_are_stored",
        88,
    ),
    ("crates/lab/src/bench/allocator.rs measure", 65),
    ("crates/lab/src/bench/reopen.rs measure", 64),
    ("crates/lab/src/bench/structures/mod.rs figures_of", 76),
    (
        "crates/lab/src/reproduction/artefacts/forwarding.rs make",
        62,
    ),
    (
        "crates/lab/src/reproduction/artefacts/section_7_1.rs make",
        62,
    ),
    (
        "crates/lab/tests/reproduction.rs figures_have_the_shape_that_is_printed",
        72,
    ),
    (
        "crates/machine/tests/descriptions.rs what_cannot_be_is_refused_by_its_name",
        115,
    ),
    ("crates/mapped/src/mapped.rs assemble", 71),
    ("crates/structures/examples/map_speed.rs run", 98),
    (
        "crates/structures/tests/collections/bounded.rs positions_and_lengths_at_every_edge_are_refused",
        74,
    ),
    ("crates/structures/tests/crash.rs read", 73),
    (
        "crates/structures/tests/collections/full_pool.rs an_insert_without_room_changes_nothing",
        65,
    ),
    (
        "crates/structures/tests/collections/full_pool.rs tables_stay_sound_without_room_and_can_be_emptied",
        87,
    ),
    (
        "crates/structures/tests/collections/shared.rs a_queue_is_shared",
        69,
    ),
    (
        "crates/structures/tests/collections/threads.rs a_scan_beside_a_writer",
        71,
    ),
    (
        "crates/structures/tests/collections/trees.rs assert_same_parts",
        67,
    ),
];

/// Files in a circle at most.
pub const CIRCLE: usize = 8;
/// Crates with a larger one, and how many files it has.
pub const CIRCLES: &[(&str, usize)] = &[("crates/crash", 17), ("crates/lab", 12)];
