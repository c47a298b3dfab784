//! The locks of a pool that are in use, by their numbers.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use firn_units::WORD_BYTES;

use super::sanitizer::forgets_lock;

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

/// The locks of an open pool that were used, by their numbers.
#[derive(Default)]
pub(crate) struct Locks {
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

    /// The words among these that may be numbers of locks.
    pub(super) fn among(words: impl Iterator<Item = u64>) -> Self {
        Self(words.filter(|&number| is_given(number)).collect())
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.0.extend(more.0);
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

    /// The lock with the number that `word` holds; a word without a number gets one.
    pub(super) fn of_word(&self, word: impl Fn() -> u64, number_it: impl Fn(u64)) -> *mut c_void {
        let mut known = self.known();
        let mut number = word();
        if !is_given(number) {
            // This lock is not in use: no thread of this process has looked at it.
            number = first() + GIVEN.fetch_add(1, Ordering::Relaxed);
            number_it(number);
        }
        let place = known.entry(number).or_insert_with(|| {
            self.are_used.store(true, Ordering::Release);
            Place::taken()
        });
        place.pointer()
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

/// The first number of this process. Neither it nor any later number in the process's lifetime is zero.
fn first() -> u64 {
    static FIRST: OnceLock<u64> = OnceLock::new();
    *FIRST.get_or_init(|| RandomState::new().hash_one(std::process::id()) >> 1 | 1)
}

/// Whether this process has assigned a number.
fn is_given(number: u64) -> bool {
    number.wrapping_sub(first()) < GIVEN.load(Ordering::Relaxed)
}
