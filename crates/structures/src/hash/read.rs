//! Searching and iterating.

use core::cmp::Ordering;

use firn_heap::{Error, Raw, View};

use super::HashRoot;
use super::bucket::{self, Bucket, ChainBudget, Hashes, Node, PLACES, Root, bucket_count, hashes};
use super::hash::{bucket_of, hash_of};
use crate::map::entry::{self, Parts};
use crate::protocol::{Part, Spot, Walk};
use crate::reader::Item;

/// Where the parts of `entry` are, if its key is `key`.
///
/// Errors: it is no entry.
#[inline]
pub(crate) fn is_of<'g, V: View<'g>>(
    entry: entry::Entry<'g, V>,
    key: &[u8],
) -> Result<Option<Parts>, Error> {
    if entry::compare(entry, key, 0) != Ordering::Equal {
        return Ok(None);
    }
    entry::parts(entry).map(Some)
}

/// An entry that a search has found.
pub struct Found<'g, V: View<'g>> {
    entry: entry::Entry<'g, V>,
    parts: Parts,
    pub(crate) at: Position,
}

impl<'g, V: View<'g>> Clone for Found<'g, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, V: View<'g>> Copy for Found<'g, V> {}

impl<'g, V: View<'g>> Spot for Found<'g, V> {
    #[inline(always)]
    fn value_into(self, into: &mut Vec<u8>) -> Result<(), Error> {
        entry::append(self.entry, self.parts.value_at, self.parts.value_len, into);
        Ok(())
    }

    fn value_len(self) -> Result<usize, Error> {
        Ok(self.parts.value_len)
    }
}

/// The entry of `key`.
#[inline]
pub(crate) fn find<'g, V: View<'g>>(
    root: Root<'g, V>,
    key: &[u8],
) -> Result<Option<Found<'g, V>>, Error> {
    let buckets = bucket_count(root)?;
    if buckets == 0 || key.len() > super::MAX_KEY_BYTES {
        return Ok(None);
    }
    let hash = hash_of(key, root.load(HashRoot::SEED));
    let bucket = bucket_of(hash, buckets);
    let mut node = bucket::first(root, bucket)?;
    let mut budget = ChainBudget::new(root);
    let mut passed = 0;
    loop {
        let behind = node.follow(Bucket::NEXT);
        let hashes = hashes(node);
        for place in (0..PLACES).filter(|&place| hashes[place] == hash) {
            let entry = bucket::entry(node, place)?;
            if let Some(parts) = is_of(entry, key)? {
                let at = Position::of(bucket, passed + place as u64);
                return Ok(Some(Found { entry, parts, at }));
            }
        }
        match behind {
            Some(next) => node = next.check_type()?,
            None => return Ok(None),
        }
        passed += PLACES as u64;
        budget.spend(node)?;
    }
}

/// The position of an iteration: a bucket, and how many of its places are behind. It can be kept, and holds no lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(u64);

impl Position {
    /// Before all entries.
    pub const START: Self = Self(0);
    /// Bits of the places of a bucket; the remaining bits suffice for a bucket's number.
    const PLACE_BITS: u32 = 32;

    /// A position from its word.
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// The position as a word; zero is [`Position::START`].
    pub const fn word(self) -> u64 {
        self.0
    }

    fn of(bucket: u64, passed: u64) -> Self {
        let last = (1 << Self::PLACE_BITS) - 1;
        Self((bucket << Self::PLACE_BITS) | passed.min(last))
    }

    fn bucket(self) -> u64 {
        self.0 >> Self::PLACE_BITS
    }

    fn passed(self) -> u64 {
        self.0 & ((1 << Self::PLACE_BITS) - 1)
    }
}

/// Entries of a hash map, in no order.
pub struct Buckets<'g, V: View<'g>> {
    root: Root<'g, V>,
    buckets: u64,
    next_bucket: u64,
    /// The current node, with its hashes, and its next place.
    node: Option<Node<'g, V>>,
    hashes: Hashes,
    place: usize,
    /// Places of the bucket's earlier nodes.
    passed: u64,
    /// For nodes that are not the first of their buckets, over all buckets together.
    budget: ChainBudget,
    /// The error that left nothing to iterate over.
    failed: Option<Error>,
}

impl<'g, V: View<'g>> Buckets<'g, V> {
    /// The entries from a position on. If damage hides the position, the first step returns the error.
    pub(crate) fn new(root: Root<'g, V>, position: Position) -> Self {
        let mut buckets = Self {
            root,
            buckets: 0,
            next_bucket: position.bucket(),
            node: None,
            hashes: [0; PLACES],
            passed: 0,
            place: PLACES,
            budget: ChainBudget::new(root),
            failed: None,
        };
        if let Err(error) = buckets.begin(position.passed()) {
            buckets.end();
            buckets.failed = Some(error);
        }
        buckets
    }

    /// Skips this many places of the first bucket.
    fn begin(&mut self, passed: u64) -> Result<(), Error> {
        self.buckets = bucket_count(self.root)?;
        self.skip_in_bucket(passed)
    }

    #[inline]
    fn go(&mut self) -> Result<Option<entry::Entry<'g, V>>, Error> {
        loop {
            if let Some(node) = self.node {
                while self.place < PLACES {
                    let place = self.place;
                    self.place += 1;
                    if self.hashes[place] != 0 {
                        return bucket::entry(node, place).map(Some);
                    }
                }
            }
            if !self.go_on()? {
                return Ok(None);
            }
        }
    }

    /// The current position.
    pub(crate) fn position(&self) -> Position {
        match self.node {
            Some(_) => Position::of(self.next_bucket - 1, self.passed + self.place as u64),
            None => Position::of(self.next_bucket, 0),
        }
    }

    /// Skips this many places of the next bucket.
    fn skip_in_bucket(&mut self, places: u64) -> Result<(), Error> {
        if places == 0 || !self.go_on()? {
            return Ok(());
        }
        let bucket = self.next_bucket;
        while self.passed + (PLACES as u64) < places {
            if !self.go_on()? || self.next_bucket != bucket {
                return Ok(());
            }
        }
        self.place = (places - self.passed) as usize;
        Ok(())
    }

    /// Goes to the next node. Returns whether there is one.
    fn go_on(&mut self) -> Result<bool, Error> {
        let behind = self.node.map(bucket::next).transpose()?.flatten();
        let node = match behind {
            Some(node) => {
                self.budget.spend(node)?;
                self.passed += PLACES as u64;
                node
            }
            None if self.next_bucket < self.buckets => {
                self.next_bucket += 1;
                self.passed = 0;
                bucket::first(self.root, self.next_bucket - 1)?
            }
            None => return self.failed.take().map_or(Ok(false), Err),
        };
        self.node = Some(node);
        self.hashes = hashes(node);
        self.place = 0;
        Ok(true)
    }
}

impl<'g, V: View<'g>> Walk for Buckets<'g, V> {
    type Found = Part<'g, Raw, V>;
    type Item<'r> = Item<'r, Self::Found>;

    #[inline]
    fn step(&mut self) -> Result<Option<Self::Found>, Error> {
        Ok(self.go()?.map(Part))
    }

    fn end(&mut self) {
        self.buckets = 0;
        self.node = None;
    }

    #[inline]
    fn item<'r>(found: Self::Found) -> Self::Item<'r> {
        Item::new(found)
    }
}
