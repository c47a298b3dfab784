//! Typed transactions: stores are gathered, logged under one fence, then made in place.

mod bits;
pub(crate) mod changes;
mod commit;
pub(crate) mod entry;
mod frames;
pub(crate) mod gather;
mod homes;
mod open;
mod overflow;
mod perturbed;
mod ranges;
pub(crate) mod raw;
pub(crate) mod raw_changes;
pub(crate) mod raw_guard;
mod recorded;
pub(crate) mod records;
pub(crate) mod redo;
mod savepoint;
mod slots;
mod store;
pub(crate) mod undo;
mod write_set;

use core::cell::{Cell, RefMut};
use core::marker::PhantomData;

use firn_format::header::{HEADER_BYTES, ObjectHeader, TypeId};
use firn_format::reference::RefWord;
use firn_media::{Medium, MediumExt, Place as _};
use firn_units::{LINE_BYTES, VirtAddr, WORD_BYTES};

use crate::alloc::{LOGGED_OBJECT_BYTES, Slot};
use crate::error::Error;
use crate::inner::Inner;
use crate::locks::{LockSet, Locks, Mode, ReadLock};
use crate::object::{Obj, requested_bytes};
use crate::operation::Access;
use crate::operation::State;
use crate::relocation::cycle::Cycle;
use crate::roots::{self, RootKey, Slots};
use crate::stored::{Bytes, Raw, Refs, Stored, Target};
use crate::view::View;
use crate::{stat_shard, steps, work};
use changes::Change;
pub use open::OpenTransaction;
pub(crate) use open::run;
pub use savepoint::Savepoint;
pub(crate) use store::Body;
pub(crate) use write_set::StoredLines;

/// At most this many leading bytes of a store are prefetched.
const EXPECTED_BYTES: u64 = 512;

/// A transaction, passed to its closure. Copy it freely; nothing read through it outlives it.
pub struct Tx<'t, M: Medium> {
    access: &'t Access<'t, M>,
    /// Makes the lifetime invariant, so that no two transactions share one, and a reference that was read in one cannot
    /// be stored in the other.
    only_this: PhantomData<fn(&'t ()) -> &'t ()>,
}

impl<M: Medium> Clone for Tx<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Medium> Copy for Tx<'_, M> {}

impl<'t, M: Medium> View<'t> for Tx<'t, M> {
    type Medium = M;

    #[inline(always)]
    fn inner(self) -> &'t Inner<M> {
        self.access.inner
    }

    #[inline(always)]
    fn cycle(self) -> Option<&'t Cycle<M>> {
        self.access.cycle.as_deref()
    }

    #[inline(always)]
    fn load_word(self, place: M::Place<'t>, byte: u32) -> u64 {
        self.medium().work(work::LOADED_WORD);
        let stored = &self.access.core.stored;
        if !stored.is_empty() {
            let at = self.medium().address(place) + u64::from(byte);
            if stored.may_hold(at)
                && let Some(word) = self.own_word(at)
            {
                return word;
            }
        }
        place.load_u64(byte)
    }

    #[inline(always)]
    fn reads_in_place(self) -> bool {
        self.access.core.stored.is_empty()
    }

    fn load_range(self, at: VirtAddr, into: &mut [u8]) {
        self.access.core.inner.medium.load_bytes(at, into);
        let stored = &self.access.core.stored;
        if stored.is_empty() {
            return;
        }
        let end = at.0 + into.len() as u64;
        for line in (at.line_start().0..end).step_by(LINE_BYTES as usize) {
            if stored.may_hold(VirtAddr(line)) {
                self.load_own(VirtAddr(line), at, into);
            }
        }
    }

    fn lock_shared(self, id: u64) -> Result<ReadLock<'t, M>, Error> {
        self.locking(|held, medium, locks| held.take(medium, locks, id, Mode::Read))?;
        Ok(ReadLock::held_by_transaction())
    }

    #[inline]
    fn own_roots(self) -> Slots {
        match self.reads_in_place() {
            true => Slots::default(),
            false => self.state().changes.roots,
        }
    }

    #[inline]
    fn stores_roots(self) -> bool {
        !self.reads_in_place() && !self.state().changes.roots.is_empty()
    }

    #[inline]
    fn hold_root(self, place: usize) -> Result<(), Error> {
        self.locking(|held, medium, locks| held.hold_root(medium, locks, place))
    }

    fn hold_names(self) -> Result<bool, Error> {
        self.locking(LockSet::hold_names)
    }
}

impl<'t, M: Medium> Tx<'t, M> {
    /// See [`Core::newest`].
    pub(crate) fn newest(self) -> &'t Cell<u64> {
        &self.access.core.newest
    }

    fn state(&self) -> RefMut<'t, State> {
        self.access.core.state.borrow_mut()
    }

    /// Does something with the locks that the transaction holds.
    #[inline]
    fn locking<R>(self, body: impl FnOnce(&mut LockSet, &M, &Locks<M>) -> R) -> R {
        let inner = self.inner();
        let held = &mut self.state().changes.locks;
        body(held, &inner.medium, &inner.locks)
    }

    /// Copies the transaction's stores to a line over the bytes loaded from `at`.
    #[inline(never)]
    fn load_own(self, line: VirtAddr, at: VirtAddr, into: &mut [u8]) {
        let state = self.access.core.state.borrow();
        for word_at in (line.0..line.0 + LINE_BYTES).step_by(WORD_BYTES as usize) {
            let Some(word) = state.changes.writes.word(VirtAddr(word_at)) else {
                continue;
            };
            for (i, byte) in word.to_le_bytes().into_iter().enumerate() {
                let place = (word_at + i as u64).checked_sub(at.0).map(|p| p as usize);
                if let Some(target) = place.and_then(|p| into.get_mut(p)) {
                    *target = byte;
                }
            }
        }
    }

    /// The word that the transaction stored there. Not inlined: most reads, such as those on the way down a search, do
    /// not need it.
    #[cold]
    #[inline(never)]
    fn own_word(self, at: VirtAddr) -> Option<u64> {
        self.medium().work(work::OWN_WORD);
        self.access.core.state.borrow().changes.writes.word(at)
    }

    #[inline]
    pub(crate) fn store_word(self, at: VirtAddr, word: u64) {
        self.medium().work(work::STORED_WORD);
        self.access.core.stored.note_word(at);
        self.medium().prefetch(at);
        self.state().changes.writes.store(at, word);
    }

    /// Notes stores, and prefetches their lines, which commit stores to. They need not have been read before; they
    /// arrive while the log is written.
    #[inline]
    fn note_stores(self, at: VirtAddr, bytes: u64) {
        self.access.core.stored.note(at, bytes);
        let end = at.0 + bytes.min(EXPECTED_BYTES);
        let mut line = at.line_start();
        while line.0 < end {
            self.medium().prefetch(line);
            line = line + LINE_BYTES;
        }
    }

    /// Stores a reference. While marking goes on, commit remembers the reference that it replaces (rule M2).
    #[inline]
    pub(crate) fn store_reference(self, at: VirtAddr, word: RefWord) {
        if self.access.core.inner.collector.is_marking() {
            self.state().changes.linked.push(at);
        }
        self.store_word(at, word.0);
    }

    /// Takes the lock of a structure for writing, to the transaction's end.
    ///
    /// Errors: [`Error::Conflict`] if waiting could deadlock; return it, and the transaction is run again.
    /// [`Error::OwnLock`] if another session of this thread holds it.
    pub fn lock_exclusive(self, id: u64) -> Result<(), Error> {
        self.locking(|held, medium, locks| held.take(medium, locks, id, Mode::Write))
    }

    /// Takes the root table, to change it.
    pub(crate) fn lock_roots(self) -> Result<(), Error> {
        self.locking(|held, medium, locks| held.take_roots(medium, locks, Mode::Write))
    }

    /// Notes a store to a place of the root table, whose lock is held.
    pub(crate) fn change_root(self, place: usize) -> Result<(), Error> {
        self.locking(|held, medium, locks| held.claim_root(medium, locks, place))?;
        self.state().changes.roots.insert(place);
        Ok(())
    }

    /// A new id for the lock of a structure; store it in the structure's root object.
    pub fn new_lock_id(self) -> u64 {
        self.access.core.inner.medium.random_u64()
    }

    /// Allocates an object and stores `value` in it.
    ///
    /// Errors: the pool is full; the type is stored with another layout or version.
    pub fn alloc<T: Stored>(self, value: T) -> Result<Obj<'t, T, Self>, Error> {
        let type_id = self.inner().types.type_id::<T, _>(self.medium())?;
        self.alloc_as(type_id, &value)
    }

    /// Allocates an object and stores the first `bytes` bytes of `value` in it. The bytes behind them are undefined
    /// until they are stored: room that is neither logged nor written back.
    ///
    /// Panics if a reference, which the collector would follow, may lie in that room.
    ///
    /// Errors: as [`Tx::alloc`].
    pub fn alloc_front<T: Stored>(self, value: T, bytes: u64) -> Result<Obj<'t, T, Self>, Error> {
        let end_of_references = const { T::DESCRIPTOR.end_of_references() };
        assert!(
            bytes >= u64::from(end_of_references),
            "a reference that is not stored"
        );
        let type_id = self.inner().types.type_id::<T, _>(self.medium())?;
        let size = u64::from(T::DESCRIPTOR.size);
        self.alloc_stored(type_id, size, bytes.min(size), |body| {
            value.encode(&mut Body(body));
        })
    }

    /// Allocates an object that holds a copy of `bytes`.
    ///
    /// Errors: the pool is full, the object too large.
    pub fn alloc_bytes(self, bytes: &[u8]) -> Result<Obj<'t, Bytes, Self>, Error> {
        if HEADER_BYTES + 8 + bytes.len() as u64 > LOGGED_OBJECT_BYTES {
            return self.alloc_bytes_at_home(bytes);
        }
        self.alloc_filled(TypeId::BYTES, 8 + bytes.len() as u64, |body| {
            body[0] = bytes.len() as u64;
            let room: &mut [u8] = bytemuck::cast_slice_mut(&mut body[1..]);
            room[..bytes.len()].copy_from_slice(bytes);
        })
    }

    /// Allocates an object that holds a copy of `bytes` and nothing else; its header says how long it is
    /// ([`Obj::checked_len`]). For a program that keeps many small ones, and knows from elsewhere what they hold.
    ///
    /// Errors: the pool is full, the object too large.
    pub fn alloc_raw(self, bytes: &[u8]) -> Result<Obj<'t, Raw, Self>, Error> {
        self.alloc_filled(TypeId::RAW, bytes.len() as u64, |body| {
            let room: &mut [u8] = bytemuck::cast_slice_mut(body);
            room[..bytes.len()].copy_from_slice(bytes);
        })
    }

    /// Allocates an array of `len` null references.
    ///
    /// Errors: the pool is full, the object too large; `T` is stored with another layout or version.
    pub fn alloc_refs<T: Target>(self, len: usize) -> Result<Obj<'t, Refs<T>, Self>, Error> {
        let type_id = self.inner().types.type_id::<Refs<T>, _>(self.medium())?;
        let bytes = (len as u64).saturating_add(1).saturating_mul(8);
        self.alloc_filled(type_id, bytes, |body| body[0] = len as u64)
    }

    /// A large array of bytes, stored at home without another copy.
    fn alloc_bytes_at_home(self, bytes: &[u8]) -> Result<Obj<'t, Bytes, Self>, Error> {
        let medium = self.medium();
        let len = bytes.len() as u64;
        let (slot, header) = self.take_for(TypeId::BYTES, 8 + len)?;
        medium.store_bytes(slot.at, bytemuck::cast_slice(&[header.0, len]));
        medium.store_bytes(slot.at + HEADER_BYTES + 8, bytes);
        medium.write_back_for(&steps::LARGE_WRITE_BACK, slot.at, HEADER_BYTES + 8 + len);
        self.state().changes.wrote_home = true;
        Ok(Obj::new(self, medium.place(slot.at)))
    }

    /// Takes a slot for an object of the transaction.
    fn take_for(self, type_id: TypeId, body_bytes: u64) -> Result<(Slot, ObjectHeader), Error> {
        let inner = &*self.access.core.inner;
        inner.medium.work(work::ALLOCATION);
        let mut state = self.state();
        let State {
            cache,
            changes,
            ring,
            ..
        } = &mut *state;
        let bytes = HEADER_BYTES.saturating_add(body_bytes);
        let slot = inner.take_slot(cache, ring, bytes)?;
        if bytes > LOGGED_OBJECT_BYTES && slot.place.class.is_some() {
            inner.await_older_homes(ring);
        }
        changes.allocated.push(Change {
            slot,
            type_id,
            requested: body_bytes,
        });
        Ok((slot, ObjectHeader::new(type_id, slot.bytes - bytes)))
    }

    /// Takes a slot, fills the body's words, and stores header and body.
    pub(crate) fn alloc_filled<T>(
        self,
        type_id: TypeId,
        body_bytes: u64,
        fill: impl FnOnce(&mut [u64]),
    ) -> Result<Obj<'t, T, Self>, Error> {
        self.alloc_stored(type_id, body_bytes, body_bytes, fill)
    }

    /// Allocates a body of which the first `stored_bytes` are stored.
    fn alloc_stored<T>(
        self,
        type_id: TypeId,
        body_bytes: u64,
        stored_bytes: u64,
        fill: impl FnOnce(&mut [u64]),
    ) -> Result<Obj<'t, T, Self>, Error> {
        let (slot, header) = self.take_for(type_id, body_bytes)?;
        let inner = &*self.access.core.inner;
        let mut state = self.state();
        let changes = &mut state.changes;
        let words = (body_bytes.div_ceil(8)) as usize;
        changes.scratch.clear();
        changes.scratch.resize(1 + words, 0);
        changes.scratch[0] = header.0;
        fill(&mut changes.scratch[1..]);
        if HEADER_BYTES + body_bytes <= LOGGED_OBJECT_BYTES {
            let stored = 1 + stored_bytes.div_ceil(8) as usize;
            self.note_stores(slot.at, stored as u64 * WORD_BYTES);
            changes
                .writes
                .store_words(slot.at, &changes.scratch[..stored]);
        } else {
            // A1 (b): at home, to which nothing refers yet; fenced before the entry is written.
            inner
                .medium
                .store_bytes(slot.at, bytemuck::cast_slice(&changes.scratch));
            let len = (1 + words as u64) * WORD_BYTES;
            inner
                .medium
                .write_back_for(&steps::LARGE_WRITE_BACK, slot.at, len);
            changes.wrote_home = true;
        }
        drop(state);
        Ok(Obj::new(self, self.medium().place(slot.at)))
    }

    /// Frees an object at commit.
    ///
    /// # Safety
    ///
    /// When the transaction commits, no reference to the object may remain in the pool, and no handle. A remaining
    /// reference would come to name the next object allocated there. Nor may another thread go on to exchange fields of
    /// the object that it found before: see [`Obj::compare_exchange`]. No memory of the process is at risk, only the
    /// meaning of the pool's data.
    ///
    /// Errors: nothing is allocated there; the commit reports a second free.
    #[allow(
        unsafe_code,
        reason = "unsafe to call for what it asks of the caller; safe inside"
    )]
    pub unsafe fn free<T>(self, object: Obj<'t, T, Self>) -> Result<(), Error> {
        self.free_at(object.address(), object.header())
    }

    /// Announces that an object will be freed, to prefetch the allocator's state for its place. A hint.
    #[inline]
    pub fn expect_free<T>(self, object: Obj<'t, T, Self>) {
        let inner = &*self.access.core.inner;
        inner.allocator.expect(&inner.medium, object.address());
    }

    pub(crate) fn free_at(self, at: VirtAddr, header: ObjectHeader) -> Result<(), Error> {
        let inner = &*self.access.core.inner;
        self.access.core.newest.set(0);
        inner.medium.work(work::FREE);
        let slot = inner.allocator.locate(&inner.medium, at)?;
        let mut state = self.state();
        if !inner.allocator.is_allocated(&inner.medium, slot.place)? {
            return Err(Error::NotAllocated { at: at.0 });
        }
        let damaged = Error::Damaged {
            what: "the header of an object",
            at: at.0,
        };
        let requested = requested_bytes(header, slot.bytes).ok_or(damaged)?;
        state.changes.freed.push(Change {
            slot,
            type_id: header.type_id(),
            requested,
        });
        Ok(())
    }

    /// Makes `object` a root, under a new name or in place of another object. See [`View::root`] for names.
    ///
    /// Errors: too many roots, a name that is empty or too long; [`Error::Conflict`].
    pub fn set_root<T: Target>(
        self,
        root: impl RootKey<T>,
        object: Obj<'t, T, Self>,
    ) -> Result<(), Error> {
        roots::set(self, root, object.reference())
    }

    /// Removes the root `name`. The object stays allocated: in a traced pool until the next trace,
    /// in an explicit one until it is freed.
    ///
    /// Errors: there is no such root.
    pub fn remove_root(self, name: &str) -> Result<(), Error> {
        roots::remove::<Raw, _>(self, name)
    }

    /// Runs a part of the transaction that may fail by itself: an error rolls back the changes of `part` and keeps the
    /// rest.
    ///
    /// Errors: what `part` returns.
    pub fn nested<R, E>(self, part: impl FnOnce(Self) -> Result<R, E>) -> Result<R, E> {
        let save = self.savepoint();
        let result = part(self)?;
        save.keep();
        Ok(result)
    }

    /// Begins a part of the transaction that can be rolled back by itself. Parts end in the reverse order of their
    /// beginnings, as [`Tx::nested`] ensures.
    #[doc(hidden)]
    pub fn savepoint(self) -> Savepoint<'t, M> {
        let changes = &mut self.state().changes;
        Savepoint {
            mark: Some(changes.writes.mark()),
            allocated: changes.allocated.len(),
            freed: changes.freed.len(),
            linked: changes.linked.len(),
            core: self.access.core,
        }
    }

    /// Allocates an object of the type registered under `type_id`.
    pub(crate) fn alloc_as<T: Stored>(
        self,
        type_id: TypeId,
        value: &T,
    ) -> Result<Obj<'t, T, Self>, Error> {
        let size = u64::from(T::DESCRIPTOR.size);
        self.alloc_filled(type_id, size, |body| value.encode(&mut Body(body)))
    }
}

pub(crate) use frames::settle_fresh_frames;
pub(crate) use stat_shard::type_index;
