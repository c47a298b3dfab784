//! The type registry: enough about every type to trace and print a pool without its program.
//!
//! Records follow one another from the registry's start to the sealed end word; each carries its length and checksum. A
//! record is written and fenced before the end word moves past it. A later record of a number adds facts about its
//! type, or tells what became of it. Each name has one version in use (`docs/decisions/type-layouts.md`).

use crate::bytes::{Reader, Writer};
use crate::geometry::{REGISTRY, REGISTRY_BYTES};
use crate::header::TypeId;
use crate::{FormatError, checksum};

/// Bytes in front of a record: its length and its checksum.
pub const RECORD_HEADER_BYTES: usize = 16;
/// More types than a pool's registry has room for. Their numbers are consecutive.
pub const MOST_TYPES: u32 = (REGISTRY_BYTES / RECORD_HEADER_BYTES as u64) as u32;
/// Longest name of a type or field, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 255;

/// The kind of a field's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum FieldKind {
    /// Unsigned integer.
    Unsigned = 1,
    /// Signed integer.
    Signed = 2,
    /// IEEE 754 number.
    Float = 3,
    /// Reference to an object of the type named by `target`.
    Reference = 4,
    /// A value that is checked when it is read: bool, char, an enum.
    Checked = 5,
    /// A structure of its own, without references.
    Nested = 6,
    /// Any content, with references in it: wherever two words hold the pool's 64-bit id and the position of a byte of
    /// an object, they refer to that object. The field is the whole object, whatever its size.
    Pairs = 7,
}

/// A type's state, as a record declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum RecordState {
    /// The type is in use.
    Current = 1,
    /// Objects of older versions are being converted to this one.
    Migrating = 2,
    /// The migration into this version is complete: no object of an older version is reachable.
    Migrated = 3,
}

/// One field, or an array of equal fields.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct FieldRecord {
    /// The field's name.
    pub name: String,
    /// The kind of its content.
    pub kind: FieldKind,
    /// Bytes from the start of the object's body.
    pub offset: u32,
    /// Bytes of one element.
    pub size: u32,
    /// Elements; 1 if it is not an array.
    pub count: u32,
    /// For references, the name of the type referred to; for nested structures, their own name. Empty if the program
    /// does not say; `Refs` alone, in records of version 1, does not say what the array's references lead to.
    pub target: String,
    /// Digest of a nested structure's own fields; 0 for others, and in records of version 1.
    pub layout: u64,
}

/// One version of one type.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct TypeRecord {
    /// Its number in object headers.
    pub id: TypeId,
    /// The type's state. A later record of the number overrides an earlier one.
    pub state: RecordState,
    /// The type's name, unique together with the version.
    pub name: String,
    /// The version, counted by the program.
    pub version: u32,
    /// Bytes of the body, without the header.
    pub size: u32,
    /// The fields in order of their offset.
    pub fields: Vec<FieldRecord>,
}

impl TypeRecord {
    /// The bytes on media, a multiple of 16.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u32(self.id.0);
        w.u8(self.state as u8);
        w.u32(self.version);
        w.u32(self.size);
        w.text(&self.name);
        w.u32(self.fields.len() as u32);
        for field in &self.fields {
            w.text(&field.name);
            w.u8(field.kind as u8);
            w.u32(field.offset);
            w.u32(field.size);
            w.u32(field.count);
            w.text(&field.target);
        }
        // The digests follow the fields: a record of version 1, which ends here, then reads as one without digests.
        if self.fields.iter().any(|field| field.layout != 0) {
            self.fields.iter().for_each(|field| w.u64(field.layout));
        }
        let padded = (RECORD_HEADER_BYTES + w.0.len()).next_multiple_of(16);
        w.pad_to(padded - RECORD_HEADER_BYTES);
        let mut record = Writer::default();
        record.u64(padded as u64);
        record.u64(checksum(&w.0, padded as u64));
        record.bytes(&w.0);
        record.0
    }

    /// Takes the first record off `bytes`, which begin `at` bytes into the registry.
    pub fn take(bytes: &mut &[u8], at: usize) -> Result<Self, FormatError> {
        let address = REGISTRY.bytes() + at as u64;
        let damaged = || FormatError::Checksum {
            what: "a type record",
            at: address,
        };
        let mut r = Reader(bytes);
        let len = r.u64().ok_or_else(damaged)?;
        let check = r.u64().ok_or_else(damaged)?;
        let body_len = usize::try_from(len)
            .ok()
            .and_then(|l| l.checked_sub(RECORD_HEADER_BYTES));
        let body = body_len.and_then(|l| r.bytes(l)).ok_or_else(damaged)?;
        if checksum(body, len) != check {
            return Err(damaged());
        }
        let record = Self::decode_body(Reader(body)).ok_or_else(damaged)?;
        *bytes = r.0;
        Ok(record)
    }

    fn decode_body(mut r: Reader<'_>) -> Option<Self> {
        let id = TypeId(r.u32()?);
        let state = match r.u8()? {
            1 => RecordState::Current,
            2 => RecordState::Migrating,
            3 => RecordState::Migrated,
            _ => return None,
        };
        let version = r.u32()?;
        let size = r.u32()?;
        let name = r.text()?;
        let count = r.u32()?;
        let mut fields = Vec::new();
        for _ in 0..count {
            fields.push(FieldRecord {
                name: r.text()?,
                kind: match r.u8()? {
                    1 => FieldKind::Unsigned,
                    2 => FieldKind::Signed,
                    3 => FieldKind::Float,
                    4 => FieldKind::Reference,
                    5 => FieldKind::Checked,
                    6 => FieldKind::Nested,
                    7 => FieldKind::Pairs,
                    _ => return None,
                },
                offset: r.u32()?,
                size: r.u32()?,
                count: r.u32()?,
                target: r.text()?,
                layout: 0,
            });
        }
        if r.0.len() >= fields.len() * size_of::<u64>() {
            for field in &mut fields {
                field.layout = r.u64()?;
            }
        }
        Some(Self {
            id,
            state,
            name,
            version,
            size,
            fields,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> TypeRecord {
        TypeRecord {
            id: TypeId(16),
            state: RecordState::Current,
            name: "Node".into(),
            version: 2,
            size: 24,
            fields: vec![FieldRecord {
                name: "next".into(),
                kind: FieldKind::Reference,
                offset: 8,
                size: 8,
                count: 2,
                target: "Node".into(),
                layout: 0,
            }],
        }
    }

    /// A record as version 1 wrote it.
    const VERSION_1: [u8; 64] = [
        64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // length, checksum
        16, 0, 0, 0, 1, 2, 0, 0, 0, 24, 0, 0, 0, // number, state, version, size
        4, 0, b'N', b'o', b'd', b'e', 1, 0, 0, 0, // name, number of fields
        4, 0, b'n', b'e', b'x', b't', 4, 8, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, // field
        4, 0, b'N', b'o', b'd', b'e', // its target
    ];

    #[test]
    fn a_record_without_nested_structures_has_the_bytes_of_version_1() {
        let mut golden = VERSION_1;
        let check = checksum(&golden[RECORD_HEADER_BYTES..], 64);
        golden[8..16].copy_from_slice(&check.to_le_bytes());
        assert_eq!(sample().encode(), golden);
        assert_eq!(TypeRecord::take(&mut golden.as_slice(), 0), Ok(sample()));
    }

    #[test]
    fn digests_of_nested_structures_are_kept() {
        let mut record = sample();
        record.fields[0].kind = FieldKind::Nested;
        record.fields[0].layout = u64::MAX - 1;
        let mut other = record.fields[0].clone();
        other.layout = 0;
        record.fields.push(other);
        let bytes = record.encode();
        assert_eq!(TypeRecord::take(&mut bytes.as_slice(), 0), Ok(record));
    }

    #[test]
    fn records_follow_each_other() {
        let mut bytes = sample().encode();
        bytes.extend(
            TypeRecord {
                version: 3,
                ..sample()
            }
            .encode(),
        );
        let mut rest = bytes.as_slice();
        assert_eq!(TypeRecord::take(&mut rest, 0), Ok(sample()));
        let at = bytes.len() - rest.len();
        assert_eq!(TypeRecord::take(&mut rest, at).unwrap().version, 3);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_flipped_bit_is_an_error() {
        let bytes = sample().encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(
                TypeRecord::take(&mut damaged.as_slice(), 0).is_err(),
                "bit {bit}"
            );
        }
    }
}
