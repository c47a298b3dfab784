//! Every write-back, fence, order and rule of the heap that a test can leave out by name, on the crash medium only:
//! `crates/heap/tests/planted` shows that each is needed.
//!
//! The code asks for a step where it carries it out. `docs/protocol.md` has the rules, and this list as a table.

use firn_media::Step;

macro_rules! steps {
    ($($id:ident: $name:literal, $rule:literal, $what:literal;)*) => {
        $(
            #[doc = $what]
            pub static $id: Step = Step { name: $name, rule: $rule, what: $what };
        )*
        /// All of them.
        pub static STEPS: &[&Step] = &[$(&$id),*];
    };
}

steps! {
    // The entry of a commit.
    ENTRY_WRITE_BACK: "entry-write-back", "R1",
        "the write-back of a transaction's log entry";
    ENTRY_FENCE: "entry-fence", "R1",
        "the fence between a transaction's log entry and its in-place stores";
    ENTRY_CHECKSUM: "entry-checksum", "R1",
        "an entry counts only if its checksum is right";
    OVERFLOW_WRITE_BACK: "overflow-write-back", "R1",
        "the write-back of what a long entry has outside its slot";
    LONG_ENTRY_WRITE_BACK: "long-entry-write-back", "R1",
        "the write-back of a long entry's slot";
    LOCKS_UNTIL_NUMBER: "locks-until-number", "R2",
        "the number is taken with all write locks held";
    LOCKS_UNTIL_STORED: "locks-until-stored", "R3",
        "locks are held until the last in-place store";

    // The root table.
    ROOT_UNTIL_STORED: "root-until-stored", "N1",
        "a root is read by nobody while its transaction stores in place";
    ROOT_MISS_CONFIRMED: "root-miss-confirmed", "N2",
        "a root is missing only if no name has changed meanwhile";
    ROOT_HELD: "root-held", "N3",
        "a transaction says what it has read of the root table";
    ROOT_CHANGE_HEEDED: "root-change-heeded", "N3",
        "a transaction that reads a root looks whether it is being changed";
    ROOT_READERS_AWAITED: "root-readers-awaited", "N3",
        "a root is changed when the transactions that have read it have ended";

    // The durability of homes, and W.
    LOWER_BOUND: "lower-bound", "R4",
        "a lower bound is visible before the number is taken";
    SCAN_AFTER_NUMBER: "scan-after-number", "R4",
        "W is looked for after the number was taken";
    W_BELOW_FLIGHT: "w-below-flight", "R4",
        "W is below every number that is in flight";
    HOMES_WRITE_BACK: "homes-write-back", "R5",
        "the write-back of a transaction's in-place stores";
    OWN_HOMES_AFTER_FENCE: "own-homes-after-fence", "R5",
        "W does not count homes that the entry's own fence covers";
    FRAME_HOMES: "frame-homes", "R5",
        "words of new frames are homes of the entry that logs them";
    BIT_HOMES: "bit-homes", "R5",
        "allocation bits are homes of the entry that logs them";
    SETTLING_FENCE: "settling-fence", "R5",
        "the fence between the write-back of all homes and a raised W_pool";
    W_POOL_PERSIST: "w-pool-persist", "R8",
        "the write-back and fence of a raised W_pool";

    // Slots that are reused.
    W_BEFORE_REUSE: "w-before-reuse", "R8",
        "a slot is overwritten only when a durable W lies above its number";
    ADOPTION: "adoption", "R9",
        "sessions make other sessions' homes durable";
    ADOPTED_WRITE_BACK: "adopted-write-back", "R9",
        "the write-back of adopted homes";
    ADOPTED_AFTER_FENCE: "adopted-after-fence", "R9",
        "adopted homes are durable only after the adopter's fence";

    // Allocation without a log.
    LARGE_WRITE_BACK: "large-write-back", "A1",
        "the write-back of a new object that is not logged";
    LARGE_FENCE: "large-fence", "A1",
        "the fence between a new object that is not logged and the entry that names it";
    LARGE_FRAMES_WRITE_BACK: "large-frames-write-back", "A1",
        "the write-back of the words of such an object's frames";
    FRAMES_LOGGED: "frames-logged", "A1",
        "the words of new frames are logged";
    PASSED_ON_WRITE_BACK: "passed-on-write-back", "A1",
        "the write-back of the words of frames that an abort gives back";
    PASSED_ON_FENCE: "passed-on-fence", "A1",
        "the fence between these words and the slots' return";
    FRAMES_WAIT: "frames-wait", "A2",
        "freed frames wait until all older numbers are durable at home";
    FREED_WORDS_WRITE_BACK: "freed-words-write-back", "A2",
        "the write-back of the words of free frames whose blocks are given back";
    HOLES_W_POOL_WRITE_BACK: "holes-w-pool-write-back", "A2",
        "the write-back of a `W_pool` above every entry that names frames whose blocks are given back";
    HOLES_FENCE: "holes-fence", "A2",
        "the fence between these words and the blocks' end";
    SLOTS_AFTER_STORES: "slots-after-stores", "A4",
        "freed slots are offered after the in-place stores";
    BITS_LOGGED: "bits-logged", "A6",
        "allocation bits of explicit pools are logged";
    BITS_AS_BITS: "bits-as-bits", "A6",
        "allocation bits are logged as bits, not as words";

    // Undo transactions.
    UNDO_LOG_WRITE_BACK: "undo-log-write-back", "undo",
        "the write-back of old contents";
    UNDO_LOG_FENCE: "undo-log-fence", "undo",
        "the fence between old contents and the stores over them";
    UNDO_ZEROS_WRITE_BACK: "undo-zeros-write-back", "undo",
        "the write-back of the zeros where a log goes on";
    UNDO_ZEROS_FENCE: "undo-zeros-fence", "undo",
        "the fence between these zeros and what leads there";
    UNDO_BYTES_ALONE: "undo-bytes-alone", "undo",
        "of a word that was logged in part no other bytes are restored";
    UNDO_CONTENTS_WRITE_BACK: "undo-contents-write-back", "undo",
        "the write-back of what was stored";
    UNDO_FRAMES_WRITE_BACK: "undo-frames-write-back", "undo",
        "the write-back of the words of new frames";
    UNDO_BITS_WRITE_BACK: "undo-bits-write-back", "undo",
        "the write-back of allocation bits";
    UNDO_CONTENTS_FENCE: "undo-contents-fence", "undo",
        "the fence between what was stored and the end of its log";
    UNDO_DONE_PERSIST: "undo-done-persist", "undo",
        "the write-back and fence of the word that ends a log";
    UNDO_ABORT_FENCE: "undo-abort-fence", "undo",
        "the fence between restored contents and the end of their log";
    ROLLBACK_FENCE: "rollback-fence", "undo",
        "the same in recovery";
    ROLLBACK_DONE_WRITE_BACK: "rollback-done-write-back", "undo",
        "the write-back of the words that end logs in recovery";

    // Fields that change outside transactions.
    FIELD_WRITE_BACK: "field-write-back", "R13",
        "the write-back of a persisted field";
    FIELD_FENCE: "field-fence", "R13",
        "the fence of a persisted field";
    FIELD_ENTRIES_RETIRED: "field-entries-retired", "R13",
        "entries that name a persisted field are retired";
    FIELD_SETTLED: "field-settled", "9",
        "a moved object is settled before a field of it is exchanged";
    FIELD_COPY_FENCE: "field-copy-fence", "9",
        "the fence between its copy and its settled word";
    FIELD_SETTLED_WRITE_BACK: "field-settled-write-back", "9",
        "the write-back of its settled word";
    RAW_COPY_WRITE_BACK: "raw-copy-write-back", "9",
        "the write-back of a moved object's copy before raw stores to it";
    RAW_COPY_FENCE: "raw-copy-fence", "9",
        "the fence between that copy and its settled word";
    RAW_SETTLED_WRITE_BACK: "raw-settled-write-back", "9",
        "the write-back of its settled word before raw stores";

    // Addresses that stay.
    KEPT_LINK_WRITE_BACK: "kept-link-write-back", "K1",
        "the write-back of a kept plan's link to the one before";
    KEPT_HEAD_PERSIST: "kept-head-persist", "K1",
        "a kept plan is the head of the list before its cycle ends";
    KEPT_WORDS: "kept-words", "K2",
        "what a kept cycle emptied is not used again";
    KEPT_HEALED: "kept-healed", "K3",
        "references are healed before kept plans are forgotten";
    KEPT_HEALED_FENCE: "kept-healed-fence", "K3",
        "the fence between those references and the empty list";
    KEPT_WORDS_AFTER_HEAD: "kept-words-after-head", "K4",
        "what was kept is free only once the list is empty on media";

    // Recovery.
    REPLAY_FROM_W: "replay-from-w", "R6",
        "entries below the highest W are not replayed";
    REPLAY_IN_ORDER: "replay-in-order", "R6",
        "entries are replayed in the order of their numbers";
    GAPS_SKIPPED: "gaps-skipped", "R7",
        "entries behind a gap are replayed";
    REPLAY_WRITE_BACK: "replay-write-back", "R11",
        "the write-back of what recovery stores";
    REPLAY_FENCE: "replay-fence", "R11",
        "the fence between replayed homes and W_pool";
    RECOVERED_W_POOL_PERSIST: "recovered-w-pool-persist", "R11",
        "the write-back and fence of recovery's W_pool";
    NUMBERS_GO_ON: "numbers-go-on", "R12",
        "numbers go on above those in any header";

    // A pool's own tables.
    SUPERBLOCK_PERSIST: "superblock-persist", "P1",
        "the write-back and fence of the superblock";
    OLDER_COPY_WRITTEN: "older-copy-written", "P2",
        "the newer copy of the superblock stays while the other is written";
    OLDER_VERSION_OVERWRITTEN: "older-version-overwritten", "P5",
        "both copies of the superblock get the present version";
    CLOSING_SYNC: "closing-sync", "P3",
        "everything is on the device before the superblock says so";
    RECORD_PERSIST: "record-persist", "P4",
        "the write-back and fence of a type's record";
    REGISTRY_END_PERSIST: "registry-end-persist", "P4",
        "the write-back and fence of the registry's end";

    RECORDS_AT_ONCE: "records-at-once", "P4",
        "a type and all that it leads to are registered at once";
    MIGRATED_LAST: "migrated-last", "P6",
        "a type counts as migrated after its last object was turned";

    // Marking.
    STOP_FOR_MARKING: "stop-for-marking", "M1",
        "marking begins while no operation is open";
    REPLACED_REMEMBERED: "replaced-remembered", "M2",
        "replaced references are remembered";
    WEAK_REMEMBERED: "weak-remembered", "M2",
        "what a weak handle gave out is remembered";
    MARKING_ENDS_EMPTY: "marking-ends-empty", "M3",
        "marking ends when nothing was replaced since";
    NEW_LIVE: "new-live", "M4",
        "what was allocated since marking began is alive";
    HANDLES_ARE_ROOTS: "handles-are-roots", "M5",
        "what a strong handle names is alive";

    // The plan.
    STOP_FOR_SOURCES: "stop-for-sources", "S",
        "the last sources are closed while no operation is open";
    PLAN_WRITE_BACK: "plan-write-back", "1",
        "the write-back of the plan";
    PLAN_WORDS_WRITE_BACK: "plan-words-write-back", "1",
        "the write-back of the words of the plan's frames and of destinations";
    DESTINATION_WORDS_FENCE: "destination-words-fence", "1",
        "the fence between the words of destinations and their allocation bits";
    DESTINATION_BITS_WRITE_BACK: "destination-bits-write-back", "1",
        "the write-back of the allocation bits of destinations";
    FREED_LEFT_OUT: "freed-left-out", "C",
        "what was freed since it was planned does not live at its destination";
    LEFT_OUT_BITS_WRITE_BACK: "left-out-bits-write-back", "C",
        "the write-back of its allocation bit there";
    STOP_FOR_PLAN: "stop-for-plan", "13",
        "the plan comes into force while no operation is open";
    HOMES_BEFORE_ACTIVE: "homes-before-active", "C1",
        "all homes are durable, and W_pool is the counter, before the phase is ACTIVE";
    REACHED_CLEARED: "reached-cleared", "scheme",
        "no line of a destination counts as reached before the phase is ACTIVE";
    ACTIVE_PERSIST: "active-persist", "1",
        "the write-back and fence of ACTIVE";
    LOOKUP_INSTALLED: "lookup-installed", "lookup",
        "the hardware knows where objects go before the plan is in force";

    // Claim and copy.
    CLAIM: "claim", "2",
        "one thread copies a unit";
    SCHEME_COPY_WRITE_BACK: "scheme-copy-write-back", "scheme",
        "the copier's write-back, where a scheme has one";
    SCHEME_COPY_FENCE: "scheme-copy-fence", "scheme",
        "the copier's fence";
    SCHEME_SETTLED_WRITE_BACK: "scheme-settled-write-back", "scheme",
        "the copier's write-back of the settled word";
    SCHEME_SETTLED_FENCE: "scheme-settled-fence", "scheme",
        "the fence between the settled word and others' use of the copy";
    FOUND_BY_DESTINATION: "found-by-destination", "8",
        "a unit is found by its destination after a crash";
    HEAL_BY_EXCHANGE: "heal-by-exchange", "T3",
        "a reference is healed by compare-and-swap";

    DESTINATIONS_WAIT: "destinations-wait", "11",
        "a slot that was freed in a destination is used again after the cycle";

    // A transaction changes an object that moves.
    COPY_WRITE_BACK: "copy-write-back", "3",
        "the write-back of the copy by whoever changes it";
    SETTLED_AFTER_FENCE: "settled-after-fence", "4",
        "the settled word is stored after the entry's fence";
    SETTLED_LOGGED: "settled-logged", "5",
        "the entry names the settled word";
    SETTLED_BY_EVERY_ENTRY: "settled-by-every-entry", "5",
        "it does so whoever stored the word first";
    SETTLED_HOMES: "settled-homes", "6",
        "the settled word is one of the entry's homes";

    // Healing and release.
    ROOTS_HEALED: "roots-healed", "D",
        "roots are healed";
    HEALED_WRITE_BACK: "healed-write-back", "T4",
        "the write-back of healed references";
    HEALED_BY_OTHERS_WRITE_BACK: "healed-by-others-write-back", "T4",
        "the write-back of references that somebody else has healed";
    COPIES_WRITE_BACK: "copies-write-back", "T4",
        "the write-back of all copies";
    COPIES_FENCE: "copies-fence", "T4",
        "the fence between copies, healed references and RELEASE";
    RELEASE_PERSIST: "release-persist", "T4",
        "the write-back and fence of RELEASE";
    HANDLES_FORWARDED: "handles-forwarded", "E",
        "handles come to name destinations";
    SOURCE_BITS_WRITE_BACK: "source-bits-write-back", "T4",
        "the write-back of the allocation bits of emptied frames";
    FILLED_WRITE_BACK: "filled-write-back", "T4",
        "the write-back of the words of filled frames";
    RELEASED_FENCE: "released-fence", "T4",
        "the fence between these words and IDLE";
    IDLE_PERSIST: "idle-persist", "T4",
        "the write-back and fence of IDLE";
    PAGES_AFTER_RELEASE: "pages-after-release", "T4",
        "emptied pages are used again after RELEASE";
    PAGES_AFTER_IDLE: "pages-after-idle", "T4",
        "emptied pages are used again after IDLE";
    LOOKUP_RETIRED: "lookup-retired", "lookup",
        "the hardware forgets where objects went before the next plan";

    // An interrupted cycle.
    COPY_BEFORE_REPLAY: "copy-before-replay", "C3",
        "recovery copies what entries name before it replays them";
    RECOVERED_COPY_WRITE_BACK: "recovered-copy-write-back", "C3",
        "the write-back of these copies";
    RECOVERED_COPY_FENCE: "recovered-copy-fence", "C3",
        "the fence between these copies and the replay";
    SETTLED_STAYS: "settled-stays", "C3",
        "a settled unit is not copied again";
    LOOKUP_RESTORED: "lookup-restored", "lookup",
        "the hardware knows where objects of an interrupted cycle go";
}

/// The step of this name.
pub fn named(name: &str) -> Option<&'static Step> {
    STEPS.iter().copied().find(|step| step.name == name)
}

/// A transaction is a record only if no entry is left in a lane. Not among [`STEPS`], for it is missed only where the
/// crash medium has a log: `crates/lab/tests/campaigns/logged.rs` shows that it is.
pub static ENTRIES_HIDDEN: Step = Step {
    name: "entries-hidden",
    rule: "R14",
    what: "a transaction is a record of the medium only if recovery reads no entry of an older one",
};

/// All stored words of a line are written back. Not among [`STEPS`], for it is missed only where a line's other words stay
/// as they were: `crates/lab/tests/campaigns/logged.rs` shows that it is.
pub static WORDS_BEHIND_GAPS: Step = Step {
    name: "words-behind-gaps",
    rule: "R5",
    what: "a transaction's words are written back behind the first gap of a line, too",
};

/// Steps of a collection do not store while the medium drops memory. Not among [`STEPS`], for it is missed on media that
/// drop something only: `crates/heap/tests/collect_races` shows that it is.
pub static STORES_WAIT: Step = Step {
    name: "stores-wait",
    rule: "T5",
    what: "a step of a collection that stores to objects waits while memory is dropped",
};
