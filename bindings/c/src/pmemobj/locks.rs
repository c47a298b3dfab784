//! The locks of a pool that are in use, by their numbers.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use firn_units::WORD_BYTES;

use super::sanitizer::forgets_lock;
use crate::status::Outcome;

/// Bytes of a lock in persistent memory, and room for a system lock that begins as zeros.
pub(super) const LOCK_BYTES: usize = 64;

/// A system lock, which begins as zeros. All threads use it, through the system's calls.
#[derive(Default)]
#[repr(C, align(64))]
struct Volatile([AtomicU64; LOCK_BYTES / WORD_BYTES as usize]);

/// The place of a system lock. It always stays a place of locks: using one after it was forgotten uses another lock,
/// but no other memory.
#[derive(Clone, Copy)]
struct Place(&'static Volatile);

/// Places of locks that were forgotten.
static SPARE: Mutex<Vec<Place>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<Place>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    fn taken() -> Self {
        let Some(place) = spare().pop() else {
            return Self(Box::leak(Box::default()));
        };
        place
            .0
            .0
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
        place
    }

    fn pointer(self) -> *mut c_void {
        ptr::from_ref(self.0).cast_mut().cast()
    }
}

/// The four words of a lock in persistent memory.
///
/// ```text
/// number    of the lock in this process
/// place     address of the system lock
/// at        address of these words in the pool when they were written
/// check     of the three, with a secret of this opening of the pool
/// ```
///
/// They mean nothing to another opening of the pool, whose secret is another. A program that copies a structure
/// copies its lock's words, too; the copy is at another address, so it is not that lock.
pub(super) trait Words {
    fn load(&self, word: usize) -> u64;
    fn store(&self, word: usize, content: u64);
    /// Where these words are.
    fn at(&self) -> u64;
    /// Where the object's byte is now that was at an address.
    ///
    /// Errors: the pool cannot be used.
    fn now(&self, at: u64) -> Outcome<u64>;
}

/// The bytes of the four words.
pub(super) const WORDS_BYTES: u64 = 4 * WORD_BYTES;

/// What the four words of a lock say.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Said {
    number: u64,
    place: u64,
    at: u64,
}

impl Said {
    /// What these words say; `None` if this opening of the pool has not written them. The check is read first and written last, and
    /// covers the others, so a check that matches proves that all four were written together.
    #[inline]
    fn read(words: &impl Words, secret: u64) -> Option<Self> {
        let check = words.load(3);
        let [number, place, at] = [0, 1, 2].map(|word| words.load(word));
        let said = Self { number, place, at };
        (check == said.check(secret)).then_some(said)
    }

    fn write(self, words: &impl Words, secret: u64) {
        let content = [self.number, self.place, self.at, self.check(secret)];
        for (word, content) in content.into_iter().enumerate() {
            words.store(word, content);
        }
    }

    #[inline]
    fn check(self, secret: u64) -> u64 {
        self.number ^ self.place.rotate_left(16) ^ self.at.rotate_left(32) ^ secret
    }

    fn pointer(self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.place as usize)
    }
}

/// The locks of an open pool that were used, by their numbers.
pub(crate) struct Locks {
    /// What the checks of this opening differ by from those of others. Words that are zeros have no check that is right.
    secret: u64,
    known: Mutex<HashMap<u64, Place>>,
    /// Whether a lock was ever used.
    are_used: AtomicBool,
}

/// The numbers of locks in an object that a transaction frees: they are forgotten if it commits.
#[must_use]
#[derive(Default)]
pub(crate) struct Orphans(Vec<u64>);

impl Orphans {
    pub(crate) const NONE: Self = Self(Vec::new());

    pub(crate) fn add(&mut self, more: Self) {
        self.0.extend(more.0);
    }
}

impl Default for Locks {
    fn default() -> Self {
        Self {
            secret: RandomState::new().hash_one(std::process::id()) | 1,
            known: Mutex::default(),
            are_used: AtomicBool::new(false),
        }
    }
}

impl Locks {
    fn known(&self) -> MutexGuard<'_, HashMap<u64, Place>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a lock was ever used.
    pub(super) fn are_used(&self) -> bool {
        self.are_used.load(Ordering::Acquire)
    }

    /// The locks whose words are among these.
    pub(super) fn among(&self, words: impl Iterator<Item = impl Words>) -> Orphans {
        let used = words.filter_map(|words| {
            let said = Said::read(&words, self.secret);
            said.filter(|said| said.at == words.at())
        });
        Orphans(used.map(|said| said.number).collect())
    }

    /// The system's lock that stands for these words.
    ///
    /// Errors: as [`Words::now`].
    #[inline]
    pub(super) fn of(&self, words: &impl Words) -> Outcome<*mut c_void> {
        match Said::read(words, self.secret) {
            Some(said) if said.at == words.at() => Ok(said.pointer()),
            _ => self.settled(words),
        }
    }

    /// The lock of words that are new, or have moved.
    #[cold]
    fn settled(&self, words: &impl Words) -> Outcome<*mut c_void> {
        // Before the lock: it may wait for a collector's stop.
        let (said, at) = (Said::read(words, self.secret), words.at());
        let has_moved = match said {
            Some(said) if said.at != at => words.now(said.at)? == at,
            _ => false,
        };
        let mut known = self.known();
        let settled = match Said::read(words, self.secret) {
            // Another thread was faster.
            Some(now) if now.at == at => return Ok(now.pointer()),
            Some(now) if has_moved && said == Some(now) => Said { at, ..now },
            // Nobody has used this lock yet: it is new, or a copy of another.
            _ => {
                self.are_used.store(true, Ordering::Release);
                let (number, place) = (GIVEN.fetch_add(1, Ordering::Relaxed), Place::taken());
                known.insert(number, place);
                let place = place.pointer().expose_provenance() as u64;
                Said { number, place, at }
            }
        };
        settled.write(words, self.secret);
        Ok(settled.pointer())
    }

    /// The object around these words was copied from one that had them `at` an address, and takes its place.
    pub(super) fn follow(&self, words: &impl Words, at: u64) {
        let _one = self.known();
        if let Some(said) = Said::read(words, self.secret).filter(|said| said.at == at) {
            let at = words.at();
            Said { at, ..said }.write(words, self.secret);
        }
    }

    pub(crate) fn forget(&self, orphans: Orphans) {
        if orphans.0.is_empty() {
            return;
        }
        let mut known = self.known();
        let places = orphans.0.iter().filter_map(|number| known.remove(number));
        put_by(places);
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        put_by(self.known().drain().map(|(_, place)| place));
    }
}

fn put_by(places: impl Iterator<Item = Place>) {
    spare().extend(places.inspect(|place| forgets_lock(place.pointer())));
}

/// How many numbers have been assigned.
static GIVEN: AtomicU64 = AtomicU64::new(0);
