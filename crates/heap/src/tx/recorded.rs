//! A short transaction on a medium with records: one record of the medium, and no entry in a lane.

use firn_media::Medium;
use firn_units::WORDS_PER_LINE;

use super::changes::Changes;
use super::commit::Commit;
use super::frames::each_frame_piece;

impl<M: Medium> Commit<'_, M> {
    /// Whether the transaction can be a record of the medium, without an entry in a lane. It can if it is short enough.
    ///
    /// R14: recovery carries out the entries in lanes again, over what the log has brought home. So an older entry
    /// that names a word of this transaction must be hidden from recovery. It was written before this transaction got its
    /// locks, so it is seen here.
    pub(super) fn is_a_record(&mut self) -> bool {
        let medium = self.medium();
        let most = medium.most_recorded_lines();
        if most == 0 {
            return false;
        }
        let Changes {
            writes,
            allocated,
            freed,
            ..
        } = &*self.changes;
        // A line for each bit, if it comes to the worst. In a cycle one for the settled word of each moved object, too.
        let stored = writes.len() as usize * if self.cycle.is_some() { 2 } else { 1 };
        let mut lines = stored + allocated.len() + freed.len();
        each_frame_piece(medium, &self.fresh, |_, count| {
            lines += 1 + count as usize / WORDS_PER_LINE;
        });
        if lines > most {
            return false;
        }
        if !self.inner.redo.hides_entries(medium) {
            self.inner.redo.retire(medium, self.ring);
        }
        self.inner.redo.hides_entries(medium)
    }

    /// Stores in place, in the step that gives the record its place.
    pub(super) fn record(&mut self) {
        let mut ring = core::mem::take(self.ring);
        let (redo, medium) = (&self.inner.redo, self.medium());
        redo.record(medium, &mut ring, || {
            self.settle();
            self.store_in_place();
        });
        *self.ring = ring;
    }
}
