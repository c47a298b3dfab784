//! Places of the root table, as a set.

use firn_format::root::MAX_ROOTS;

/// Places of the table, as a set.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Slots([u64; MAX_ROOTS / 64]);

impl Slots {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    #[inline]
    pub(crate) fn has(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 != 0
    }

    pub(crate) fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_ROOTS).filter(move |&place| self.has(place))
    }
}
