//! The root table (Espresso's name table, section 3.3).

use firn_format::header::HEADER_BYTES;
use firn_format::reference::RefWord;
use firn_format::root::{
    MAX_NAME_BYTES, MAX_ROOTS, REFERENCE_AT, ROOT_BYTES, decode, encode, root_at,
};
use firn_media::Medium;
use firn_units::VirtAddr;

use crate::error::Error;
use crate::tx::Tx;
use crate::tx::raw::RawTx;
use crate::view::View;

/// Id of the lock that guards the table.
const TABLE_LOCK: u64 = 0;

fn load<'g, V: View<'g>>(view: V, index: usize) -> Result<Option<(String, RefWord)>, Error> {
    let mut bytes = [0; ROOT_BYTES as usize];
    view.load_range(root_at(index), &mut bytes);
    let words: [u64; 8] = bytemuck::cast(bytes);
    if words[0] == 0 {
        return Ok(None);
    }
    Ok(decode(&words, root_at(index))?.map(|(name, word)| (name, RefWord(word))))
}

/// Where the reference of root `index` lies.
pub(crate) const fn reference_at(index: usize) -> VirtAddr {
    VirtAddr(root_at(index).0 + REFERENCE_AT)
}

/// Index and reference of a root.
pub(crate) fn find<'g, V: View<'g>>(
    view: V,
    name: &str,
) -> Result<Option<(usize, RefWord)>, Error> {
    let _lock = view.lock_shared(TABLE_LOCK)?;
    find_locked(view, name)
}

fn find_locked<'g, V: View<'g>>(view: V, name: &str) -> Result<Option<(usize, RefWord)>, Error> {
    for index in 0..MAX_ROOTS {
        match load(view, index)? {
            Some((found, reference)) if found == name => return Ok(Some((index, reference))),
            _ => {}
        }
    }
    Ok(None)
}

/// Names of all roots.
pub(crate) fn names<'g, V: View<'g>>(view: V) -> Result<Vec<String>, Error> {
    let _lock = view.lock_shared(TABLE_LOCK)?;
    let all = (0..MAX_ROOTS).map(|index| load(view, index));
    all.filter_map(|r| r.map(|root| root.map(|(name, _)| name)).transpose())
        .collect()
}

pub(crate) fn set<M: Medium>(tx: Tx<'_, M>, name: &str, reference: RefWord) -> Result<(), Error> {
    check_name(name)?;
    tx.lock_exclusive(TABLE_LOCK)?;
    if let Some((index, _)) = find(tx, name)? {
        tx.store_reference(reference_at(index), reference);
        return Ok(());
    }
    tx.store_at(root_at(free_place(tx)?), &encode(name, reference.0));
    Ok(())
}

/// Sets or removes a root through an undo transaction.
pub(crate) fn set_raw<M: Medium>(
    tx: RawTx<'_, M>,
    name: &str,
    body: Option<VirtAddr>,
) -> Result<(), Error> {
    check_name(name)?;
    tx.lock_exclusive(TABLE_LOCK)?;
    let inner = tx.inner();
    let place = {
        let found = find_locked(tx.view(), name)?.map(|(index, _)| index);
        match (found, body) {
            (Some(index), _) => index,
            (None, None) => {
                return Err(Error::NoRoot {
                    name: name.to_owned(),
                });
            }
            (None, Some(_)) => free_place(tx.view())?,
        }
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
    tx.store(root_at(place), bytemuck::cast_slice(&words))
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\0') {
        return Err(Error::RootName {
            name: name.to_owned(),
            limit: MAX_NAME_BYTES,
        });
    }
    Ok(())
}

/// First place of the table that holds no root.
fn free_place<'g, V: View<'g>>(view: V) -> Result<usize, Error> {
    for index in 0..MAX_ROOTS {
        if load(view, index)?.is_none() {
            return Ok(index);
        }
    }
    Err(Error::TooManyRoots { limit: MAX_ROOTS })
}

pub(crate) fn remove<M: Medium>(tx: Tx<'_, M>, name: &str) -> Result<(), Error> {
    tx.lock_exclusive(TABLE_LOCK)?;
    match find(tx, name)? {
        Some((index, _)) => {
            tx.store_reference(reference_at(index), RefWord::NULL);
            tx.store_at(root_at(index), &[0; 8]);
            Ok(())
        }
        None => Err(Error::NoRoot {
            name: name.to_owned(),
        }),
    }
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
