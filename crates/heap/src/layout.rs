//! Layouts of types: their digests, and the difference of two layouts.
//!
//! Only information that both sides have is compared. Records of older versions and descriptions in C may leave out the
//! target of a reference, the content of a nested structure, or the fields that are no references. Where one side says
//! less, the rest is compared, and the pool keeps the fuller record.

use firn_format::registry::{FieldKind, FieldRecord, TypeRecord};

use crate::stored::REFS;

/// A digest of fields: 64 bits of FNV-1a, which a constant expression can compute.
#[derive(Clone, Copy)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    const fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut i = 0;
        while i < bytes.len() {
            self.0 = (self.0 ^ bytes[i] as u64).wrapping_mul(0x100_0000_01b3);
            i += 1;
        }
        self
    }

    const fn text(self, text: &str) -> Self {
        self.bytes(&(text.len() as u32).to_le_bytes())
            .bytes(text.as_bytes())
    }

    /// Adds a field: name and target; kind; offset, size and count; digest of its nested fields.
    pub(crate) const fn field(
        self,
        (name, target): (&str, &str),
        kind: FieldKind,
        [offset, size, count]: [u32; 3],
        layout: u64,
    ) -> Self {
        self.text(name)
            .text(target)
            .bytes(&[kind as u8])
            .bytes(&offset.to_le_bytes())
            .bytes(&size.to_le_bytes())
            .bytes(&count.to_le_bytes())
            .bytes(&layout.to_le_bytes())
    }

    /// The digest; 0 stands for none.
    pub(crate) const fn get(self) -> u64 {
        if self.0 == 0 { 1 } else { self.0 }
    }
}

/// The result of comparing two descriptions of one type.
pub(crate) enum Comparison {
    /// The stored one says everything that the program's does.
    Same,
    /// They agree, and the program's says more. The record has the information of both.
    Fuller(TypeRecord),
    /// They differ; in words, how.
    Differ(String),
}

/// Compares a type's record in a pool with that of the program. Name and version are the same.
pub(crate) fn compare(stored: &TypeRecord, program: &TypeRecord) -> Comparison {
    if !agree(stored, program) {
        return Comparison::Differ(difference(stored, program));
    }
    let fields = merged(stored, program);
    match fields == stored.fields {
        true => Comparison::Same,
        false => Comparison::Fuller(TypeRecord {
            fields,
            ..stored.clone()
        }),
    }
}

fn agree(stored: &TypeRecord, program: &TypeRecord) -> bool {
    let [s, p] = sides(stored, program);
    let equal = |(s, p): (&FieldRecord, &FieldRecord)| is_compatible(s, p);
    stored.size == program.size && s.len() == p.len() && s.into_iter().zip(p).all(equal)
}

/// The fields that both sides list: all of them, or only the references if one side lists no others.
fn sides<'a>(a: &'a TypeRecord, b: &'a TypeRecord) -> [Vec<&'a FieldRecord>; 2] {
    let references_only = [a, b].map(lists_references_only) != [false; 2];
    [a, b].map(|record| {
        let fields = record.fields.iter();
        fields
            .filter(|f| refers(f) || !references_only)
            .collect::<Vec<_>>()
    })
}

fn lists_references_only(record: &TypeRecord) -> bool {
    record.fields.iter().all(refers)
}

fn refers(field: &FieldRecord) -> bool {
    matches!(field.kind, FieldKind::Reference | FieldKind::Pairs)
}

fn is_compatible(a: &FieldRecord, b: &FieldRecord) -> bool {
    let place = |f: &FieldRecord| (f.kind, f.offset, f.size, f.count);
    let same_layout = a.layout == b.layout || a.layout == 0 || b.layout == 0;
    let targets = says_all_of(&a.target, &b.target) || says_all_of(&b.target, &a.target);
    a.name == b.name && place(a) == place(b) && same_layout && targets
}

/// Whether `target` says at least as much about the referenced type as `other`.
fn says_all_of(target: &str, other: &str) -> bool {
    let is_array = |name: &str| name.starts_with(REFS) && name[REFS.len()..].starts_with('<');
    target == other || other.is_empty() || other == REFS && is_array(target)
}

/// The fields of two records that agree, each taken from the record that says more.
fn merged(stored: &TypeRecord, program: &TypeRecord) -> Vec<FieldRecord> {
    let (base, other) = match lists_references_only(stored) && !lists_references_only(program) {
        true => (program, stored),
        false => (stored, program),
    };
    let more = |field: &FieldRecord| {
        let also = |f: &&FieldRecord| (f.kind, f.offset) == (field.kind, field.offset);
        let Some(also) = other.fields.iter().find(also) else {
            return field.clone();
        };
        let target = match says_all_of(&also.target, &field.target) {
            true => also.target.clone(),
            false => field.target.clone(),
        };
        FieldRecord {
            target,
            layout: field.layout.max(also.layout),
            ..field.clone()
        }
    };
    base.fields.iter().map(more).collect()
}

/// The difference of two layouts of a type: the first field that differs, and both layouts.
pub(crate) fn difference(stored: &TypeRecord, program: &TypeRecord) -> String {
    let mut parts: Vec<String> = first_difference(stored, program).into_iter().collect();
    let (s, p) = (stored.size, program.size);
    if s != p {
        parts.push(format!("{s} bytes stored, {p} in the program"));
    }
    let [s, p] = [stored, program].map(digest);
    parts.push(format!("layout {s:016x} stored, {p:016x} in the program"));
    parts.join("; ")
}

fn first_difference(stored: &TypeRecord, program: &TypeRecord) -> Option<String> {
    let [s, p] = sides(stored, program);
    let at = |i: usize| (s.get(i).copied(), p.get(i).copied());
    let first = (0..s.len().max(p.len())).map(at).find(|&pair| match pair {
        (Some(s), Some(p)) => !is_compatible(s, p),
        _ => true,
    })?;
    // A field of the same name is the same field, even at another place.
    let named = |fields: &[&'_ FieldRecord], name: &str| -> Option<String> {
        fields.iter().find(|f| f.name == name).map(|f| place_of(f))
    };
    let (name, then, now) = match first {
        (Some(s), Some(p)) if s.name == p.name => (&s.name, Some(place_of(s)), Some(place_of(p))),
        (Some(field), _) => (&field.name, Some(place_of(field)), named(&p, &field.name)),
        (None, field) => (&field?.name, named(&s, &field?.name), field.map(place_of)),
    };
    let none = || "no such field".to_owned();
    let (then, now) = (then.unwrap_or_else(none), now.unwrap_or_else(none));
    Some(format!(
        "field `{name}`: {then} stored, {now} in the program"
    ))
}

/// A field in words.
fn place_of(field: &FieldRecord) -> String {
    let target = match field.target.as_str() {
        "" => "something",
        named => named,
    };
    let what = match field.kind {
        FieldKind::Unsigned => "unsigned".to_owned(),
        FieldKind::Signed => "signed".to_owned(),
        FieldKind::Float => "float".to_owned(),
        FieldKind::Checked => "checked".to_owned(),
        FieldKind::Pairs => "pairs".to_owned(),
        FieldKind::Reference => format!("reference to {target}"),
        FieldKind::Nested if field.target.is_empty() => "opaque".to_owned(),
        FieldKind::Nested => format!("structure {target} (layout {:016x})", field.layout),
    };
    let count = match field.count {
        1 => String::new(),
        count => format!("{count} times "),
    };
    let (size, offset) = (field.size, field.offset);
    format!("{count}{what} of {size} bytes at byte {offset}")
}

fn digest(record: &TypeRecord) -> u64 {
    let add = |digest: Digest, f: &FieldRecord| {
        let place = [f.offset, f.size, f.count];
        digest.field((&f.name, &f.target), f.kind, place, f.layout)
    };
    record.fields.iter().fold(Digest::new(), add).get()
}
