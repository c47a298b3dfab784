//! Healing: on media, every reference to a source becomes a reference to the destination.
//!
//! One sweep over the objects in the order of their addresses, beside the program (rule T4c). It tries to replace each
//! reference to a source, and writes back every field that names a source or a destination: also where the replacement
//! failed, because another thread's replacement may still be in the cache. Slots that come into use after the sweep
//! began hold only healed references, and the sweep skips them. Slots that are freed after it began are not reused
//! before it ends, so a field stays a field.

use firn_format::geometry::BITMAP_WORDS;
use firn_format::header::ObjectHeader;
use firn_format::reference::RefWord;
use firn_media::{Medium, MediumExt, Scope};
use firn_units::{FRAME_BYTES, LINE_BYTES, VirtAddr, WORD_BYTES};

use super::drained::Drained;
use super::marked::Marked;
use super::noted::Noted;
use crate::alloc::{Run, TakenSlots};
use crate::error::Error;
use crate::object::requested_bytes;
use crate::relocation::cycle::Cycle;
use crate::relocation::heal;
use crate::roots;
use crate::shape::{Refers, Shapes};
use crate::steps;
use crate::walk::data_chunks;
use crate::work;

impl<M: Medium> Drained<'_, M> {
    /// Heals every reference. Its write-backs wait for the caller's fence. Frees are deferred from
    /// here on.
    ///
    /// Errors: an operation stayed open; the frame table is damaged.
    pub(super) fn heal(&self, marked: Option<&Marked<'_, M>>) -> Result<(), Error> {
        let medium = &self.inner.medium;
        let _scope = medium.scope(Scope::Finish);
        let taken = Noted::new(self.inner);
        let mut healer = Healer::new(medium, &self.cycle);
        let begun = self.inner.stop_for_cycle(|| {
            self.inner.allocator.drain_all(medium)?;
            self.inner.collector.set_deferring(true);
            taken.begin();
            // The root table is read here, because a commit stores a root word by word. Roots that are stored later are
            // healed.
            for root in roots::references(medium) {
                let (_, field, _) = root?;
                if medium.keeps(&steps::ROOTS_HEALED) {
                    healer.heal(field);
                }
            }
            Ok::<_, Error>(())
        });
        begun??;
        self.sweep(&mut healer, marked, &taken)
    }

    fn sweep(
        &self,
        healer: &mut Healer<'_, M>,
        marked: Option<&Marked<'_, M>>,
        taken: &TakenSlots<M>,
    ) -> Result<(), Error> {
        let medium = &self.inner.medium;
        let shapes = Shapes::new(&self.inner.types);
        for chunk in data_chunks(medium.len()) {
            for run in self.inner.allocator.runs_of(medium, chunk)? {
                if run.used > 0 && !self.inner.allocator.is_closed(medium, run.frame)? {
                    self.sweep_run(healer, &shapes, marked, taken, &run);
                }
            }
        }
        Ok(())
    }

    fn sweep_run(
        &self,
        healer: &mut Healer<'_, M>,
        shapes: &Shapes,
        marked: Option<&Marked<'_, M>>,
        taken: &TakenSlots<M>,
        run: &Run,
    ) {
        let medium = &self.inner.medium;
        // Slots in use are read before the slots taken since: see `TakenSlots`.
        let used = self.inner.allocator.used_slots(medium, run);
        let may_refer = marked.map(|marked| marked.may_refer(run.frame));
        let slot_bytes = match run.class() {
            Some(class) => class.slot_bytes(),
            None => run.what.frames() * FRAME_BYTES,
        };
        for word in 0..BITMAP_WORDS {
            let mut bits = used[word as usize] & !taken.of(run.frame, word);
            if let Some(may_refer) = &may_refer {
                bits &= may_refer(word);
            }
            while bits != 0 {
                let slot = word * 64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                medium.work(work::SWEPT);
                let at = run.frame.start() + slot * slot_bytes;
                let header = ObjectHeader(medium.load_u64(at));
                let Some(requested) = requested_bytes(header, slot_bytes) else {
                    continue;
                };
                // A damaged object has no references that could be followed.
                let _ = shapes.references(medium, at, header, requested, |range| {
                    if range.what == Refers::InPairs {
                        return;
                    }
                    for i in 0..range.count {
                        healer.heal(range.first + i * WORD_BYTES);
                    }
                });
            }
        }
    }
}

/// Lines that are written back together: every healed reference is a locked instruction, which waits for an earlier
/// write-back as a fence does.
const BATCH: usize = 4096;

/// References that are looked up together, so that their cache misses overlap.
const AHEAD: usize = 16;

/// Heals fields in batches and writes them back.
struct Healer<'a, M: Medium> {
    medium: &'a M,
    cycle: &'a Cycle<M>,
    /// Fields that name a frame of the cycle, with the words that were read there.
    waiting: Vec<(VirtAddr, RefWord)>,
    /// Lines to write back.
    lines: Vec<VirtAddr>,
}

impl<'a, M: Medium> Healer<'a, M> {
    fn new(medium: &'a M, cycle: &'a Cycle<M>) -> Self {
        Self {
            medium,
            cycle,
            waiting: Vec::with_capacity(AHEAD),
            lines: Vec::with_capacity(BATCH),
        }
    }

    #[inline]
    fn heal(&mut self, field: VirtAddr) {
        let word = RefWord(self.medium.load_u64(field));
        if word.is_null() || !self.cycle.concerns(self.medium, word.address()) {
            return;
        }
        self.waiting.push((field, word));
        if self.waiting.len() == AHEAD {
            self.heal_waiting();
        }
    }

    fn heal_waiting(&mut self) {
        let words = self.waiting.iter().map(|(_, word)| word.address());
        self.cycle.look_ahead(words);
        let mut waiting = core::mem::take(&mut self.waiting);
        for (field, word) in waiting.drain(..) {
            self.replace(field, word);
        }
        self.waiting = waiting;
    }

    /// T3, T4c: replaces only the old reference; writes the field back in either case.
    fn replace(&mut self, field: VirtAddr, word: RefWord) {
        let Some(unit) = self.cycle.find(self.medium, word.address()) else {
            return;
        };
        let is_old = unit.to != word.address();
        let swapped = is_old && heal(self.medium, field, word, unit);
        if !swapped && self.medium.leaves_out(&steps::HEALED_BY_OTHERS_WRITE_BACK) {
            return;
        }
        let line = field.line_start();
        if self.lines.last() != Some(&line) {
            if self.lines.len() == BATCH {
                self.write_back();
            }
            self.lines.push(line);
        }
    }

    fn write_back(&mut self) {
        for line in self.lines.drain(..) {
            self.medium
                .write_back_for(&steps::HEALED_WRITE_BACK, line, LINE_BYTES);
        }
    }
}

impl<M: Medium> Drop for Healer<'_, M> {
    fn drop(&mut self) {
        self.heal_waiting();
        self.write_back();
    }
}
