//! What one line may hold.

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::memory::Line;
use crate::persistence::line_hash;

/// The distinct contents that a line may have, sorted.
///
/// Invariant: never empty. Equal sets of one line have equal hashes.
pub(crate) struct Candidates {
    contents: Box<[Line]>,
    hash: u128,
}

impl Candidates {
    pub(crate) fn new(line: u64, mut contents: Vec<Line>) -> Self {
        contents.sort_unstable();
        contents.dedup();
        Self::of_distinct(line, contents)
    }

    pub(crate) fn one(line: u64, content: Line) -> Self {
        Self::of_distinct(line, vec![content])
    }

    fn of_distinct(line: u64, contents: Vec<Line>) -> Self {
        let hash = match &contents[..] {
            [only] => line_hash(line, only),
            several => {
                let bytes: Vec<u8> = several
                    .iter()
                    .flatten()
                    .flat_map(|word| word.to_le_bytes())
                    .collect();
                xxh3_128_with_seed(&bytes, line)
            }
        };
        Self {
            contents: contents.into(),
            hash,
        }
    }

    pub(crate) fn contents(&self) -> &[Line] {
        &self.contents
    }

    /// The content that a run of the check takes.
    pub(crate) fn first(&self) -> &Line {
        &self.contents[0]
    }

    pub(crate) fn len(&self) -> usize {
        self.contents.len()
    }

    pub(crate) fn hash(&self) -> u128 {
        self.hash
    }

    /// The value of a word, if all contents agree on it.
    #[inline]
    pub(crate) fn agreed(&self, word: usize) -> Option<u64> {
        let value = self.contents[0][word];
        self.contents[1..]
            .iter()
            .all(|content| content[word] == value)
            .then_some(value)
    }

    /// The distinct values of a word, ascending.
    pub(crate) fn values(&self, word: usize) -> Vec<u64> {
        let mut values: Vec<u64> = self.contents.iter().map(|content| content[word]).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The contents with `value` in a word. There must be one.
    pub(crate) fn with(&self, line: u64, word: usize, value: u64) -> Self {
        let kept = self
            .contents
            .iter()
            .filter(|content| content[word] == value);
        Self::of_distinct(line, kept.copied().collect())
    }
}
