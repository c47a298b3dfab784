//! What is not in order yet, and may only get better.

/// Files of more than 500 lines, and how many they have.
pub const LONG_FILES: &[(&str, usize)] = &[
    ("crates/heap/src/untyped.rs", 512),
    ("crates/heap/tests/objects/basics.rs", 773),
    ("crates/heap/tests/collect_races/program.rs", 588),
    ("crates/heap/tests/crash.rs", 665),
    ("crates/heap/tests/objects/layouts.rs", 668),
    ("crates/heap/tests/collecting/raw_collect.rs", 710),
    ("crates/heap/tests/objects/undo.rs", 752),
];

/// Functions of more than 60 lines, and how many they have.
pub const LONG_FUNCTIONS: &[(&str, usize)] = &[
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
    ("crates/mapped/src/mapped.rs assemble", 71),
];

/// Files in a circle at most.
pub const CIRCLE: usize = 8;
/// Crates with a larger one, and how many files it has.
pub const CIRCLES: &[(&str, usize)] = &[];

/// Lines of unsafe code at most, in all crates.
pub const UNSAFE_LINES: usize = 400;
