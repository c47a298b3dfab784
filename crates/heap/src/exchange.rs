//! Fields that change outside transactions: compare-exchange, and persist.

use firn_format::header::HEADER_BYTES;
use firn_format::superblock::LogKind;
use firn_media::{Medium, MediumExt, Ticket};
use firn_units::{VirtAddr, WORD_BYTES};

use crate::alloc::locate;
use crate::error::Error;
use crate::object::Obj;
use crate::relocation::cycle::{Cycle, Unit};
use crate::steps;
use crate::tx::redo::Ring;
use crate::value::{Field, Plain, Sink, Source};
use crate::view::{Reading, View};

/// A field's only word, without its object.
struct OneWord(u64);

impl OneWord {
    fn of<F: Plain>(value: F) -> u64 {
        let mut word = Self(0);
        value.encode(&mut word, 0);
        word.0
    }
}

impl Sink for OneWord {
    #[inline(always)]
    fn put(&mut self, _at: u32, word: u64, mask: u64) {
        self.0 = self.0 & !mask | word & mask;
    }
}

impl Source for OneWord {
    #[inline(always)]
    fn word(&self, _at: u32) -> u64 {
        self.0
    }
}

/// Changes outside transactions, of fields that fill a word: counters, stamps, flags. Shorter fields share their word
/// with others, which a transaction would store along with them. References change only in transactions, where the
/// collector sees the change.
impl<'g, T, M: Medium> Obj<'g, T, Reading<'g, M>> {
    /// Stores `new` if the field holds `current`, bit for bit, in one locked instruction. In both cases the inner
    /// result is the field's former value.
    ///
    /// Errors: the pool is read only; there is no such object, in a damaged pool.
    /// Crash: others see the new value at once; media may have it or not until [`Obj::persist`] returns. So persist the
    /// field before anything durable follows from it.
    /// Concurrency: hold the lock of the structure for reading ([`View::lock_shared`]) if its writers take that lock to
    /// free objects or to store this field. A transaction that stores the field without the lock overwrites all
    /// exchanges since it began.
    #[inline]
    pub fn compare_exchange<F: Plain>(
        self,
        field: Field<T, F>,
        current: F,
        new: F,
    ) -> Result<Result<F, F>, Error> {
        let at = self.word_of(field)?;
        self.settle_alone(at);
        let (current, new) = (OneWord::of(current), OneWord::of(new));
        let decode = |word| F::decode(&OneWord(word), 0);
        let medium = self.view().medium();
        Ok(medium
            .compare_exchange_u64(at, current, new)
            .map(decode)
            .map_err(decode))
    }

    /// Makes the field's current or a later value durable, whichever thread exchanged it.
    ///
    /// One fence while no transaction has committed since the last call in this pool; two more otherwise, because log
    /// entries that name the field must be retired first.
    ///
    /// Errors: the pool is read only; there is no such object, in a damaged pool.
    /// Crash: once the ticket is durable neither the crash nor recovery undoes the value. It is on return, except on
    /// media that gather commits: wait for it there when the operation is over ([`firn_media::Memory::wait_durable`]).
    /// Concurrency: waits for commits in flight, which wait for no one.
    pub fn persist<F: Plain>(self, field: Field<T, F>) -> Result<Ticket, Error> {
        let at = self.word_of(field)?;
        let inner = self.view().inner();
        let medium = &inner.medium;
        // Rule 9: exchanges before the object was copied count only if the copy does.
        self.settle_alone(at);
        // Every transaction that stored the field in place, including its allocation, took its LSN before.
        let bound = inner.redo.counter();
        medium.write_back_for(&steps::FIELD_WRITE_BACK, at, WORD_BYTES);
        if let Some((cycle, unit)) = self.moved_unit(at) {
            // Rule 9: the field counts if the settled word does.
            let at = cycle.settled_at(unit.index);
            medium.write_back_for(&steps::FIELD_SETTLED_WRITE_BACK, at, WORD_BYTES);
        }
        medium.fence_for(&steps::FIELD_FENCE);
        if inner.log == LogKind::Redo && medium.keeps(&steps::FIELD_ENTRIES_RETIRED) {
            // R13: recovery would otherwise store the values of entries below the bound again.
            inner.redo.retire_below(medium, &mut Ring::default(), bound);
        }
        Ok(medium.commit())
    }

    /// Rule 9: before a change without a log, the copy of a moved object is made durable, then counts.
    #[inline]
    fn settle_alone(self, at: VirtAddr) {
        let Some((cycle, unit)) = self.moved_unit(at) else {
            return;
        };
        let medium = self.view().medium();
        if cycle.before_change(medium, unit) && medium.keeps(&steps::FIELD_SETTLED) {
            medium.fence_for(&steps::FIELD_COPY_FENCE);
            cycle.settle(medium, unit.index);
        }
    }

    #[inline]
    fn moved_unit(self, at: VirtAddr) -> Option<(&'g Cycle<M>, Unit)> {
        let cycle = self.view().cycle()?;
        Some((cycle, cycle.covering(at)?))
    }

    /// The address of the field. The field fills a word of an object: a damaged reference may have led to anything.
    #[inline]
    fn word_of<F: Plain>(self, field: Field<T, F>) -> Result<VirtAddr, Error> {
        const {
            assert!(
                F::SIZE as u64 == WORD_BYTES && F::ALIGN as u64 == WORD_BYTES,
                "only a field that fills a word is exchanged or persisted by itself"
            );
        }
        if !self.view().inner().writable {
            return Err(Error::ReadOnly);
        }
        self.view().inner().check_usable()?;
        let slot = locate(self.view().medium(), self.address())?;
        let offset = HEADER_BYTES + u64::from(field.offset());
        if offset + WORD_BYTES > slot.bytes {
            return Err(Error::Damaged {
                what: "a reference to an object of another type",
                at: slot.at.0,
            });
        }
        Ok(slot.at + offset)
    }
}
