//! Simulated threads on one OS thread: what media that simulate them have in common.
//!
//! ```text
//! fiber      a job that any operation inside it can suspend
//! fleet      the suspended ones of each medium
//! panic      what a job said that panicked
//! confined   what only the OS thread that made it may touch
//! prefetch   what the host will be asked for soon
//! ```

mod confined;
mod fiber;
pub mod fleet;
mod panic;
mod prefetch;

pub use confined::Confined;
pub use fiber::{Fiber, Progress, inside, suspend};
pub use panic::panic_message;
pub use prefetch::prefetch;
