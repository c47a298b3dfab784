//! Which slot of the file holds which segment of the log.

use core::ops::Range;
use std::collections::VecDeque;

use firn_format::log::block_offset;

/// Slots that are to be added to the file, written with zeros and durable before they are used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Growth {
    pub(crate) slots: Range<u64>,
    segment_blocks: u64,
}

impl Growth {
    /// The slots of a new log.
    pub fn of_new(segment_blocks: u64, count: u64) -> Self {
        Self {
            slots: 0..count,
            segment_blocks,
        }
    }

    /// The bytes of the log's file that are to be written.
    pub fn bytes(&self) -> Range<u64> {
        let start_of = |slot| block_offset(self.segment_blocks, slot, 0);
        start_of(self.slots.start)..start_of(self.slots.end)
    }
}

/// The slots of the log's file.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// Blocks of a segment.
    segment_blocks: u64,
    /// Slots of the segments from `first` on.
    slots: VecDeque<u64>,
    first: u64,
    /// Slots that hold nothing that counts.
    free: VecDeque<u64>,
    /// Slots that the file has.
    count: u64,
    /// Slots that it may have.
    most: u64,
}

impl Segments {
    /// A file with `count` slots, all of them free, whose first segment is that of block zero.
    pub(crate) fn new(segment_blocks: u64, count: u64, most: u64) -> Self {
        Self {
            segment_blocks,
            slots: VecDeque::new(),
            first: 0,
            free: (0..count).collect(),
            count,
            most: most.max(count),
        }
    }

    /// Blocks that can be written from block `next` on without more slots.
    pub(crate) fn room(&self, next: u64) -> u64 {
        let taken = (self.first + self.slots.len() as u64) * self.segment_blocks;
        let free = self.free.len() as u64 * self.segment_blocks;
        (taken + free).saturating_sub(next)
    }

    /// Slots to add so that `blocks` more can be written, as far as the bound allows: at least as many again as there
    /// are, so that growing is rare.
    pub(crate) fn growth(&self, blocks: u64) -> Option<Growth> {
        let wanted = blocks.div_ceil(self.segment_blocks).max(self.count);
        let end = (self.count + wanted).min(self.most);
        (end > self.count).then_some(Growth {
            slots: self.count..end,
            segment_blocks: self.segment_blocks,
        })
    }

    /// The slots were written.
    pub(crate) fn grown(&mut self, growth: &Growth) {
        debug_assert_eq!(growth.slots.start, self.count);
        self.free.extend(growth.slots.clone());
        self.count = growth.slots.end;
    }

    /// The file cannot have more slots than it has.
    pub(crate) fn stay(&mut self) {
        self.most = self.count;
    }

    /// Where block `number` lies in the file; takes a free slot if its segment has none yet. `None` where there is no
    /// room.
    pub(crate) fn place(&mut self, number: u64) -> Option<u64> {
        let index = (number / self.segment_blocks - self.first) as usize;
        while self.slots.len() <= index {
            let slot = self.free.pop_front()?;
            self.slots.push_back(slot);
        }
        Some(block_offset(self.segment_blocks, self.slots[index], number))
    }

    /// Frees the slots of segments that lie before block `tail` as a whole (L7).
    pub(crate) fn release(&mut self, tail: u64) {
        let keep = tail / self.segment_blocks;
        while self.first < keep {
            match self.slots.pop_front() {
                Some(slot) => self.free.push_back(slot),
                // The segment was skipped: it never had a slot.
                None => {
                    self.first = keep;
                    return;
                }
            }
            self.first += 1;
        }
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        block_offset(self.segment_blocks, self.count, 0)
    }

    /// Blocks of all slots that the file may have.
    pub(crate) fn most_blocks(&self) -> u64 {
        self.most * self.segment_blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u64 = 8;

    #[test]
    fn no_slot_is_given_out_twice_and_growth_ends_at_the_bound() {
        let mut segments = Segments::new(BLOCKS, 2, 5);
        assert_eq!(segments.room(0), 2 * BLOCKS);
        let places: Vec<u64> = (0..2 * BLOCKS)
            .map(|number| segments.place(number).unwrap())
            .collect();
        let mut distinct = places.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), places.len());
        assert_eq!(segments.place(2 * BLOCKS), None);
        let growth = segments.growth(1).unwrap();
        assert_eq!(growth.slots, 2..4, "as many again");
        segments.grown(&growth);
        assert_eq!(segments.room(2 * BLOCKS), 2 * BLOCKS);
        assert_eq!(segments.growth(1).unwrap().slots, 4..5, "up to the bound");
        segments.stay();
        assert_eq!(segments.growth(1), None);
    }

    #[test]
    fn a_slot_is_free_once_its_whole_segment_is_behind_the_tail() {
        let mut segments = Segments::new(BLOCKS, 1, 1);
        for number in 0..BLOCKS {
            segments.place(number).unwrap();
        }
        segments.release(BLOCKS - 1);
        assert_eq!(segments.room(BLOCKS), 0);
        segments.release(BLOCKS);
        assert_eq!(segments.room(BLOCKS), BLOCKS);
        assert_eq!(segments.place(BLOCKS), Some(block_offset(BLOCKS, 0, 0)));
    }
}
