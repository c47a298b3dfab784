//! Entries: one object of bytes for a key and its value.
//!
//! ```text
//! word 0    length of the key in bytes
//! then      the key, zeros up to a multiple of 8
//! then      the value, to the object's end
//! ```
//! A separator that a word cannot stand for is stored as an entry without a value.

use core::cmp::Ordering;

use firn_heap::{Bytes, Error, Field, Obj, Tx, TypeId, View};
use firn_media::Medium;

use super::key::WORD;
use super::{MAX_KEY_BYTES, MAX_VALUE_BYTES};

/// Bytes of the word in front of the key.
const KEY_AT: usize = 8;
/// Bytes of an entry that are put together without an allocation.
const ON_STACK: usize = 512;
/// Bytes of an object of bytes in front of its content: header and length.
const CONTENT_AT: u64 = 16;

/// An entry or a separator.
pub(crate) type Entry<'g, V> = Obj<'g, Bytes, V>;

const KEY_LENGTH: Field<Bytes, u64> = content_word(0);

/// Word `index` of an object's content.
#[inline(always)]
const fn content_word(index: usize) -> Field<Bytes, u64> {
    Field::at_offset((1 + index as u32) * WORD as u32)
}

/// Where the parts of an entry are, in bytes of its content. They lie within the object.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) key_len: usize,
    pub(crate) value_at: usize,
    pub(crate) value_len: usize,
}

/// Says where the parts of `entry` are.
///
/// Errors: another object lies there, or the lengths do not fit it.
#[inline]
pub(crate) fn parts<'g, V: View<'g>>(entry: Entry<'g, V>) -> Result<Parts, Error> {
    let damaged = |what| Error::Damaged {
        what,
        at: entry.address().0,
    };
    if entry.header().type_id() != TypeId::BYTES {
        return Err(damaged("an entry of a map that is no array of bytes"));
    }
    let len = entry.checked_len()?;
    let key_len = entry.load(KEY_LENGTH);
    if len < KEY_AT || key_len > MAX_KEY_BYTES as u64 {
        return Err(damaged("the length of a key"));
    }
    let value_at = KEY_AT + (key_len as usize).next_multiple_of(WORD);
    match len.checked_sub(value_at) {
        Some(value_len) => Ok(Parts {
            key_len: key_len as usize,
            value_at,
            value_len,
        }),
        None => Err(damaged("the length of a key")),
    }
}

/// Compares the entry's key with `key`, of which the first `equal` bytes are known to be equal but
/// for zeros beyond the end of either.
#[inline]
pub(crate) fn compare<'g, V: View<'g>>(entry: Entry<'g, V>, key: &[u8], equal: usize) -> Ordering {
    let len = entry.load(KEY_LENGTH) as usize;
    // Bounded by the caller's key, whatever the stored length.
    let words = len.min(key.len()).div_ceil(WORD);
    for index in equal / WORD..words {
        let stored = entry.load(content_word(1 + index)).swap_bytes();
        let asked = super::key::word_at(key, index * WORD);
        if stored != asked {
            return stored.cmp(&asked);
        }
    }
    len.cmp(&key.len())
}

/// The word of the entry's key from byte `skip` on.
pub(crate) fn word_at<'g, V: View<'g>>(entry: Entry<'g, V>, skip: usize) -> Result<u64, Error> {
    let parts = parts(entry)?;
    let mut word = [0; WORD];
    let len = parts.key_len.saturating_sub(skip).min(WORD);
    load(entry, KEY_AT + skip, &mut word[..len]);
    Ok(u64::from_be_bytes(word))
}

/// Appends the key to `into`.
pub(crate) fn key_into<'g, V: View<'g>>(
    entry: Entry<'g, V>,
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    let parts = parts(entry)?;
    append(entry, KEY_AT, parts.key_len, into);
    Ok(())
}

/// The key.
pub(crate) fn key<'g, V: View<'g>>(entry: Entry<'g, V>) -> Result<Vec<u8>, Error> {
    let mut key = Vec::new();
    key_into(entry, &mut key)?;
    Ok(key)
}

/// Appends the value to `into`.
pub(crate) fn value_into<'g, V: View<'g>>(
    entry: Entry<'g, V>,
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    let parts = parts(entry)?;
    append(entry, parts.value_at, parts.value_len, into);
    Ok(())
}

/// Appends `len` bytes of the content from byte `at` on, which lie within it.
#[inline]
pub(crate) fn append<'g, V: View<'g>>(
    entry: Entry<'g, V>,
    at: usize,
    len: usize,
    into: &mut Vec<u8>,
) {
    let start = into.len();
    into.resize(start + len, 0);
    load(entry, at, &mut into[start..]);
}

/// Copies bytes of the content from byte `at` on.
#[inline]
fn load<'g, V: View<'g>>(entry: Entry<'g, V>, at: usize, into: &mut [u8]) {
    let from = entry.address() + CONTENT_AT + at as u64;
    entry.view().load_range(from, into);
}

/// Allocates an entry.
///
/// Errors: key or value too large, the pool is full.
pub(crate) fn alloc<'t, M: Medium>(
    tx: Tx<'t, M>,
    key: &[u8],
    value: &[u8],
) -> Result<Entry<'t, Tx<'t, M>>, Error> {
    check_key(key)?;
    if value.len() as u64 > MAX_VALUE_BYTES {
        return Err(Error::ObjectTooLarge {
            bytes: value.len() as u64,
            limit: MAX_VALUE_BYTES,
        });
    }
    let value_at = KEY_AT + key.len().next_multiple_of(WORD);
    let len = value_at + value.len();
    let fill = |bytes: &mut [u8]| {
        bytes[..KEY_AT].copy_from_slice(&(key.len() as u64).to_le_bytes());
        bytes[KEY_AT..KEY_AT + key.len()].copy_from_slice(key);
        bytes[value_at..].copy_from_slice(value);
    };
    if len <= ON_STACK {
        let mut bytes = [0; ON_STACK];
        fill(&mut bytes[..len]);
        return tx.alloc_bytes(&bytes[..len]);
    }
    let mut bytes = vec![0; len];
    fill(&mut bytes);
    tx.alloc_bytes(&bytes)
}

/// Refuses keys that no map holds.
pub(crate) fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::ObjectTooLarge {
            bytes: key.len() as u64,
            limit: MAX_KEY_BYTES as u64,
        });
    }
    Ok(())
}

/// Replaces the value of `entry` in place, if `value` is as long as it and small enough to be
/// logged. Returns whether it did.
pub(crate) fn overwrite<'t, M: Medium>(
    entry: Entry<'t, Tx<'t, M>>,
    value: &[u8],
) -> Result<bool, Error> {
    let parts = parts(entry)?;
    if parts.value_len != value.len() || value.len() > ON_STACK {
        return Ok(false);
    }
    entry.overwrite(parts.value_at, value)?;
    Ok(true)
}
