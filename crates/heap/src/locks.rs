//! Structures' locks: one writer, many readers, in a volatile table.
//!
//! A structure has an id, stored in its root object, that survives moves and reopening; the id picks
//! a lock. Two structures may share one, so a transaction that holds a lock may ask for it again.
//! Deadlock cannot happen: a transaction waits only for locks of a higher index than all it holds,
//! and otherwise tries once and starts over.

use firn_media::{Medium, RwLockTable};

use crate::error::Error;
use crate::pool::Inner;

/// Pauses for which a transaction that holds locks waits for another. Guards know no order of
/// locks, so one that holds this lock may wait for what the transaction holds.
const PATIENCE: u32 = 200;
/// Locks of a pool.
pub(crate) const LOCKS: usize = 256;

#[inline]
pub(crate) fn index_of(id: u64) -> usize {
    (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % LOCKS
}

/// A structure's lock, held for reading until this is dropped. In a transaction the transaction
/// holds it, to its end.
pub struct ReadLock<'g, M: Medium> {
    held: Option<(&'g RwLockTable<M>, usize)>,
}

impl<'g, M: Medium> ReadLock<'g, M> {
    pub(crate) fn take(inner: &'g Inner<M>, id: u64) -> Self {
        let index = index_of(id);
        inner.locks.read(&inner.medium, index);
        Self {
            held: Some((&inner.locks, index)),
        }
    }

    pub(crate) const fn held_by_transaction() -> Self {
        Self { held: None }
    }
}

impl<M: Medium> Drop for ReadLock<'_, M> {
    fn drop(&mut self) {
        if let Some((table, index)) = self.held {
            table.unlock_read(index);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// Locks that a transaction holds.
#[derive(Default)]
pub(crate) struct LockSet {
    held: Vec<(usize, Mode)>,
    /// A lock that others read too when it was asked for to write. Started over, the transaction takes
    /// it to write from the first: two that read before they write would refuse each other for ever.
    refused: Option<usize>,
}

impl LockSet {
    /// Takes a lock, or finds that it is held.
    pub(crate) fn take<M: Medium>(
        &mut self,
        inner: &Inner<M>,
        id: u64,
        mode: Mode,
    ) -> Result<(), Error> {
        let index = index_of(id);
        let mode = match self.refused {
            Some(refused) if refused == index => Mode::Write,
            _ => mode,
        };
        if let Some((_, held)) = self.held.iter_mut().find(|(i, _)| *i == index) {
            if *held == Mode::Read && mode == Mode::Write {
                if !inner.locks.try_upgrade(index) {
                    self.refused = Some(index);
                    return Err(Error::Conflict);
                }
                *held = Mode::Write;
            }
            return Ok(());
        }
        let (locks, medium) = (&inner.locks, &inner.medium);
        let first = self.held.is_empty();
        let in_order = self.held.iter().all(|(i, _)| *i < index);
        let taken = match (mode, in_order) {
            (Mode::Read, _) if first => {
                locks.read(medium, index);
                true
            }
            (Mode::Write, _) if first => {
                locks.write(medium, index);
                true
            }
            (Mode::Read, true) => locks.read_within(medium, index, PATIENCE),
            (Mode::Write, true) => locks.write_within(medium, index, PATIENCE),
            (Mode::Read, false) => locks.try_read(index),
            (Mode::Write, false) => locks.try_write(index),
        };
        if !taken {
            return Err(Error::Conflict);
        }
        self.held.push((index, mode));
        Ok(())
    }

    /// Gives every lock back at the end of a transaction that was committed.
    pub(crate) fn end<M: Medium>(&mut self, inner: &Inner<M>) {
        self.release(inner);
        self.refused = None;
    }

    /// Gives every lock back.
    pub(crate) fn release<M: Medium>(&mut self, inner: &Inner<M>) {
        for (index, mode) in self.held.drain(..) {
            match mode {
                Mode::Read => inner.locks.unlock_read(index),
                Mode::Write => inner.locks.unlock_write(index),
            }
        }
    }
}
