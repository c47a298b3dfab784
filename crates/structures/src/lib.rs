//! Persistent collections over the heap.
//!
//! ```text
//! map           ordered byte strings to byte strings: a B+tree that logs few lines
//! hash          byte strings to byte strings, unordered: a hash table that grows without a stop
//! avl           ordered numbers to byte strings: an AVL tree
//! red_black     the same: a red-black tree
//! inline_tree   the same for short values: a B+tree that holds them in its leaves
//! list          byte strings keyed by a number, doubly linked
//! vector        byte strings by position, growing at the end
//! queue         byte strings, first in, first out
//! strings       byte strings by position, of a fixed number
//! ```
//!
//! Their common parts are shared. Each is a [`Collection`], and adds its [`Protocol`].
//!
//! ```text
//! collection    opening, making, locking        keyed     getting, inserting, removing by key
//! reader        reading and iterating           entry     the entry of a key, there or not
//! protocol      the parts of each               tree      the common parts of the three trees
//! ```
//!
//! A collection is an object of the pool. A value of [`Map`], [`List`] and the others names it inside
//! one guard or transaction; its reading functions work in both, and see a transaction's own changes.
//! Functions that change a collection take its write lock to the end of the transaction.
//!
//! A collection is found by the name of its root, or faster by a [`RootHandle`](firn_heap::RootHandle), which a program
//! makes once and uses in all its operations.
//!
//! For damaged media every function returns an error; none panics or loops endlessly.
//!
//! ```
//! # use firn_heap::{Error, Pool, PoolOptions};
//! # use firn_mapped::{Mapped, MappedOptions};
//! use firn_structures::Map;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let medium = Mapped::anonymous(16 << 20, &MappedOptions::default())?;
//! # let pool = Pool::create(medium, &PoolOptions::new("example"))?;
//! let mut session = pool.session()?;
//! session.transaction(|tx| {
//!     let mut map = Map::create(tx, "files")?;
//!     map.insert(b"readme", b"read me first")?;
//!     map.insert(b"license", b"take it")?;
//!     Ok::<_, Error>(())
//! })?;
//! let guard = session.guard();
//! let map = Map::open(guard.view(), "files")?;
//! assert_eq!(map.get(b"license")?.as_deref(), Some(&b"take it"[..]));
//! for entry in map.read()?.iter() {
//!     println!("{:?}", entry?.key()?);
//! }
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

pub mod avl;
mod binary;
mod collection;
mod element;
pub mod entry;
pub mod hash;
pub mod inline_tree;
mod keyed;
pub mod list;
pub mod map;
pub mod protocol;
pub mod queue;
mod reader;
mod reclaim;
pub mod red_black;
pub mod strings;
mod table;
pub mod tree;
pub mod vector;

pub use avl::AvlTree;
pub use collection::Collection;
pub use hash::HashMap;
pub use inline_tree::InlineTree;
pub use list::List;
pub use map::Map;
pub use protocol::Protocol;
pub use queue::Queue;
pub use reader::{Item, Iter, Reader};
pub use red_black::RedBlackTree;
pub use strings::StringArray;
pub use vector::Vector;

/// A stored length, limited by the number of smallest objects for which the pool has room: so a damaged length does not
/// make a walk endless.
fn plausible_len<'g, V: firn_heap::View<'g>>(view: V, len: u64) -> u64 {
    const SMALLEST_BYTES: u64 = 16;
    len.min(firn_media::Space::len(view.medium()) / SMALLEST_BYTES)
}
