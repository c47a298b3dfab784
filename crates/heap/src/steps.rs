//! Every write-back, fence, order and rule of the heap that a test can take away by name, on the crash
//! medium only: `crates/heap/tests/planted.rs` shows that each is missed.

use firn_media::Step;

/// A commit's log entry is fenced before the first in-place store (R1).
pub static ENTRY_FENCE: Step = Step {
    name: "entry-fence",
    rule: "R1",
    what: "the fence between a transaction's log entry and its in-place stores",
};

/// All of them.
pub static STEPS: [&Step; 1] = [&ENTRY_FENCE];

/// The step of this name.
pub fn named(name: &str) -> Option<&'static Step> {
    STEPS.iter().copied().find(|step| step.name == name)
}
