//! An array of byte strings, of a number chosen when it is made: the array of the string swap with
//! which persistent heaps are usually measured.
//!
//! The array itself is one object, eight bytes for each string. From a few thousand strings on it is
//! larger than what the collector moves: an array of a million strings takes eight megabytes, which
//! stay where they are and hold their pages. The strings move as all objects do. Where that matters,
//! or the number of strings is not known, use a [`crate::Vector`].
//!
//! Crash: a change belongs to its transaction; a crash leaves all of it or nothing.
//! Concurrency: readers share the array's lock, a writer has it alone until its transaction ends.

mod read;

use firn_heap::{Bytes, Error, Obj, Ref, Refs, RootKey, Stored, Tx, TypeId, View};
use firn_media::Medium;

use crate::element::{self, Element, check_index, damaged};
use crate::reclaim::free_unlinked;

pub use read::{Iter, StringsReader};

/// Most strings of an array.
pub const MAX_STRINGS: u64 = (u32::MAX as u64) / 8 - 2;

/// What an array's name refers to.
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

/// An array of byte strings, seen through a guard or a transaction. It is named by a root of the
/// pool, or by a field that refers to its [`StringsRoot`].
///
/// An element is a string, which may be empty, or clear, as all are at first. Every function takes
/// constant time unless it says otherwise, and returns [`Error::Damaged`] or [`Error::WrongType`] for
/// media that make no sense, in a transaction [`Error::Conflict`] where it would have to wait against
/// the order of locks.
pub struct StringArray<'g, V: View<'g>> {
    root: Root<'g, V>,
    lock: u64,
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

impl<'g, V: View<'g>> StringArray<'g, V> {
    /// The array of a root, by its name or a [`RootHandle`](firn_heap::RootHandle).
    ///
    /// Errors: no such root, or it is no array.
    pub fn open(view: V, root: impl RootKey<StringsRoot>) -> Result<Self, Error> {
        view.root(root).map(Self::at)
    }

    /// The array of a root, or `None` if there is no such root.
    ///
    /// Errors: the root is no array.
    pub fn find(view: V, root: impl RootKey<StringsRoot>) -> Result<Option<Self>, Error> {
        Ok(view.find_root(root)?.map(Self::at))
    }

    /// The array at this object, which a field or a handle refers to.
    pub fn at(root: Obj<'g, StringsRoot, V>) -> Self {
        Self {
            root,
            lock: root.load(StringsRoot::LOCK),
        }
    }

    /// The object that stands for the array: refer to it from a field, or make a handle of it.
    pub fn object(&self) -> Obj<'g, StringsRoot, V> {
        self.root
    }

    /// Takes the read lock until the returned value is dropped; everything can be read through it.
    ///
    /// In a guard, hold one at a time: a second lock that has to wait for a writer, who waits for
    /// the first one, waits forever.
    #[inline]
    pub fn read(&self) -> Result<StringsReader<'_, 'g, V>, Error> {
        let lock = self.root.view().lock_shared(self.lock)?;
        Ok(StringsReader::new(self.root, lock))
    }

    /// Number of elements, clear ones included. It never changes.
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.read()?.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// The string at `index`; `None` if it is clear, or beyond the array.
    pub fn get(&self, index: u64) -> Result<Option<Vec<u8>>, Error> {
        self.read()?.get(index)
    }

    /// Appends the string at `index` to `into`, without another allocation if it has room. Returns
    /// whether there is one.
    #[inline]
    pub fn get_into(&self, index: u64, into: &mut Vec<u8>) -> Result<bool, Error> {
        self.read()?.get_into(index, into)
    }

    /// Every invariant that does not hold, in sentences; none for a sound array. In linear time.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        let _lock = self.root.view().lock_shared(self.lock)?;
        Ok(read::check(self.root))
    }
}

impl<'t, M: Medium> StringArray<'t, Tx<'t, M>> {
    /// Makes an array of `len` clear elements and a root for it. Takes time linear in `len`.
    ///
    /// Errors: there is such a root already ([`Error::WrongKind`]), or no place for another; the
    /// pool is full, or `len` above [`MAX_STRINGS`] ([`Error::ObjectTooLarge`]).
    pub fn create(tx: Tx<'t, M>, root: impl RootKey<StringsRoot>, len: u64) -> Result<Self, Error> {
        crate::refuse_taken_name(tx, root)?;
        let array = Self::new(tx, len)?;
        tx.set_root(root, array.root)?;
        Ok(array)
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

    /// Makes an array without a name: refer to its [`StringArray::object`] from a field, or it is
    /// reclaimed. Takes time linear in `len`.
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

    /// Makes the element at `index` this string. Returns whether there was one, which is freed.
    ///
    /// Errors: `index` is beyond the array ([`Error::BadRange`]), the string is too large, the pool
    /// is full; the array is as before.
    #[inline]
    pub fn set(&mut self, index: u64, string: &[u8]) -> Result<bool, Error> {
        let strings = self.strings_with(index)?;
        element::replace(strings, index as usize, string, None)
    }

    /// Makes the element at `index` this string. Returns what it was.
    ///
    /// Errors: as [`StringArray::set`].
    pub fn replace(&mut self, index: u64, string: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let strings = self.strings_with(index)?;
        let mut old = Vec::new();
        let there = element::replace(strings, index as usize, string, Some(&mut old))?;
        Ok(there.then_some(old))
    }

    /// Clears the element at `index`. Returns whether there was a string, which is freed.
    ///
    /// Errors: `index` is beyond the array ([`Error::BadRange`]).
    pub fn clear(&mut self, index: u64) -> Result<bool, Error> {
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

    /// Clears the element at `index` and returns what it was.
    ///
    /// Errors: as [`StringArray::clear`].
    pub fn take(&mut self, index: u64) -> Result<Option<Vec<u8>>, Error> {
        self.strings_with(index)?;
        let string = string(self.root, index)?.map(Obj::to_vec).transpose()?;
        self.clear(index)?;
        Ok(string)
    }

    /// Exchanges two elements, of which either may be clear: two words are stored, no string is
    /// touched.
    ///
    /// Errors: an index is beyond the array ([`Error::BadRange`]).
    #[inline]
    pub fn swap(&mut self, a: u64, b: u64) -> Result<(), Error> {
        let strings = self.strings_with(a.max(b))?;
        let (at_a, at_b) = (strings.get(a as usize), strings.get(b as usize));
        strings.set(a as usize, at_b)?;
        strings.set(b as usize, at_a)
    }

    /// Takes the write lock; the strings, of which there is one at `index` or a place for it.
    #[inline]
    fn strings_with(&self, index: u64) -> Result<Obj<'t, Refs<Bytes>, Tx<'t, M>>, Error> {
        self.root.view().lock_exclusive(self.lock)?;
        check_index(index, self.root.load(StringsRoot::LEN), self.root)?;
        strings(self.root)
    }
}
