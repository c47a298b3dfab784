//! The faults that the crash medium plants in a commit.

use firn_format::lane::Record;
use firn_media::Medium;

use super::bits;
use super::commit::Commit;
use crate::order::{Perturbation, Perturbed};
use crate::steps;

impl<M: Medium> Perturbed for Commit<'_, M> {
    type Medium = M;

    fn medium(&self) -> &M {
        &self.inner.medium
    }

    fn perturbations() -> Vec<Perturbation<Self>> {
        let unlock = || ("unlock", Self::unlock as fn(&mut Self));
        let settle = ("settle", Self::settle as fn(&mut Self));
        let offer_freed = ("offer_freed", Self::offer_freed as fn(&mut Self));
        vec![
            Perturbation::left_out(&steps::FRAMES_LOGGED, "log_frames"),
            Perturbation::left_out(&steps::BITS_LOGGED, "log_bits"),
            Perturbation::instead(&steps::BITS_AS_BITS, "log_bits", Self::log_words_of_bits),
            Perturbation::left_out(&steps::SETTLED_LOGGED, "log_settled"),
            Perturbation::twice(&steps::LOCKS_UNTIL_NUMBER, unlock(), "write_entry"),
            Perturbation::twice(&steps::SETTLED_AFTER_FENCE, settle, "write_entry"),
            Perturbation::left_out(&steps::REPLACED_REMEMBERED, "remember_replaced"),
            Perturbation::twice(&steps::LOCKS_UNTIL_STORED, unlock(), "apply"),
            Perturbation::twice(&steps::SLOTS_AFTER_STORES, offer_freed, "apply"),
            Perturbation::left_out(&steps::BIT_HOMES, "note_bits"),
            Perturbation::left_out(&steps::FRAME_HOMES, "note_frames"),
            Perturbation::left_out(&steps::SETTLED_HOMES, "note_settled"),
        ]
    }
}

impl<M: Medium> Commit<'_, M> {
    fn log_words_of_bits(&mut self) {
        if !self.inner.logs_allocation() {
            return;
        }
        let (medium, changes) = (&self.inner.medium, &*self.changes);
        for (of, set) in [(&changes.allocated, true), (&changes.freed, false)] {
            for (at, mask) in bits::by_word(of) {
                let word = medium.load_u64(at);
                let word = if set { word | mask } else { word & !mask };
                Record::push_range(&mut self.entry, at, &[word]);
            }
        }
    }
}
