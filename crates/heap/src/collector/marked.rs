//! The first state of a collection: what lives is known, and what does not is free.

use firn_format::geometry::{BITMAP_WORDS, Frame};
use firn_format::plan::Entry;
use firn_media::Medium;

use super::mark::Reached;
use super::noted::Noted;
use super::options::Marking;
use crate::error::Error;
use crate::inner::Inner;
use crate::trace::Marks;

/// Which objects have reference fields, so that a sweep leaves the others alone. As long as it lives, slots that come into
/// use are noted.
pub(super) struct Marked<'p, M: Medium> {
    /// Those that marking found, and the copies of those.
    referring: Marks,
    /// Slots that came into use since marking began: any of them may.
    since: Noted<'p, M>,
}

impl<'p, M: Medium> Marked<'p, M> {
    /// Marks, and reclaims what was not marked. Returns how many objects that were, too.
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

    /// The slots of a run that may hold objects with reference fields, as bits: for each word of its bitmap.
    pub(super) fn may_refer(&self, run: Frame) -> impl Fn(u64) -> u64 {
        let referring = self.referring.of(run);
        move |word| referring[word as usize] | self.since.of(run, word)
    }

    /// Notes where the referring objects of a plan go.
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
