//! References of programs that store in place: pairs of words, the pool's 64-bit id and the position of a byte of an
//! object. They lie anywhere in objects whose type says so.
//!
//! Pairs are healed while no operation is open, because the program stores to them with plain instructions, one word
//! after the other. The end of a cycle does not wait for that, because the cycle is retained: a pair that is not
//! healed, or is stored later, still leads to its object. So a sweep stops the world for a few runs at a time. Only
//! before retained cycles are dropped, one stop heals everything.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use firn_format::header::{HEADER_BYTES, ObjectHeader};
use firn_media::{Medium, MediumExt, Scope};
use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES};

use super::drained::Drained;
use crate::alloc::locate;
use crate::error::Error;
use crate::inner::Inner;
use crate::object::requested_bytes;
use crate::pool::Pool;
use crate::relocation::cycle::Cycle;
use crate::relocation::retained::Table;
use crate::shape::{Refers, Shapes};
use crate::steps;
use crate::walk::data_chunks;
use crate::walk::each_allocated_in;

impl<M: Medium> Pool<M> {
    /// Gives back the addresses that ended cycles retain, in a pool in which addresses stay: an explicit one that was
    /// opened with an undo log. Afterwards an address from before its object's move belongs to no object, or to another
    /// one: the caller promises that the program holds none outside the pool. Closing the pool does the same.
    ///
    /// Stops the world while every reference is healed: as long as it takes to read the pool.
    ///
    /// Errors: an operation stayed open, a collection is under way; the pool is read only or damaged.
    pub fn drop_forwarding(&self) -> Result<(), Error> {
        if !self.inner.writable {
            return Err(Error::ReadOnly);
        }
        let _only = self.inner.without_collector()?;
        self.inner.stopped(|| self.inner.drop_forwarding())?
    }

    /// Keeps the object whose body is at `body` at its address until the pool is closed. Objects beside it stay, too.
    ///
    /// Errors: nothing is allocated there.
    pub fn pin(&self, body: VirtAddr) -> Result<(), Error> {
        let inner = &*self.inner;
        let at = VirtAddr(body.0.wrapping_sub(HEADER_BYTES));
        let slot = locate(&inner.medium, at)?;
        inner
            .collector
            .pinned
            .lock(&inner.medium)
            .insert(slot.place.frame);
        if inner.keeps_addresses {
            let mut space = inner.allocator.space().lock(&inner.medium);
            space.reserve_pinned(slot.place.frame.chunk());
        }
        Ok(())
    }

    /// One mark for each 4 KiB of the pool, in a pool in which addresses stay: zero where [`crate::RawGuard::resolve`]
    /// returns every address unchanged. Marks change only while no operation is open, so a thread inside one may read
    /// them instead of calling.
    pub fn place_marks(&self) -> &[AtomicU8] {
        self.inner.collector.retained.marks()
    }

    /// Whether any of [`Pool::place_marks`] is not zero. The answer holds as long as an operation is open.
    pub fn has_place_marks(&self) -> bool {
        self.inner.collector.retained.has_marks()
    }

    /// The first word of each pair that is a reference to an object of this pool.
    pub fn pair_id(&self) -> u64 {
        self.inner.pair_id()
    }
}

impl<M: Medium> Inner<M> {
    pub(crate) fn pair_id(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.uuid;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

impl<M: Medium> Drained<'_, M> {
    /// Heals pairs that name sources of this cycle, whose objects have all moved, or of an older one.
    ///
    /// Errors: an operation stayed open; the frame table is damaged.
    pub(super) fn heal_pairs(&self) -> Result<(), Error> {
        let (medium, cycle) = (&self.inner.medium, &*self.cycle);
        let _scope = medium.scope(Scope::Finish);
        let shapes = Shapes::new(&self.inner.types);
        if !shapes.has_pairs() {
            return Ok(());
        }
        let kept = self.inner.collector.retained.table(medium);
        let healer = PairHealer {
            inner: self.inner,
            shapes,
            kept,
            cycle: Some(cycle),
        };
        for chunk in data_chunks(medium.len()) {
            self.inner.stop_for_cycle(|| {
                each_allocated_in(medium, chunk, Some(cycle), &mut |slot, header| {
                    healer.heal(slot.at, slot.bytes, header);
                })
            })??;
        }
        Ok(())
    }
}

/// Heals the pairs of objects and writes them back.
pub(super) struct PairHealer<'a, M: Medium> {
    inner: &'a Inner<M>,
    shapes: Shapes,
    kept: Arc<Table>,
    cycle: Option<&'a Cycle<M>>,
}

impl<'a, M: Medium> PairHealer<'a, M> {
    /// Heals pairs that name sources of ended cycles, while no cycle is open.
    pub(super) fn of_retained(inner: &'a Inner<M>, kept: Arc<Table>) -> Self {
        Self {
            inner,
            shapes: Shapes::new(&inner.types),
            kept,
            cycle: None,
        }
    }

    pub(super) fn heal(&self, at: VirtAddr, slot_bytes: u64, header: ObjectHeader) {
        let medium = &self.inner.medium;
        let Some(requested) = requested_bytes(header, slot_bytes) else {
            return;
        };
        // A damaged object has no references that could be followed.
        let _ = self
            .shapes
            .references(medium, at, header, requested, |range| {
                if range.what == Refers::InPairs {
                    self.heal_range(range.first, range.count);
                }
            });
    }

    fn heal_range(&self, first: VirtAddr, words: u64) {
        let medium = &self.inner.medium;
        let id = self.inner.pair_id();
        let mut word = 0;
        while word + 1 < words {
            let position = first + (word + 1) * WORD_BYTES;
            if medium.load_u64(first + word * WORD_BYTES) != id {
                word += 1;
                continue;
            }
            let old = VirtAddr(medium.load_u64(position));
            let new = self.now(old);
            if new != old {
                medium.store_u64(position, new.0);
                medium.write_back_for(&steps::HEALED_WRITE_BACK, position.line_start(), LINE_BYTES);
            }
            word += 2;
        }
    }

    fn now(&self, at: VirtAddr) -> VirtAddr {
        let at = self.kept.resolve(at);
        let moved = self.cycle.and_then(|cycle| cycle.holding(at));
        moved.map_or(at, |(_, to)| to)
    }
}
