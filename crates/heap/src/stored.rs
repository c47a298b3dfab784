//! Stored types: the layout of objects, and what the registry must know to trace them.

use core::marker::PhantomData;

use firn_format::header::TypeId;
use firn_format::reference::RefWord;
use firn_format::registry::{FieldKind, FieldRecord, MAX_NAME_BYTES, RecordState, TypeRecord};

use crate::layout::Digest;
use crate::value::{Sink, Source, Value};

/// A type whose objects live in a pool. Derive it; the layout is that of `#[repr(C)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stored type",
    note = "put `#[derive(Stored)] #[repr(C)]` on the structure"
)]
pub trait Stored: Sized + 'static {
    /// The descriptor's name; separate, because descriptors name each other's types.
    const TYPE_NAME: &'static str;
    /// Name, version and fields.
    const DESCRIPTOR: &'static TypeDescriptor;

    /// Writes all fields.
    fn encode<S: Sink + ?Sized>(&self, sink: &mut S);

    /// Reads all fields; for migrations only, since it takes references out of their guard.
    #[doc(hidden)]
    fn decode<S: Source + ?Sized>(source: &S) -> Self;
}

/// A type that a reference may name: a [`Stored`] type, or one of the variable-length ones.
pub trait Target: 'static {
    /// The name in the registry.
    const NAME: &'static str;
    /// The fixed number of a built-in type; registered types have none before they are registered.
    const BUILT_IN: Option<TypeId>;
    /// The descriptor of the type that must be registered before objects of this one are used: its own, or that of the
    /// target of an array's references.
    fn described() -> Option<&'static TypeDescriptor>;
}

impl<T: Stored> Target for T {
    const NAME: &'static str = T::TYPE_NAME;
    const BUILT_IN: Option<TypeId> = None;

    #[inline(always)]
    fn described() -> Option<&'static TypeDescriptor> {
        Some(T::DESCRIPTOR)
    }
}

/// One version of a type, as the program declares it.
#[derive(Debug)]
pub struct TypeDescriptor {
    /// Name, unique within a pool together with the version.
    pub name: &'static str,
    /// Version; a changed layout needs a higher one and a migration.
    pub version: u32,
    /// Bytes of the body.
    pub size: u32,
    /// Fields by offset.
    pub fields: &'static [FieldDescriptor],
    /// Types that are registered along with this one, besides the targets of its fields: for descriptors that are made
    /// while the program runs.
    pub with: &'static [&'static TypeDescriptor],
}

/// One field, as the program declares it.
#[derive(Debug)]
pub struct FieldDescriptor {
    /// Name.
    pub name: &'static str,
    /// The kind of its content.
    pub kind: FieldKind,
    /// Bytes from the start of the body.
    pub offset: u32,
    /// Bytes of an element.
    pub size: u32,
    /// Elements.
    pub count: u32,
    /// The type to which a reference refers; empty if unspecified.
    pub target: &'static str,
    /// Digest of the fields of a nested structure, 0 for anything else ([`FieldDescriptor::digest`]).
    pub layout: u64,
    /// Where the descriptor of the referenced type is.
    #[doc(hidden)]
    pub leads_to: fn() -> Option<&'static TypeDescriptor>,
}

impl FieldDescriptor {
    /// A field that is described while the program runs: `count` elements of `size` bytes from byte `offset` on.
    pub const fn new(name: &'static str, kind: FieldKind, [offset, size, count]: [u32; 3]) -> Self {
        Self {
            name,
            kind,
            offset,
            size,
            count,
            target: "",
            layout: 0,
            leads_to: || None,
        }
    }

    /// This field as references to objects of the named type. For a comparison of that type, too, its descriptor must
    /// be among [`TypeDescriptor::with`].
    pub const fn to(self, target: &'static str) -> Self {
        Self { target, ..self }
    }

    /// The descriptor of a field of type `F`. Used by the derive macro.
    #[doc(hidden)]
    pub const fn of<F: Value>(name: &'static str, offset: usize) -> Self {
        assert!((offset as u32).is_multiple_of(F::ALIGN));
        Self {
            name,
            kind: F::KIND,
            offset: offset as u32,
            size: F::ELEMENT_SIZE,
            count: F::COUNT,
            target: F::TARGET,
            layout: F::LAYOUT,
            leads_to: F::leads_to,
        }
    }

    /// A digest of a structure's fields, never 0.
    #[doc(hidden)]
    pub const fn digest(fields: &[Self]) -> u64 {
        let (mut digest, mut at) = (Digest::new(), 0);
        while at < fields.len() {
            let f = &fields[at];
            digest = digest.field(
                (f.name, f.target),
                f.kind,
                [f.offset, f.size, f.count],
                f.layout,
            );
            at += 1;
        }
        digest.get()
    }
}

impl TypeDescriptor {
    /// The end of the last reference in the body, in bytes; zero without references.
    pub(crate) const fn end_of_references(&self) -> u32 {
        let (mut end, mut field) = (0, 0);
        while field < self.fields.len() {
            let f = &self.fields[field];
            let field_end = f.offset + f.size * f.count;
            if matches!(f.kind, FieldKind::Reference) && field_end > end {
                end = field_end;
            }
            field += 1;
        }
        end
    }

    /// The registry's record of this type under the number `id`.
    pub(crate) fn record(&self, id: TypeId, state: RecordState) -> TypeRecord {
        TypeRecord {
            id,
            state,
            name: self.name.to_owned(),
            version: self.version,
            size: self.size,
            fields: self
                .fields
                .iter()
                .map(|f| FieldRecord {
                    name: f.name.to_owned(),
                    kind: f.kind,
                    offset: f.offset,
                    size: f.size,
                    count: f.count,
                    target: f.target.to_owned(),
                    layout: f.layout,
                })
                .collect(),
        }
    }
}

/// An object of bytes: a length, then the bytes. Strings are stored in these.
pub struct Bytes(());

impl Target for Bytes {
    const NAME: &'static str = "Bytes";
    const BUILT_IN: Option<TypeId> = Some(TypeId::BYTES);

    #[inline(always)]
    fn described() -> Option<&'static TypeDescriptor> {
        None
    }
}

/// An array of references, of a length chosen when it is allocated.
pub struct Refs<T>(PhantomData<fn() -> T>);

impl<T: Target> Target for Refs<T> {
    const NAME: &'static str = RefsName::<T>::TEXT;
    const BUILT_IN: Option<TypeId> = Some(TypeId::REFS);

    #[inline(always)]
    fn described() -> Option<&'static TypeDescriptor> {
        T::described()
    }
}

/// The registry's name for any array of references, and the beginning of the names of arrays of one type.
pub(crate) const REFS: &str = "Refs";

/// The name of the arrays of references to `T`: `Refs<Node>`.
struct RefsName<T>(PhantomData<fn() -> T>);

impl<T: Target> RefsName<T> {
    const BYTES: [u8; MAX_NAME_BYTES] = {
        let mut bytes = [0; MAX_NAME_BYTES];
        let parts = [REFS.as_bytes(), b"<", T::NAME.as_bytes(), b">"];
        let (mut part, mut end) = (0, 0);
        while part < parts.len() {
            let mut i = 0;
            while i < parts[part].len() && end < bytes.len() {
                bytes[end] = parts[part][i];
                (i, end) = (i + 1, end + 1);
            }
            part += 1;
        }
        bytes
    };

    /// The registry has no room for a longer name; then the name omits the type.
    const TEXT: &'static str = {
        let len = REFS.len() + T::NAME.len() + 2;
        if len <= MAX_NAME_BYTES {
            match core::str::from_utf8(Self::BYTES.split_at(len).0) {
                Ok(text) => text,
                Err(_) => REFS,
            }
        } else {
            REFS
        }
    };
}

/// Bytes without structure, for programs that store through raw addresses.
pub struct Raw(());

impl Target for Raw {
    const NAME: &'static str = "Raw";
    const BUILT_IN: Option<TypeId> = Some(TypeId::RAW);

    #[inline(always)]
    fn described() -> Option<&'static TypeDescriptor> {
        None
    }
}

/// A field that refers to an object of type `T`, or to nothing.
///
/// In a program's hands it is always null: it is set with `Obj::link` and read with `Obj::follow`, so a reference never
/// outlives the guard or transaction that read it.
#[repr(transparent)]
pub struct Ref<T> {
    word: RefWord,
    to: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// Refers to nothing.
    pub const NULL: Self = Self {
        word: RefWord::NULL,
        to: PhantomData,
    };

    /// Refers to nothing.
    pub const fn null() -> Self {
        Self::NULL
    }

    /// This reference, to another version of its type, for the function of a migration. The collector trusts it: it
    /// does not search the target of a reference to [`Bytes`] or [`Raw`] for references.
    pub fn retyped<U>(self) -> Ref<U> {
        Ref {
            word: self.word,
            to: PhantomData,
        }
    }
}

impl<T> Default for Ref<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T: Target> Value for Ref<T> {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 8;
    const KIND: FieldKind = FieldKind::Reference;
    const TARGET: &'static str = T::NAME;

    fn leads_to() -> Option<&'static TypeDescriptor> {
        T::described()
    }

    #[inline]
    fn decode<S: Source + ?Sized>(source: &S, at: u32) -> Self {
        Self {
            word: RefWord(source.reference_word(at)),
            to: PhantomData,
        }
    }

    #[inline]
    fn encode<S: Sink + ?Sized>(&self, sink: &mut S, at: u32) {
        sink.put(at, self.word.0, u64::MAX);
    }
}
