//! Types, from the tables that a program has of them.

use core::ffi::{CStr, c_char};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use firn_heap::{FieldDescriptor, FieldKind, TypeDescriptor};

use crate::status::{Failure, Outcome};

/// Bytes of a reference.
const REFERENCE_BYTES: u32 = 8;

/// `firn_field`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: *const c_char,
    pub offset: u32,
    pub bytes: u32,
}

/// `firn_type`.
#[repr(C)]
#[derive(Debug)]
pub struct Type {
    pub name: *const c_char,
    pub version: u32,
    pub size: u32,
    pub field_count: u32,
    pub fields: *const Field,
}

/// Descriptors that were made, each once: they stay for good, because the heap tells types apart by where their
/// descriptors lie.
static DESCRIPTORS: Mutex<Option<HashMap<Described, &'static TypeDescriptor>>> = Mutex::new(None);

/// A type as its table says.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Described {
    name: String,
    version: u32,
    size: u32,
    references: Vec<(String, u32, u32)>,
}

/// The descriptor of a program's type.
///
/// # Safety
///
/// The pointer is null or leads to a type whose pointers are null or as the header says.
pub(crate) unsafe fn descriptor(of: *const Type) -> Outcome<&'static TypeDescriptor> {
    // SAFETY: the caller says so.
    let Some(of) = (unsafe { of.as_ref() }) else {
        return Err(Failure::invalid("the type is null"));
    };
    // SAFETY: the caller says so of the type's name.
    let name = unsafe { text(of.name, "the name of a type") }?;
    if of.field_count > 0 && of.fields.is_null() {
        return Err(Failure::invalid(format!(
            "type `{name}` has {} fields, but no table of them",
            of.field_count
        )));
    }
    let mut references = Vec::new();
    for index in 0..of.field_count as usize {
        // SAFETY: the table has that many entries, as the caller says of the type.
        let field = unsafe { *of.fields.add(index) };
        // SAFETY: likewise of the field's name.
        let field_name = unsafe { text(field.name, "the name of a field") }?;
        if field.bytes == 0 || !field.bytes.is_multiple_of(REFERENCE_BYTES) {
            return Err(Failure::invalid(format!(
                "field `{field_name}` of type `{name}` has {} bytes; references have {REFERENCE_BYTES} each",
                field.bytes
            )));
        }
        references.push((field_name, field.offset, field.bytes));
    }
    let described = Described {
        name,
        version: of.version,
        size: of.size,
        references,
    };
    let mut known = DESCRIPTORS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    Ok(known.entry(described).or_insert_with_key(leaked))
}

fn leaked(described: &Described) -> &'static TypeDescriptor {
    let field = |(name, offset, bytes): &(String, u32, u32)| FieldDescriptor {
        name: name.clone().leak(),
        kind: FieldKind::Reference,
        offset: *offset,
        size: REFERENCE_BYTES,
        count: bytes / REFERENCE_BYTES,
        target: "",
    };
    let fields: Vec<_> = described.references.iter().map(field).collect();
    Box::leak(Box::new(TypeDescriptor {
        name: described.name.clone().leak(),
        version: described.version,
        size: described.size,
        fields: fields.leak(),
    }))
}

/// A program's text.
///
/// # Safety
///
/// The pointer is null or leads to bytes that end with a zero.
pub(crate) unsafe fn text(pointer: *const c_char, what: &str) -> Outcome<String> {
    // SAFETY: the caller says so, and it is copied.
    unsafe { text_in_place(pointer, what) }.map(str::to_owned)
}

/// The same, as it lies there.
///
/// # Safety
///
/// The bytes stay as they are as long as it is used, too.
pub(crate) unsafe fn text_in_place<'a>(pointer: *const c_char, what: &str) -> Outcome<&'a str> {
    if pointer.is_null() {
        return Err(Failure::invalid(format!("{what} is null")));
    }
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::invalid(format!("{what} is no UTF-8")))
}
