//! The root table: names of the objects from which all others are reached.

use firn_units::VirtAddr;

use crate::geometry::{REGISTRY, ROOTS};
use crate::{FormatError, checksum};

/// Bytes of a root.
pub const ROOT_BYTES: u64 = 64;
/// Roots of a pool.
pub const MAX_ROOTS: usize = 256;
/// Longest name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 40;
/// Offset of the reference within a root. The collector changes the reference by itself, so the checksum excludes it.
pub const REFERENCE_AT: u64 = 48;

const _: () = assert!(ROOTS.0 + ROOT_BYTES * MAX_ROOTS as u64 <= REGISTRY.0);

/// The address of a root.
pub const fn root_at(index: usize) -> VirtAddr {
    VirtAddr(ROOTS.0 + index as u64 * ROOT_BYTES)
}

/// Words of a name.
pub const NAME_WORDS: usize = MAX_NAME_BYTES / 8;

/// A name as it lies on media: its bytes, then zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name(pub [u64; NAME_WORDS]);

impl Name {
    /// A name of at most [`MAX_NAME_BYTES`] bytes.
    ///
    /// # Panics
    /// If it has more.
    #[inline]
    pub fn new(name: &str) -> Self {
        let mut bytes = [0u8; MAX_NAME_BYTES];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Self(core::array::from_fn(|word| {
            let chunk = &bytes[word * 8..word * 8 + 8];
            u64::from_le_bytes(chunk.try_into().expect("chunks of eight"))
        }))
    }

    /// Whether this is the name of a free place.
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        let name = String::from_utf8_lossy(&bytes);
        f.write_str(name.trim_end_matches('\0'))
    }
}

/// The address of a word of a root's name.
pub const fn name_at(index: usize, word: usize) -> VirtAddr {
    VirtAddr(root_at(index).0 + word as u64 * 8)
}

/// The words of a root: name, checksum of the name, reference, a spare word.
pub fn encode(name: &str, reference: u64) -> [u64; 8] {
    let name = Name::new(name);
    let bytes: Vec<u8> = name.0.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut words = [0; 8];
    words[..NAME_WORDS].copy_from_slice(&name.0);
    words[NAME_WORDS] = checksum(&bytes, ROOTS.0);
    words[NAME_WORDS + 1] = reference;
    words
}

/// Name and reference of the root found at `at`; `None` if the place is free.
pub fn decode(words: &[u64; 8], at: VirtAddr) -> Result<Option<(String, u64)>, FormatError> {
    if words[..6].iter().all(|&w| w == 0) {
        return Ok(None);
    }
    let bytes: Vec<u8> = words[..5].iter().flat_map(|w| w.to_le_bytes()).collect();
    let damaged = FormatError::Checksum {
        what: "the name of a root",
        at: at.bytes(),
    };
    if words[5] != checksum(&bytes, ROOTS.0) {
        return Err(damaged);
    }
    let len = bytes
        .iter()
        .rposition(|&b| b != 0)
        .map_or(0, |last| last + 1);
    let name = core::str::from_utf8(&bytes[..len]).map_err(|_| damaged)?;
    Ok(Some((name.to_owned(), words[6])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_and_notices_damage() {
        let words = encode("index of files", 42);
        assert_eq!(
            decode(&words, root_at(0)),
            Ok(Some(("index of files".into(), 42)))
        );
        assert_eq!(decode(&[0; 8], root_at(0)), Ok(None));
        let mut damaged = words;
        damaged[1] ^= 1 << 9;
        assert!(decode(&damaged, root_at(0)).is_err());
    }
}
