//! Operations of programs that read and store in place, through raw addresses, and their transactions, which use the
//! log in [`super::undo`].

use core::cell::RefCell;
use core::marker::PhantomData;

use firn_format::geometry::{Frame, ROOTS};
use firn_format::header::{HEADER_BYTES, ObjectHeader, TypeId};
use firn_media::{Medium, MediumExt};
use firn_units::VirtAddr;

use super::frames::{settle_fresh_frames, write_back_frames};
use super::slots::{count_all, release_all, return_slot};
use crate::alloc::{Slot, end_of_slot};
use crate::error::Error;
use crate::inner::Inner;
use crate::locks::Mode;
use crate::object::requested_bytes;
use crate::operation::{Core, State};
use crate::steps;
use crate::tx::changes::Change;
use crate::tx::raw_changes::Open;
use crate::tx::raw_guard::{RawGuard, is_allocated_on_media};
use crate::view::Reading;

/// An undo transaction that stays open until it is ended. Dropping it rolls it back.
pub struct OpenRawTx<'s, M: Medium> {
    /// `None` once it has ended.
    pub(super) guard: Option<RawGuard<'s, M>>,
}

/// An open undo transaction.
pub struct RawTx<'t, M: Medium> {
    pub(super) guard: &'t RawGuard<'t, M>,
    /// Two transactions never have one lifetime.
    only: PhantomData<fn(&'t ()) -> &'t ()>,
}

impl<M: Medium> Clone for RawTx<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Medium> Copy for RawTx<'_, M> {}

impl<'t, M: Medium> RawTx<'t, M> {
    /// Reads objects as they are in place, this transaction's stores included.
    pub fn view(self) -> Reading<'t, M> {
        self.guard.view()
    }

    /// See [`RawGuard::resolve`].
    pub fn resolve(self, at: VirtAddr) -> VirtAddr {
        self.guard.resolve(at)
    }

    /// Logs the current content of the ranges, under one fence; from then on they may be stored to. Bytes that are
    /// logged already are not logged again.
    ///
    /// Errors: a range outside the pool's data; a range in an object that is elsewhere ([`RawGuard::resolve`]); a
    /// transaction too large, a full pool.
    pub fn log(self, ranges: &[(VirtAddr, u64)]) -> Result<(), Error> {
        let inner = self.inner();
        let mut open = self.open().borrow_mut();
        for &(at, len) in ranges {
            let (start, end) = match self.range(at, len) {
                Ok(range) => range,
                Err(error) => {
                    open.log.forget_news();
                    return Err(error);
                }
            };
            let Open {
                log, ranges: known, ..
            } = &mut *open;
            known.each_missing(start, end, |start, end| {
                log.save(&inner.medium, start, end);
            });
        }
        if open.log.has_news() {
            if inner.logs_allocation() {
                open.save_allocated_bits();
            }
            open.append(inner)?;
            for &(at, len) in ranges {
                open.ranges.insert(at.0, at.0 + len);
            }
        }
        Ok(())
    }

    /// The requested length of an object that the transaction has allocated.
    pub fn own_len(self, body: VirtAddr) -> Option<u64> {
        let at = VirtAddr(body.0.wrapping_sub(HEADER_BYTES));
        self.open()
            .borrow()
            .allocated
            .find(at)
            .map(|change| change.requested)
    }

    /// Notes a range whose stores cannot be rolled back: the commit makes it durable, and an abort leaves it as it is.
    ///
    /// Errors: a range outside the pool's data; a range in an object that is elsewhere.
    pub fn note(self, at: VirtAddr, len: u64) -> Result<(), Error> {
        let range = self.range(at, len)?;
        self.open().borrow_mut().ranges.insert(range.0, range.1);
        Ok(())
    }

    /// The beginning and end of a range.
    ///
    /// Errors: it is empty, or not in the pool's data; it lies in an object that is elsewhere; it extends behind its
    /// object while objects are moved.
    fn range(self, at: VirtAddr, len: u64) -> Result<(u64, u64), Error> {
        let medium = &self.inner().medium;
        let bad = Error::BadRange { at: at.0, len };
        let Some(end) = at.0.checked_add(len) else {
            return Err(bad);
        };
        if at.0 < ROOTS.0 || end > medium.len() || len == 0 {
            return Err(bad);
        }
        // Other objects may lie behind it that are moved meanwhile: a rollback would store over their copies.
        let moves = self.guard.access.cycle.is_some() && Frame::holding(at).chunk().is_data();
        if moves && end_of_slot(medium, at).is_none_or(|last| end > last.0) {
            return Err(bad);
        }
        // Rule 9: bytes that recovery restores lie in a copy that counts.
        match self.resolve(at) == at {
            true => Ok((at.0, end)),
            false => Err(Error::NotAllocated { at: at.0 }),
        }
    }

    /// Stores `bytes` at `at`, in place, and no neighbouring byte.
    ///
    /// Errors: [`Error::NotLogged`] if the range was not logged before.
    pub fn store(self, at: VirtAddr, bytes: &[u8]) -> Result<(), Error> {
        let end = at.0.checked_add(bytes.len() as u64);
        let logged = end.is_some_and(|end| self.open().borrow().ranges.contains(at.0, end));
        if !logged {
            return Err(Error::NotLogged { at: at.0 });
        }
        self.inner().medium.store_exact(at, bytes);
        Ok(())
    }

    /// Allocates `len` bytes without a type and zeroes them. Returns the address of the body, which
    /// may be stored to without logging.
    ///
    /// Errors: the pool is full, the object too large.
    pub fn alloc(self, len: u64) -> Result<VirtAddr, Error> {
        self.alloc_of(TypeId::RAW, len)
    }

    /// Allocates an object of a registered type.
    ///
    /// Errors: as above.
    pub fn alloc_of(self, type_id: TypeId, len: u64) -> Result<VirtAddr, Error> {
        let slot = self.take_slot(type_id, len)?;
        let body = slot.at + HEADER_BYTES;
        self.inner().medium.zero(body, slot.bytes - HEADER_BYTES);
        Ok(body)
    }

    /// Allocates like [`RawTx::alloc_of`], but leaves the body uninitialized.
    pub(super) fn take_slot(self, type_id: TypeId, len: u64) -> Result<Slot, Error> {
        let inner = self.inner();
        let mut state = self.guard.access.core.state.borrow_mut();
        let bytes = HEADER_BYTES.saturating_add(len);
        let State { cache, ring, .. } = &mut *state;
        let slot = inner.take_slot(cache, ring, bytes)?;
        let header = ObjectHeader::new(type_id, slot.bytes - bytes);
        inner.medium.store_u64(slot.at, header.0);
        let mut open = self.open().borrow_mut();
        open.ranges.insert(slot.at.0, slot.at.0 + slot.bytes);
        open.allocated.push(Change {
            slot,
            type_id,
            requested: len,
        });
        Ok(slot)
    }

    /// The session of the operation.
    pub(super) fn core(self) -> &'t Core<M> {
        self.guard.access.core
    }

    /// Whether objects are being moved.
    pub(super) fn is_in_cycle(self) -> bool {
        self.guard.access.cycle.is_some()
    }

    /// Frees, at commit, the object whose body is at `body`.
    ///
    /// # Safety
    ///
    /// As [`crate::Tx::free`]: no reference to the object may remain when the transaction commits.
    ///
    /// Errors: nothing is allocated there.
    #[allow(
        unsafe_code,
        reason = "unsafe to call for what it asks of the caller; safe inside"
    )]
    pub unsafe fn free(self, body: VirtAddr) -> Result<(), Error> {
        self.free_at_commit(body)
    }

    /// Frees the object at commit. The caller guarantees that no reference to it remains then.
    pub(super) fn free_at_commit(self, body: VirtAddr) -> Result<(), Error> {
        let inner = self.inner();
        let at = VirtAddr(body.0.wrapping_sub(HEADER_BYTES));
        let slot = inner.allocator.locate(&inner.medium, at)?;
        let mut open = self.open().borrow_mut();
        let twice = open.freed.find(at).is_some();
        // The bits on media are exact in an explicit pool; objects of this transaction have none yet.
        let is_own = || open.allocated.find(at).is_some();
        let is_there = match inner.logs_allocation() {
            true => is_allocated_on_media(&inner.medium, slot.place) || is_own(),
            false => inner.allocator.is_allocated(&inner.medium, slot.place)?,
        };
        if twice || !is_there {
            return Err(Error::NotAllocated { at: at.0 });
        }
        let header = ObjectHeader(inner.medium.load_u64(at));
        let damaged = Error::Damaged {
            what: "the header of an object",
            at: at.0,
        };
        let requested = requested_bytes(header, slot.bytes).ok_or(damaged)?;
        open.freed.push(Change {
            slot,
            type_id: header.type_id(),
            requested,
        });
        Ok(())
    }

    /// Takes the lock of a structure for writing, to the transaction's end.
    ///
    /// Errors: [`Error::Conflict`] if waiting could deadlock; end the transaction, then try again. [`Error::OwnLock`] if
    /// another session of this thread holds it.
    pub fn lock_exclusive(self, id: u64) -> Result<(), Error> {
        let inner = self.inner();
        let mut open = self.open().borrow_mut();
        open.locks
            .take(&inner.medium, &inner.locks, id, Mode::Write)
    }

    /// Makes the object whose body is at `body` the root `name`, or removes the root.
    ///
    /// Errors: as [`crate::Tx::set_root`].
    pub fn set_root(self, name: &str, body: Option<VirtAddr>) -> Result<(), Error> {
        crate::roots::set_raw(self, name, body)
    }

    /// Takes the root table, to change it.
    pub(crate) fn lock_roots(self) -> Result<(), Error> {
        let inner = self.inner();
        let mut open = self.open().borrow_mut();
        open.locks
            .take_roots(&inner.medium, &inner.locks, Mode::Write)
    }

    /// Notes a store to a place of the root table, whose lock is held: other threads wait for the final content.
    pub(crate) fn change_root(self, place: usize) {
        let inner = self.inner();
        let mut open = self.open().borrow_mut();
        if !open.own_roots().has(place) {
            let storing = inner.locks.roots.begin(&inner.medium, place);
            open.roots.push(storing);
        }
    }

    pub(crate) fn inner(self) -> &'t Inner<M> {
        self.guard.access.inner
    }

    fn open(self) -> &'t RefCell<Open> {
        &self.guard.access.core.open
    }

    fn lane(self) -> usize {
        self.guard.access.core.lane
    }

    /// Logs, then flips, the allocation bits of an explicit pool.
    fn commit_bits(self) -> Result<(), Error> {
        let inner = self.inner();
        let mut open = self.open().borrow_mut();
        if open.allocated.changes.is_empty() && open.freed.changes.is_empty()
            || !inner.logs_allocation()
        {
            return Ok(());
        }
        // The log records how to undo it.
        open.save_allocated_bits();
        let Open { log, freed, .. } = &mut *open;
        log.save_bits(&freed.changes, true);
        if log.has_news() {
            open.append(inner)?;
        }
        let allocated = open.allocated.changes.iter().map(|c| (c, true));
        let freed = open.freed.changes.iter().map(|c| (c, false));
        for (change, allocate) in allocated.chain(freed) {
            let (at, bit) = (
                change.slot.place.bitmap_word_at(),
                change.slot.place.bit().1,
            );
            let (set, clear) = if allocate { (bit, 0) } else { (0, bit) };
            inner.medium.update_bits(at, set, clear);
            inner
                .medium
                .write_back_for(&steps::UNDO_BITS_WRITE_BACK, at, 8);
        }
        Ok(())
    }

    fn roll_back(self) {
        let inner = self.inner();
        if !inner.medium.is_ours() {
            // A forked child restores nothing: the log and the objects that it names are its parent's.
            let mut open = self.open().borrow_mut();
            open.locks.release(&inner.locks);
            return open.clear();
        }
        let open = self.open().borrow();
        open.log.restore(&inner.medium);
        settle_fresh_frames(
            &inner.medium,
            &mut self.guard.access.core.state.borrow_mut().cache,
        );
        inner.medium.fence_for(&steps::UNDO_ABORT_FENCE);
        open.log.invalidate(&inner.medium, self.lane());
        for change in &open.allocated.changes {
            return_slot(inner, change.slot);
        }
        drop(open);
        self.give_back();
    }

    /// Gives back its locks and its log's space, and leaves its buffers to the session's next transaction.
    fn give_back(self) {
        let inner = self.inner();
        let mut open = self.open().borrow_mut();
        for root in core::mem::take(&mut open.roots) {
            inner.locks.roots.end(&inner.medium, &root);
        }
        // No one runs it again.
        open.locks.end(&inner.locks);
        open.log.give_space_back(inner);
        open.clear();
    }
}

impl<'s, M: Medium> OpenRawTx<'s, M> {
    /// The transaction, for the work inside it.
    pub fn tx(&self) -> RawTx<'_, M> {
        RawTx {
            guard: self.guard(),
            only: PhantomData,
        }
    }

    /// The operation that contains the transaction.
    pub fn guard(&self) -> &RawGuard<'s, M> {
        self.guard.as_ref().expect("it has not ended")
    }

    /// Commits, and continues the operation. Durable on return.
    ///
    /// Errors: its allocations and frees cannot be logged; it is rolled back, and the operation has ended.
    pub fn commit(mut self) -> Result<RawGuard<'s, M>, Error> {
        let tx = self.tx();
        let inner = tx.inner();
        inner.check_usable()?;
        let mut state = tx.guard.access.core.state.borrow_mut();
        let count_allocated = |state: &mut State, sign| {
            let open = tx.open().borrow();
            count_all(inner, &mut state.tally, &open.allocated.changes, sign);
        };
        // Before the fences: the count is a locked instruction, which would wait for the last of them; the program's
        // next work need not.
        count_allocated(&mut state, 1);
        if let Err(error) = tx.commit_bits() {
            count_allocated(&mut state, -1);
            drop(state);
            return Err(error);
        }
        {
            let open = tx.open().borrow();
            if open.log.is_used() || !open.ranges.is_empty() {
                let fresh = core::mem::take(&mut state.cache.fresh);
                let medium = &inner.medium;
                if medium.keeps(&steps::UNDO_FRAMES_WRITE_BACK) {
                    write_back_frames(medium, &fresh);
                }
                for (start, end) in open.ranges.iter() {
                    let (at, len) = (VirtAddr(start), end - start);
                    medium.write_back_for(&steps::UNDO_CONTENTS_WRITE_BACK, at, len);
                }
                medium.fence_for(&steps::UNDO_CONTENTS_FENCE);
                open.log.invalidate(medium, tx.lane());
            }
            count_all(inner, &mut state.tally, &open.freed.changes, -1);
            release_all(inner, &open.freed.changes);
            state.tally.committed(&inner.medium);
        }
        drop(state);
        tx.give_back();
        Ok(self.guard.take().expect("it has not ended"))
    }

    /// Restores the old content of the logged ranges, and continues the operation.
    pub fn roll_back(mut self) -> RawGuard<'s, M> {
        self.tx().roll_back();
        self.guard.take().expect("it has not ended")
    }
}

impl<M: Medium> Drop for OpenRawTx<'_, M> {
    fn drop(&mut self) {
        if self.guard.is_some() {
            self.tx().roll_back();
        }
    }
}
