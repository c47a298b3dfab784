//! Objects whose types are described while the program runs: for programs in other languages.
//!
//! The compiler knows nothing of these types, so the heap checks what the compiler would have checked: that an object
//! starts where the program says, that a range lies within it, and that a value stored in a reference field names an
//! object of the pool.

mod described;

use firn_format::header::TypeId;
use firn_format::reference::RefWord;
use firn_media::{Medium, Memory, Ticket};
use firn_units::{VirtAddr, WORD_BYTES};

use crate::alloc::{Slot, locate};
use crate::error::Error;
use crate::object::{Obj, requested_bytes, slot_bytes_at};
use crate::pool::Pool;
use crate::roots::{self, RootKey};
use crate::stored::{Target, TypeDescriptor};
use crate::tx::Tx;
use crate::types::References;
use crate::value::Field;
use crate::view::{Reading, View};

pub(crate) use described::check_described;

/// An object of any type.
pub struct Untyped(());

impl Target for Untyped {
    const NAME: &'static str = "an object";
    const BUILT_IN: Option<TypeId> = None;

    #[inline(always)]
    fn described() -> Option<&'static TypeDescriptor> {
        None
    }
}

/// The registry's description of a type, kept at hand for allocation and stores.
#[derive(Clone, Debug)]
pub struct Layout {
    id: TypeId,
    size: u64,
    references: Vec<References>,
    /// The range of the body that contains all its references, in bytes.
    span: (u64, u64),
}

impl Layout {
    /// The type's number in the pool.
    pub fn id(&self) -> TypeId {
        self.id
    }

    /// Bytes of the body.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn new(id: TypeId, size: u32, references: Vec<References>) -> Self {
        let first = references.iter().map(|r| u64::from(r.offset)).min();
        let end = |r: &References| u64::from(r.offset) + u64::from(r.count) * WORD_BYTES;
        let span = (
            first.unwrap_or(0),
            references.iter().map(end).max().unwrap_or(0),
        );
        Self {
            id,
            size: u64::from(size),
            references,
            span,
        }
    }

    /// Offsets of the reference words that overlap these bytes of the body.
    fn references_in(&self, start: u64, end: u64) -> impl Iterator<Item = u64> {
        let apart = end <= self.span.0 || self.span.1 <= start;
        let fields = if apart { &[][..] } else { &self.references[..] };
        let touched = move |&at: &u64| at < end && start < at + WORD_BYTES;
        fields
            .iter()
            .flat_map(|references| references.words())
            .filter(touched)
    }
}

impl<M: Medium> Pool<M> {
    /// Registers a type that is described while the program runs, or finds it already registered.
    ///
    /// Errors: the description contradicts itself; stored with another layout, in another version; the
    /// registry is full.
    pub fn register_described(&self, descriptor: &'static TypeDescriptor) -> Result<Layout, Error> {
        self.inner.check_usable()?;
        check_described(descriptor)?;
        let inner = &*self.inner;
        let id = inner.types.described_type_id(&inner.medium, descriptor)?;
        self.layout(id).ok_or(Error::Damaged {
            what: "the type registry",
            at: firn_format::geometry::REGISTRY.0,
        })
    }

    /// Registers a type of objects of any size in which any two words may be a pair that refers to another object
    /// ([`firn_format::registry::FieldKind::Pairs`]), or finds it already registered.
    ///
    /// Errors: stored with another layout; the registry is full; addresses do not stay in this pool, so the targets of
    /// such pairs could not be found ([`Pool::drop_forwarding`] says where they stay).
    pub fn register_pairs(&self, name: &str) -> Result<TypeId, Error> {
        if !self.inner.keeps_addresses {
            let (what, needs) = (
                "a type whose references are pairs of words",
                "an explicit pool that was opened with an undo log",
            );
            return Err(Error::WrongKind { what, needs });
        }
        self.inner.check_usable()?;
        self.inner.types.pairs_type_id(&self.inner.medium, name)
    }

    /// The registry's description of a type; `None` for a number that is not registered.
    pub fn layout(&self, id: TypeId) -> Option<Layout> {
        let (size, references) = self.inner.types.reference_map(id)?;
        Some(Layout::new(id, size, references))
    }
}

impl<'g, V: View<'g>> Obj<'g, Untyped, V> {
    /// The object whose header lies at `at`.
    ///
    /// Errors: none is allocated there.
    #[inline]
    pub fn at(view: V, at: VirtAddr) -> Result<Self, Error> {
        slot_at(view, at)?;
        Ok(Self::new(view, view.medium().place(at)))
    }

    /// The object whose header lies at `at`. This operation got the address from [`Obj::at`] and [`Obj::typed`] before,
    /// so it is not checked again. As with [`Obj::follow`], the content is not checked.
    #[inline]
    pub fn known<T>(view: V, at: VirtAddr) -> Obj<'g, T, V> {
        Obj::new(view, view.medium().place(at))
    }

    /// The object that the reference in the word at `field` names, through the read barrier. `None` for a null
    /// reference. As with [`Obj::follow`], the target is not checked.
    #[inline]
    pub fn followed_from(view: V, field: VirtAddr) -> Option<Self> {
        let place = view.medium().place(VirtAddr(field.0 & !0xf));
        let word = view.load_word(place, (field.0 & 0x8) as u32);
        view.resolve(RefWord(word), Some(field))
    }

    /// The object named by a reference of which the program has a copy, from this operation. `None` for a null
    /// reference.
    ///
    /// Errors: it names no object of the pool.
    pub fn of_word(view: V, word: u64) -> Result<Option<Self>, Error> {
        let word = RefWord(word);
        if word.is_null() {
            return Ok(None);
        }
        let refused = Error::NotAllocated {
            at: word.address().0,
        };
        if word.pool() != view.inner().id {
            return Err(refused);
        }
        // Looked up before it is touched: the reference may name anything.
        let now = view
            .cycle()
            .map_or(word, |cycle| cycle.forward_word(view.medium(), word));
        slot_at(view, now.address())?;
        Ok(view.resolve(now, None))
    }

    /// The object of a root, whatever its type; `None` if there is no such root, or it is null.
    ///
    /// Errors: the root table is damaged.
    #[inline]
    pub fn of_root(view: V, root: impl RootKey<Untyped>) -> Result<Option<Self>, Error> {
        let found = roots::find(view, root)?;
        Ok(found.and_then(|(index, reference)| {
            view.resolve(reference, Some(roots::reference_at(index)))
        }))
    }

    /// The number of the object's type.
    pub fn type_id(self) -> TypeId {
        self.header().type_id()
    }

    /// The requested length of the body, in bytes.
    ///
    /// Errors: the object's header is damaged.
    #[inline]
    pub fn body_bytes(self) -> Result<u64, Error> {
        let medium = self.view().medium();
        let slot_bytes = match slot_bytes_at(medium, self.address()) {
            Some(bytes) => bytes,
            None => locate(medium, self.address())?.bytes,
        };
        requested_bytes(self.header(), slot_bytes).ok_or(Error::Damaged {
            what: "the header of an object",
            at: self.address().0,
        })
    }

    /// The stored word that refers to the object.
    pub fn reference_word(self) -> u64 {
        self.reference().0
    }

    /// The object as one of type `T`.
    ///
    /// Errors: it has another type.
    pub fn typed<T: Target>(self) -> Result<Obj<'g, T, V>, Error> {
        Obj::<T, V>::new(self.view(), self.view().medium().place(self.address())).check_type()
    }

    /// Copies bytes of the body from `offset` on.
    ///
    /// Errors: [`Error::BadRange`] beyond its end.
    pub fn load_into(self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.check_range(offset, into.len() as u64)?;
        self.view().load_range(self.body() + offset, into);
        Ok(())
    }

    /// Checks that the object has the type of `layout`.
    ///
    /// Errors: it has another.
    pub fn check_layout(self, layout: &Layout) -> Result<(), Error> {
        let found = self.type_id();
        if found == layout.id {
            return Ok(());
        }
        let types = &self.view().inner().types;
        Err(Error::WrongType {
            at: self.address().0,
            found: types.describe(found),
            expected: types.describe(layout.id),
        })
    }

    /// Checks that the `len` bytes from `offset` on lie in the body.
    ///
    /// Errors: [`Error::BadRange`] if not.
    pub fn check_range(self, offset: u64, len: u64) -> Result<(), Error> {
        let body = self.body_bytes()?;
        match offset.checked_add(len) {
            Some(end) if end <= body => Ok(()),
            _ => Err(Error::BadRange {
                at: self.body().0.wrapping_add(offset),
                len,
            }),
        }
    }
}

impl<'g, T, V: View<'g>> Obj<'g, T, V> {
    /// The object as one of any type.
    pub fn untyped(self) -> Obj<'g, Untyped, V> {
        Obj::new(self.view(), self.view().medium().place(self.address()))
    }
}

/// The reference at byte `at` of the front of an object. A reference that the front cuts off is null.
#[inline]
fn reference_at(front: &[u8], at: u64) -> RefWord {
    let word = front.get(at as usize..(at + WORD_BYTES) as usize);
    RefWord(word.map_or(0, bytemuck::pod_read_unaligned))
}

/// As [`Obj::compare_exchange`] and [`Obj::persist`] of a field, by its offset.
impl<'g, M: Medium> Obj<'g, Untyped, Reading<'g, M>> {
    /// Stores `new` in the word at byte `offset` of the body if it holds `current`. In both cases the inner result is
    /// the former value. `layout` is that of the object's type.
    ///
    /// Errors: the word is a reference, or no word of the body; the pool is read only.
    pub fn compare_exchange_at(
        self,
        layout: &Layout,
        offset: u64,
        current: u64,
        new: u64,
    ) -> Result<Result<u64, u64>, Error> {
        self.compare_exchange(self.number_at(layout, offset)?, current, new)
    }

    /// Makes the word's current or a later value durable.
    ///
    /// Errors: as above.
    pub fn persist_at(self, layout: &Layout, offset: u64) -> Result<Ticket, Error> {
        self.persist(self.number_at(layout, offset)?)
    }

    fn number_at(self, layout: &Layout, offset: u64) -> Result<Field<Untyped, u64>, Error> {
        self.check_range(offset, WORD_BYTES)?;
        self.check_layout(layout)?;
        let end = offset + WORD_BYTES;
        match u32::try_from(offset) {
            Ok(at)
                if offset.is_multiple_of(WORD_BYTES)
                    && layout.references_in(offset, end).next().is_none() =>
            {
                Ok(Field::at_offset(at))
            }
            _ => Err(Error::BadRange {
                at: self.body().0 + offset,
                len: WORD_BYTES,
            }),
        }
    }
}

/// The slot of the object whose header lies at `at`.
///
/// Errors: none is allocated there.
fn slot_at<'g, V: View<'g>>(view: V, at: VirtAddr) -> Result<Slot, Error> {
    let inner = view.inner();
    let slot = locate(&inner.medium, at)?;
    match inner.allocator.is_allocated(&inner.medium, slot.place)? {
        true => Ok(slot),
        false => Err(Error::NotAllocated { at: at.0 }),
    }
}

impl<'t, M: Medium> Tx<'t, M> {
    /// Allocates an object of `bytes` bytes, at least those of its type, and stores `front` at its beginning and zeros
    /// behind.
    ///
    /// Errors: a reference in `front` names no object of the pool; `front` is longer than the object, or the
    /// object shorter than its type; the pool is full.
    pub fn alloc_untyped(
        self,
        layout: &Layout,
        front: &[u8],
        bytes: u64,
    ) -> Result<Obj<'t, Untyped, Self>, Error> {
        let len = front.len() as u64;
        if bytes < layout.size || bytes < len {
            return Err(Error::BadRange {
                at: 0,
                len: layout.size.max(len),
            });
        }
        // Checked before anything is taken; nothing moves meanwhile, so the references are still valid when they are
        // stored.
        for reference in &layout.references {
            for at in reference.words() {
                self.accepted(reference_at(front, at))?;
            }
        }
        let new = self.alloc_filled(layout.id, bytes, |body| {
            bytemuck::cast_slice_mut(body)[..front.len()].copy_from_slice(front);
            let is_cut_off = len < layout.span.1;
            if is_cut_off || self.cycle().is_some() {
                for at in layout.references_in(0, len) {
                    body[(at / WORD_BYTES) as usize] = self.normalised(reference_at(front, at)).0;
                }
            }
        })?;
        self.newest().set(new.address().0);
        Ok(new)
    }

    /// A reference in the form in which it is stored (rule C6).
    fn normalised(self, word: RefWord) -> RefWord {
        match self.cycle() {
            Some(cycle) if !word.is_null() => cycle.forward_word(&self.inner().medium, word),
            _ => word,
        }
    }

    /// A reference that the program wants to store, normalised to its stored form (rule C6).
    ///
    /// Errors: it names no object of the pool.
    #[inline(always)]
    fn accepted(self, word: RefWord) -> Result<RefWord, Error> {
        // New objects often refer to each other.
        let newest = self.newest().get();
        let is_newest = newest != 0 && word.address().0 == newest && word.pool() == self.inner().id;
        match word.is_null() || is_newest {
            true => Ok(word),
            false => self.looked_up(word),
        }
    }

    #[inline(never)]
    fn looked_up(self, word: RefWord) -> Result<RefWord, Error> {
        if word.pool() != self.inner().id {
            return Err(Error::NotAllocated {
                at: word.address().0,
            });
        }
        let word = self.normalised(word);
        slot_at(self, word.address()).map(|_| word)
    }
}

impl<'t, M: Medium> Obj<'t, Untyped, Tx<'t, M>> {
    /// Stores bytes of the body from `offset` on. `layout` is its type's.
    ///
    /// Errors: [`Error::BadRange`] beyond the body's end; the object has another type; part of a reference,
    /// or one that names no object of the pool. Nothing is stored then.
    pub fn store_bytes(self, layout: &Layout, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check_layout(layout)?;
        let end = offset.saturating_add(bytes.len() as u64);
        // An object is no shorter than its type.
        if end > layout.size {
            self.check_range(offset, bytes.len() as u64)?;
        }
        let tx = self.view();
        let mut references = Vec::new();
        for at in layout.references_in(offset, end) {
            if at < offset || end < at + WORD_BYTES {
                return Err(Error::BadRange {
                    at: self.body().0 + at,
                    len: WORD_BYTES,
                });
            }
            let word = bytemuck::pod_read_unaligned(&bytes[(at - offset) as usize..][..8]);
            references.push((at, tx.accepted(RefWord(word))?));
        }
        let at = self.body() + offset;
        match bytes.try_into() {
            Ok(word) if at.0.is_multiple_of(WORD_BYTES) => {
                tx.store_word(at, u64::from_le_bytes(word));
            }
            _ => tx.store_range(at, bytes),
        }
        for (at, word) in references {
            tx.store_reference(self.body() + at, word);
        }
        Ok(())
    }

    /// Makes the reference at byte `offset` of the body name `to`, or nothing.
    ///
    /// Errors: no reference of its type lies there; the object has another type.
    pub fn link_at(
        self,
        layout: &Layout,
        offset: u64,
        to: Option<Obj<'t, Untyped, Tx<'t, M>>>,
    ) -> Result<(), Error> {
        self.check_layout(layout)?;
        let end = offset.saturating_add(WORD_BYTES);
        if layout.references_in(offset, end).ne([offset]) {
            return Err(Error::BadRange {
                at: self.body().0.wrapping_add(offset),
                len: WORD_BYTES,
            });
        }
        let word = to.map_or(RefWord::NULL, Obj::reference);
        self.view().store_reference(self.body() + offset, word);
        Ok(())
    }
}
