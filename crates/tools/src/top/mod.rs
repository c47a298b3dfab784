//! Activity in a pool that a program has open: differences of its statistics, without a lock.
//!
//! ```text
//! watch     looks at the pool from time to time
//! scene     what was seen: the last figures, their history, what befell the pool
//! change    what happened between two looks
//! lengths   lengths of stops, in a limited number of bars
//! ```
//! All but the first are pure: they read no clock and no file.

mod change;
mod lengths;
mod scene;
mod watch;

pub use change::Change;
pub use lengths::few;
pub use scene::{Condition, Incident, Moment, Scene, What};
pub use watch::Watch;
