//! The possible contents of one line.

use core::cmp::Ordering;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::memory::cells::{LINE_CELLS, Line, MARK};
use crate::memory::persistence::line_hash;

/// The distinct contents that a line may have, sorted: unmarked ones first.
///
/// Invariant: never empty. Equal sets of one line have equal hashes; a single content's hash is that of [`line_hash`].
pub(crate) struct Candidates {
    contents: Box<[Content]>,
    /// A bit for each cell: set if all contents agree on it.
    agreed: u16,
    hash: u128,
}

/// A content with its hash.
#[derive(Clone, Copy)]
struct Content {
    line: Line,
    hash: u128,
}

impl Candidates {
    pub(crate) fn new(line: u64, mut contents: Vec<Line>) -> Self {
        if contents.len() > 1 {
            contents.sort_unstable_by(in_order);
            contents.dedup_by(|one, other| in_order(one, other).is_eq());
        }
        let hashed = contents.iter().map(|content| Content {
            line: *content,
            hash: line_hash(line, content),
        });
        Self::of_distinct(hashed.collect())
    }

    pub(crate) fn one(line: u64, content: Line) -> Self {
        Self::new(line, vec![content])
    }

    fn of_distinct(contents: Box<[Content]>) -> Self {
        let first = &contents[0].line;
        let mut agreed = (1 << LINE_CELLS) - 1;
        for other in &contents[1..] {
            for (cell, word) in other.line.iter().enumerate() {
                agreed &= !(u16::from(*word != first[cell]) << cell);
            }
        }
        Self {
            hash: hash_of(&contents),
            agreed,
            contents,
        }
    }

    pub(crate) fn contents(&self) -> impl Iterator<Item = &Line> {
        self.contents.iter().map(|content| &content.line)
    }

    /// Whether `content` is a candidate.
    pub(crate) fn has(&self, content: &Line) -> bool {
        let found = self
            .contents
            .binary_search_by(|one| in_order(&one.line, content));
        found.is_ok()
    }

    /// The content that the next run of the check begins with.
    pub(crate) fn first(&self) -> &Line {
        &self.contents[0].line
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
        (self.agreed >> word & 1 != 0).then(|| self.first()[word])
    }

    /// A bit for each cell: set if all contents agree on it.
    pub(crate) fn agreement(&self) -> u16 {
        self.agreed
    }

    /// The distinct values of a word, ascending.
    pub(crate) fn values(&self, word: usize) -> Vec<u64> {
        let mut values: Vec<u64> = self.contents().map(|content| content[word]).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The contents with `value` in a word. There must be one.
    pub(crate) fn with(&self, word: usize, value: u64) -> Self {
        let kept = self.contents.iter();
        let kept = kept.filter(|content| content.line[word] == value);
        Self::of_distinct(kept.copied().collect())
    }
}

/// Unmarked ones come first.
fn in_order(one: &Line, other: &Line) -> Ordering {
    let by_mark = one[MARK].cmp(&other[MARK]);
    by_mark.then_with(|| one.cmp(other))
}

/// Hash of a set of contents: the sum of their hashes, mixed with their number. The number is needed because the line
/// of zeros has hash zero: with and without it, a set must hash differently.
fn hash_of(contents: &[Content]) -> u128 {
    match contents {
        [only] => only.hash,
        several => {
            let hashes = several.iter().map(|content| content.hash);
            let sum = hashes.fold(0, u128::wrapping_add);
            xxh3_128_with_seed(&sum.to_le_bytes(), several.len() as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of zeros adds nothing to a sum of hashes.
    #[test]
    fn a_set_with_the_line_of_zeros_is_another_than_the_same_without_it() {
        let content = |word| {
            let mut line = Line::default();
            line[3] = word;
            line
        };
        let (zeros, one, other) = (content(0), content(7), content(9));
        let hash = |contents: &[Line]| Candidates::new(5, contents.to_vec()).hash();
        let sets: [&[Line]; 6] = [
            &[zeros],
            &[one],
            &[zeros, one],
            &[one, other],
            &[zeros, one, other],
            &[zeros, other],
        ];
        for (i, first) in sets.iter().enumerate() {
            for second in &sets[i + 1..] {
                assert_ne!(hash(first), hash(second), "{first:?} {second:?}");
            }
        }
        assert_eq!(hash(&[other, zeros, one, one]), hash(&[zeros, one, other]));
    }
}
