//! Simulated threads on one OS thread: the common code of the media that simulate them.
//!
//! ```text
//! fiber      a job that any operation inside it can suspend
//! fleet      the suspended fibers of each medium
//! panic      the message of a panic
//! confined   values that only the OS thread that made them may touch
//! prefetch   hints to the host's processor
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
