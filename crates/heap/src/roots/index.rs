//! Finding the places of roots in the table by their names, without a lock.
//!
//! ```text
//! even     counts changes of names; odd while one goes on
//! changing the places, as bits, whose roots the transaction that holds the table changes
//! versions one a place, odd while its root is stored
//! names    a hash table of places, by their names; linear probing
//! lanes    one a lane: the places, as bits, that its open transaction has read
//! ```
//! A place's content is read from media: a name and its reference belong together if the place's version is even and
//! does not change during the read (N1). A name that is not found is absent only if no name changed meanwhile (N2).
//! Every writer holds the table's lock, so there is one at a time.
//!
//! A transaction keeps the places that it has read unchanged to its end, as if it shared a lock. It announces a read in
//! its lane's word before it checks whether another transaction changes the place, and a transaction that changes a
//! place announces that before it checks the lanes (N3). Lanes do not share words, so readers of the same root do not
//! contend for a cache line.

use firn_format::reference::RefWord;
use firn_format::root::{
    MAX_ROOTS, NAME_WORDS, Name, REFERENCE_AT, ROOT_BYTES, decode, name_at, root_at,
};
use firn_media::{Medium, MediumExt, Words};

use super::slots::Slots;
use crate::error::Error;
use crate::steps;

const ROOT_WORDS: usize = (ROOT_BYTES / 8) as usize;
/// Words of a cache line.
const LINE: usize = 8;
const EPOCH: usize = 0;
const DAMAGED: usize = 1;
const CHANGING: usize = LINE;
const VERSIONS: usize = 2 * LINE;
const NAMES: usize = VERSIONS + MAX_ROOTS;
/// Twice the number of roots, so that searches are short.
const PLACES: usize = 2 * MAX_ROOTS;
const LANES: usize = NAMES + PLACES;
/// Bits of an entry that hold its place, plus one; the others are those of the name's hash.
const PLACE_MASK: u64 = PLACES as u64 - 1;
const HOME_SHIFT: u32 = u64::BITS - PLACES.ilog2();

/// See the module.
pub(crate) struct RootIndex<M: Medium> {
    words: M::Words,
    lanes: usize,
}

/// A root that is being stored, with the former name of its place.
pub(crate) struct Storing {
    place: usize,
    before: Name,
}

impl Storing {
    /// The root's place.
    pub(crate) fn place(&self) -> usize {
        self.place
    }
}

fn hash(name: &Name) -> u64 {
    name.0.iter().fold(0, |hash: u64, &word| {
        (hash ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
}

/// Where the search for an entry begins: the top bits of the hash, which are in the entry.
fn home(entry: u64) -> usize {
    (entry >> HOME_SHIFT) as usize
}

fn entry_of(name: &Name, place: usize) -> u64 {
    let mixed = hash(name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed & !PLACE_MASK | (place as u64 + 1)
}

fn name_on<M: Medium>(medium: &M, place: usize) -> Name {
    Name(core::array::from_fn(|word| {
        medium.load_u64(name_at(place, word))
    }))
}

/// Whether a place has this name, word by word: a comparison of two arrays would be a call.
#[inline]
fn is_called<M: Medium>(medium: &M, place: usize, name: &Name) -> bool {
    let differs = |word: usize| medium.load_u64(name_at(place, word)) ^ name.0[word];
    (0..NAME_WORDS).fold(0, |bits, word| bits | differs(word)) == 0
}

fn words_on<M: Medium>(medium: &M, place: usize) -> [u64; ROOT_WORDS] {
    core::array::from_fn(|word| medium.load_u64(name_at(place, word)))
}

/// The bit of a place.
pub(crate) fn bit(place: usize) -> u64 {
    1 << (place % u64::BITS as usize)
}

impl<M: Medium> RootIndex<M> {
    pub(crate) fn new(medium: &M, lanes: usize) -> Self {
        let words = medium.words(LANES + lanes * LINE);
        let index = Self { words, lanes };
        index.build(medium);
        index
    }

    /// Reads the table from media, while no other thread uses it.
    pub(crate) fn build(&self, medium: &M) {
        let entries = NAMES..NAMES + PLACES;
        entries.for_each(|at| self.words.store(at, 0));
        self.words.store(DAMAGED, 0);
        for place in 0..MAX_ROOTS {
            if medium.load_u64(root_at(place)) == 0 {
                continue;
            }
            match decode(&words_on(medium, place), root_at(place)) {
                Ok(_) => self.insert(entry_of(&name_on(medium, place), place)),
                Err(_) => self.words.store(DAMAGED, 1),
            }
        }
    }

    /// Whether there are places with damaged names, any of which may be the name in question.
    pub(crate) fn is_damaged(&self) -> bool {
        self.words.load(DAMAGED) != 0
    }

    /// The place of the root `name`, ignoring the places in `own`.
    pub(crate) fn place_of(&self, medium: &M, name: &Name, own: &Slots) -> Option<usize> {
        let mut attempt = 0;
        loop {
            let epoch = self.words.load(EPOCH);
            if let Some(place) = self.probe(medium, name, own) {
                return Some(place);
            }
            // N2
            let is_settled = epoch.is_multiple_of(2) && self.words.load(EPOCH) == epoch;
            if is_settled || medium.leaves_out(&steps::ROOT_MISS_CONFIRMED) {
                return None;
            }
            medium.pause(attempt);
            attempt += 1;
        }
    }

    /// Runs `read` until no name has changed meanwhile.
    pub(crate) fn consistent<R>(&self, medium: &M, mut read: impl FnMut() -> R) -> R {
        let mut attempt = 0;
        loop {
            let epoch = self.words.load(EPOCH);
            let result = read();
            if epoch.is_multiple_of(2) && self.words.load(EPOCH) == epoch {
                return result;
            }
            medium.pause(attempt);
            attempt += 1;
        }
    }

    fn probe(&self, medium: &M, name: &Name, own: &Slots) -> Option<usize> {
        let wanted = entry_of(name, 0) & !PLACE_MASK;
        let mut at = home(wanted);
        for _ in 0..PLACES {
            let entry = self.words.load(NAMES + at);
            if entry == 0 {
                return None;
            }
            if entry & !PLACE_MASK == wanted {
                let place = (entry & PLACE_MASK) as usize - 1;
                if !own.has(place) && is_called(medium, place, name) {
                    return Some(place);
                }
            }
            at = (at + 1) % PLACES;
        }
        None
    }

    /// The whole content of a place.
    pub(crate) fn content(&self, medium: &M, place: usize) -> [u64; ROOT_WORDS] {
        self.settled(medium, place, || words_on(medium, place))
    }

    /// The reference of a place, if its root is `name`.
    #[inline]
    pub(crate) fn reference(&self, medium: &M, place: usize, name: &Name) -> Option<RefWord> {
        self.settled(medium, place, || {
            is_called(medium, place, name)
                .then(|| RefWord(medium.load_u64(root_at(place) + REFERENCE_AT)))
        })
    }

    /// Runs `read` until the place is not stored to meanwhile (N1).
    #[inline]
    fn settled<R>(&self, medium: &M, place: usize, read: impl Fn() -> R) -> R {
        let mut attempt = 0;
        loop {
            let version = self.words.load(VERSIONS + place);
            let result = read();
            if version.is_multiple_of(2) && self.words.load(VERSIONS + place) == version {
                return result;
            }
            medium.pause(attempt);
            attempt += 1;
        }
    }

    /// Announces that a lane's transaction reads a place, to its end. Returns whether it may: no other transaction
    /// changes the place.
    #[inline]
    pub(crate) fn hold(&self, medium: &M, lane: usize, place: usize) -> bool {
        let bit = bit(place);
        // N3: a locked instruction, then the check.
        if medium.keeps(&steps::ROOT_HELD) {
            self.words.fetch_or(LANES + lane * LINE, bit);
        }
        self.words.load(CHANGING) & bit == 0 || medium.leaves_out(&steps::ROOT_CHANGE_HEEDED)
    }

    /// Reduces the places that a lane's transaction reads to those of `bits`.
    pub(crate) fn release(&self, lane: usize, bits: u64) {
        self.words.store(LANES + lane * LINE, bits);
    }

    /// Whether another transaction changes places that this one has read.
    pub(crate) fn is_changing(&self, bits: u64) -> bool {
        self.words.load(CHANGING) & bits != 0
    }

    /// Announces that the transaction that holds the table's lock changes these places.
    pub(crate) fn claim(&self, bits: u64) {
        self.words.fetch_or(CHANGING, bits);
    }

    /// Withdraws the announcement for these places.
    pub(crate) fn unclaim(&self, bits: u64) {
        self.words.fetch_and(CHANGING, !bits);
    }

    /// Withdraws it for all places.
    pub(crate) fn disclaim(&self) {
        self.words.store(CHANGING, 0);
    }

    /// Whether a transaction of another lane than `lane` has read one of the places.
    pub(crate) fn is_read(&self, medium: &M, lane: usize, bits: u64) -> bool {
        let mut others = (0..self.lanes).filter(|&other| other != lane);
        medium.keeps(&steps::ROOT_READERS_AWAITED)
            && others.any(|other| self.words.load(LANES + other * LINE) & bits != 0)
    }

    /// Whether a lane's open transaction has read one of the places.
    pub(crate) fn is_read_on(&self, lane: usize, bits: u64) -> bool {
        self.words.load(LANES + lane * LINE) & bits != 0
    }

    /// Begins to store a place: until [`RootIndex::end`] no other thread reads it.
    pub(crate) fn begin(&self, medium: &M, place: usize) -> Storing {
        let before = name_on(medium, place);
        // A locked instruction, so that every thread sees the following stores later.
        if medium.keeps(&steps::ROOT_UNTIL_STORED) {
            self.words.fetch_add(VERSIONS + place, 1);
        }
        Storing { place, before }
    }

    /// Updates the index for the place's new content.
    pub(crate) fn end(&self, medium: &M, storing: &Storing) {
        let Storing { place, before } = storing;
        let now = name_on(medium, *place);
        if now != *before {
            self.words.fetch_add(EPOCH, 1);
            if !before.is_empty() {
                self.remove(entry_of(before, *place));
            }
            if !now.is_empty() {
                self.insert(entry_of(&now, *place));
            }
            self.words.fetch_add(EPOCH, 1);
        }
        if medium.keeps(&steps::ROOT_UNTIL_STORED) {
            self.words.fetch_add(VERSIONS + place, 1);
        }
    }

    fn insert(&self, entry: u64) {
        let mut at = home(entry);
        while self.words.load(NAMES + at) != 0 {
            at = (at + 1) % PLACES;
        }
        self.words.store(NAMES + at, entry);
    }

    /// Removes an entry, and moves up the entries behind it that it displaced.
    fn remove(&self, entry: u64) {
        let mut gap = home(entry);
        for _ in 0..PLACES {
            match self.words.load(NAMES + gap) {
                found if found == entry => break,
                // A damaged name had no entry.
                0 => return,
                _ => gap = (gap + 1) % PLACES,
            }
        }
        let mut at = gap;
        loop {
            at = (at + 1) % PLACES;
            let behind = self.words.load(NAMES + at);
            if behind == 0 {
                break;
            }
            let from_home = (at + PLACES - home(behind)) % PLACES;
            let from_gap = (at + PLACES - gap) % PLACES;
            if from_home >= from_gap {
                self.words.store(NAMES + gap, behind);
                gap = at;
            }
        }
        self.words.store(NAMES + gap, 0);
    }
}

/// The damage of a place, as an error.
pub(crate) fn damage<M: Medium>(medium: &M) -> Result<(), Error> {
    for place in 0..MAX_ROOTS {
        let words = words_on(medium, place);
        if words[0] != 0 {
            decode(&words, root_at(place))?;
        }
    }
    Ok(())
}
