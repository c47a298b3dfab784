//! Views: how objects are read, inside a guard or inside a transaction.

use firn_format::reference::RefWord;
use firn_format::superblock::LogKind;
use firn_media::{Medium, Memory, Place, Probe};
use firn_units::VirtAddr;

use crate::error::Error;
use crate::inner::Inner;
use crate::locks::ReadLock;
use crate::object::{KnownType, Obj};
use crate::operation::Access;
use crate::relocation::cycle::Cycle;
use crate::roots::{self, RootKey, Slots};
use crate::stored::{Raw, Target};
use crate::walk::each_allocated;
use crate::{handles::Handle, work};

/// Something through which objects can be read: [`Reading`] in a guard, [`crate::Tx`] in a transaction.
///
/// A view is a copyable token; objects that are read through it are valid as long as the guard or transaction.
pub trait View<'g>: Copy + private::Sealed {
    /// The medium of the pool.
    type Medium: Medium;

    #[doc(hidden)]
    fn inner(self) -> &'g Inner<Self::Medium>;

    /// The cycle that moves objects while this operation lasts. It cannot begin or end within it
    /// (rule T2).
    #[doc(hidden)]
    fn cycle(self) -> Option<&'g Cycle<Self::Medium>>;

    /// The word `byte` bytes behind `place`.
    #[doc(hidden)]
    fn load_word(self, place: <Self::Medium as Memory>::Place<'g>, byte: u32) -> u64;

    /// Whether every word is read in place: always, except in a transaction that has stored something.
    #[doc(hidden)]
    #[inline(always)]
    fn reads_in_place(self) -> bool {
        true
    }

    /// The bytes from `at`.
    #[doc(hidden)]
    fn load_range(self, at: VirtAddr, into: &mut [u8]);

    /// Appends `len` bytes from `at` to `into`.
    #[doc(hidden)]
    #[inline]
    fn append_range(self, at: VirtAddr, len: usize, into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + len, 0);
        self.load_range(at, &mut into[start..]);
    }

    /// Takes the lock of a structure for reading, until the returned value is dropped or the
    /// transaction ends. Every structure has an id of its own, chosen when it is created.
    ///
    /// Errors: [`Error::Conflict`] in a transaction that would have to wait against the lock order.
    fn lock_shared(self, id: u64) -> Result<ReadLock<'g, Self::Medium>, Error>;

    /// Places of the root table to which the view's own transaction has stored.
    #[doc(hidden)]
    fn own_roots(self) -> Slots {
        Slots::default()
    }

    /// Whether it has stored to any.
    #[doc(hidden)]
    #[inline(always)]
    fn stores_roots(self) -> bool {
        false
    }

    /// Keeps a place of the root table unchanged until the transaction ends; does nothing in a guard.
    #[doc(hidden)]
    #[inline(always)]
    fn hold_root(self, place: usize) -> Result<(), Error> {
        let _ = place;
        Ok(())
    }

    /// Keeps the names of all roots from changing. Returns whether they were already kept, or need not be.
    #[doc(hidden)]
    fn hold_names(self) -> Result<bool, Error> {
        Ok(true)
    }

    /// The medium.
    #[inline(always)]
    fn medium(self) -> &'g Self::Medium {
        &self.inner().medium
    }

    /// The object that a reference names, read from `field` if that is on media. The target is not checked. This is the
    /// read barrier: one test while no cycle is open.
    #[doc(hidden)]
    #[inline(always)]
    fn resolve<T>(self, reference: RefWord, field: Option<VirtAddr>) -> Option<Obj<'g, T, Self>> {
        if reference.is_null() {
            return None;
        }
        self.medium().work(work::DEREFERENCE);
        let at = match self.cycle() {
            None => reference.address(),
            Some(cycle) => cycle.touch(self.medium(), reference, field),
        };
        Some(Obj::new(self, self.medium().place(at)))
    }

    /// The object of a root, by name or by a [`RootHandle`](crate::RootHandle), which is made once and makes look-ups
    /// faster.
    ///
    /// Errors: no such root, an object of another type; in a transaction [`Error::Conflict`].
    #[inline]
    fn root<T: Target>(self, root: impl RootKey<T>) -> Result<Obj<'g, T, Self>, Error> {
        match self.find_root(root) {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err(Error::NoRoot { name: root.text() }),
            Err(error) => Err(error),
        }
    }

    /// Finds a root's object; `None` if there is no such root.
    ///
    /// In a guard the answer holds for a moment. In a transaction it holds until the end: no other transaction makes
    /// the root refer elsewhere, or adds a missing root.
    ///
    /// Errors: an object of another type; in a transaction [`Error::Conflict`].
    #[inline]
    fn find_root<T: Target>(
        self,
        root: impl RootKey<T>,
    ) -> Result<Option<Obj<'g, T, Self>>, Error> {
        match roots::find(self, root)? {
            Some((index, reference)) => {
                match self.resolve(reference, Some(roots::reference_at(index))) {
                    Some(object) => object.check_type().map(Some),
                    None => Ok(None),
                }
            }
            None => Ok(None),
        }
    }

    /// The number of `T` in this pool, for checking the types of many objects ([`Obj::check_known_type`]).
    ///
    /// Errors: the pool does not know the type and cannot register it.
    #[inline]
    fn known_type<T: Target>(self) -> Result<KnownType<T>, Error> {
        let types = &self.inner().types;
        types.type_id::<T, _>(self.medium()).map(KnownType::new)
    }

    /// Name of the type of the root `name`, as the pool's registry has it; `None` if there is no such
    /// root, if it refers to nothing, or to an object of a type that is not registered.
    ///
    /// Registers nothing, so that a tool can ask about any root of any pool.
    ///
    /// Errors: the root table is damaged.
    fn root_type_name(self, name: &str) -> Result<Option<String>, Error> {
        let Some((index, reference)) = roots::find::<Raw, _>(self, name)? else {
            return Ok(None);
        };
        let field = Some(roots::reference_at(index));
        let object: Option<Obj<'g, Raw, Self>> = self.resolve(reference, field);
        Ok(object.and_then(|o| self.inner().types.name(o.header().type_id())))
    }

    /// The object that a handle names; `None` for a weak one whose object is gone.
    fn deref<T: Target>(self, handle: &Handle<T, Self::Medium>) -> Option<Obj<'g, T, Self>> {
        self.resolve(handle.current(self.inner()), None)
    }

    /// Every allocated object of type `T` of an explicit pool, reachable or not, by address.
    ///
    /// Takes time in proportion to the pool. In a transaction, its own allocations and frees do not count yet.
    /// Transactions that commit meanwhile may be included in part.
    ///
    /// Errors: the pool is traced, where only reachability says what lives.
    fn objects<T: Target>(self) -> Result<Vec<Obj<'g, T, Self>>, Error> {
        let inner = self.inner();
        if !inner.logs_allocation() {
            let (what, needs) = ("iterating over all objects", "an explicit pool");
            return Err(Error::WrongKind { what, needs });
        }
        let id = inner.types.type_id::<T, _>(&inner.medium)?;
        let mut found = Vec::new();
        let releasing = inner.collector.releasing(&inner.medium);
        let cycle = self.cycle().or(releasing.as_deref());
        each_allocated(&inner.medium, cycle, |slot, header| {
            if header.type_id() == id {
                if let Some(cycle) = self.cycle() {
                    cycle.bring(self.medium(), slot.at);
                }
                let reference = RefWord::new(inner.id, slot.at);
                found.extend(self.resolve(reference, None));
            }
        })?;
        Ok(found)
    }

    /// Names of all roots.
    fn root_names(self) -> Result<Vec<String>, Error> {
        roots::names(self)
    }
}

mod private {
    pub trait Sealed {}
    impl<M: firn_media::Medium> Sealed for super::Reading<'_, M> {}
    impl<M: firn_media::Medium> Sealed for crate::tx::Tx<'_, M> {}
    impl<M: firn_media::Medium> Sealed for crate::unbarriered::UnbarrieredReading<'_, M> {}
}

/// Reads objects as they are in place.
pub struct Reading<'g, M: Medium> {
    access: &'g Access<'g, M>,
}

impl<M: Medium> Clone for Reading<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Medium> Copy for Reading<'_, M> {}

impl<'g, M: Medium> Reading<'g, M> {
    pub(crate) fn new(access: &'g Access<'g, M>) -> Self {
        Self { access }
    }
}

impl<'g, M: Medium> View<'g> for Reading<'g, M> {
    type Medium = M;

    #[inline(always)]
    fn inner(self) -> &'g Inner<M> {
        self.access.inner
    }

    #[inline(always)]
    fn cycle(self) -> Option<&'g Cycle<M>> {
        self.access.cycle.as_deref()
    }

    #[inline(always)]
    fn load_word(self, place: M::Place<'g>, byte: u32) -> u64 {
        place.load_u64(byte)
    }

    #[inline]
    fn load_range(self, at: VirtAddr, into: &mut [u8]) {
        self.access.inner.medium.load_bytes(at, into);
    }

    #[inline(always)]
    fn append_range(self, at: VirtAddr, len: usize, into: &mut Vec<u8>) {
        self.access.inner.medium.append_bytes(at, len, into);
    }

    fn lock_shared(self, id: u64) -> Result<ReadLock<'g, M>, Error> {
        let inner = self.access.inner;
        ReadLock::take(&inner.medium, &inner.locks, self.access.core.lane, id)
    }

    /// Those of the undo transaction that the guard is in.
    #[inline]
    fn own_roots(self) -> Slots {
        match self.access.inner.log {
            LogKind::Redo => Slots::default(),
            LogKind::Undo => self.access.core.open.borrow().own_roots(),
        }
    }

    #[inline]
    fn stores_roots(self) -> bool {
        match self.access.inner.log {
            LogKind::Redo => false,
            LogKind::Undo => self.access.core.open.borrow().stores_roots(),
        }
    }
}
