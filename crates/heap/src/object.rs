//! Objects in place.

use core::marker::PhantomData;

use firn_format::frame::class_of_run;
use firn_format::geometry::Frame;
use firn_format::header::{HEADER_BYTES, ObjectHeader, TypeId};
use firn_format::reference::RefWord;
use firn_media::{Medium, Memory, Place};
use firn_units::{LINE_BYTES, VirtAddr};

use crate::error::Error;
use crate::stored::{Bytes, Raw, Ref, Refs, Target};
use crate::value::{Field, Plain, Source, Value};
use crate::view::View;

/// An object of type `T`, read through the view `V`. It is valid as long as its guard or transaction.
pub struct Obj<'g, T, V: View<'g>> {
    view: V,
    place: <V::Medium as Memory>::Place<'g>,
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

/// An object's words, from which fields are decoded. References read as null.
struct Words<'g, T, V: View<'g>>(Obj<'g, T, V>);

impl<'g, T, V: View<'g>> Source for Words<'g, T, V> {
    #[inline(always)]
    fn word(&self, at: u32) -> u64 {
        self.0.word(at)
    }
}

/// An object's words, including references: for migrations, which only move them.
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
    pub(crate) fn new(view: V, place: <V::Medium as Memory>::Place<'g>) -> Self {
        Self {
            view,
            place,
            of: PhantomData,
        }
    }

    /// The view through which the object is read.
    #[inline(always)]
    pub fn view(self) -> V {
        self.view
    }

    /// The word at byte `at` of the body.
    #[inline(always)]
    fn word(self, at: u32) -> u64 {
        self.view.load_word(self.place, HEADER_BYTES as u32 + at)
    }

    /// The stored word at byte `at` of the body, for a view that reads in place ([`View::reads_in_place`]).
    #[inline(always)]
    pub(crate) fn word_in_place(self, at: u32) -> u64 {
        self.place.load_u64(HEADER_BYTES as u32 + at)
    }

    /// The header, read in the same way.
    #[inline(always)]
    pub(crate) fn header_in_place(self) -> ObjectHeader {
        ObjectHeader(self.place.load_u64(0))
    }

    /// The address of the object's header. It changes when the object is moved, so it identifies the object only while
    /// the guard or transaction is open.
    #[inline(always)]
    pub fn address(self) -> VirtAddr {
        self.view.medium().address(self.place)
    }

    #[inline(always)]
    pub(crate) fn body(self) -> VirtAddr {
        self.address() + HEADER_BYTES
    }

    /// The eight bytes in front of the object.
    #[inline(always)]
    pub fn header(self) -> ObjectHeader {
        ObjectHeader(self.view.load_word(self.place, 0))
    }

    /// The stored word that refers to this object.
    pub(crate) fn reference(self) -> RefWord {
        RefWord::new(self.view.inner().id, self.address())
    }

    /// Announces that the object's first `bytes` bytes, header included, will be read soon, for programs that can do
    /// other work until they arrive. A hint.
    #[inline(always)]
    pub fn expect(self, bytes: u64) {
        self.expect_range(self.address(), bytes);
    }

    /// Prefetches the field.
    #[inline(always)]
    pub fn expect_field<F: Value>(self, field: Field<T, F>) {
        self.expect_range(self.body() + u64::from(field.offset()), u64::from(F::SIZE));
    }

    #[inline(always)]
    fn expect_range(self, at: VirtAddr, bytes: u64) {
        let medium = self.view.medium();
        for line in 0..bytes.div_ceil(LINE_BYTES) {
            medium.prefetch(at + line * LINE_BYTES);
        }
        // The object may begin anywhere in a line.
        medium.prefetch(at + bytes.saturating_sub(1));
    }

    /// Reads a field.
    #[inline(always)]
    pub fn load<F: Plain>(self, field: Field<T, F>) -> F {
        F::decode(&Words(self), field.offset())
    }

    /// Appends the first `len` bytes of an array of words to `into`, as stored; the whole array if it has no more.
    #[inline]
    pub fn append_bytes<const N: usize>(
        self,
        field: Field<T, [u64; N]>,
        len: usize,
        into: &mut Vec<u8>,
    ) {
        let len = len.min(N * size_of::<u64>());
        let at = self.body() + u64::from(field.offset());
        self.view.append_range(at, len, into);
    }

    /// Follows a reference.
    #[inline(always)]
    pub fn follow<U: Target>(self, field: Field<T, Ref<U>>) -> Option<Obj<'g, U, V>> {
        self.view.resolve(
            RefWord(self.word(field.offset())),
            Some(self.body() + u64::from(field.offset())),
        )
    }

    /// Follows the second of two references, or the first.
    ///
    /// Reads both, and no branch depends on `second`: the processor fetches the object's lines at once, without
    /// guessing.
    #[inline(always)]
    pub fn follow_one_of<U: Target>(
        self,
        fields: [Field<T, Ref<U>>; 2],
        second: bool,
    ) -> Option<Obj<'g, U, V>> {
        let [first, other] = fields.map(|field| self.word(field.offset()));
        let all = u64::from(second).wrapping_neg();
        let [low, high] = fields.map(|field| u64::from(field.offset()));
        let offset = low ^ (low ^ high) & all;
        self.view.resolve(
            RefWord(first ^ (first ^ other) & all),
            Some(self.body() + offset),
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
        // Compared in its final form: the field may not be healed yet (rule T4a).
        let named = RefWord(self.word(field.offset())).address();
        let named = self
            .view
            .cycle()
            .map_or(named, |cycle| cycle.forward(self.view.medium(), named));
        named == other.address()
    }
}

/// The number of a type in a pool, looked up once for many objects. See [`View::known_type`].
pub struct KnownType<T> {
    id: TypeId,
    of: PhantomData<fn() -> T>,
}

impl<T> KnownType<T> {
    #[inline(always)]
    pub(crate) fn new(id: TypeId) -> Self {
        let of = PhantomData;
        Self { id, of }
    }
}

impl<T> Clone for KnownType<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for KnownType<T> {}

impl<'g, T: Target, V: View<'g>> Obj<'g, T, V> {
    /// This object, if its header says that it has type `T`.
    ///
    /// Errors: the object has another type; or no object is there.
    #[inline]
    pub fn check_type(self) -> Result<Self, Error> {
        self.check_known_type(self.view.known_type()?)
    }

    /// Follows a field to an object of a type whose number in the pool is known: faster where many objects are followed
    /// one after the other.
    ///
    /// Errors: as [`Obj::check_type`].
    #[inline(always)]
    pub fn check_known_type(self, known: KnownType<T>) -> Result<Self, Error> {
        if self.header().type_id() == known.id {
            return Ok(self);
        }
        Err(self.wrong_type())
    }

    /// Whether [`Obj::check_known_type`] would refuse this object, read in place.
    #[inline(always)]
    pub(crate) fn differs_in_place(self, known: KnownType<T>) -> bool {
        self.header_in_place().type_id() != known.id
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn wrong_type(self) -> Error {
        let found = self.header().type_id();
        Error::WrongType {
            at: self.address().0,
            found: self.view.inner().types.describe(found),
            expected: T::NAME.to_owned(),
        }
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
    #[inline(always)]
    pub fn read_into(self, into: &mut Vec<u8>) -> Result<(), Error> {
        let len = self.checked_len()?;
        self.view
            .append_range(self.body() + Self::CONTENT, len, into);
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
    #[inline(always)]
    pub fn checked_len(self) -> Result<usize, Error> {
        let len = self.load(Self::LENGTH);
        let room = slot_bytes_at(self.view.medium(), self.address()).unwrap_or(0);
        if len.saturating_add(HEADER_BYTES + Self::CONTENT) <= room {
            return Ok(len as usize);
        }
        self.located_len(len)
    }

    /// The length of any object of bytes.
    #[inline(never)]
    fn located_len(self, len: u64) -> Result<usize, Error> {
        let room = room_of(self)?;
        if len > room - Self::CONTENT.min(room) {
            return Err(Error::Damaged {
                what: "the length of an array",
                at: self.address().0,
            });
        }
        Ok(len as usize)
    }
}

impl<'g, V: View<'g>> Obj<'g, Bytes, V> {
    /// This object as raw bytes, whose length the caller knows from elsewhere.
    #[inline(always)]
    pub fn raw(self) -> Obj<'g, Raw, V> {
        Obj::new(self.view, self.place)
    }
}

impl<'g, V: View<'g>> Obj<'g, Raw, V> {
    /// The object as bytes with a length in front, if its header says so.
    #[inline(always)]
    pub fn bytes(self) -> Option<Obj<'g, Bytes, V>> {
        (self.header().type_id() == TypeId::BYTES).then(|| Obj::new(self.view, self.place))
    }

    /// The requested length in bytes: the slot's, minus the slack in the header.
    ///
    /// Errors: [`Error::Damaged`] if the slack is more than the slot; no slot starts there.
    #[inline(always)]
    pub fn checked_len(self) -> Result<usize, Error> {
        let medium = self.view.medium();
        let slot_bytes = match slot_bytes_at(medium, self.address()) {
            Some(bytes) => bytes,
            None => room_of(self)? + HEADER_BYTES,
        };
        match requested_bytes(self.header(), slot_bytes) {
            Some(len) => Ok(len as usize),
            None => Err(Error::Damaged {
                what: "the header of an object",
                at: self.address().0,
            }),
        }
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
        let offset = u32::try_from(index.checked_add(1)?).ok()?.checked_mul(8)?;
        (index < self.len()).then(|| Field::at_offset(offset))
    }
}

/// Bytes of the slot that starts at `at`, if it lies in the first frame of a run that no cycle fills, as most slots do.
/// On `None` the caller must locate the slot.
///
/// There is no need to check in which chunk the frame lies: the words of frames without objects never look like those
/// of runs.
#[inline(always)]
pub(crate) fn slot_bytes_at<M: Medium>(medium: &M, at: VirtAddr) -> Option<u64> {
    let frame = Frame::holding(at);
    let class = class_of_run(medium.load_u64(frame.word_at()))?;
    let starts = class.starts_in_first_frame(at - frame.start());
    starts.then(|| class.slot_bytes())
}

/// Room for the body in the object's slot, in bytes.
fn room_of<'g, T, V: View<'g>>(object: Obj<'g, T, V>) -> Result<u64, Error> {
    let slot = crate::alloc::locate(object.view.medium(), object.address())?;
    Ok(slot.bytes - HEADER_BYTES)
}

/// The requested length in bytes, from a header and its slot.
#[inline]
pub(crate) fn requested_bytes(header: ObjectHeader, slot_bytes: u64) -> Option<u64> {
    slot_bytes.checked_sub(HEADER_BYTES + header.slack_bytes())
}

const _: () = assert!(<Ref<Bytes> as Value>::SIZE == 8);
