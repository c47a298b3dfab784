//! Counting: each session publishes its changes in its lane's block, after each commit or after several.

use firn_format::geometry::STATISTICS_BLOCK_BYTES;
use firn_format::header::TypeId;
use firn_format::lane::LANES;
use firn_format::statistics::{COUNTED_TYPES, Counter, FIRST_CLASS, FIRST_EVENT, WORDS, block_at};
use firn_media::Medium;

use crate::alloc::Footprint;

/// A session's changes since it last published, except those of pages.
pub(crate) struct StatShard {
    lane: usize,
    /// Commits after which changes are published. At one, most changes bypass this shard.
    publish_every: u32,
    /// Whether changes wait to be published.
    is_behind: bool,
    changed: Box<[i64; WORDS]>,
    /// Bits of the words that may have changed.
    touched: [u64; WORDS.div_ceil(64)],
    commits: u32,
    /// The number of the pool's recounts before these changes.
    recounts: u64,
}

impl StatShard {
    pub(crate) fn new(lane: usize, publish_every: u32) -> Self {
        Self {
            lane,
            publish_every,
            is_behind: false,
            changed: Box::new([0; WORDS]),
            touched: [0; WORDS.div_ceil(64)],
            commits: 0,
            recounts: 0,
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, counter: Counter, by: i64) {
        let word = counter.word();
        self.touched[word / 64] |= 1 << (word % 64);
        self.changed[word] += by;
        self.is_behind = true;
    }

    /// Changes a counter; publishes it at once where each commit publishes.
    #[inline]
    fn change<M: Medium>(&mut self, medium: &M, counter: Counter, by: i64) {
        if self.publish_every == 1 {
            add_to(medium, self.lane + 1, counter.word(), by);
        } else {
            self.add(counter, by);
        }
    }

    /// Drops the counts of objects from before the pool's last recount, which includes them. Within an operation,
    /// before anything else is counted in it.
    #[inline]
    pub(crate) fn catch_up(&mut self, recounts: u64) {
        if self.recounts != recounts {
            self.recounts = recounts;
            self.changed[..FIRST_EVENT].fill(0);
            self.changed[FIRST_CLASS..].fill(0);
        }
    }

    /// Counts pages in the lane's block at once, which is rarely needed: whenever no operation is open, the statistics
    /// page matches the allocator.
    pub(crate) fn pages<M: Medium>(&self, medium: &M, change: Footprint) {
        for (counter, by) in [
            (Counter::LiveFrames, change.frames),
            (Counter::LiveChunks, change.chunks),
        ] {
            if by != 0 {
                add_to(medium, self.lane + 1, counter.word(), by);
            }
        }
    }

    /// Counts objects of a type and class.
    #[inline]
    pub(crate) fn objects<M: Medium>(
        &mut self,
        medium: &M,
        (type_index, class): (usize, usize),
        (count, bytes): (i64, i64),
    ) {
        self.change(medium, Counter::Objects, count);
        self.change(medium, Counter::LiveBytes, bytes);
        self.change(medium, Counter::ClassObjects(class), count);
        self.change(medium, Counter::TypeObjects(type_index), count);
        self.change(medium, Counter::TypeBytes(type_index), bytes);
    }

    /// Counts an object that stays in its slot and gets another type. Each `(type, bytes)` is the type's index and the
    /// requested bytes.
    pub(crate) fn turned(&mut self, old: (usize, i64), new: (usize, i64)) {
        self.add(Counter::LiveBytes, new.1 - old.1);
        for ((type_index, bytes), sign) in [(old, -1), (new, 1)] {
            self.add(Counter::TypeObjects(type_index), sign);
            self.add(Counter::TypeBytes(type_index), sign * bytes);
        }
    }

    /// Counts a commit; publishes after every `publish_every` commits.
    #[inline]
    pub(crate) fn committed<M: Medium>(&mut self, medium: &M) {
        self.change(medium, Counter::Commits, 1);
        self.commits = self.commits.saturating_add(1);
        if self.is_behind && self.commits >= self.publish_every {
            self.publish(medium);
        }
    }

    /// Adds the changes to the lane's block. Plain stores, never written back: after a power failure
    /// the counters lag until the next trace.
    pub(crate) fn publish<M: Medium>(&mut self, medium: &M) {
        for (i, touched) in self.touched.iter_mut().enumerate() {
            while *touched != 0 {
                let word = i * 64 + touched.trailing_zeros() as usize;
                *touched &= *touched - 1;
                let change = core::mem::take(&mut self.changed[word]);
                if change != 0 {
                    add_to(medium, self.lane + 1, word, change);
                }
            }
        }
        self.commits = 0;
        self.is_behind = false;
    }
}

/// Adds to a word of a session's block, to which no other thread writes.
fn add_to<M: Medium>(medium: &M, block: usize, word: usize, change: i64) {
    medium.add_unshared_u64(block_at(block) + word as u64 * 8, change as u64);
}

/// Counts objects of a type and class in sums of all counters.
pub(crate) fn count(
    sums: &mut [i64; WORDS],
    (id, class): (TypeId, usize),
    (objects, bytes): (i64, i64),
) {
    let type_index = type_index(id);
    sums[Counter::Objects.word()] += objects;
    sums[Counter::LiveBytes.word()] += bytes;
    sums[Counter::ClassObjects(class).word()] += objects;
    sums[Counter::TypeObjects(type_index).word()] += objects;
    sums[Counter::TypeBytes(type_index).word()] += bytes;
}

/// The blocks of a pool with `lanes` lanes, the base block first, as far as the medium has them.
fn blocks<M: Medium>(medium: &M, lanes: usize) -> impl Iterator<Item = usize> {
    let end = medium.len();
    (0..=lanes.min(LANES)).take_while(move |&b| block_at(b).0 + STATISTICS_BLOCK_BYTES <= end)
}

/// Sums of all blocks of a pool with `lanes` lanes.
pub(crate) fn sums<M: Medium>(medium: &M, lanes: usize) -> Box<[i64; WORDS]> {
    let mut sums = Box::new([0i64; WORDS]);
    let mut bytes = [0; WORDS * 8];
    for block in blocks(medium, lanes) {
        medium.load_bytes(block_at(block), &mut bytes);
        for (sum, word) in sums.iter_mut().zip(bytes.chunks_exact(8)) {
            let word = i64::from_le_bytes(word.try_into().expect("chunks of eight"));
            *sum = sum.wrapping_add(word);
        }
    }
    sums
}

/// Sum of one counter over all blocks.
pub(crate) fn sum<M: Medium>(medium: &M, lanes: usize, counter: Counter) -> i64 {
    blocks(medium, lanes)
        .map(|block| medium.load_u64(block_at(block) + counter.word() as u64 * 8) as i64)
        .fold(0, i64::wrapping_add)
}

/// Moves all lanes' counters into the base block.
pub(crate) fn fold<M: Medium>(medium: &M, lanes: usize) {
    replace(medium, lanes, &sums(medium, lanes));
}

/// Makes `sums` the counters. Blocks that already hold their values are not written back: on media they lag no more
/// than after a crash.
pub(crate) fn replace<M: Medium>(medium: &M, lanes: usize, sums: &[i64; WORDS]) {
    for block in blocks(medium, lanes) {
        let mut held = [0u64; WORDS];
        medium.load_bytes(block_at(block), bytemuck::cast_slice_mut(&mut held));
        let mut has_changed = false;
        for (word, (&sum, &held)) in sums.iter().zip(&held).enumerate() {
            let value = if block == 0 { sum as u64 } else { 0 };
            if held != value {
                medium.store_u64(block_at(block) + word as u64 * 8, value);
                has_changed = true;
            }
        }
        if has_changed {
            medium.write_back(block_at(block), WORDS as u64 * 8);
        }
    }
}

/// Adds to the base block, which the sessions leave alone: for the collector, and for threads that give space back
/// beside it. Durable with the caller's next fence.
pub(crate) fn add<M: Medium>(medium: &M, change: &[i64; WORDS]) {
    for (word, &change) in change
        .iter()
        .enumerate()
        .filter(|(_, change)| **change != 0)
    {
        let at = block_at(0) + word as u64 * 8;
        let mut old = medium.load_u64(at);
        while let Err(now) = medium.compare_exchange_u64(at, old, old.wrapping_add(change as u64)) {
            old = now;
        }
        medium.write_back(at, 8);
    }
}

/// The counter of a type.
pub(crate) fn type_index(id: TypeId) -> usize {
    (id.0 as usize).min(COUNTED_TYPES - 1)
}
