//! Resolved locations.

use firn_media::Place;
use firn_units::{VirtAddr, WORD_BYTES};

use crate::medium::shared::Shared;

/// A location in a [`crate::Crash`].
#[derive(Clone, Copy)]
pub struct CrashPlace<'m> {
    pub(crate) shared: &'m Shared,
    pub(crate) at: VirtAddr,
}

impl Place for CrashPlace<'_> {
    #[inline]
    fn load_u64(self, byte: u32) -> u64 {
        self.shared
            .load((self.at.bytes() + u64::from(byte)) / WORD_BYTES)
    }
}
