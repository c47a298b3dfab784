//! From the descriptors of a program's types to their numbers in a pool, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use firn_format::header::TypeId;

use crate::stored::TypeDescriptor;

const PLACES: usize = 64;
/// Places that a descriptor may be in, one behind the other: some share their first.
const TRIES: usize = 4;
const NUMBER_BITS: u32 = 20;
const _: () = assert!(1 << NUMBER_BITS == TypeId::LIMIT);

/// A small table by the address of the descriptor. It may forget a type, never confuse two.
pub(crate) struct TypeCache {
    /// `address << 20 | number`; zero where there is none.
    places: [AtomicU64; PLACES],
}

#[inline(always)]
fn key_of(descriptor: &'static TypeDescriptor) -> u64 {
    core::ptr::from_ref(descriptor) as u64
}

#[inline(always)]
fn place_of(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

/// The number in an entry, if it is the descriptor's.
#[inline(always)]
fn number_in(entry: u64, key: u64) -> Option<TypeId> {
    let is_it = entry >> NUMBER_BITS == key & (u64::MAX >> NUMBER_BITS);
    is_it.then_some(TypeId(entry as u32 & (TypeId::LIMIT - 1)))
}

impl TypeCache {
    pub(crate) const fn new() -> Self {
        Self {
            places: [const { AtomicU64::new(0) }; PLACES],
        }
    }

    /// The number of a type that was remembered.
    #[inline]
    pub(crate) fn find(&self, descriptor: &'static TypeDescriptor) -> Option<TypeId> {
        let key = key_of(descriptor);
        let first = self.places[place_of(key)].load(Ordering::Acquire);
        number_in(first, key).or_else(|| self.find_further(key))
    }

    #[inline(never)]
    fn find_further(&self, key: u64) -> Option<TypeId> {
        self.places_of(key)
            .find_map(|place| number_in(place.load(Ordering::Acquire), key))
    }

    /// Remembers a type, in the place of another if all of its own are taken. One thread at a time.
    pub(crate) fn remember(&self, descriptor: &'static TypeDescriptor, id: TypeId) {
        let key = key_of(descriptor);
        let is_free = |place: &&AtomicU64| place.load(Ordering::Relaxed) == 0;
        let place = self.places_of(key).find(is_free);
        let place = place.unwrap_or(&self.places[place_of(key)]);
        place.store(key << NUMBER_BITS | u64::from(id.0), Ordering::Release);
    }

    /// Forgets all of them.
    pub(crate) fn forget(&self) {
        for place in &self.places {
            place.store(0, Ordering::Release);
        }
    }

    fn places_of(&self, key: u64) -> impl Iterator<Item = &AtomicU64> {
        let first = place_of(key);
        (first..first + TRIES).map(|place| &self.places[place % PLACES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// Descriptors at addresses of their own.
    fn descriptors(count: usize) -> Vec<&'static TypeDescriptor> {
        let new = |_| TypeDescriptor {
            name: "some",
            version: 1,
            size: 8,
            fields: &[],
            with: &[],
        };
        (0..count)
            .map(new)
            .map(|one| &*Box::leak(Box::new(one)))
            .collect()
    }

    #[test]
    fn types_that_share_a_place_are_all_found() {
        let all = descriptors(4096);
        let shared = place_of(key_of(all[0]));
        let alike: Vec<_> = all
            .into_iter()
            .filter(|d| place_of(key_of(d)) == shared)
            .collect();
        assert!(
            alike.len() > TRIES,
            "{} descriptors share a place",
            alike.len()
        );
        let cache = TypeCache::new();
        for (number, descriptor) in alike[..TRIES].iter().enumerate() {
            assert_eq!(cache.find(descriptor), None);
            cache.remember(descriptor, TypeId(number as u32 + 16));
        }
        for (number, descriptor) in alike[..TRIES].iter().enumerate() {
            assert_eq!(cache.find(descriptor), Some(TypeId(number as u32 + 16)));
        }
        // One more drives another out, and is found itself.
        cache.remember(alike[TRIES], TypeId(99));
        assert_eq!(cache.find(alike[TRIES]), Some(TypeId(99)));
    }

    #[test]
    fn two_types_are_never_confused() {
        let (all, cache) = (descriptors(500), TypeCache::new());
        for (number, descriptor) in all.iter().enumerate() {
            cache.remember(descriptor, TypeId(number as u32 + 16));
        }
        for (number, descriptor) in all.iter().enumerate() {
            let found = cache.find(descriptor);
            assert!(found.is_none_or(|id| id == TypeId(number as u32 + 16)));
        }
    }
}
