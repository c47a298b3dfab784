//! Objects in place.

use core::marker::PhantomData;

use firn_format::header::{HEADER_BYTES, ObjectHeader};
use firn_format::reference::RefWord;
use firn_media::Medium;
use firn_units::VirtAddr;

use crate::error::Error;
use crate::stored::{Bytes, Ref, Refs, Target};
use crate::value::{Field, Plain, Source, Value};
use crate::view::View;

/// An object of type `T`, read through the view `V`. Lives as long as its guard or transaction.
pub struct Obj<'g, T, V: View<'g>> {
    view: V,
    place: <V::Medium as Medium>::Place<'g>,
    of: PhantomData<fn() -> T>,
}

impl<'g, T, V: View<'g>> Clone for Obj<'g, T, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<'g, T, V: View<'g>> Copy for Obj<'g, T, V> {}

impl<'g, T, V: View<'g>> PartialEq for Obj<'g, T, V> {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}
impl<'g, T, V: View<'g>> Eq for Obj<'g, T, V> {}

impl<'g, T, V: View<'g>> core::fmt::Debug for Obj<'g, T, V> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "object at {}", self.address())
    }
}

/// An object's words, for the fields' own decoding. References read as null.
struct Words<'g, T, V: View<'g>>(Obj<'g, T, V>);

impl<'g, T, V: View<'g>> Source for Words<'g, T, V> {
    #[inline(always)]
    fn word(&self, at: u32) -> u64 {
        self.0.word(at)
    }
}

/// An object's words, references included: for migrations, which only move them.
pub(crate) struct Revealed<'g, T, V: View<'g>>(pub(crate) Obj<'g, T, V>);

impl<'g, T, V: View<'g>> Source for Revealed<'g, T, V> {
    fn word(&self, at: u32) -> u64 {
        self.0.word(at)
    }

    fn reference_word(&self, at: u32) -> u64 {
        self.0.word(at)
    }
}

impl<'g, T, V: View<'g>> Obj<'g, T, V> {
    #[inline(always)]
    pub(crate) fn new(view: V, place: <V::Medium as Medium>::Place<'g>) -> Self {
        Self {
            view,
            place,
            of: PhantomData,
        }
    }

    /// The view that the object is read through.
    #[inline(always)]
    pub fn view(self) -> V {
        self.view
    }

    /// The word at byte `at` of the body.
    #[inline(always)]
    fn word(self, at: u32) -> u64 {
        self.view.load_word(self.place, HEADER_BYTES as u32 + at)
    }

    /// Where the object's header lies. Changes when the object is moved, so it identifies the object
    /// only while the guard or transaction is open.
    #[inline(always)]
    pub fn address(self) -> VirtAddr {
        self.view.medium().address(self.place)
    }

    #[inline(always)]
    pub(crate) fn body(self) -> VirtAddr {
        self.address() + HEADER_BYTES
    }

    /// The eight bytes in front of the object.
    pub fn header(self) -> ObjectHeader {
        ObjectHeader(self.view.load_word(self.place, 0))
    }

    /// The stored word that refers to this object.
    pub(crate) fn reference(self) -> RefWord {
        RefWord::new(self.view.inner().id, self.address())
    }

    /// Reads a field.
    #[inline(always)]
    pub fn load<F: Plain>(self, field: Field<T, F>) -> F {
        F::decode(&Words(self), field.offset())
    }

    /// Follows a reference.
    #[inline(always)]
    pub fn follow<U: Target>(self, field: Field<T, Ref<U>>) -> Option<Obj<'g, U, V>> {
        self.view.resolve(
            RefWord(self.word(field.offset())),
            Some(self.body() + u64::from(field.offset())),
        )
    }

    /// The tag of a reference: four bits that belong to the program.
    #[inline]
    pub fn tag<U: Target>(self, field: Field<T, Ref<U>>) -> u8 {
        RefWord(self.word(field.offset())).tag()
    }

    /// Whether the field refers to `other`, tags aside.
    #[inline]
    pub fn refers_to<U: Target>(self, field: Field<T, Ref<U>>, other: Obj<'g, U, V>) -> bool {
        // Compared as it will be: the field may not be healed yet (rule T4a).
        let named = RefWord(self.word(field.offset())).address();
        let named = self
            .view
            .cycle()
            .map_or(named, |cycle| cycle.forward(named));
        named == other.address()
    }
}

impl<'g, T: Target, V: View<'g>> Obj<'g, T, V> {
    /// This object, if its header says that it has type `T`.
    ///
    /// Errors: the object is another's; or the address is not an object's at all.
    pub fn check_type(self) -> Result<Self, Error> {
        let inner = self.view.inner();
        let found = self.header().type_id();
        if inner.types.known::<T>() == Some(found) || inner.type_id::<T>()? == found {
            return Ok(self);
        }
        Err(Error::WrongType {
            at: self.address().0,
            found: inner.types.describe(found),
            expected: T::NAME.to_owned(),
        })
    }
}

impl<'g, V: View<'g>> Obj<'g, Bytes, V> {
    const LENGTH: Field<Bytes, u64> = Field::at_offset(0);
    pub(crate) const CONTENT: u64 = 8;

    /// Number of bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.load(Self::LENGTH) as usize
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Appends the bytes to `into`.
    ///
    /// Errors: [`Error::Damaged`] if the length reaches beyond the object.
    pub fn read_into(self, into: &mut Vec<u8>) -> Result<(), Error> {
        let len = self.checked_len()?;
        let start = into.len();
        into.resize(start + len, 0);
        self.view
            .load_range(self.body() + Self::CONTENT, &mut into[start..]);
        Ok(())
    }

    /// A copy of the bytes.
    ///
    /// Errors: [`Error::Damaged`] if the length reaches beyond the object.
    pub fn to_vec(self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.read_into(&mut bytes)?;
        Ok(bytes)
    }

    /// The length, which lies within the object's slot.
    pub fn checked_len(self) -> Result<usize, Error> {
        let room = room_of(self)?;
        let len = self.load(Self::LENGTH);
        if len > room - Self::CONTENT.min(room) {
            return Err(Error::Damaged {
                what: "the length of an array",
                at: self.address().0,
            });
        }
        Ok(len as usize)
    }
}

impl<'g, T: Target, V: View<'g>> Obj<'g, Refs<T>, V> {
    const LENGTH: Field<Refs<T>, u64> = Field::at_offset(0);

    /// Number of references.
    #[inline]
    pub fn len(self) -> usize {
        self.load(Self::LENGTH) as usize
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Reference `index`; `None` if it is null, or beyond the array.
    #[inline]
    pub fn get(self, index: usize) -> Option<Obj<'g, T, V>> {
        self.follow(self.element(index)?)
    }

    #[inline]
    pub(crate) fn element(self, index: usize) -> Option<Field<Refs<T>, Ref<T>>> {
        let offset = u32::try_from(index + 1).ok()?.checked_mul(8)?;
        (index < self.len()).then(|| Field::at_offset(offset))
    }
}

/// Bytes of the body that the object's slot has room for.
fn room_of<'g, T, V: View<'g>>(object: Obj<'g, T, V>) -> Result<u64, Error> {
    let slot = crate::alloc::locate(object.view.medium(), object.address())?;
    Ok(slot.bytes - HEADER_BYTES)
}

/// Bytes that the program asked for, from a header and the slot that it stands in.
pub(crate) fn requested_bytes(header: ObjectHeader, slot_bytes: u64) -> Option<u64> {
    slot_bytes.checked_sub(HEADER_BYTES + header.slack_bytes())
}

const _: () = assert!(<Ref<Bytes> as Value>::SIZE == 8);
