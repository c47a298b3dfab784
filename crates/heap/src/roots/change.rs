//! Storing and removing roots, in transactions.

use std::sync::atomic::Ordering;

use firn_format::header::HEADER_BYTES;
use firn_format::reference::RefWord;
use firn_format::root::{MAX_NAME_BYTES, MAX_ROOTS, ROOT_BYTES, encode, root_at};
use firn_media::Medium;
use firn_units::VirtAddr;

use super::find::{reference_at, search, word};
use super::handle::{RootKey, checked};
use crate::error::Error;
use crate::tx::Tx;
use crate::tx::raw::RawTx;
use crate::view::View;

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
    let wanted = checked(name)?;
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
