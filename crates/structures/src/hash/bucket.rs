//! Buckets: chains of nodes, most of a single node.
//!
//! Every node of a chain except the last is full, and every node except the first holds an entry. The places of a node
//! are in no order.

use firn_heap::{Error, Obj, Raw, Ref, Stored, Tx, View};
use firn_media::Medium;

use super::HashRoot;
use crate::element::damaged;
use crate::map::entry::Entry;
use crate::reclaim::free_unlinked;
use crate::table::Table;

/// Places of a node.
pub(crate) const PLACES: usize = 9;
/// Words of the hashes, two hashes per word.
const HASH_WORDS: usize = PLACES.div_ceil(2);

/// A node of a bucket: two lines.
///
/// A search reads the last word before it compares the hashes, so that both lines are fetched at once.
#[derive(Stored)]
#[firn(name = "firn.hash.bucket")]
#[repr(C)]
pub struct Bucket {
    /// The entries' hashes, two per word; zero at free places.
    pub(crate) hashes: [u64; HASH_WORDS],
    /// The entries.
    pub(crate) entries: [Ref<Raw>; PLACES],
    /// The node behind this one.
    pub(crate) next: Ref<Bucket>,
}

const LINE_BYTES: usize = 64;
const HEADER_BYTES: usize = 8;
const _: () = assert!(size_of::<Bucket>() + HEADER_BYTES == 2 * LINE_BYTES);

pub(crate) type Root<'g, V> = Obj<'g, HashRoot, V>;
pub(crate) type Node<'g, V> = Obj<'g, Bucket, V>;
/// Hashes of a node, zero at free places.
pub(crate) type Hashes = [u32; PLACES];

/// The directory of a map.
#[inline]
pub(crate) fn directory<'g, V: View<'g>>(root: Root<'g, V>) -> Table<'g, HashRoot, Bucket, V> {
    Table {
        root,
        top: HashRoot::DIRECTORY,
        height: HashRoot::HEIGHT,
    }
}

/// Number of buckets.
///
/// Errors: more than a map can have.
#[inline]
pub(crate) fn bucket_count<'g, V: View<'g>>(root: Root<'g, V>) -> Result<u64, Error> {
    match root.load(HashRoot::BUCKETS) {
        buckets if buckets <= super::hash::MAX_BUCKETS => Ok(buckets),
        _ => Err(damaged("the number of buckets of a hash map", root)),
    }
}

/// The first node of a bucket.
#[inline(always)]
pub(crate) fn first<'g, V: View<'g>>(root: Root<'g, V>, index: u64) -> Result<Node<'g, V>, Error> {
    match directory(root).get(index)? {
        Some(node) => node.check_type(),
        None => Err(damaged("a missing bucket of a hash map", root)),
    }
}

/// The node behind this one.
#[inline]
pub(crate) fn next<'g, V: View<'g>>(node: Node<'g, V>) -> Result<Option<Node<'g, V>>, Error> {
    node.follow(Bucket::NEXT).map(Obj::check_type).transpose()
}

/// All nodes of the chain that begins with `first`.
///
/// Errors: it does not end.
pub(crate) fn chain<'g, V: View<'g>>(
    root: Root<'g, V>,
    first: Node<'g, V>,
) -> Result<Vec<Node<'g, V>>, Error> {
    let mut nodes = vec![first];
    let mut budget = ChainBudget::new(root);
    let mut last = first;
    while let Some(node) = next(last)? {
        budget.spend(node)?;
        nodes.push(node);
        last = node;
    }
    Ok(nodes)
}

/// How many more nodes a walk along a chain may meet: damaged links cannot lead in a circle.
pub(crate) struct ChainBudget(u64);

impl ChainBudget {
    #[inline]
    pub(crate) fn new<'g, V: View<'g>>(root: Root<'g, V>) -> Self {
        // Each node except the first holds an entry; two chains that are joined have two firsts.
        let len = root.load(HashRoot::LEN).saturating_add(2);
        Self(crate::plausible_len(root.view(), len))
    }

    #[inline]
    pub(crate) fn spend<'g, V: View<'g>>(&mut self, node: Node<'g, V>) -> Result<(), Error> {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => return Err(damaged("a bucket that does not end", node)),
        }
        Ok(())
    }
}

#[inline]
pub(crate) fn hashes<'g, V: View<'g>>(node: Node<'g, V>) -> Hashes {
    let words: [u64; HASH_WORDS] = core::array::from_fn(|i| node.load(Bucket::HASHES.at(i)));
    core::array::from_fn(|place| (words[place / 2] >> (place % 2 * 32)) as u32)
}

/// The entry in a place with a hash. The target is not checked.
#[inline]
pub(crate) fn entry<'g, V: View<'g>>(
    node: Node<'g, V>,
    place: usize,
) -> Result<Entry<'g, V>, Error> {
    node.follow(Bucket::ENTRIES.at(place))
        .ok_or_else(|| damaged("a missing entry of a hash map", node))
}

/// A node without entries.
pub(crate) fn new_node<'t, M: Medium>(tx: Tx<'t, M>) -> Result<Node<'t, Tx<'t, M>>, Error> {
    tx.alloc(Bucket {
        hashes: [0; HASH_WORDS],
        entries: [const { Ref::NULL }; PLACES],
        next: Ref::NULL,
    })
}

/// Fills or empties a place.
#[inline]
pub(crate) fn set<'t, M: Medium>(
    node: Node<'t, Tx<'t, M>>,
    place: usize,
    hash: u32,
    entry: Option<Entry<'t, Tx<'t, M>>>,
) {
    let field = Bucket::HASHES.at(place / 2);
    let shift = place % 2 * 32;
    let others = node.load(field) & !(u64::from(u32::MAX) << shift);
    node.store(field, others | u64::from(hash) << shift);
    node.link(Bucket::ENTRIES.at(place), entry);
}

/// Fills the holes of a chain from its end, and frees the nodes that become empty. Allocates nothing.
pub(crate) fn compact<'t, M: Medium>(
    root: Root<'t, Tx<'t, M>>,
    first: Node<'t, Tx<'t, M>>,
) -> Result<(), Error> {
    let mut nodes = chain(root, first)?;
    let mut at = 0;
    while at + 1 < nodes.len() {
        let last = nodes[nodes.len() - 1];
        let used = hashes(last);
        let Some(from) = used.iter().rposition(|&hash| hash != 0) else {
            nodes.pop();
            nodes[nodes.len() - 1].link::<Bucket>(Bucket::NEXT, None);
            free_unlinked(root.view(), last)?;
            continue;
        };
        match hashes(nodes[at]).iter().position(|&hash| hash == 0) {
            Some(hole) => {
                set(nodes[at], hole, used[from], Some(entry(last, from)?));
                set(last, from, 0, None);
            }
            None => at += 1,
        }
    }
    Ok(())
}
