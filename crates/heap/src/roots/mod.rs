//! The root table (Espresso's name table, section 3.3).
//!
//! ```text
//! change   storing and removing roots
//! find     reading them
//! handle   keys of roots: a name, or a handle
//! index    names to places, found without a lock, and the readers of each
//! slots    places, as a set
//! ```
//! Guards read the table without a lock. A transaction that has found a root keeps others from changing it, to its end;
//! a transaction that has found none, or changes one, holds the table's lock.

mod change;
mod find;
mod handle;
mod index;
mod slots;

pub(crate) use change::{remove, set, set_raw};
pub(crate) use find::{find, names, reference_at, references};
pub use handle::{RootHandle, RootKey, RootName};
pub(crate) use index::{RootIndex, Storing, bit};
pub use slots::Slots;
