//! One thread's operations, with their setup and cleanup.
//!
//! A block of operations has three parts: [`Rig::before`] sets up what they need, [`Rig::run`] is the operations and
//! nothing else, [`Rig::after`] removes what they left.

use super::library::{Object, Pool, Slots};
use super::region::Region;
use super::{Failure, Kind};

/// Bytes of a pool file: several times what all rigs of two threads hold.
pub const POOL_BYTES: usize = 128 << 20;
/// Ranges of a thread, which its snapshots use in turn: few enough to stay in the cache.
const PLACES: usize = 64;
/// Bytes from one range to the next: two lines, so that the library never merges two ranges.
const STRIDE_BYTES: usize = 128;
const WORD_BYTES: usize = 8;
/// Bytes of objects that may be allocated and not freed between `before` and `after`.
const MOST_LIVE_BYTES: usize = 4 << 20;
/// Objects of a block, where bytes do not limit it further.
const MOST_LIVE_OBJECTS: usize = 1024;
/// Operations of a block that leaves nothing behind.
const LONG_BLOCK: u64 = 1 << 16;

/// The state for one thread to run one kind of operation.
pub struct Rig<'p> {
    pool: &'p Pool<'p>,
    kind: Kind,
    ranges: Region<'p>,
    slots: Slots<'p>,
    linked: Option<Object<'p>>,
    left: Vec<Object<'p>>,
    turn: usize,
    next_slot: usize,
}

impl<'p> Rig<'p> {
    /// Makes the ranges of a thread, line-aligned and apart from any other thread's.
    pub fn new(pool: &'p Pool<'p>, kind: Kind) -> Result<Self, Failure> {
        Ok(Self {
            pool,
            kind,
            ranges: Region::new(pool, PLACES * STRIDE_BYTES)?,
            slots: Slots::new(pool, MOST_LIVE_OBJECTS)?,
            linked: None,
            left: Vec::with_capacity(MOST_LIVE_OBJECTS),
            turn: 0,
            next_slot: 0,
        })
    }

    /// Maximum number of operations between `before` and `after`.
    pub fn block(&self) -> u64 {
        match self.kind {
            Kind::TxEmpty | Kind::TxSnapshot { .. } | Kind::TxAllocLink { .. } => LONG_BLOCK,
            Kind::TxAllocSnapshot { bytes } | Kind::Alloc { bytes } | Kind::Free { bytes } => {
                (MOST_LIVE_BYTES / bytes).min(MOST_LIVE_OBJECTS) as u64
            }
        }
    }

    /// Sets up what `count` operations need.
    pub fn before(&mut self, count: u64) -> Result<(), Failure> {
        self.next_slot = 0;
        if let Kind::Free { bytes } = self.kind {
            for slot in 0..count as usize {
                self.slots.alloc(slot, bytes)?;
            }
        }
        Ok(())
    }

    /// Runs `count` operations.
    pub fn run(&mut self, count: u64) -> Result<(), Failure> {
        match self.kind {
            Kind::TxEmpty => repeat(count, || self.pool.transaction(|_| Ok(()))),
            Kind::TxSnapshot { bytes, ranges } => repeat(count, || self.snapshot(bytes, ranges)),
            Kind::TxAllocLink { bytes } => repeat(count, || self.alloc_link(bytes)),
            Kind::TxAllocSnapshot { bytes } => repeat(count, || self.alloc_snapshot(bytes)),
            Kind::Alloc { bytes } => repeat(count, || {
                self.next_slot += 1;
                self.slots.alloc(self.next_slot - 1, bytes)
            }),
            Kind::Free { .. } => repeat(count, || {
                self.next_slot += 1;
                self.slots.free(self.next_slot - 1);
                Ok(())
            }),
        }
    }

    /// Removes what `count` operations left.
    pub fn after(&mut self, count: u64) -> Result<(), Failure> {
        if let Kind::Alloc { .. } = self.kind {
            for slot in 0..count as usize {
                self.slots.free(slot);
            }
        }
        while let Some(object) = self.left.pop() {
            self.pool.free(object)?;
        }
        Ok(())
    }

    /// The byte in `ranges` where the next range starts.
    fn place(&mut self) -> usize {
        self.turn = self.turn.wrapping_add(1);
        self.turn % PLACES * STRIDE_BYTES
    }

    fn snapshot(&mut self, bytes: usize, ranges: usize) -> Result<(), Failure> {
        self.pool.transaction(|transaction| {
            for _ in 0..ranges {
                let at = self.place();
                transaction.snapshot(&self.ranges, at, bytes)?;
                for word in 0..bytes / WORD_BYTES {
                    self.ranges.store(at + word * WORD_BYTES, self.turn as u64);
                }
            }
            Ok(())
        })
    }

    fn alloc_link(&mut self, bytes: usize) -> Result<(), Failure> {
        let old = self.linked.take();
        let new = self.pool.transaction(|transaction| {
            let mut new = transaction.alloc(bytes)?;
            new.fill(self.turn as u8);
            transaction.snapshot(&self.ranges, 0, WORD_BYTES)?;
            self.ranges.store(0, new.offset());
            if let Some(old) = old {
                transaction.free(old)?;
            }
            Ok(new)
        })?;
        self.turn = self.turn.wrapping_add(1);
        self.linked = Some(new);
        Ok(())
    }

    fn alloc_snapshot(&mut self, bytes: usize) -> Result<(), Failure> {
        let at = self.place();
        let new = self.pool.transaction(|transaction| {
            let mut new = transaction.alloc(bytes)?;
            new.fill(self.turn as u8);
            transaction.snapshot(&self.ranges, at, WORD_BYTES)?;
            self.ranges.store(at, new.offset());
            Ok(new)
        })?;
        self.left.push(new);
        Ok(())
    }
}

impl Drop for Rig<'_> {
    fn drop(&mut self) {
        if let Some(object) = self.linked.take() {
            // A poisoned pool refuses; its file is already unlinked.
            let _ = self.pool.free(object);
        }
    }
}

#[inline(always)]
fn repeat(count: u64, mut operation: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    for _ in 0..count {
        operation()?;
    }
    Ok(())
}
