//! Types, from the program's tables of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use firn_heap::{FieldDescriptor, FieldKind, TypeDescriptor};

use crate::given::{In, Source, Text};
use crate::status::{Failure, Outcome};

/// Bytes of a reference.
const REFERENCE_BYTES: u32 = 8;

/// `firn_field`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: Text<'static>,
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
    pub to: Option<extern "C" fn() -> In<'static, Type>>,
}

/// `FIRN_MEMBERS`: the fields of a type are described as members.
const MEMBERS: u32 = 1 << 31;
/// Types that one type may lead to, itself included.
const MOST_TYPES: usize = 4096;

/// `firn_type`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Type {
    pub name: Text<'static>,
    pub version: u32,
    pub size: u32,
    field_count: u32,
    fields: Source<'static, Field>,
}

impl Type {
    /// A type whose fields are references.
    pub fn new(name: Text<'static>, version: u32, size: u32, fields: &'static [Field]) -> Self {
        Self {
            name,
            version,
            size,
            field_count: fields.len() as u32,
            fields: Source::of(fields),
        }
    }

    /// The type with equally many fields, but with a null field table, which is refused.
    #[must_use]
    pub fn without_table(self) -> Self {
        Self {
            fields: Source::NULL,
            ..self
        }
    }

    fn count(&self) -> u32 {
        self.field_count & !MEMBERS
    }

    /// The descriptions of the members.
    fn members(&self) -> impl Iterator<Item = Member> + '_ {
        let has_members = self.field_count & MEMBERS != 0;
        (0..self.count() as usize).map(move |index| {
            let field = self.fields.pointer().wrapping_add(index);
            let member = self.fields.pointer().cast::<Member>().wrapping_add(index);
            // SAFETY: the table, which is not null, has `count` entries: `new` counted them, or a program's header
            // promises them. They are members where MEMBERS says so, fields elsewhere.
            unsafe {
                match has_members {
                    true => *member,
                    false => Member {
                        field: *field,
                        kind: 0,
                        element: REFERENCE_BYTES,
                        to: None,
                    },
                }
            }
        })
    }
}

/// Descriptors, made once each: they stay for good, because the heap distinguishes types by their descriptors'
/// addresses. The key is the type and all types that it leads to.
static DESCRIPTORS: Mutex<Option<HashMap<Vec<Described>, &'static TypeDescriptor>>> =
    Mutex::new(None);

/// A type as its table describes it.
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

/// The descriptor of a program's type, with those of all types to which its members lead.
pub(crate) fn descriptor(of: In<'static, Type>) -> Outcome<&'static TypeDescriptor> {
    let mut types = vec![of];
    let mut all = Vec::new();
    while let Some(&next) = types.get(all.len()) {
        all.push(described(next, &mut types)?);
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

/// A type as its table describes it; types that it leads to are added to `types`.
fn described(of: In<'static, Type>, types: &mut Vec<In<'static, Type>>) -> Outcome<Described> {
    let Some(of) = of.get() else {
        return Err(Failure::invalid("the type is null"));
    };
    let name = of.name.text("the name of a type")?;
    let count = of.count();
    if count > 0 && of.fields.is_null() {
        return Err(Failure::invalid(format!(
            "type `{name}` has {count} fields, but its field table is null"
        )));
    }
    let members = of
        .members()
        .map(|member| described_member(name, &member, types));
    let members: Outcome<Vec<_>> = members.collect();
    Ok(Described {
        name: name.to_owned(),
        version: of.version,
        size: of.size,
        members: members?,
    })
}

/// A member as the table describes it; the type that it leads to is added to `types`.
fn described_member(
    of: &str,
    member: &Member,
    types: &mut Vec<In<'static, Type>>,
) -> Outcome<DescribedMember> {
    let Field {
        name,
        offset,
        bytes,
    } = member.field;
    let name = name.text("the name of a field")?;
    let kind = kind_of(of, name, member.kind)?;
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
    let mut target = "";
    if kind == FieldKind::Reference
        && let Some(to) = member.to
    {
        let to = to();
        if let Some(leads_to) = to.get() {
            target = leads_to.name.text("the name of a type")?;
            if !types.iter().any(|known| known.addr() == to.addr()) {
                types.push(to);
            }
        }
    }
    Ok(DescribedMember {
        name: name.to_owned(),
        kind,
        place: [offset, element, bytes / element],
        target: target.to_owned(),
    })
}

/// The kind of a member, from its `firn_member_kind`.
fn kind_of(of: &str, name: &str, kind: u32) -> Outcome<FieldKind> {
    match kind {
        0 => Ok(FieldKind::Reference),
        1 => Ok(FieldKind::Unsigned),
        2 => Ok(FieldKind::Signed),
        3 => Ok(FieldKind::Float),
        4 => Ok(FieldKind::Nested),
        other => Err(Failure::invalid(format!(
            "field `{name}` of type `{of}` has kind {other}, which is not a firn_member_kind"
        ))),
    }
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
