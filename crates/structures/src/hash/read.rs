//! Reading under a lock that is held.

use core::cmp::Ordering;
use core::marker::PhantomData;

use firn_heap::{Error, ReadLock, View};

use super::bucket::{self, Bucket, ChainBudget, Hashes, Node, PLACES, Root, bucket_count, hashes};
use super::hash::{bucket_of, hash_of};
use super::{HashRoot, OwnedEntry};
use crate::map::entry::{self, Parts};

/// Where the parts of `entry` are, if it is the one of `key`.
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

/// A hash map that no writer changes while this lives. See [`super::HashMap::read`].
pub struct HashReader<'l, 'g, V: View<'g>> {
    root: Root<'g, V>,
    _lock: ReadLock<'g, V::Medium>,
    /// A transaction cannot change the map through the value that this was made of.
    of: PhantomData<&'l ()>,
}

impl<'g, V: View<'g>> HashReader<'_, 'g, V> {
    #[inline]
    pub(crate) fn new(root: Root<'g, V>, lock: ReadLock<'g, V::Medium>) -> Self {
        Self {
            root,
            _lock: lock,
            of: PhantomData,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.root.load(HashRoot::LEN)
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn find(&self, key: &[u8]) -> Result<Option<Found<'g, V>>, Error> {
        let buckets = bucket_count(self.root)?;
        if buckets == 0 || key.len() > super::MAX_KEY_BYTES {
            return Ok(None);
        }
        let hash = hash_of(key, self.root.load(HashRoot::SEED));
        let bucket = bucket_of(hash, buckets);
        let mut node = bucket::first(self.root, bucket)?;
        let mut budget = ChainBudget::new(self.root);
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

    /// Where [`HashReader::iter_from`] comes to `key` first; `None` if it is not there.
    pub fn position_of(&self, key: &[u8]) -> Result<Option<Position>, Error> {
        Ok(self.find(key)?.map(|found| found.at))
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// Appends the value of `key` to `into`, without another allocation if it has room. Returns
    /// whether the key is there.
    #[inline]
    pub fn get_into(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        match self.find(key)? {
            Some(Found { entry, parts, .. }) => {
                entry::append(entry, parts.value_at, parts.value_len, into);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Whether `key` is there.
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.find(key)?.is_some())
    }

    /// All entries, in no order.
    pub fn iter(&self) -> Result<Iter<'_, 'g, V>, Error> {
        self.iter_from(Position::START)
    }

    /// The entries from a position on that [`Iter::position`] gave, of this or an earlier reader. While the map
    /// stays as it was each entry comes once; a change in between may hide some or show some twice.
    pub fn iter_from(&self, position: Position) -> Result<Iter<'_, 'g, V>, Error> {
        let mut iter = Iter {
            root: self.root,
            buckets: bucket_count(self.root)?,
            next_bucket: position.bucket(),
            node: None,
            hashes: [0; PLACES],
            passed: 0,
            place: PLACES,
            budget: ChainBudget::new(self.root),
            of: PhantomData,
        };
        iter.skip_in_bucket(position.passed())?;
        Ok(iter)
    }
}

/// An entry, while the map's lock is held.
pub struct Entry<'r, 'g, V: View<'g>> {
    entry: entry::Entry<'g, V>,
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>> Entry<'_, 'g, V> {
    /// The key.
    pub fn key(&self) -> Result<Vec<u8>, Error> {
        entry::key(self.entry)
    }

    /// Appends the key to `into`.
    pub fn key_into(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        entry::key_into(self.entry, into)
    }

    /// The value.
    pub fn value(&self) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.value_into(&mut value)?;
        Ok(value)
    }

    /// Appends the value to `into`.
    pub fn value_into(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        entry::value_into(self.entry, into)
    }

    /// Key and value.
    pub fn to_pair(&self) -> Result<OwnedEntry, Error> {
        Ok((self.key()?, self.value()?))
    }
}

/// An entry that was searched for.
struct Found<'g, V: View<'g>> {
    entry: entry::Entry<'g, V>,
    parts: Parts,
    at: Position,
}

/// How far an iteration has come: a bucket, and the places of it that are behind. It can be kept, and holds no lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position(u64);

impl Position {
    /// In front of all entries.
    pub const START: Self = Self(0);
    /// Bits of the places of a bucket; a bucket's number needs no more than the rest.
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

/// Entries of a hash map, in no order. After an error there are no further ones.
pub struct Iter<'r, 'g, V: View<'g>> {
    root: Root<'g, V>,
    buckets: u64,
    next_bucket: u64,
    /// The node that the iteration is in, with its hashes, and the next place of it.
    node: Option<Node<'g, V>>,
    hashes: Hashes,
    place: usize,
    /// Places of the bucket's nodes in front of this one.
    passed: u64,
    /// For nodes that are not a bucket's first, of all buckets together.
    budget: ChainBudget,
    of: PhantomData<&'r ()>,
}

impl<'g, V: View<'g>> Iter<'_, 'g, V> {
    fn step(&mut self) -> Result<Option<entry::Entry<'g, V>>, Error> {
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

    /// How far it has come.
    pub fn position(&self) -> Position {
        match self.node {
            Some(_) => Position::of(self.next_bucket - 1, self.passed + self.place as u64),
            None => Position::of(self.next_bucket, 0),
        }
    }

    /// Leaves out so many places of the next bucket.
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
            None => return Ok(false),
        };
        self.node = Some(node);
        self.hashes = hashes(node);
        self.place = 0;
        Ok(true)
    }
}

impl<'r, 'g, V: View<'g>> Iterator for Iter<'r, 'g, V> {
    type Item = Result<Entry<'r, 'g, V>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if !matches!(step, Ok(Some(_))) {
            self.buckets = 0;
            self.node = None;
        }
        let entry = step.transpose()?;
        Some(entry.map(|entry| Entry {
            entry,
            of: PhantomData,
        }))
    }
}

impl<'g, V: View<'g>> core::iter::FusedIterator for Iter<'_, 'g, V> {}
