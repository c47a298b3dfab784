//! Operations of programs that read and store in place, through raw addresses.

use core::cell::Ref;

use firn_format::header::{HEADER_BYTES, ObjectHeader, TypeId};
use firn_format::superblock::LogKind;
use firn_media::Medium;
use firn_units::VirtAddr;

use super::raw::{OpenRawTx, RawTx};
use crate::alloc::{Place, locate};
use crate::error::Error;
use crate::inner::Inner;
use crate::object::requested_bytes;
use crate::operation::{Access, Core};
use crate::relocation::retained::RetainedSnapshot;
use crate::session::Session;
use crate::view::Reading;
use crate::walk::next_allocated;

/// An operation of a program that reads and stores in place, through raw addresses. Addresses from
/// [`RawGuard::resolve`] are valid until it ends.
pub struct RawGuard<'s, M: Medium> {
    pub(super) access: Access<'s, M>,
    pub(super) kept: Ref<'s, RetainedSnapshot>,
}

impl<'s, M: Medium> RawGuard<'s, M> {
    #[inline]
    pub(super) fn enter(core: &'s Core<M>) -> Self {
        let access = Access::enter(core);
        let inner = &core.inner;
        let known = &core.kept;
        inner
            .collector
            .retained
            .refresh(&inner.medium, &mut known.borrow_mut());
        let kept = known.borrow();
        Self { access, kept }
    }

    pub(super) fn inner(&self) -> &'s Inner<M> {
        self.access.inner
    }

    /// Reads objects as they are in place.
    pub fn view(&self) -> Reading<'_, M> {
        Reading::new(&self.access)
    }

    /// Translates an address into a living object, obtained at any time since the pool was opened, to the byte's
    /// current address. The program may store there until the operation ends. Any other address is returned unchanged.
    ///
    /// Issues at most one fence, for the first store to an object that is being moved (rule 9: the heap does not see
    /// the store, so the copy must count before it). A store is durable after the thread's next fence, as always.
    pub fn resolve(&self, at: VirtAddr) -> VirtAddr {
        let at = self.kept.resolve(at);
        let medium = &self.access.inner.medium;
        match &self.access.cycle {
            Some(cycle) if let Some((unit, to)) = cycle.holding(at) => {
                cycle.relocate(medium, unit);
                cycle.settle_for_stores(medium, unit);
                to
            }
            _ => at,
        }
    }

    /// Translates an address as [`RawGuard::resolve`] does, but only for reads.
    pub fn resolve_to_read(&self, at: VirtAddr) -> VirtAddr {
        let at = self.kept.resolve(at);
        match &self.access.cycle {
            Some(cycle) if let Some((unit, to)) = cycle.holding(at) => {
                cycle.relocate(&self.access.inner.medium, unit);
                to
            }
            _ => at,
        }
    }

    /// The object whose body is at `body`, as returned by [`RawGuard::resolve`]: the number of its type, and its
    /// requested length in bytes. `None` if none is allocated there; allocations of the open transaction do not count
    /// yet.
    ///
    /// Errors: the object's header is damaged.
    pub fn object(&self, body: VirtAddr) -> Result<Option<(TypeId, u64)>, Error> {
        let medium = &self.access.inner.medium;
        let at = VirtAddr(body.0.wrapping_sub(HEADER_BYTES));
        match locate(medium, at) {
            Ok(slot) if is_allocated_on_media(medium, slot.place) => {
                let header = ObjectHeader(medium.load_u64(at));
                let damaged = Error::Damaged {
                    what: "the header of an object",
                    at: at.0,
                };
                let len = requested_bytes(header, slot.bytes).ok_or(damaged)?;
                Ok(Some((header.type_id(), len)))
            }
            Ok(_) | Err(Error::NotAllocated { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// In an explicit pool: the body of the next object by address, which begins behind `body`, whether or not an
    /// object is there. Takes time in proportion to the free space between. Allocations and frees of the open
    /// transaction do not count yet.
    ///
    /// Errors: the frame table is damaged.
    pub fn next_object(&self, body: VirtAddr) -> Result<Option<VirtAddr>, Error> {
        let medium = &self.access.inner.medium;
        let found = next_allocated(medium, self.access.cycle.as_deref(), body)?;
        Ok(found.map(|slot| self.resolve_to_read(slot.at + HEADER_BYTES)))
    }

    /// Begins a transaction within the operation; the program's addresses stay valid.
    ///
    /// Errors: the lane's log is damaged; the operation has ended then.
    pub fn begin(self) -> Result<OpenRawTx<'s, M>, Error> {
        let core = self.access.core;
        core.inner.check_usable()?;
        let mut open = core.open.borrow_mut();
        open.log.begin(&core.inner.medium, core.lane)?;
        Ok(OpenRawTx { guard: Some(self) })
    }
}

impl<M: Medium> Drop for RawGuard<'_, M> {
    fn drop(&mut self) {
        self.access.core.leave();
    }
}

impl<M: Medium> Session<M> {
    /// Runs an undo transaction: commits if `body` returns `Ok`, restores the old contents if it
    /// returns `Err` or panics. Durable on return; on a medium that gathers commits, as durable as its level says.
    ///
    /// Errors: the errors of `body`; the pool was not opened with an undo log; the device failed, see
    /// [`Session::transaction_at`].
    /// Crash: before the last fence the old contents are restored by recovery.
    pub fn raw_transaction<R, E, F>(&mut self, body: F) -> Result<R, E>
    where
        E: From<Error>,
        F: for<'t> FnOnce(RawTx<'t, M>) -> Result<R, E>,
    {
        self.wait_for_room()?;
        self.check_raw()?;
        let open = RawGuard::enter(&self.core).begin()?;
        let result = body(open.tx())?;
        drop(open.commit()?);
        self.wait_for_commits()?;
        Ok(result)
    }

    /// Begins an operation of a program that reads and stores in place.
    ///
    /// Errors: the pool is read only, or was not opened with an undo log.
    #[inline]
    pub fn raw_guard(&mut self) -> Result<RawGuard<'_, M>, Error> {
        self.check_raw()?;
        Ok(RawGuard::enter(&self.core))
    }

    /// Waits until the commits of this session have come as far as the pool's level says, on a medium that gathers
    /// commits. For transactions inside a [`RawGuard`], which wait for nothing: called when the guard is gone.
    ///
    /// Errors: the device failed, see [`Session::transaction_at`].
    pub fn wait_for_commits(&self) -> Result<(), Error> {
        let medium = &self.core.inner.medium;
        Ok(medium.wait_at(medium.commit(), medium.level())?)
    }

    fn check_raw(&self) -> Result<(), Error> {
        let inner = &self.core.inner;
        if !inner.writable {
            return Err(Error::ReadOnly);
        }
        inner.check_usable()?;
        if inner.log != LogKind::Undo {
            let (what, needs) = (
                "an undo transaction",
                "a pool that was opened with an undo log",
            );
            return Err(Error::WrongKind { what, needs });
        }
        Ok(())
    }
}

pub(super) fn is_allocated_on_media<M: Medium>(medium: &M, place: Place) -> bool {
    medium.load_u64(place.bitmap_word_at()) & place.bit().1 != 0
}
