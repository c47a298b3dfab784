//! The writers' input: keys, and the basis of their values.

use fastrand::Rng;
use firn_tools::Entry;

/// The writers' input.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Keys, and the beginnings of their values; sorted by key, without duplicates.
    pub(crate) entries: Vec<Entry>,
    /// Most bytes by which values are lengthened.
    pub(crate) payload_bytes: usize,
}

impl Input {
    /// The key of an entry.
    pub(crate) fn key(&self, index: usize) -> &[u8] {
        &self.entries[index].key
    }

    /// The value that an insert or update of the entry with this stamp stores: the entry's own, the stamp, and up to
    /// `payload_bytes` more.
    pub(crate) fn value(&self, index: usize, stamp: u64, into: &mut Vec<u8>) {
        into.clear();
        into.extend_from_slice(&self.entries[index].value);
        into.push(b' ');
        into.extend_from_slice(stamp.to_string().as_bytes());
        let payload = Rng::with_seed(stamp).usize(0..=self.payload_bytes);
        into.resize(into.len() + payload, b'a' + (stamp % 26) as u8);
    }

    /// Whether `found` is a value that some insert or update of the entry stores.
    pub(crate) fn is_value(&self, index: usize, found: &[u8]) -> bool {
        let own = &*self.entries[index].value;
        let rest = found.strip_prefix(own).and_then(|r| r.strip_prefix(b" "));
        let Some(rest) = rest else {
            return false;
        };
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let stamp = core::str::from_utf8(&rest[..digits]);
        let Some(stamp) = stamp.ok().and_then(|stamp| stamp.parse().ok()) else {
            return false;
        };
        let mut expected = Vec::new();
        self.value(index, stamp, &mut expected);
        expected == found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_from_others() {
        let entry = Entry {
            key: b"k".to_vec(),
            value: b"17".to_vec(),
        };
        let input = Input {
            entries: vec![entry],
            payload_bytes: 40,
        };
        let mut stored = Vec::new();
        input.value(0, 1 << 32 | 5, &mut stored);
        assert!(input.is_value(0, &stored));
        assert!(!input.is_value(0, b"17 "));
        assert!(!input.is_value(0, b"18 5"));
        stored.push(b'x');
        assert!(!input.is_value(0, &stored));
    }
}
