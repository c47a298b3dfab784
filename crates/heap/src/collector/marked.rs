//! The first state of a collection: the live objects are known, and the others are free.

use firn_format::geometry::{BITMAP_WORDS, Frame};
use firn_format::plan::Entry;
use firn_media::Medium;

use super::mark::Reached;
use super::noted::Noted;
use super::options::Marking;
use crate::error::Error;
use crate::inner::Inner;
use crate::trace::Marks;

/// Which objects have reference fields, so that a sweep skips the others. As long as this lives, slots that come into
/// use are noted.
pub(super) struct Marked<'p, M: Medium> {
    /// The ones that marking found, and their copies.
    referring: Marks,
    /// Slots that came into use since marking began: any of them may have reference fields.
    since: Noted<'p, M>,
}

impl<'p, M: Medium> Marked<'p, M> {
    /// Marks, and reclaims the unmarked objects. Also returns how many these were.
    ///
    /// Errors: an operation stayed open; the pool is damaged.
    pub(super) fn of(inner: &'p Inner<M>, how: Marking) -> Result<(Self, u64), Error> {
        inner.allocator.look_at_all(&inner.medium)?;
        let reached = Reached::by(inner, how)?;
        let reclaimed = reached.reclaim();
        let marked = Self {
            referring: reached.trace.referring,
            since: reached.taken,
        };
        Ok((marked, reclaimed?))
    }

    /// For each word of a run's bitmap: the slots that may hold objects with reference fields, as bits.
    pub(super) fn may_refer(&self, run: Frame) -> impl Fn(u64) -> u64 {
        let referring = self.referring.of(run);
        move |word| referring[word as usize] | self.since.of(run, word)
    }

    /// Notes the destinations of a plan's referring objects.
    pub(super) fn follow(&mut self, entries: &[Entry]) {
        for entry in entries {
            let referring = self.referring.of(entry.source);
            for word in 0..BITMAP_WORDS {
                let since = self.since.of(entry.source, word);
                let mut bits = (referring[word as usize] | since) & entry.survivors[word as usize];
                while bits != 0 {
                    let slot = word * 64 + u64::from(bits.trailing_zeros());
                    bits &= bits - 1;
                    if let Some(rank) = entry.rank(slot) {
                        let (frame, slot) = entry.destination(rank);
                        self.referring.mark(frame, slot);
                    }
                }
            }
        }
    }
}
