//! A doubly linked list of byte strings, each with a number for a key.
//!
//! ```text
//! node      the nodes on media        cursor    changes
//! walk      iterating                 check     whether every invariant holds
//! ```
//! The program chooses the order; keys may occur more than once. Finding a key takes linear time, as in the lists with
//! which persistent heaps are usually measured.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the list's lock, a writer has it alone until its transaction ends.

mod check;
mod cursor;
mod node;
mod walk;

use firn_heap::{Error, Field, Ref, Tx, View};
use firn_media::Medium;

use crate::collection::Collection;
use crate::protocol::{Growing, Lookup, Part, Protocol, sealed::Sealed};
use crate::reader::Reader;

pub use cursor::Cursor;
pub use node::{ListRoot, Node};
pub use walk::Links;

/// A doubly linked list of byte strings, each with a number for a key.
///
/// A value has up to [`crate::map::MAX_VALUE_BYTES`]. Every function takes constant time unless it says otherwise;
/// searches for a key take linear time, and find the first element with it.
pub type List<'g, V> = Collection<'g, V, Linked>;

/// An element of a [`List`], while the list's lock is held.
pub type Item<'r, 'g, V> = crate::Item<'r, Part<'g, Node, V>>;

/// The protocol of [`List`].
pub enum Linked {}

impl Sealed for Linked {}

impl Protocol for Linked {
    type Root = ListRoot;
    type AtHand<'g, V: View<'g>> = ();
    type Walk<'g, V: View<'g>> = Links<'g, V>;

    const LOCK: Field<ListRoot, u64> = ListRoot::LOCK;
    const LEN: Field<ListRoot, u64> = ListRoot::LEN;

    #[inline]
    fn at_hand<'g, V: View<'g>>(_root: Part<'g, ListRoot, V>) {}

    fn walk<'g, V: View<'g>>(Part(root): Part<'g, ListRoot, V>) -> Links<'g, V> {
        Links::new(root)
    }

    fn check<'g, V: View<'g>>(
        Part(root): Part<'g, ListRoot, V>,
        findings: &mut Vec<String>,
    ) -> Result<(), Error> {
        check::check(root, findings)
    }
}

impl Growing for Linked {
    fn empty<M: Medium>(_tx: Tx<'_, M>, lock: u64) -> ListRoot {
        ListRoot {
            lock,
            len: 0,
            first: Ref::NULL,
            last: Ref::NULL,
        }
    }

    fn clear<'t, M: Medium>(Part(root): Part<'t, ListRoot, Tx<'t, M>>) -> Result<(), Error> {
        cursor::clear(root)
    }
}

impl Lookup for Linked {
    type Key<'k> = u64;
    type Found<'g, V: View<'g>> = Part<'g, Node, V>;

    fn look_up<'g, V: View<'g>>(
        Part(root): Part<'g, ListRoot, V>,
        _at_hand: (),
        key: u64,
    ) -> Result<Option<Part<'g, Node, V>>, Error> {
        Ok(Links::new(root).find(key)?.map(Part))
    }
}

impl<'g, V: View<'g>> Reader<'_, 'g, V, Linked> {
    /// The first element with this key, in linear time.
    pub fn find(&self, key: u64) -> Result<Option<Item<'_, 'g, V>>, Error> {
        Ok(self.look_up(key)?.map(Item::new))
    }
}

impl<'t, M: Medium> List<'t, Tx<'t, M>> {
    /// A cursor beside the elements: before the first and behind the last. Takes the write lock.
    pub fn cursor(&mut self) -> Result<Cursor<'_, 't, M>, Error> {
        self.lock()?;
        Ok(Cursor::new(self.root))
    }

    /// Inserts an element before all others.
    ///
    /// Errors: the value is too large, the pool is full; the list is unchanged.
    pub fn push_front(&mut self, key: u64, value: &[u8]) -> Result<(), Error> {
        self.cursor()?.insert_after(key, value)
    }

    /// Inserts an element behind all others.
    ///
    /// Errors: the value is too large, the pool is full; the list is unchanged.
    pub fn push_back(&mut self, key: u64, value: &[u8]) -> Result<(), Error> {
        self.cursor()?.insert_before(key, value)
    }

    /// Removes the first element with this key, in linear time. Returns whether there was one.
    pub fn remove(&mut self, key: u64) -> Result<bool, Error> {
        let mut cursor = self.cursor()?;
        Ok(cursor.find(key)? && cursor.remove()?)
    }

    /// Removes the first element and returns it.
    pub fn pop_front(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let mut cursor = self.cursor()?;
        cursor.move_next()?;
        cursor.take()
    }

    /// Removes the last element and returns it.
    pub fn pop_back(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let mut cursor = self.cursor()?;
        cursor.move_previous()?;
        cursor.take()
    }
}
