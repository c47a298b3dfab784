//! What goes on in a pool that a program has open: differences of its statistics, without a lock.
//!
//! ```text
//! watch     looks at the pool from time to time
//! scene     what was seen: the last figures, their history, what befell the pool
//! change    what happened between two looks
//! lengths   lengths of stops in few enough bars
//! ```
//! All but the first is pure: nothing of it reads a clock or a file.

mod change;
mod lengths;
mod scene;
mod watch;

pub use change::Change;
pub use lengths::few;
pub use scene::{Condition, Incident, Moment, Scene, What};
pub use watch::Watch;
