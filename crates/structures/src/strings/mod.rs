//! An array of byte strings, whose length is chosen when it is made: the array of the string swap with which persistent
//! heaps are usually measured.
//!
//! The array itself is one object, eight bytes for each string. From a few thousand strings on it is larger than any
//! object that the collector moves: an array of a million strings takes eight megabytes, which stay in place and hold
//! their pages. The strings move like all objects. Where that matters, or the number of strings is not known, use a
//! [`crate::Vector`].
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the array's lock, a writer has it alone until its transaction ends.

mod read;

use firn_heap::{Bytes, Error, Field, Obj, Ref, Refs, RootKey, Stored, Tx, TypeId, View};
use firn_media::Medium;

use crate::collection::Collection;
use crate::element::{self, Element, check_index, damaged};
use crate::protocol::{Lookup, Part, Protocol, sealed::Sealed};
use crate::reclaim::free_unlinked;

pub use read::Strings;

/// Maximum number of strings in an array.
pub const MAX_STRINGS: u64 = (u32::MAX as u64) / 8 - 2;

/// The root object of an array.
#[derive(Stored)]
#[firn(name = "firn.strings")]
#[repr(C)]
pub struct StringsRoot {
    /// Id of the lock.
    pub(crate) lock: u64,
    /// Number of strings.
    pub(crate) len: u64,
    /// The strings; null for an array of none.
    pub(crate) strings: Ref<Refs<Bytes>>,
}

type Root<'g, V> = Obj<'g, StringsRoot, V>;

/// An array of byte strings, whose length is chosen when it is made.
///
/// An element is clear, as all are at first, or a string, which may be empty and has up to
/// [`crate::map::MAX_VALUE_BYTES`]. An index names it. The length includes clear elements, and never changes. Every
/// function takes constant time unless it says otherwise.
pub type StringArray<'g, V> = Collection<'g, V, Fixed>;

/// The protocol of [`StringArray`].
pub enum Fixed {}

impl Sealed for Fixed {}

impl Protocol for Fixed {
    type Root = StringsRoot;
    /// The object of the strings, which never changes; `None` if it is not sound, or the array has no strings.
    type AtHand<'g, V: View<'g>> = Option<Part<'g, Refs<Bytes>, V>>;
    type Walk<'g, V: View<'g>> = Strings<'g, V>;

    const LOCK: Field<StringsRoot, u64> = StringsRoot::LOCK;
    const LEN: Field<StringsRoot, u64> = StringsRoot::LEN;

    #[inline]
    fn at_hand<'g, V: View<'g>>(
        Part(root): Part<'g, StringsRoot, V>,
    ) -> Option<Part<'g, Refs<Bytes>, V>> {
        strings(root).ok().map(Part)
    }

    fn walk<'g, V: View<'g>>(Part(root): Part<'g, StringsRoot, V>) -> Strings<'g, V> {
        Strings::new(root)
    }

    fn check<'g, V: View<'g>>(
        Part(root): Part<'g, StringsRoot, V>,
        findings: &mut Vec<String>,
    ) -> Result<(), Error> {
        read::check(root, findings)
    }
}

impl Lookup for Fixed {
    type Key<'k> = u64;
    type Found<'g, V: View<'g>> = Part<'g, Bytes, V>;

    #[inline(always)]
    fn look_up<'g, V: View<'g>>(
        Part(root): Part<'g, StringsRoot, V>,
        at_hand: Option<Part<'g, Refs<Bytes>, V>>,
        index: u64,
    ) -> Result<Option<Part<'g, Bytes, V>>, Error> {
        let string = match (at_hand, usize::try_from(index)) {
            (Some(Part(strings)), Ok(index)) => {
                strings.get(index).map(element::sound).transpose()?
            }
            _ => string(root, index)?,
        };
        Ok(string.map(Part))
    }
}

/// The object of the strings, of which there is at least one.
#[inline]
fn strings<'g, V: View<'g>>(root: Root<'g, V>) -> Result<Obj<'g, Refs<Bytes>, V>, Error> {
    let len = root.load(StringsRoot::LEN);
    root.follow(StringsRoot::STRINGS)
        .filter(|s| s.header().type_id() == TypeId::REFS && s.len() as u64 == len)
        .ok_or_else(|| damaged("an array without its strings", root))
}

#[inline]
fn string<'g, V: View<'g>>(root: Root<'g, V>, index: u64) -> Result<Option<Element<'g, V>>, Error> {
    if index >= root.load(StringsRoot::LEN) {
        return Ok(None);
    }
    let string = strings(root)?.get(index as usize);
    string.map(element::sound).transpose()
}

impl<'t, M: Medium> StringArray<'t, Tx<'t, M>> {
    /// Makes an array of `len` clear elements and a root for it. Takes time linear in `len`.
    ///
    /// Errors: there is such a root already ([`Error::WrongKind`]), or no place for another; the
    /// pool is full, or `len` above [`MAX_STRINGS`] ([`Error::ObjectTooLarge`]).
    pub fn create(tx: Tx<'t, M>, root: impl RootKey<StringsRoot>, len: u64) -> Result<Self, Error> {
        Self::create_as(tx, root, || Self::new(tx, len))
    }

    /// The array of the root `name`, made with `len` clear elements if there is no such root.
    ///
    /// Errors: the root is no array, or one of another length ([`Error::WrongKind`]); as
    /// [`StringArray::create`].
    pub fn open_or_create(
        tx: Tx<'t, M>,
        root: impl RootKey<StringsRoot>,
        len: u64,
    ) -> Result<Self, Error> {
        match Self::find(tx, root)? {
            Some(array) if array.len()? == len => Ok(array),
            Some(_) => Err(Error::WrongKind {
                what: "opening an array of strings",
                needs: "an array of the length that was asked for",
            }),
            None => Self::create(tx, root, len),
        }
    }

    /// Makes an array without a name: refer to its [`Collection::object`] from a field, or the array is reclaimed.
    /// Takes time linear in `len`.
    ///
    /// Errors: as [`StringArray::create`].
    pub fn new(tx: Tx<'t, M>, len: u64) -> Result<Self, Error> {
        if len > MAX_STRINGS {
            return Err(Error::ObjectTooLarge {
                bytes: len.saturating_mul(8),
                limit: MAX_STRINGS * 8,
            });
        }
        let strings = match len {
            0 => None,
            _ => Some(tx.alloc_refs::<Bytes>(len as usize)?),
        };
        let root = tx.alloc(StringsRoot {
            lock: tx.new_lock_id(),
            len,
            strings: Ref::NULL,
        });
        match (root, strings) {
            (Ok(root), strings) => {
                root.link(StringsRoot::STRINGS, strings);
                Ok(Self::at(root))
            }
            (Err(error), Some(strings)) => {
                free_unlinked(tx, strings)?;
                Err(error)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Sets the element at `index` to this string. Returns whether there was one, which is freed.
    ///
    /// Errors: `index` is beyond the array ([`Error::BadRange`]), the string is too large, the pool is full; the array
    /// is unchanged.
    #[inline]
    pub fn set(&mut self, index: u64, string: &[u8]) -> Result<bool, Error> {
        let strings = self.strings_with(index)?;
        element::replace(strings, index as usize, string, None)
    }

    /// Sets the element at `index` to this string. Returns the old one.
    ///
    /// Errors: as [`StringArray::set`].
    pub fn replace(&mut self, index: u64, string: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let strings = self.strings_with(index)?;
        let mut old = Vec::new();
        let there = element::replace(strings, index as usize, string, Some(&mut old))?;
        Ok(there.then_some(old))
    }

    /// Removes the string at `index`, so that the element is clear. Returns whether there was a string.
    ///
    /// Errors: `index` is beyond the array ([`Error::BadRange`]).
    pub fn remove(&mut self, index: u64) -> Result<bool, Error> {
        let strings = self.strings_with(index)?;
        let Some(string) = strings.get(index as usize) else {
            return Ok(false);
        };
        let tx = self.root.view();
        tx.expect_free(string);
        let string = element::sound(string)?;
        strings.set(index as usize, None)?;
        free_unlinked(tx, string)?;
        Ok(true)
    }

    /// Removes the string at `index` and returns it.
    ///
    /// Errors: as [`StringArray::remove`].
    pub fn take(&mut self, index: u64) -> Result<Option<Vec<u8>>, Error> {
        self.strings_with(index)?;
        let string = string(self.root, index)?.map(Obj::to_vec).transpose()?;
        self.remove(index)?;
        Ok(string)
    }

    /// Exchanges two elements, either of which may be clear: two words are stored, no string is touched.
    ///
    /// Errors: an index is beyond the array ([`Error::BadRange`]).
    #[inline]
    pub fn swap(&mut self, a: u64, b: u64) -> Result<(), Error> {
        let strings = self.strings_with(a.max(b))?;
        let (at_a, at_b) = (strings.get(a as usize), strings.get(b as usize));
        strings.set(a as usize, at_b)?;
        strings.set(b as usize, at_a)
    }

    /// Takes the write lock; returns the object of the strings, which has a place for `index`.
    #[inline]
    fn strings_with(&self, index: u64) -> Result<Obj<'t, Refs<Bytes>, Tx<'t, M>>, Error> {
        self.lock()?;
        check_index(index, self.root.load(StringsRoot::LEN), self.root)?;
        strings(self.root)
    }
}
