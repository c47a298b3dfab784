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

/// `firn_member`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub field: Field,
    pub kind: u32,
    pub element: u32,
    pub to: Option<unsafe extern "C" fn() -> *const Type>,
}

/// `FIRN_MEMBERS`: the fields of a type are those of members.
const MEMBERS: u32 = 1 << 31;
/// Types that one may lead to, itself included.
const MOST_TYPES: usize = 4096;

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
/// descriptors lie. The key is the type and all that it leads to.
static DESCRIPTORS: Mutex<Option<HashMap<Vec<Described>, &'static TypeDescriptor>>> =
    Mutex::new(None);

/// A type as its table says.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Described {
    name: String,
    version: u32,
    size: u32,
    members: Vec<DescribedMember>,
}

/// One member.
#[derive(Clone, PartialEq, Eq, Hash)]
struct DescribedMember {
    name: String,
    kind: FieldKind,
    /// Offset, bytes of an element, elements.
    place: [u32; 3],
    target: String,
}

/// The descriptor of a program's type, with those of all types that its members say they lead to.
///
/// # Safety
///
/// The pointer is null or leads to a type whose pointers are null or as the header says.
pub(crate) unsafe fn descriptor(of: *const Type) -> Outcome<&'static TypeDescriptor> {
    let mut types = vec![of];
    let mut all = Vec::new();
    while let Some(&next) = types.get(all.len()) {
        // SAFETY: the caller says so of the first; the others came from functions that yield such types.
        all.push(unsafe { described(next, &mut types) }?);
        if types.len() > MOST_TYPES {
            let name = &all[0].name;
            return Err(Failure::invalid(format!(
                "type `{name}` leads to more than {MOST_TYPES} types; a member's `to` function must always return the same table"
            )));
        }
    }
    let mut known = DESCRIPTORS.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(known_or_made(known.get_or_insert_default(), all))
}

fn known_or_made(
    known: &mut HashMap<Vec<Described>, &'static TypeDescriptor>,
    all: Vec<Described>,
) -> &'static TypeDescriptor {
    if let Some(descriptor) = known.get(&all) {
        return descriptor;
    }
    let leads = all[1..].iter();
    let with: Vec<_> = leads
        .map(|other| known_or_made(known, vec![other.clone()]))
        .collect();
    let made = leaked(&all[0], with.leak());
    known.insert(all, made);
    made
}

/// A type as its table says; types that it leads to join `types`.
///
/// # Safety
///
/// As [`descriptor`].
unsafe fn described(of: *const Type, types: &mut Vec<*const Type>) -> Outcome<Described> {
    // SAFETY: the caller says so.
    let Some(of) = (unsafe { of.as_ref() }) else {
        return Err(Failure::invalid("the type is null"));
    };
    // SAFETY: the caller says so of the type's name.
    let name = unsafe { text(of.name, "the name of a type") }?;
    let count = of.field_count & !MEMBERS;
    if count > 0 && of.fields.is_null() {
        return Err(Failure::invalid(format!(
            "type `{name}` has {count} fields, but its field table is null"
        )));
    }
    let mut members = Vec::new();
    for index in 0..count as usize {
        let member = match of.field_count & MEMBERS {
            0 => Member {
                // SAFETY: the table has that many entries, as the caller says of the type.
                field: unsafe { *of.fields.add(index) },
                kind: 0,
                element: REFERENCE_BYTES,
                to: None,
            },
            // SAFETY: the same, of members, each of which begins with a field.
            _ => unsafe { *of.fields.cast::<Member>().add(index) },
        };
        // SAFETY: the caller says so of the member's pointers.
        members.push(unsafe { described_member(&name, &member, types) }?);
    }
    Ok(Described {
        name,
        version: of.version,
        size: of.size,
        members,
    })
}

/// A member as the table says; the type that it leads to joins `types`.
///
/// # Safety
///
/// The member's name is null or a text, and what yields the type that it leads to may be called.
unsafe fn described_member(
    of: &str,
    member: &Member,
    types: &mut Vec<*const Type>,
) -> Outcome<DescribedMember> {
    let Field {
        name,
        offset,
        bytes,
    } = member.field;
    // SAFETY: the caller says so.
    let name = unsafe { text(name, "the name of a field") }?;
    let kind = match member.kind {
        0 => FieldKind::Reference,
        1 => FieldKind::Unsigned,
        2 => FieldKind::Signed,
        3 => FieldKind::Float,
        4 => FieldKind::Nested,
        other => {
            return Err(Failure::invalid(format!(
                "field `{name}` of type `{of}` has kind {other}, which is not a firn_member_kind"
            )));
        }
    };
    let element = match kind {
        FieldKind::Reference => REFERENCE_BYTES,
        _ => member.element,
    };
    if kind == FieldKind::Reference && (bytes == 0 || !bytes.is_multiple_of(REFERENCE_BYTES)) {
        return Err(Failure::invalid(format!(
            "field `{name}` of type `{of}` has {bytes} bytes, not a multiple of {REFERENCE_BYTES}, the size of a reference"
        )));
    }
    if element == 0 || !bytes.is_multiple_of(element) {
        return Err(Failure::invalid(format!(
            "field `{name}` of type `{of}` has {bytes} bytes, not a multiple of its elements' {element}"
        )));
    }
    let mut target = String::new();
    if kind == FieldKind::Reference
        && let Some(to) = member.to
    {
        // SAFETY: the caller says so.
        let to = unsafe { to() };
        // SAFETY: it yields null or a type.
        if let Some(leads_to) = unsafe { to.as_ref() } {
            // SAFETY: the caller says so of the type's name.
            target = unsafe { text(leads_to.name, "the name of a type") }?;
            if !types.contains(&to) {
                types.push(to);
            }
        }
    }
    let place = [offset, element, bytes / element];
    Ok(DescribedMember {
        name,
        kind,
        place,
        target,
    })
}

fn leaked(
    described: &Described,
    with: &'static [&'static TypeDescriptor],
) -> &'static TypeDescriptor {
    let field = |member: &DescribedMember| {
        let name = member.name.clone().leak();
        FieldDescriptor::new(name, member.kind, member.place).to(member.target.clone().leak())
    };
    let fields: Vec<_> = described.members.iter().map(field).collect();
    Box::leak(Box::new(TypeDescriptor {
        name: described.name.clone().leak(),
        version: described.version,
        size: described.size,
        fields: fields.leak(),
        with,
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

/// Borrows a zero-terminated string from the program.
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
        .map_err(|_| Failure::invalid(format!("{what} is not valid UTF-8")))
}
