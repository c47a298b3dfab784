//! Damaged pools: is every one of them a clear error or a sound answer, in bounded time?
//!
//! The campaign damages small real pools of every structure, traced and explicit ones: closed, or crashed with entries
//! in their logs, in the middle of transactions with undo logs, or in the middle of a cycle of the collector. Some are
//! cut short. Each is then used: opened, checked, read, changed, collected, closed. Nothing may panic, reach beyond the
//! medium or go on for ever. A pool that its own checks call sound, with unchanged content, must hold later insertions.
//! The medium is simulated: an address beyond it is a panic, and an endless loop is a panic after too many steps.
//!
//! The answers of heap and structures guide the search: damage that leads to an answer not seen before is kept, and
//! damaged further.
//!
//! ```text
//! sample     pools to damage, and their layout          mutation   the damage to one
//! fields     damage that has its checksum repaired      judge      how a pool is used and judged
//! undoing    a pool with open undo logs, and their use  report     the report, and what replays findings
//! campaign   many runs, the corpus, the shrinker
//! ```

mod campaign;
mod error;
mod fields;
mod judge;
mod mutation;
mod report;
mod sample;
mod undoing;

pub use campaign::{DAMAGER, DamageCampaign, Until};
pub use error::DamageError;
pub use report::{DamageFinding, DamageReport, DamageRow};
pub use sample::Condition;
