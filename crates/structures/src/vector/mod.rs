//! A vector of byte strings, which grows at its end without being copied.
//!
//! The elements are the references of a table: a tree of arrays of 2 KiB, which grows by one array at a time. Constant
//! time means a handful of steps: three up to sixteen million elements. The collector can move everything except the
//! root object, and no array pins a page.
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the vector's lock, a writer has it alone until its transaction ends.

mod read;

use firn_heap::{Bytes, Error, Field, Obj, Ref, Refs, Stored, Tx, View};
use firn_media::Medium;

use crate::collection::Collection;
use crate::element::{self, Element, check_index, present};
use crate::protocol::{Growing, Lookup, Part, Protocol, sealed::Sealed};
use crate::reclaim::free_unlinked;
use crate::table::{Array, Table, place_of};

pub use read::Places;

/// The root object of a vector.
#[derive(Stored)]
#[firn(name = "firn.vector")]
#[repr(C)]
pub struct VectorRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of elements.
    pub(crate) len: u64,
    /// Levels of the table.
    pub(crate) height: u64,
    /// The table of the elements.
    pub(crate) top: Ref<Refs<Bytes>>,
}

type Root<'g, V> = Obj<'g, VectorRoot, V>;

/// The elements of a vector.
#[inline]
fn table<'g, V: View<'g>>(root: Root<'g, V>) -> Table<'g, VectorRoot, Bytes, V> {
    Table {
        root,
        top: VectorRoot::TOP,
        height: VectorRoot::HEIGHT,
    }
}

/// The element at `index`, which is below the length.
#[inline]
fn at<'g, V: View<'g>>(root: Root<'g, V>, index: u64) -> Result<Element<'g, V>, Error> {
    present(table(root).get(index)?, root)
}

/// A vector of byte strings, which grows at its end without being copied.
///
/// An element has up to [`crate::map::MAX_VALUE_BYTES`], and is named by its index. Every function takes constant time
/// unless it says otherwise. A vector that shrinks gives back all of its arrays except two; [`Collection::clear`] gives
/// back every one.
pub type Vector<'g, V> = Collection<'g, V, Placed>;

/// The protocol of [`Vector`].
pub enum Placed {}

impl Sealed for Placed {}

impl Protocol for Placed {
    type Root = VectorRoot;
    type AtHand<'g, V: View<'g>> = ();
    type Walk<'g, V: View<'g>> = Places<'g, V>;

    const LOCK: Field<VectorRoot, u64> = VectorRoot::LOCK;
    const LEN: Field<VectorRoot, u64> = VectorRoot::LEN;

    #[inline]
    fn at_hand<'g, V: View<'g>>(_root: Part<'g, VectorRoot, V>) {}

    fn walk<'g, V: View<'g>>(Part(root): Part<'g, VectorRoot, V>) -> Places<'g, V> {
        Places::new(root)
    }

    fn check<'g, V: View<'g>>(
        Part(root): Part<'g, VectorRoot, V>,
        findings: &mut Vec<String>,
    ) -> Result<(), Error> {
        read::check(root, findings)
    }
}

impl Growing for Placed {
    fn empty<M: Medium>(_tx: Tx<'_, M>, lock: u64) -> VectorRoot {
        VectorRoot {
            lock,
            len: 0,
            height: 0,
            top: Ref::NULL,
        }
    }

    fn clear<'t, M: Medium>(Part(root): Part<'t, VectorRoot, Tx<'t, M>>) -> Result<(), Error> {
        let tx = root.view();
        table(root).free(|element| free_unlinked(tx, element::sound(element)?))?;
        root.store(VectorRoot::LEN, 0);
        Ok(())
    }
}

impl Lookup for Placed {
    type Key<'k> = u64;
    type Found<'g, V: View<'g>> = Part<'g, Bytes, V>;

    #[inline(always)]
    fn look_up<'g, V: View<'g>>(
        Part(root): Part<'g, VectorRoot, V>,
        _at_hand: (),
        index: u64,
    ) -> Result<Option<Part<'g, Bytes, V>>, Error> {
        if index >= root.load(VectorRoot::LEN) {
            return Ok(None);
        }
        at(root, index).map(|element| Some(Part(element)))
    }
}

impl<'t, M: Medium> Vector<'t, Tx<'t, M>> {
    /// Appends an element.
    ///
    /// Errors: the element is too large, the pool is full; the vector is unchanged.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let len = self.locked_len()?;
        // Looked up before anything is stored: until then reading in a transaction is cheaper.
        let array = table(self.root).reach(len)?;
        let element = element::alloc(self.root.view(), bytes)?;
        array.set(place_of(len), Some(element))?;
        self.root.store(VectorRoot::LEN, len + 1);
        Ok(())
    }

    /// Removes the last element and returns it.
    pub fn pop(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Some(last) = self.locked_len()?.checked_sub(1) else {
            return Ok(None);
        };
        let bytes = at(self.root, last)?.to_vec()?;
        self.drop_last(last)?;
        Ok(Some(bytes))
    }

    /// Replaces the element at `index`, in place if its length stays.
    ///
    /// Errors: `index` is beyond the end ([`Error::BadRange`]), the element is too large, the pool is full; the vector
    /// is unchanged.
    #[inline]
    pub fn set(&mut self, index: u64, bytes: &[u8]) -> Result<(), Error> {
        let array = self.array_with(index)?;
        present(array.get(place_of(index)), self.root)?;
        element::replace(array, place_of(index), bytes, None)?;
        Ok(())
    }

    /// Replaces the element at `index` and returns the old one.
    ///
    /// Errors: as [`Vector::set`].
    pub fn replace(&mut self, index: u64, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let array = self.array_with(index)?;
        present(array.get(place_of(index)), self.root)?;
        let mut old = Vec::new();
        element::replace(array, place_of(index), bytes, Some(&mut old))?;
        Ok(old)
    }

    /// Exchanges two elements: two words are stored, the elements themselves are not touched.
    ///
    /// Errors: an index is beyond the end ([`Error::BadRange`]).
    #[inline]
    pub fn swap(&mut self, a: u64, b: u64) -> Result<(), Error> {
        let (array_a, array_b) = (self.array_with(a)?, self.array_with(b)?);
        let (at_a, at_b) = (array_a.get(place_of(a)), array_b.get(place_of(b)));
        if at_a.is_none() || at_b.is_none() {
            return Err(element::damaged(
                "a missing element of a sequence",
                self.root,
            ));
        }
        array_a.set(place_of(a), at_b)?;
        array_b.set(place_of(b), at_a)
    }

    /// Removes and returns the element at `index`, and puts the last one there.
    ///
    /// Errors: `index` is beyond the end ([`Error::BadRange`]).
    pub fn swap_remove(&mut self, index: u64) -> Result<Vec<u8>, Error> {
        let last = self.locked_len()?.saturating_sub(1);
        self.swap(index, last)?;
        let bytes = at(self.root, last)?.to_vec()?;
        self.drop_last(last)?;
        Ok(bytes)
    }

    /// Inserts an element at `index`, which may be the end; the elements from there on move by one.
    ///
    /// Takes time linear in the number of these elements: one word of the log for each. A transaction holds some
    /// hundred thousand of these.
    ///
    /// Errors: `index` is beyond the end ([`Error::BadRange`]), the element is too large, the pool is full; the vector
    /// is unchanged.
    pub fn insert(&mut self, index: u64, bytes: &[u8]) -> Result<(), Error> {
        let len = self.locked_len()?;
        check_index(index, len.saturating_add(1), self.root)?;
        let root = self.root;
        root.view().nested(|tx| {
            table(root).reach(len)?;
            let mut moving = Some(element::alloc(tx, bytes)?);
            for at in index..=len {
                let array = present_array(root, at)?;
                let here = array.get(place_of(at));
                array.set(place_of(at), moving)?;
                moving = here;
            }
            root.store(VectorRoot::LEN, len + 1);
            Ok(())
        })
    }

    /// Removes the element at `index` and returns it; the elements behind move back by one.
    ///
    /// Takes time as [`Vector::insert`] does.
    ///
    /// Errors: `index` is beyond the end ([`Error::BadRange`]).
    pub fn remove(&mut self, index: u64) -> Result<Vec<u8>, Error> {
        let len = self.locked_len()?;
        check_index(index, len, self.root)?;
        let root = self.root;
        let gone = at(root, index)?;
        let bytes = gone.to_vec()?;
        root.view().nested(|_| {
            let mut moving = Some(gone);
            for at in (index..len).rev() {
                let array = present_array(root, at)?;
                let here = array.get(place_of(at));
                array.set(place_of(at), moving)?;
                moving = here;
            }
            // The removed element is the last one now.
            self.drop_last(len - 1)
        })?;
        Ok(bytes)
    }

    /// Shortens the vector to `len` elements, if it is longer. Takes time linear in the number removed.
    pub fn truncate(&mut self, len: u64) -> Result<(), Error> {
        let old = self.locked_len()?;
        self.root.view().nested(|_| {
            for last in (len..old).rev() {
                self.drop_last(last)?;
            }
            Ok(())
        })
    }

    /// Removes the last element, which is at `last`.
    fn drop_last(&self, last: u64) -> Result<(), Error> {
        let array = present_array(self.root, last)?;
        let gone = present(array.get(place_of(last)), self.root)?;
        array.set(place_of(last), None)?;
        self.root.store(VectorRoot::LEN, last);
        free_unlinked(self.root.view(), gone)?;
        table(self.root).shrink(last)
    }

    /// Takes the write lock and returns the length.
    #[inline]
    fn locked_len(&self) -> Result<u64, Error> {
        self.lock()?;
        Ok(self.root.load(VectorRoot::LEN))
    }

    /// Takes the write lock and returns the array that contains the element at `index`.
    #[inline]
    fn array_with(&self, index: u64) -> Result<Array<'t, Bytes, Tx<'t, M>>, Error> {
        check_index(index, self.locked_len()?, self.root)?;
        present_array(self.root, index)
    }
}

/// The array that contains `index`, which is below the length.
#[inline]
fn present_array<'g, V: View<'g>>(
    root: Root<'g, V>,
    index: u64,
) -> Result<Array<'g, Bytes, V>, Error> {
    table(root)
        .array(index)?
        .ok_or_else(|| element::damaged("the length of a vector", root))
}
