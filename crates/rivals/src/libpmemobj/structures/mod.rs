//! Persistent structures as a user of libpmemobj writes them: links are references of 16 bytes, values lie in the
//! nodes, each change is an undo transaction that snapshots the bytes it changes.

mod avl;
mod b_plus;
mod binary;
mod inner;
mod list;
mod pack;
mod red_black;
mod string_swap;
#[cfg(test)]
mod tests;
mod two_threads;

use pack::Pack;
pub use pack::{Packed, pack};
pub use two_threads::{Shared, TwoThreads};

use std::path::Path;

use avl::Avl;
use b_plus::BPlus;
use list::List;
use red_black::RedBlack;
use string_swap::StringSwap;

use super::nodes::Nodes;
use super::{Failure, Library, Pool};
use crate::phases::{self, Outcome, Structure};

/// Bytes of a pool without any entry, and for each entry. The structures need less than half; the rest ensures that the
/// allocator never runs short of room.
const POOL_BYTES: usize = 64 << 20;
const POOL_BYTES_PER_ENTRY: usize = 512;

/// A structure that can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StructureKind {
    /// A doubly linked list.
    List,
    /// An AVL tree.
    Avl,
    /// A red-black tree.
    RedBlack,
    /// An array of strings.
    StringSwap,
    /// A B+tree.
    BTree,
}

const NAMES: [(&str, StructureKind); 5] = [
    ("list", StructureKind::List),
    ("avl", StructureKind::Avl),
    ("red_black", StructureKind::RedBlack),
    ("string_swap", StructureKind::StringSwap),
    ("btree", StructureKind::BTree),
];

/// An action on a structure of any kind.
pub trait Use {
    /// Its result.
    type Output;

    /// Performs it.
    fn with<S: Structure + Send>(self, structure: S) -> Result<Self::Output, Failure>;
}

impl StructureKind {
    /// The names of all structures.
    pub fn names() -> Vec<&'static str> {
        NAMES.iter().map(|(name, _)| *name).collect()
    }

    /// The structure called `name`.
    pub fn named(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(_, kind)| *kind == self);
        found.expect("every structure has a name").0
    }

    /// Makes an empty structure for numbers below `n` in a pool of its own, and uses it.
    pub fn with<U: Use>(
        self,
        library: &Library,
        dir: &Path,
        n: u32,
        user: U,
    ) -> Result<U::Output, Failure> {
        let pool = Pool::create_in(library, dir, pool_bytes(n))?;
        let nodes = nodes(&pool);
        match self {
            Self::List => user.with(List::new(nodes, n)?),
            Self::Avl => user.with(Avl::new(nodes)?),
            Self::RedBlack => user.with(RedBlack::new(nodes)?),
            Self::StringSwap => user.with(StringSwap::new(nodes, n)?),
            Self::BTree => user.with(BPlus::new(nodes)?),
        }
    }
}

/// Bytes of a pool for a structure of `n` entries.
fn pool_bytes(n: u32) -> usize {
    POOL_BYTES + n as usize * POOL_BYTES_PER_ENTRY
}

/// The nodes of a structure of this module.
#[allow(unsafe_code)]
fn nodes<'p>(pool: &'p Pool<'_>) -> Nodes<'p> {
    // SAFETY: the structures keep references only in their links, which they write before they read them, and forget a
    // node when they free it. They use the ranges that their constants name, all multiples of eight within the bytes
    // they allocate. Their tests compare each with a plain map.
    unsafe { Nodes::new(pool) }
}

/// The phases, for a structure.
pub struct Phases {
    /// Entries.
    pub n: u32,
    /// Chooses the entries to delete.
    pub seed: u64,
}

impl Use for Phases {
    type Output = Outcome;

    fn with<S: Structure + Send>(self, structure: S) -> Result<Outcome, Failure> {
        phases::run(structure, self.n, self.seed)
    }
}
