//! Values: the content of fields, and its conversion to words.
//!
//! Every value accepts every bit pattern, so a damaged word is a wrong number and never undefined
//! behaviour. Types with invalid patterns are wrapped in [`Checked`].

use core::marker::PhantomData;

use firn_format::registry::FieldKind;

use crate::stored::{Ref, Stored, Target, TypeDescriptor};

/// Words that a value is read from.
pub trait Source {
    /// The word at byte `at`, a multiple of 8, of the object's body.
    fn word(&self, at: u32) -> u64;

    /// The stored reference at byte `at`, where references may be read as values: in a migration.
    #[doc(hidden)]
    fn reference_word(&self, at: u32) -> u64 {
        let _ = at;
        0
    }
}

/// Words that a value is written to.
pub trait Sink {
    /// Replaces the bits of `mask` in the word at byte `at`, a multiple of 8, of the object's body.
    fn put(&mut self, at: u32, word: u64, mask: u64);

    /// Replaces consecutive words from byte `at`, a multiple of 8.
    #[inline]
    fn put_run(&mut self, at: u32, words: &[u64]) {
        for (i, &word) in words.iter().enumerate() {
            self.put(at + i as u32 * 8, word, u64::MAX);
        }
    }
}

/// What a field may hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in a pool",
    label = "not a storable field",
    note = "a pool outlives the program: use `Ref<T>` for references, `Ref<Bytes>` for strings and byte vectors, `Ref<Refs<T>>` for vectors of references, `Checked<T>` for bool, char and enums, `#[derive(Plain)]` for structures of numbers"
)]
pub trait Value: Sized + 'static {
    /// Bytes, equal to the size of the Rust type.
    const SIZE: u32;
    /// Bytes to whose multiple the value is aligned.
    const ALIGN: u32;
    /// The field's kind in the registry.
    const KIND: FieldKind;
    /// Name of the referenced type, or of the nested structure.
    const TARGET: &'static str = "";
    /// Bytes of an element, for arrays.
    const ELEMENT_SIZE: u32 = Self::SIZE;
    /// Elements, for arrays.
    const COUNT: u32 = 1;
    /// Digest of the fields of a nested structure; 0 for anything else.
    const LAYOUT: u64 = 0;

    /// The descriptor of the type that a reference, or an array of references, names. A function, because descriptors
    /// lead to each other.
    #[doc(hidden)]
    fn leads_to() -> Option<&'static TypeDescriptor> {
        None
    }

    /// Reads the value at byte `at` of the body.
    fn decode<S: Source + ?Sized>(source: &S, at: u32) -> Self;
    /// Writes the value at byte `at` of the body.
    fn encode<S: Sink + ?Sized>(&self, sink: &mut S, at: u32);
}

/// Values that may leave a guard: everything but references.
#[diagnostic::on_unimplemented(
    message = "`{Self}` may not be read as a plain value",
    note = "references are followed with `Obj::follow`, inside the guard or transaction in which they were read"
)]
pub trait Plain: Value {}

macro_rules! number {
    ($kind:ident: $($t:ty as $bits:ty),*) => {$(
        impl Value for $t {
            const SIZE: u32 = size_of::<$t>() as u32;
            const ALIGN: u32 = align_of::<$t>() as u32;
            const KIND: FieldKind = FieldKind::$kind;

            #[inline(always)]
            fn decode<S: Source + ?Sized>(source: &S, at: u32) -> Self {
                let bits = (source.word(at & !7) >> ((at & 7) * 8)) as $bits;
                <$t>::from_le_bytes(bits.to_le_bytes())
            }

            #[inline(always)]
            fn encode<S: Sink + ?Sized>(&self, sink: &mut S, at: u32) {
                let shift = (at & 7) * 8;
                let bits = <$bits>::from_le_bytes(self.to_le_bytes()) as u64;
                sink.put(at & !7, bits << shift, (<$bits>::MAX as u64) << shift);
            }
        }
        impl Plain for $t {}
    )*};
}
number!(Unsigned: u8 as u8, u16 as u16, u32 as u32, u64 as u64);
number!(Signed: i8 as u8, i16 as u16, i32 as u32, i64 as u64);
number!(Float: f32 as u32, f64 as u64);

impl<F: Value, const N: usize> Value for [F; N] {
    const SIZE: u32 = F::SIZE * N as u32;
    const ALIGN: u32 = F::ALIGN;
    const KIND: FieldKind = F::KIND;
    const TARGET: &'static str = F::TARGET;
    const ELEMENT_SIZE: u32 = F::ELEMENT_SIZE;
    const COUNT: u32 = F::COUNT * N as u32;
    const LAYOUT: u64 = F::LAYOUT;

    fn leads_to() -> Option<&'static TypeDescriptor> {
        F::leads_to()
    }

    fn decode<S: Source + ?Sized>(source: &S, at: u32) -> Self {
        core::array::from_fn(|i| F::decode(source, at + i as u32 * F::SIZE))
    }

    fn encode<S: Sink + ?Sized>(&self, sink: &mut S, at: u32) {
        if F::SIZE != 8 {
            for (i, element) in self.iter().enumerate() {
                element.encode(sink, at + i as u32 * F::SIZE);
            }
            return;
        }
        // Word-sized elements are stored in runs.
        let mut run = Run([0; RUN_WORDS]);
        for (i, elements) in self.chunks(RUN_WORDS).enumerate() {
            for (word, element) in elements.iter().enumerate() {
                element.encode(&mut run, word as u32 * 8);
            }
            sink.put_run(at + (i * RUN_WORDS) as u32 * 8, &run.0[..elements.len()]);
        }
    }
}
impl<F: Plain, const N: usize> Plain for [F; N] {}

/// Words of an array that are stored at once.
const RUN_WORDS: usize = 32;

/// Gathers words of an array.
struct Run([u64; RUN_WORDS]);

impl Sink for Run {
    #[inline(always)]
    fn put(&mut self, at: u32, word: u64, mask: u64) {
        let target = &mut self.0[at as usize / 8];
        *target = *target & !mask | word & mask;
    }
}

/// A type with invalid bit patterns, stored as a number and checked when it is read.
pub trait Checkable: Copy + 'static {
    /// The value as a number.
    fn to_bits(self) -> u32;
    /// The value of a number, if it has one.
    fn from_bits(bits: u32) -> Option<Self>;
}

impl Checkable for bool {
    fn to_bits(self) -> u32 {
        self.into()
    }
    fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Checkable for char {
    fn to_bits(self) -> u32 {
        self.into()
    }
    fn from_bits(bits: u32) -> Option<Self> {
        char::from_u32(bits)
    }
}

/// A [`Checkable`] value as it is stored: any four bytes, some of which mean a `T`.
#[repr(transparent)]
pub struct Checked<T> {
    bits: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Checked<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Checked<T> {}

impl<T: Checkable> Checked<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self {
            bits: value.to_bits(),
            of: PhantomData,
        }
    }

    /// The value, or `None` if the stored number means none.
    pub fn get(self) -> Option<T> {
        T::from_bits(self.bits)
    }
}

impl<T: Checkable> From<T> for Checked<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Checkable> Value for Checked<T> {
    const SIZE: u32 = 4;
    const ALIGN: u32 = 4;
    const KIND: FieldKind = FieldKind::Checked;

    #[inline]
    fn decode<S: Source + ?Sized>(source: &S, at: u32) -> Self {
        Self {
            bits: u32::decode(source, at),
            of: PhantomData,
        }
    }

    #[inline]
    fn encode<S: Sink + ?Sized>(&self, sink: &mut S, at: u32) {
        self.bits.encode(sink, at);
    }
}
impl<T: Checkable> Plain for Checked<T> {}

/// A field of the objects of type `T` that holds an `F`. The derive macro makes a constant for each field.
pub struct Field<T, F> {
    offset: u32,
    of: PhantomData<fn(T) -> F>,
}

impl<T, F> Clone for Field<T, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, F> Copy for Field<T, F> {}

impl<T, F: Value> Field<T, F> {
    /// The field at this byte of the body. Made by the derive macro, which knows the layout.
    #[doc(hidden)]
    pub const fn at_offset(offset: u32) -> Self {
        Self {
            offset,
            of: PhantomData,
        }
    }

    /// Bytes from the start of the body.
    #[inline(always)]
    pub const fn offset(self) -> u32 {
        self.offset
    }
}

impl<T, U: Target> Field<T, Ref<U>> {
    /// This field, for objects that refer to one of two types through it. The target's header says which of them it is
    /// ([`Obj::check_type`]), and only that check compares the layout of `W` with the pool's: the field's declaration
    /// names only `U`. The collector goes by the headers, too, except for fields of `Ref<Bytes>` and `Ref<Raw>`, which
    /// cannot be retyped.
    ///
    /// [`Obj::check_type`]: crate::Obj::check_type
    #[inline(always)]
    pub const fn retyped<W: Stored>(self) -> Field<T, Ref<W>> {
        const { assert!(U::BUILT_IN.is_none(), "the collector trusts this field") }
        Field {
            offset: self.offset,
            of: PhantomData,
        }
    }
}

impl<T, F: Value, const N: usize> Field<T, [F; N]> {
    /// Elements of the array.
    pub const LEN: usize = N;

    /// One element. Panics if `index` is not below the array's length, as indexing does: a caller
    /// that takes an index from media checks it first.
    #[inline(always)]
    pub const fn at(self, index: usize) -> Field<T, F> {
        assert!(index < N, "element index out of range");
        Field {
            offset: self.offset + index as u32 * F::SIZE,
            of: PhantomData,
        }
    }
}
