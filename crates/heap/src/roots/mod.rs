//! The root table (Espresso's name table, section 3.3).
//!
//! ```text
//! index    names to places, found without a lock, and who reads which
//! handle   what a root is found by: a name, or a handle
//! ```
//! Guards read the table without a lock. A transaction that has found a root keeps others from changing it, to its end;
//! one that has found none, or changes one, holds the table's lock.

mod handle;
mod index;

use std::sync::atomic::Ordering;

use firn_format::header::HEADER_BYTES;
use firn_format::reference::RefWord;
use firn_format::root::{
    MAX_NAME_BYTES, MAX_ROOTS, Name, REFERENCE_AT, ROOT_BYTES, decode, encode, name_at, root_at,
};
use firn_media::{Medium, Memory};
use firn_units::VirtAddr;

use crate::error::Error;
use crate::tx::Tx;
use crate::tx::raw::RawTx;
use crate::view::View;

pub use handle::{RootHandle, RootKey, RootName};
pub(crate) use index::{RootIndex, Storing, bit};

/// Places of the table, as a set.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Slots([u64; MAX_ROOTS / 64]);

impl Slots {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    #[inline]
    pub(crate) fn has(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 != 0
    }

    pub(crate) fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_ROOTS).filter(move |&place| self.has(place))
    }
}

/// Where the reference of root `index` lies.
pub(crate) const fn reference_at(index: usize) -> VirtAddr {
    VirtAddr(root_at(index).0 + REFERENCE_AT)
}

fn word<'g, V: View<'g>>(view: V, at: VirtAddr) -> u64 {
    let place = view.medium().place(VirtAddr(at.0 & !0xf));
    view.load_word(place, (at.0 & 0xf) as u32)
}

fn name_through<'g, V: View<'g>>(view: V, place: usize) -> Name {
    Name(core::array::from_fn(|i| word(view, name_at(place, i))))
}

/// Place and reference of a root.
#[inline]
pub(crate) fn find<'g, T, V: View<'g>>(
    view: V,
    key: impl RootKey<T>,
) -> Result<Option<(usize, RefWord)>, Error> {
    view.inner().check_process()?;
    if let Some((name, hint)) = key.remembered()
        && !view.stores_roots()
    {
        let place = hint.load(Ordering::Relaxed);
        view.hold_root(place)?;
        let index = &view.inner().roots;
        if let Some(reference) = index.reference(view.medium(), place, name) {
            return Ok(Some((place, reference)));
        }
    }
    let Some(name) = key.name() else {
        return Ok(None);
    };
    let found = search(view, &name, &view.own_roots())?;
    if let (Some((place, _)), Some((_, hint))) = (found, key.remembered()) {
        hint.store(place, Ordering::Relaxed);
    }
    Ok(found)
}

/// Finds a root by its name alone.
fn search<'g, V: View<'g>>(
    view: V,
    name: &Name,
    own: &Slots,
) -> Result<Option<(usize, RefWord)>, Error> {
    // What the transaction itself has stored, the index does not know.
    for place in own.iter() {
        if name_through(view, place) == *name {
            return Ok(Some((place, RefWord(word(view, reference_at(place))))));
        }
    }
    let (medium, index) = (view.medium(), &view.inner().roots);
    loop {
        if let Some(place) = index.place_of(medium, name, own) {
            view.hold_root(place)?;
            match index.reference(medium, place, name) {
                Some(reference) => return Ok(Some((place, reference))),
                // It was removed meanwhile.
                None => continue,
            }
        }
        if index.is_damaged() {
            index::damage(medium)?;
        }
        // That there is no such root has to stay so, too: the table's lock is held then, and it is looked for again.
        if view.hold_names()? {
            return Ok(None);
        }
    }
}

/// Names of all roots.
pub(crate) fn names<'g, V: View<'g>>(view: V) -> Result<Vec<String>, Error> {
    view.inner().check_process()?;
    while !view.hold_names()? {}
    let own = view.own_roots();
    let (medium, index) = (view.medium(), &view.inner().roots);
    index.consistent(medium, || {
        let mut names = Vec::new();
        for place in 0..MAX_ROOTS {
            let words = match own.has(place) {
                true => core::array::from_fn(|i| word(view, name_at(place, i))),
                false => index.content(medium, place),
            };
            // A name has no zeros, so a place without a first word is free, whatever else it holds.
            if words[0] != 0 {
                names.extend(decode(&words, root_at(place))?.map(|(name, _)| name));
            }
        }
        Ok(names)
    })
}

pub(crate) fn set<T, M: Medium>(
    tx: Tx<'_, M>,
    key: impl RootKey<T>,
    reference: RefWord,
) -> Result<(), Error> {
    let Some(name) = key.name() else {
        return Err(refused(key.text()));
    };
    tx.lock_roots()?;
    let place = match search(tx, &name, &tx.own_roots())? {
        Some((place, _)) => {
            tx.change_root(place)?;
            tx.store_reference(reference_at(place), reference);
            place
        }
        None => {
            let place = free_place(tx)?;
            tx.change_root(place)?;
            tx.store_at(root_at(place), &encode(&key.text(), reference.0));
            place
        }
    };
    if let Some((_, hint)) = key.remembered() {
        hint.store(place, Ordering::Relaxed);
    }
    Ok(())
}

fn refused(name: String) -> Error {
    let limit = MAX_NAME_BYTES;
    Error::RootName { name, limit }
}

/// Sets or removes a root through an undo transaction.
pub(crate) fn set_raw<M: Medium>(
    tx: RawTx<'_, M>,
    name: &str,
    body: Option<VirtAddr>,
) -> Result<(), Error> {
    let wanted = handle::checked(name)?;
    tx.lock_roots()?;
    let inner = tx.inner();
    let view = tx.view();
    let found = search(view, &wanted, &view.own_roots())?;
    let place = match (found, body) {
        (Some((place, _)), _) => place,
        (None, None) => {
            return Err(Error::NoRoot {
                name: name.to_owned(),
            });
        }
        (None, Some(_)) => free_place(view)?,
    };
    let words = match body {
        Some(at) => {
            let header = VirtAddr(at.0.wrapping_sub(HEADER_BYTES));
            inner.allocator.locate(&inner.medium, header)?;
            encode(name, RefWord::new(inner.id, header).0)
        }
        None => [0; 8],
    };
    tx.log(&[(root_at(place), ROOT_BYTES)])?;
    tx.change_root(place);
    tx.store(root_at(place), bytemuck::cast_slice(&words))
}

/// First place of the table that holds no root.
fn free_place<'g, V: View<'g>>(view: V) -> Result<usize, Error> {
    let is_free = |&place: &usize| word(view, root_at(place)) == 0;
    let place = (0..MAX_ROOTS).find(is_free);
    place.ok_or(Error::TooManyRoots { limit: MAX_ROOTS })
}

pub(crate) fn remove<T, M: Medium>(tx: Tx<'_, M>, key: impl RootKey<T>) -> Result<(), Error> {
    let missing = || Error::NoRoot { name: key.text() };
    let name = key.name().ok_or_else(missing)?;
    tx.lock_roots()?;
    let (place, _) = search(tx, &name, &tx.own_roots())?.ok_or_else(missing)?;
    tx.change_root(place)?;
    tx.store_reference(reference_at(place), RefWord::NULL);
    tx.store_at(root_at(place), &[0; 8]);
    Ok(())
}

/// Every root's name, the place of its reference, and the reference.
pub(crate) fn references<M: Medium>(medium: &M) -> Vec<Result<(String, VirtAddr, RefWord), Error>> {
    (0..MAX_ROOTS)
        .filter_map(|index| {
            let word = |i: usize| medium.load_u64(root_at(index) + i as u64 * 8);
            // A name has no zeros, so a place without a first word is free, whatever else it holds.
            if word(0) == 0 {
                return None;
            }
            let words: [u64; 8] = core::array::from_fn(word);
            match decode(&words, root_at(index)) {
                Ok(found) => {
                    found.map(|(name, word)| Ok((name, reference_at(index), RefWord(word))))
                }
                Err(error) => Some(Err(error.into())),
            }
        })
        .collect()
}
