//! Keys: byte strings, compared eight bytes at a time.
//!
//! A node keeps one *word* of each key: the eight bytes behind the common prefix of all keys in the node's range,
//! big-endian, zero-padded. Unequal words decide the order of their keys; equal ones leave it open.

/// Bytes of a word.
pub(crate) const WORD: usize = 8;

/// The word of `key` from byte `skip` on.
#[inline(always)]
pub(crate) fn word_at(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or(&[]);
    if let Some(whole) = rest.first_chunk() {
        return u64::from_be_bytes(*whole);
    }
    let mut word = [0; WORD];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(word)
}

/// Length of the common prefix.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The shortest prefix of `high` that is above `low`. `high` is the larger one.
pub(crate) fn separator<'k>(low: &[u8], high: &'k [u8]) -> &'k [u8] {
    let end = (common(low, high) + 1).min(high.len());
    &high[..end]
}

/// Whether the word alone separates the strings below `separator` from the others: the least string with its word is
/// `separator` itself.
pub(crate) fn decides(separator: &[u8], skip: usize) -> bool {
    separator.len() <= skip + WORD && separator.last().is_none_or(|&last| last != 0)
}

/// The separator that a deciding word stands for: `prefix`, then the word's bytes without its trailing zeros.
pub(crate) fn from_word(prefix: &[u8], word: u64) -> Vec<u8> {
    let bytes = word.to_be_bytes();
    let len = WORD - word.trailing_zeros() as usize / 8;
    let mut separator = Vec::with_capacity(prefix.len() + len);
    separator.extend_from_slice(prefix);
    separator.extend_from_slice(&bytes[..len]);
    separator
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_short_and_between() {
        for (low, high, expected) in [
            (&b"abc"[..], &b"abd"[..], &b"abd"[..]),
            (b"abc", b"b", b"b"),
            (b"a", b"a\0", b"a\0"),
            (b"", b"\0\0", b"\0"),
            (b"ab", b"abcdef", b"abc"),
        ] {
            let found = separator(low, high);
            assert!(low < found && found <= high);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_word_that_decides_stands_for_its_separator() {
        for separator in [&b"x"[..], b"x\0y", b"12345678", b""] {
            assert!(decides(separator, 0));
            assert_eq!(from_word(b"", word_at(separator, 0)), separator);
        }
        assert!(!decides(b"x\0", 0));
        assert!(!decides(b"123456789", 0));
        assert!(decides(b"123456789", 3));
        assert_eq!(from_word(b"123", word_at(b"123456789", 3)), b"123456789");
    }
}
