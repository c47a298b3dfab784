//! What programs do to structures, on any medium, for measurements, simulation and crash tests.
//!
//! ```text
//! population   objects that come to a structure and go from it by number, in FFCCD's phases
//! shape        which structure that is, and how large values are
//! way          the structures behind one interface
//! chain, list  those of them that are no collection of `firn-structures`
//! key          keys of numbered entries
//! reclaim      freeing
//! under_test/  the collections of `firn-structures` behind one interface that also says what they must hold
//! ```
#![deny(unsafe_code)]

mod chain;
mod key;
mod list;
mod population;
mod reclaim;
mod shape;
pub mod under_test;
mod way;

pub use key::key;
pub use population::{Population, SEED, shuffled};
pub use shape::{Shape, Sizes, UnknownWorkload, VALUE_BYTES};

/// The root of a population's map.
pub const MAP: &str = "map";

const VALUE_WORDS: usize = VALUE_BYTES / size_of::<u64>();
const GONE: firn_heap::Error = firn_heap::Error::NotAllocated { at: 0 };
