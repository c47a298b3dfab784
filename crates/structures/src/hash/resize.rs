//! Adding and removing a bucket.
//!
//! Between [`FEW_ENTRIES`] and [`MANY_ENTRIES`] entries per bucket nothing is resized, so that a program that goes back
//! and forth does not pay for it each time.

use firn_heap::{Error, Tx};
use firn_media::Medium;

use super::HashRoot;
use super::bucket::{
    self, Bucket, Node, PLACES, Root, chain, compact, directory, hashes, new_node,
};
use super::hash::{MAX_BUCKETS, partner};
use crate::element::damaged;
use crate::reclaim::free_unlinked;
use crate::table::place_of;

/// Above this many entries per bucket, a bucket is added.
const MANY_ENTRIES: u64 = 5;
/// Below this many entries per bucket, a bucket is removed.
const FEW_ENTRIES: u64 = 3;

#[inline]
pub(crate) fn has_too_few(len: u64, buckets: u64) -> bool {
    len > buckets * MANY_ENTRIES && buckets < MAX_BUCKETS
}

#[inline]
pub(crate) fn has_too_many(len: u64, buckets: u64) -> bool {
    len < buckets.saturating_mul(FEW_ENTRIES) && buckets > 1
}

/// Makes the first bucket of a map that has none, and returns its node.
pub(crate) fn add_first<'t, M: Medium>(
    tx: Tx<'t, M>,
    root: Root<'t, Tx<'t, M>>,
) -> Result<Node<'t, Tx<'t, M>>, Error> {
    let node = new_node(tx)?;
    directory(root).reach(0)?.set(0, Some(node))?;
    root.store(HashRoot::BUCKETS, 1);
    Ok(node)
}

/// Adds a bucket, and divides its partner's entries between the two.
///
/// Errors: a map with an entry has no bucket.
pub(crate) fn divide<'t, M: Medium>(
    tx: Tx<'t, M>,
    root: Root<'t, Tx<'t, M>>,
    buckets: u64,
) -> Result<(), Error> {
    if buckets == 0 {
        return Err(damaged("the number of buckets of a hash map", root));
    }
    let (from, bit) = partner(buckets);
    let old = bucket::first(root, from)?;
    let new = new_node(tx)?;
    let array = directory(root).reach(buckets)?;
    array.set(place_of(buckets), Some(new))?;
    root.store(HashRoot::BUCKETS, buckets + 1);

    let (mut into, mut filled) = (new, 0);
    let nodes = chain(root, old)?;
    for &node in &nodes {
        for (place, hash) in hashes(node).into_iter().enumerate() {
            if hash & bit == 0 {
                continue;
            }
            if filled == PLACES {
                let further = new_node(tx)?;
                into.link(Bucket::NEXT, Some(further));
                (into, filled) = (further, 0);
            }
            bucket::set(into, filled, hash, Some(bucket::entry(node, place)?));
            bucket::set(node, place, 0, None);
            filled += 1;
        }
    }
    if nodes.len() > 1 {
        compact(root, old)?;
    }
    Ok(())
}

/// Removes the last bucket: its entries go back to its partner. Allocates nothing.
pub(crate) fn join<'t, M: Medium>(root: Root<'t, Tx<'t, M>>, buckets: u64) -> Result<(), Error> {
    let last = buckets - 1;
    let (into, _) = partner(last);
    let gone = bucket::first(root, last)?;
    let first = bucket::first(root, into)?;
    let Some(array) = directory(root).array(last)? else {
        return Ok(());
    };
    array.set(place_of(last), None)?;
    root.store(HashRoot::BUCKETS, last);
    directory(root).shrink(last)?;

    if fits(first, gone) {
        let free = places_where(first, |hash| hash == 0);
        for (hole, place) in free.zip(places_where(gone, |hash| hash != 0)) {
            let entry = bucket::entry(gone, place)?;
            bucket::set(first, hole, hashes(gone)[place], Some(entry));
        }
        return free_unlinked(root.view(), gone);
    }
    let nodes = chain(root, first)?;
    nodes[nodes.len() - 1].link(Bucket::NEXT, Some(gone));
    compact(root, first)
}

/// Whether both are single nodes, and the first has room for the entries of the second.
fn fits<'t, M: Medium>(first: Node<'t, Tx<'t, M>>, second: Node<'t, Tx<'t, M>>) -> bool {
    let used = |node| places_where(node, |hash| hash != 0).count();
    let is_single = |node: Node<'t, Tx<'t, M>>| node.follow(Bucket::NEXT).is_none();
    is_single(first) && is_single(second) && used(first) + used(second) <= PLACES
}

/// The places of a node with this hash, or the free ones for zero. A snapshot.
fn places_where<'t, M: Medium>(
    node: Node<'t, Tx<'t, M>>,
    asked: impl Fn(u32) -> bool,
) -> impl Iterator<Item = usize> {
    let hashes = hashes(node);
    (0..PLACES).filter(move |&place| asked(hashes[place]))
}
