//! Inserting and removing.

use std::collections::HashSet;

use firn_heap::{Error, Tx};
use firn_media::Medium;

use super::HashRoot;
use super::bucket::{
    self, Bucket, ChainBudget, Node, PLACES, Root, bucket_count, compact, directory, hashes,
    new_node,
};
use super::hash::{bucket_of, hash_of};
use super::read::is_of;
use super::resize;
use crate::element::damaged;
use crate::map::entry::{self, Entry, Parts};
use crate::reclaim::free_unlinked;

/// The result of a search for a key.
enum Found<'t, M: Medium> {
    /// The entry in a place of a node of the bucket that begins with `first`.
    At {
        first: Node<'t, Tx<'t, M>>,
        node: Node<'t, Tx<'t, M>>,
        place: usize,
        entry: Entry<'t, Tx<'t, M>>,
        parts: Parts,
    },
    /// The key is not there; `last` is the bucket's last node, which may have a free place.
    Not {
        last: Node<'t, Tx<'t, M>>,
        free: Option<usize>,
    },
    /// There are no buckets.
    Nowhere,
}

fn find<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    hash: u32,
    key: &[u8],
) -> Result<Found<'t, M>, Error> {
    let buckets = bucket_count(root)?;
    if buckets == 0 {
        return Ok(Found::Nowhere);
    }
    let first = bucket::first(root, bucket_of(hash, buckets))?;
    let mut node = first;
    let mut budget = ChainBudget::new(root);
    loop {
        let behind = node.follow(Bucket::NEXT);
        let hashes = hashes(node);
        for place in (0..PLACES).filter(|&place| hashes[place] == hash) {
            let entry = bucket::entry(node, place)?;
            if let Some(parts) = is_of(entry, key)? {
                return Ok(Found::At {
                    first,
                    node,
                    place,
                    entry,
                    parts,
                });
            }
        }
        match behind {
            Some(next) => node = next.check_type()?,
            None => {
                let free = hashes.iter().position(|&hash| hash == 0);
                return Ok(Found::Not { last: node, free });
            }
        }
        budget.spend(node)?;
    }
}

/// Inserts or replaces. Appends the replaced value to `old`, if requested. Returns whether there was one. The caller
/// holds the write lock.
pub(crate) fn insert<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    key: &[u8],
    value: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    entry::check_key(key)?;
    let hash = hash_of(key, root.load(HashRoot::SEED));
    let found = find(root, hash, key)?;
    if let (Found::At { entry, .. }, Some(old)) = (&found, old) {
        entry::value_into(*entry, old)?;
    }
    store(root, hash, key, value, found)
}

/// Stores a value at the result of a search.
fn store<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    hash: u32,
    key: &[u8],
    value: &[u8],
    found: Found<'t, M>,
) -> Result<bool, Error> {
    let tx = root.view();
    match found {
        Found::At {
            node, place, entry, ..
        } => {
            if !entry::overwrite(entry, value)? {
                let fresh = entry::alloc(tx, key, value)?;
                node.link(Bucket::ENTRIES.at(place), Some(fresh));
                free_unlinked(tx, entry)?;
            }
            Ok(true)
        }
        Found::Not {
            last,
            free: Some(place),
        } => {
            // The only step that may fail for lack of space, before anything is changed.
            bucket::set(last, place, hash, Some(entry::alloc(tx, key, value)?));
            count_one_more(root)?;
            Ok(false)
        }
        Found::Not { last, free: None } => {
            tx.nested(|tx| {
                let node = new_node(tx)?;
                bucket::set(node, 0, hash, Some(entry::alloc(tx, key, value)?));
                last.link(Bucket::NEXT, Some(node));
                Ok::<_, Error>(())
            })?;
            count_one_more(root)?;
            Ok(false)
        }
        Found::Nowhere => {
            tx.nested(|tx| {
                let node = resize::add_first(tx, root)?;
                bucket::set(node, 0, hash, Some(entry::alloc(tx, key, value)?));
                Ok::<_, Error>(())
            })?;
            count_one_more(root)?;
            Ok(false)
        }
    }
}

/// Counts a new entry, and divides a bucket if there are too few.
fn count_one_more<'t, M: Medium>(root: Root<'t, Tx<'t, M>>) -> Result<(), Error> {
    let len = root.load(HashRoot::LEN).wrapping_add(1);
    root.store(HashRoot::LEN, len);
    let buckets = bucket_count(root)?;
    if !resize::has_too_few(len, buckets) {
        return Ok(());
    }
    match root.view().nested(|tx| resize::divide(tx, root, buckets)) {
        // The entry is in its bucket, which is overfull until a later insert.
        Ok(()) | Err(Error::PoolFull { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes a key. Appends its value to `old`, if requested. Returns whether it was there. The caller holds the write
/// lock.
pub(crate) fn remove<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    key: &[u8],
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    if key.len() > super::MAX_KEY_BYTES {
        return Ok(false);
    }
    let hash = hash_of(key, root.load(HashRoot::SEED));
    let found = find(root, hash, key)?;
    if let (Found::At { entry, .. }, Some(old)) = (&found, old) {
        entry::value_into(*entry, old)?;
    }
    take_out(root, found)
}

/// Removes the entry that was found, if any.
fn take_out<'t, M: Medium>(root: Root<'t, Tx<'t, M>>, found: Found<'t, M>) -> Result<bool, Error> {
    let Found::At {
        first,
        node,
        place,
        entry,
        ..
    } = found
    else {
        return Ok(false);
    };
    let is_alone = node == first && node.follow(Bucket::NEXT).is_none();
    bucket::set(node, place, 0, None);
    if !is_alone {
        compact(root, first)?;
    }
    free_unlinked(root.view(), entry)?;
    let len = root.load(HashRoot::LEN).wrapping_sub(1);
    root.store(HashRoot::LEN, len);
    let buckets = bucket_count(root)?;
    if resize::has_too_many(len, buckets) {
        resize::join(root, buckets)?;
    }
    Ok(true)
}

/// Replaces the value of a key by the result of `change`. Returns whether the key was there. The caller holds the write
/// lock.
pub(crate) fn update<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    key: &[u8],
    change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
) -> Result<bool, Error> {
    entry::check_key(key)?;
    let hash = hash_of(key, root.load(HashRoot::SEED));
    let found = find(root, hash, key)?;
    let mut old = Vec::new();
    let changed = match &found {
        Found::At { entry, parts, .. } => {
            old.reserve_exact(parts.value_len);
            entry::value_into(*entry, &mut old)?;
            change(Some(&old))
        }
        Found::Not { .. } | Found::Nowhere => change(None),
    };
    match changed {
        Some(value) => store(root, hash, key, &value, found),
        None => take_out(root, found),
    }
}

/// Removes everything and frees it.
pub(crate) fn clear<'t, M: Medium>(root: Root<'t, Tx<'t, M>>) -> Result<(), Error> {
    let tx = root.view();
    let mut seen = HashSet::new();
    directory(root).free(|first| {
        let mut next = Some(first.check_type()?);
        while let Some(node) = next {
            if !seen.insert(node.address().0) {
                return Err(damaged("a bucket that is reached twice", node));
            }
            next = bucket::next(node)?;
            for (place, hash) in hashes(node).into_iter().enumerate() {
                if hash != 0 {
                    free_unlinked(tx, bucket::entry(node, place)?)?;
                }
            }
            free_unlinked(tx, node)?;
        }
        Ok(())
    })?;
    root.store(HashRoot::BUCKETS, 0);
    root.store(HashRoot::LEN, 0);
    Ok(())
}
