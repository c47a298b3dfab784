//! Damaged pools: is every one of them a clear error or a sound answer, in bounded time?
//!
//! Small real pools of every structure, closed, crashed with entries in their logs, in the middle of
//! transactions with undo logs, or in the middle of a cycle of the collector, traced ones and explicit ones,
//! are damaged, cut short too, and used: opened, checked, read, changed, collected, closed. Nothing may panic, reach beyond the medium or go on for ever; and a pool that its own checks call sound, whose
//! content is as it was, must hold what is put in from then on. The medium is simulated, so that an address
//! beyond it is a panic, and an endless loop one of too many steps.
//!
//! What heap and structures answer guides the search: damage that leads to an answer not seen before is
//! kept, and damaged further.
//!
//! ```text
//! sample     pools to damage, and what lies where       mutation   what is done to one
//! fields     damage that has its checksum repaired      judge      what is done with one, and asked
//! undoing    a pool with open undo logs, and their use  report     what is told, and what replays it
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
