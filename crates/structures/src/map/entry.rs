//! Entries: one object for a key and its value.
//!
//! ```text
//! Bytes, of any key                            Raw, of a key of eight bytes and a short value
//!   word 0    length of the key in bytes         word 0    the key
//!   then      the key, zeros up to a word        then      the value, to the object's end
//!   then      the value, to the object's end
//! ```
//! The header's type selects the layout of an entry. Short entries store no length, so more of them fit on a page: 28
//! with values of 128 bytes, instead of 25 with both lengths.
//!
//! A separator that does not fit a word is stored as an entry without a value.

use core::cmp::Ordering;

use firn_heap::{Error, Field, Obj, Raw, Tx, TypeId, View};
use firn_media::Medium;

use super::key::WORD;
use super::{MAX_KEY_BYTES, MAX_VALUE_BYTES, OwnedEntry};
use crate::protocol::{Part, Spot};
use crate::reader::Item;

/// Bytes of the word before the key, if there is one.
const LENGTH_BYTES: usize = 8;
/// Bytes of an entry that are assembled without an allocation.
const ON_STACK: usize = 512;
/// Bytes of an object in front of its body.
const HEADER_BYTES: usize = 8;
/// Where the content of an object of bytes begins: behind its header and its length.
const CONTENT_AT: usize = HEADER_BYTES + 8;

/// An entry or a separator.
pub(crate) type Entry<'g, V> = Obj<'g, Raw, V>;

/// The length of the key, if it is stored.
const KEY_LENGTH: Field<Raw, u64> = word_of(CONTENT_AT);

/// The word at byte `at` of an object.
#[inline(always)]
const fn word_of(at: usize) -> Field<Raw, u64> {
    Field::at_offset((at - HEADER_BYTES) as u32)
}

/// Where the parts of an entry are, in bytes from the start of the object. They lie within it.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) key_at: usize,
    pub(crate) key_len: usize,
    pub(crate) value_at: usize,
    pub(crate) value_len: usize,
}

/// Whether an entry has a key of a word and stores no length.
#[inline(always)]
fn is_short<'g, V: View<'g>>(entry: Entry<'g, V>) -> bool {
    entry.header().type_id() == TypeId::RAW
}

/// Finds the parts of `entry`.
///
/// Errors: another object lies there, or the lengths do not fit it.
#[inline]
pub(crate) fn parts<'g, V: View<'g>>(entry: Entry<'g, V>) -> Result<Parts, Error> {
    if is_short(entry) {
        let value_len = entry.checked_len()?.checked_sub(WORD);
        return Ok(Parts {
            key_at: HEADER_BYTES,
            key_len: WORD,
            value_at: HEADER_BYTES + WORD,
            value_len: value_len.ok_or_else(|| damaged(entry, "the length of an entry"))?,
        });
    }
    parts_with_lengths(entry)
}

#[inline(never)]
fn parts_with_lengths<'g, V: View<'g>>(entry: Entry<'g, V>) -> Result<Parts, Error> {
    let Some(bytes) = entry.bytes() else {
        return Err(damaged(entry, "an entry that is no array of bytes"));
    };
    let len = bytes.checked_len()?;
    let key_len = entry.load(KEY_LENGTH);
    if len < LENGTH_BYTES || key_len > MAX_KEY_BYTES as u64 {
        return Err(damaged(entry, "the length of a key"));
    }
    let value_at = LENGTH_BYTES + (key_len as usize).next_multiple_of(WORD);
    match len.checked_sub(value_at) {
        Some(value_len) => Ok(Parts {
            key_at: CONTENT_AT + LENGTH_BYTES,
            key_len: key_len as usize,
            value_at: CONTENT_AT + value_at,
            value_len,
        }),
        None => Err(damaged(entry, "the length of a key")),
    }
}

#[cold]
fn damaged<'g, V: View<'g>>(entry: Entry<'g, V>, what: &'static str) -> Error {
    Error::Damaged {
        what,
        at: entry.address().0,
    }
}

/// Compares the entry's key with `key`. The first `equal` bytes are known to be equal, except for zeros beyond the end
/// of either.
#[inline]
pub(crate) fn compare<'g, V: View<'g>>(entry: Entry<'g, V>, key: &[u8], equal: usize) -> Ordering {
    let (key_at, len) = match is_short(entry) {
        true => (HEADER_BYTES, WORD),
        false => (CONTENT_AT + LENGTH_BYTES, entry.load(KEY_LENGTH) as usize),
    };
    // Bounded by the caller's key, whatever the stored length.
    let words = len.min(key.len()).div_ceil(WORD);
    for index in equal / WORD..words {
        let stored = entry.load(word_of(key_at + index * WORD)).swap_bytes();
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
    load(entry, parts.key_at + skip, &mut word[..len]);
    Ok(u64::from_be_bytes(word))
}

/// Appends the key to `into`.
pub(crate) fn key_into<'g, V: View<'g>>(
    entry: Entry<'g, V>,
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    let parts = parts(entry)?;
    append(entry, parts.key_at, parts.key_len, into);
    Ok(())
}

/// The key.
pub(crate) fn key<'g, V: View<'g>>(entry: Entry<'g, V>) -> Result<Vec<u8>, Error> {
    let mut key = Vec::new();
    key_into(entry, &mut key)?;
    Ok(key)
}

/// The key, as [`key`], for the checker.
///
/// Errors: the padding of the key to a word is not zero. Comparisons take whole words, so no search would find the
/// entry.
pub(crate) fn sound_key<'g, V: View<'g>>(entry: Entry<'g, V>) -> Result<Vec<u8>, Error> {
    let parts = parts(entry)?;
    let mut key = Vec::new();
    append(
        entry,
        parts.key_at,
        parts.key_len.next_multiple_of(WORD),
        &mut key,
    );
    let behind = key.split_off(parts.key_len);
    match behind.iter().all(|&byte| byte == 0) {
        true => Ok(key),
        false => Err(damaged(entry, "what follows a key")),
    }
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

/// Key and value.
pub(crate) fn pair<'g, V: View<'g>>(entry: Entry<'g, V>) -> Result<OwnedEntry, Error> {
    let (key, mut value) = (key(entry)?, Vec::new());
    value_into(entry, &mut value)?;
    Ok((key, value))
}

impl<'g, V: View<'g>> Spot for Part<'g, Raw, V> {
    #[inline(always)]
    fn value_into(self, into: &mut Vec<u8>) -> Result<(), Error> {
        value_into(self.0, into)
    }

    fn value_len(self) -> Result<usize, Error> {
        Ok(parts(self.0)?.value_len)
    }
}

impl<'g, V: View<'g>> Item<'_, Part<'g, Raw, V>> {
    /// The key.
    pub fn key(&self) -> Result<Vec<u8>, Error> {
        key(self.spot.0)
    }

    /// Appends the key to `into`.
    pub fn key_into(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        key_into(self.spot.0, into)
    }

    /// Key and value.
    pub fn to_pair(&self) -> Result<OwnedEntry, Error> {
        pair(self.spot.0)
    }
}

/// Appends `len` bytes of the object from byte `at` on, which lie within it.
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

/// Copies bytes of the object from byte `at` on.
#[inline]
fn load<'g, V: View<'g>>(entry: Entry<'g, V>, at: usize, into: &mut [u8]) {
    let from = entry.address() + at as u64;
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
    let is_short = key.len() == WORD && WORD + value.len() <= ON_STACK;
    let key_at = if is_short { 0 } else { LENGTH_BYTES };
    let value_at = key_at + key.len().next_multiple_of(WORD);
    let len = value_at + value.len();
    let fill = |bytes: &mut [u8]| {
        bytes[..key_at].copy_from_slice(&(key.len() as u64).to_le_bytes()[..key_at]);
        bytes[key_at..key_at + key.len()].copy_from_slice(key);
        bytes[value_at..].copy_from_slice(value);
    };
    if len <= ON_STACK {
        let mut bytes = [0; ON_STACK];
        fill(&mut bytes[..len]);
        return match is_short {
            true => tx.alloc_raw(&bytes[..len]),
            false => tx.alloc_bytes(&bytes[..len]).map(Obj::raw),
        };
    }
    let mut bytes = vec![0; len];
    fill(&mut bytes);
    tx.alloc_bytes(&bytes).map(Obj::raw)
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

/// Replaces the value of `entry` in place, if `value` has equal length and is small enough to be logged. Returns
/// whether it did.
pub(crate) fn overwrite<'t, M: Medium>(
    entry: Entry<'t, Tx<'t, M>>,
    value: &[u8],
) -> Result<bool, Error> {
    let parts = parts(entry)?;
    if parts.value_len != value.len() || value.len() > ON_STACK {
        return Ok(false);
    }
    match entry.bytes() {
        Some(bytes) => bytes.overwrite(parts.value_at - CONTENT_AT, value)?,
        None => entry.overwrite(parts.value_at - HEADER_BYTES, value)?,
    }
    Ok(true)
}
