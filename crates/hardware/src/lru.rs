//! A small, fully associative buffer with least-recently-used replacement.

use std::collections::VecDeque;

/// Entries by key, the most recently used in front. Buffers with equal contents in equal order are equal, so a medium
/// that keeps states apart can compare them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Lru<K, V> {
    entries: VecDeque<(K, V)>,
    capacity: usize,
}

impl<K: Copy + Eq, V> Lru<K, V> {
    /// An empty buffer of `capacity` entries, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            capacity: capacity.max(1),
        }
    }

    /// The entry of `key`, which becomes the most recently used.
    pub(crate) fn get(&mut self, key: K) -> Option<&mut V> {
        let at = self.entries.iter().position(|(k, _)| *k == key)?;
        let entry = self.entries.remove(at)?;
        self.entries.push_front(entry);
        self.entries.front_mut().map(|(_, value)| value)
    }

    /// Inserts an entry whose key is absent. Returns the evicted entry.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<(K, V)> {
        debug_assert!(self.entries.iter().all(|(k, _)| *k != key));
        let gone = if self.entries.len() == self.capacity {
            self.entries.pop_back()
        } else {
            None
        };
        self.entries.push_front((key, value));
        gone
    }

    /// Removes all entries, the least recently used first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (K, V)> {
        self.entries.drain(..).rev()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut buffer = Lru::new(2);
        assert_eq!(buffer.insert(1, 'a'), None);
        assert_eq!(buffer.insert(2, 'b'), None);
        assert_eq!(buffer.get(1), Some(&mut 'a'));
        assert_eq!(buffer.insert(3, 'c'), Some((2, 'b')));
        assert_eq!(buffer.get(2), None);
        assert_eq!(buffer.drain().collect::<Vec<_>>(), [(1, 'a'), (3, 'c')]);
    }
}
