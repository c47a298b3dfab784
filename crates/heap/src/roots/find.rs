//! Finding roots, and reading the whole table.

use std::sync::atomic::Ordering;

use firn_format::reference::RefWord;
use firn_format::root::{MAX_ROOTS, Name, REFERENCE_AT, decode, name_at, root_at};
use firn_media::{Medium, Memory};
use firn_units::VirtAddr;

use super::handle::RootKey;
use super::index;
use super::slots::Slots;
use crate::error::Error;
use crate::view::View;

/// The address of the reference of root `index`.
pub(crate) const fn reference_at(index: usize) -> VirtAddr {
    VirtAddr(root_at(index).0 + REFERENCE_AT)
}

pub(super) fn word<'g, V: View<'g>>(view: V, at: VirtAddr) -> u64 {
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
    view.inner().check_usable()?;
    if let Some((name, hint)) = key.remembered()
        && !view.stores_roots()
    {
        let place = hint.load(Ordering::Relaxed);
        view.hold_root(place)?;
        let index = &view.inner().locks.roots;
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
pub(super) fn search<'g, V: View<'g>>(
    view: V,
    name: &Name,
    own: &Slots,
) -> Result<Option<(usize, RefWord)>, Error> {
    // The index does not know the transaction's own stores.
    for place in own.iter() {
        if name_through(view, place) == *name {
            return Ok(Some((place, RefWord(word(view, reference_at(place))))));
        }
    }
    let (medium, index) = (view.medium(), &view.inner().locks.roots);
    loop {
        if let Some(place) = index.place_of(medium, name, own) {
            view.hold_root(place)?;
            match index.reference(medium, place, name) {
                Some(reference) => return Ok(Some((place, reference))),
                // The root was removed meanwhile.
                None => continue,
            }
        }
        if index.is_damaged() {
            index::damage(medium)?;
        }
        // The absence of the root must hold, too: so the table's lock is taken, and the search is repeated under it.
        if view.hold_names()? {
            return Ok(None);
        }
    }
}

/// Names of all roots.
pub(crate) fn names<'g, V: View<'g>>(view: V) -> Result<Vec<String>, Error> {
    view.inner().check_usable()?;
    while !view.hold_names()? {}
    let own = view.own_roots();
    let (medium, index) = (view.medium(), &view.inner().locks.roots);
    index.consistent(medium, || {
        let mut names = Vec::new();
        for place in 0..MAX_ROOTS {
            let words = match own.has(place) {
                true => core::array::from_fn(|i| word(view, name_at(place, i))),
                false => index.content(medium, place),
            };
            // A name has no zeros, so a place whose first word is zero is free, whatever else it holds.
            if words[0] != 0 {
                names.extend(decode(&words, root_at(place))?.map(|(name, _)| name));
            }
        }
        Ok(names)
    })
}

/// Every root's name, the place of its reference, and the reference.
pub(crate) fn references<M: Medium>(medium: &M) -> Vec<Result<(String, VirtAddr, RefWord), Error>> {
    (0..MAX_ROOTS)
        .filter_map(|index| {
            let word = |i: usize| medium.load_u64(root_at(index) + i as u64 * 8);
            // A name has no zeros, so a place whose first word is zero is free, whatever else it holds.
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
