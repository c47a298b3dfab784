//! Leaves: entries with their values in place.

use firn_heap::{Error, KnownType, Obj, Stored, Tx, View};
use firn_media::Medium;

use super::MAX_VALUE_BYTES;
use crate::protocol;
use crate::tree::damaged;

/// Entries of a leaf.
pub const LEAF_SLOTS: usize = 4;
const WORD_BYTES: usize = 8;
const VALUE_WORDS: usize = MAX_VALUE_BYTES / WORD_BYTES;

/// A leaf. A search reads its first line; each value has lines of its own.
#[derive(Stored)]
#[firn(name = "firn.inline_tree.leaf")]
#[repr(C)]
pub struct Leaf {
    /// Which slots are in use, and the lengths of their values: a [`Slots`].
    pub(crate) slots: u64,
    /// The keys.
    pub(crate) keys: [u64; LEAF_SLOTS],
    /// Padding to a whole line.
    pub(crate) unused: [u64; 2],
    /// The values.
    pub(crate) values: [[u64; VALUE_WORDS]; LEAF_SLOTS],
}

const LINE_BYTES: usize = 64;
const HEADER_BYTES: usize = 8;
const _: () = assert!((core::mem::offset_of!(Leaf, values) + HEADER_BYTES) == LINE_BYTES);
const _: () = assert!((size_of::<Leaf>() + HEADER_BYTES).is_multiple_of(LINE_BYTES));

/// One byte per slot: zero if it is free, otherwise the length of its value plus one. Sound: no length is beyond
/// [`MAX_VALUE_BYTES`], and the bytes without a slot are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slots(u64);

impl Slots {
    pub(crate) const EMPTY: Self = Self(0);

    #[inline(always)]
    fn from_word(word: u64) -> Option<Self> {
        let longest = (0..LEAF_SLOTS)
            .map(|slot| word >> (slot * 8) & 0xff)
            .max()?;
        let sound = word >> (LEAF_SLOTS * 8) == 0 && longest <= MAX_VALUE_BYTES as u64 + 1;
        sound.then_some(Self(word))
    }

    /// Bytes of the value in a slot; `None` if it is free.
    #[inline(always)]
    pub(crate) fn len(self, slot: usize) -> Option<usize> {
        ((self.0 >> (slot * 8) & 0xff) as usize).checked_sub(1)
    }

    /// Slots in use.
    #[inline(always)]
    pub(crate) fn used(self) -> impl Iterator<Item = usize> {
        (0..LEAF_SLOTS).filter(move |&slot| self.len(slot).is_some())
    }

    /// A free slot.
    pub(crate) fn free(self) -> Option<usize> {
        (0..LEAF_SLOTS).find(|&slot| self.len(slot).is_none())
    }

    /// Number of entries.
    #[inline]
    pub(crate) fn count(self) -> usize {
        self.used().count()
    }

    pub(crate) fn with(self, slot: usize, len: Option<usize>) -> Self {
        let byte = len.map_or(0, |len| len as u64 + 1);
        Self(self.0 & !(0xff << (slot * 8)) | byte << (slot * 8))
    }
}

/// A leaf with a sound slots word.
pub struct LeafAt<'g, V: View<'g>> {
    pub(crate) object: Obj<'g, Leaf, V>,
    pub(crate) slots: Slots,
}

impl<'g, V: View<'g>> Clone for LeafAt<'g, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, V: View<'g>> Copy for LeafAt<'g, V> {}

/// An entry.
pub struct Spot<'g, V: View<'g>> {
    pub(crate) leaf: LeafAt<'g, V>,
    pub(crate) slot: usize,
}

impl<'g, V: View<'g>> Clone for Spot<'g, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, V: View<'g>> Copy for Spot<'g, V> {}

impl<'g, V: View<'g>> protocol::Spot for Spot<'g, V> {
    #[inline(always)]
    fn value_into(self, into: &mut Vec<u8>) -> Result<(), Error> {
        self.leaf.value_into(self.slot, into);
        Ok(())
    }

    fn value_len(self) -> Result<usize, Error> {
        Ok(self.leaf.slots.len(self.slot).unwrap_or(0))
    }
}

impl<'g, V: View<'g>> LeafAt<'g, V> {
    /// Checks type and slots. A leaf has at least one entry.
    #[inline]
    pub(crate) fn new(object: Obj<'g, Leaf, V>) -> Result<Self, Error> {
        Self::known(object, object.view().known_type()?)
    }

    /// A leaf whose type number is known.
    #[inline(always)]
    pub(crate) fn known(object: Obj<'g, Leaf, V>, known: KnownType<Leaf>) -> Result<Self, Error> {
        let object = object.check_known_type(known)?;
        match Slots::from_word(object.load(Leaf::SLOTS)) {
            Some(slots) if slots != Slots::EMPTY => Ok(Self { object, slots }),
            _ => Err(damaged("the slots of a tree's leaf", object)),
        }
    }

    #[inline(always)]
    pub(crate) fn key(&self, slot: usize) -> u64 {
        self.object.load(Leaf::KEYS.at(slot))
    }

    /// The slot of `key`.
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        let alike = (0..LEAF_SLOTS).fold(0u32, |alike, slot| {
            let is_it = (self.key(slot) == key) & self.slots.len(slot).is_some();
            alike | u32::from(is_it) << slot
        });
        (alike != 0).then(|| alike.trailing_zeros() as usize)
    }

    /// Prefetches the value in a slot.
    #[inline(always)]
    pub(crate) fn expect_value(&self, slot: usize) {
        self.object.expect_field(Leaf::VALUES.at(slot));
    }

    /// Appends the value in a slot, or nothing if it is free.
    #[inline]
    pub(crate) fn value_into(&self, slot: usize, into: &mut Vec<u8>) {
        let len = self.slots.len(slot).unwrap_or(0);
        self.object.append_bytes(Leaf::VALUES.at(slot), len, into);
    }

    /// The slots in use, ordered by their keys, and their number.
    pub(crate) fn sorted(&self) -> ([usize; LEAF_SLOTS], usize) {
        let (mut sorted, mut count) = ([0; LEAF_SLOTS], 0);
        for slot in self.slots.used() {
            sorted[count] = slot;
            count += 1;
        }
        sorted[..count].sort_unstable_by_key(|&slot| self.key(slot));
        (sorted, count)
    }
}

impl<'t, M: Medium> LeafAt<'t, Tx<'t, M>> {
    /// Fills a free slot.
    pub(crate) fn fill(&mut self, slot: usize, key: u64, value: &[u8]) {
        self.object.store(Leaf::KEYS.at(slot), key);
        self.set_value(slot, value);
    }

    /// Stores a value, and its length if it differs.
    pub(crate) fn set_value(&mut self, slot: usize, value: &[u8]) {
        self.set_words(slot, &words_of(value), value.len());
    }

    /// Copies an entry of another leaf into a free slot.
    pub(crate) fn fill_from(&mut self, slot: usize, other: &Self, from: usize) {
        self.object.store(Leaf::KEYS.at(slot), other.key(from));
        let words = other.object.load(Leaf::VALUES.at(from));
        self.set_words(slot, &words, other.slots.len(from).unwrap_or(0));
    }

    fn set_words(&mut self, slot: usize, words: &[u64; VALUE_WORDS], len: usize) {
        let field = Leaf::VALUES.at(slot);
        let used = len.div_ceil(WORD_BYTES);
        if used == VALUE_WORDS {
            self.object.store(field, *words);
        } else {
            for (word, &value) in words[..used].iter().enumerate() {
                self.object.store(field.at(word), value);
            }
        }
        if self.slots.len(slot) != Some(len) {
            self.set_slots(self.slots.with(slot, Some(len)));
        }
    }

    pub(crate) fn set_slots(&mut self, slots: Slots) {
        self.object.store(Leaf::SLOTS, slots.0);
        self.slots = slots;
    }
}

/// An entry on its way into a leaf.
pub(crate) type Item<'v> = (u64, &'v [u8]);

impl Leaf {
    pub(crate) const EMPTY: Self = Self {
        slots: 0,
        keys: [0; LEAF_SLOTS],
        unused: [0; 2],
        values: [[0; VALUE_WORDS]; LEAF_SLOTS],
    };

    /// Bytes of a leaf whose entries are in its first `count` slots: the slots behind need not be stored.
    pub(crate) const fn front_bytes(count: usize) -> u64 {
        (core::mem::offset_of!(Self, values) + count * MAX_VALUE_BYTES) as u64
    }

    /// Fills a free slot.
    pub(crate) fn put(&mut self, slot: usize, (key, value): Item<'_>) {
        self.put_words(slot, key, words_of(value), value.len());
    }

    /// Copies an entry of another leaf into a free slot.
    pub(crate) fn put_from<'g, V: View<'g>>(
        &mut self,
        slot: usize,
        leaf: &LeafAt<'g, V>,
        from: usize,
    ) {
        let words = leaf.object.load(Leaf::VALUES.at(from));
        let len = leaf.slots.len(from).unwrap_or(0);
        self.put_words(slot, leaf.key(from), words, len);
    }

    fn put_words(&mut self, slot: usize, key: u64, words: [u64; VALUE_WORDS], len: usize) {
        self.keys[slot] = key;
        self.values[slot] = words;
        self.slots = Slots(self.slots).with(slot, Some(len)).0;
    }
}

/// The words of a value, followed by zeros.
fn words_of(value: &[u8]) -> [u64; VALUE_WORDS] {
    let mut words = [0; VALUE_WORDS];
    let (whole, rest) = value.as_chunks::<WORD_BYTES>();
    for (word, &bytes) in words.iter_mut().zip(whole) {
        *word = u64::from_le_bytes(bytes);
    }
    if let Some(word) = words.get_mut(whole.len()) {
        let mut last = [0; WORD_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        *word = u64::from_le_bytes(last);
    }
    words
}
