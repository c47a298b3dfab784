//! The frames of one chunk: which are free, which have blocks, and who may take them.

use firn_units::FRAMES_PER_CHUNK;

/// Frames whose blocks are given back and asked for together at least: 64 KiB.
pub(crate) const GROUP_FRAMES: u64 = 16;
pub(super) const GROUPS: u64 = FRAMES_PER_CHUNK / GROUP_FRAMES;
const _: () = assert!(GROUPS == u32::BITS as u64);
pub(super) const BITMAP: usize = (FRAMES_PER_CHUNK / 64) as usize;

/// One chunk's free frames.
#[derive(Clone, Copy)]
pub(super) struct ChunkFrames {
    /// Whether the chunk was looked at; until then nothing is free in it.
    pub(super) known: bool,
    pub(super) free: [u64; BITMAP],
    pub(super) count: u64,
    /// Groups that may have no blocks on the device: bit i for the frames from i * 16.
    pub(super) unbacked: u32,
    /// Groups of which that is certain: this open has given their blocks back.
    pub(super) punched: u32,
    /// Of those that may have no blocks, groups for which the device has refused some.
    pub(super) hollow: u32,
    /// Whether the open cycle empties the chunk: nothing is taken from it.
    pub(super) closed: bool,
    /// Whether a cycle has emptied it, and most of its frames are kept: what is free in it is taken last, because
    /// a few objects would make a page of it again.
    pub(super) deprioritised: bool,
    /// Free frames that are nobody's to use, because all else in the chunk is kept, and it has no blocks: bits as
    /// in `free`.
    pub(super) retired: [u64; BITMAP],
    /// Whether something lies in it that never moves: what is free in it is taken first by plans, and last by
    /// allocation, so that it is there when they need it.
    pub(super) reserved_for_plans: bool,
    /// Whether plans lie in it that are kept, and nothing else: what is free in it is for more of them.
    pub(super) for_plans: bool,
    /// Whether it lies behind the pool's limit: nothing but logs is taken from it. Such chunks are the last ones.
    pub(super) for_logs: bool,
}

impl ChunkFrames {
    pub(super) const UNKNOWN: Self = Self {
        known: false,
        free: [0; BITMAP],
        count: 0,
        unbacked: 0,
        punched: 0,
        hollow: 0,
        closed: false,
        deprioritised: false,
        retired: [0; BITMAP],
        reserved_for_plans: false,
        for_plans: false,
        for_logs: false,
    };

    /// Whether plans move objects there.
    pub(super) fn is_open(&self) -> bool {
        !self.closed && !self.deprioritised && !self.for_plans && !self.for_logs
    }

    /// Whether allocation does.
    pub(super) fn is_offered(&self) -> bool {
        self.is_open() && !self.reserved_for_plans
    }

    pub(super) fn is_free(&self, i: u64) -> bool {
        self.free[(i / 64) as usize] >> (i % 64) & 1 != 0
    }

    pub(super) fn set(&mut self, from: u64, frames: u64, free: bool) {
        for i in from..from + frames {
            let bit = 1 << (i % 64);
            if free {
                self.free[(i / 64) as usize] |= bit;
            } else {
                self.free[(i / 64) as usize] &= !bit;
            }
        }
        self.count = if free {
            self.count + frames
        } else {
            self.count - frames
        };
        // What never moves has gone.
        self.reserved_for_plans &= self.count < FRAMES_PER_CHUNK;
        self.for_plans &= self.count < FRAMES_PER_CHUNK;
    }

    /// Without the free frames of these groups.
    pub(super) fn without(&self, groups: u32) -> Self {
        let mut others = *self;
        for (index, word) in others.free.iter_mut().enumerate() {
            for group in 0..u64::from(u64::BITS) / GROUP_FRAMES {
                let number = index as u64 * (u64::from(u64::BITS) / GROUP_FRAMES) + group;
                if groups >> number & 1 != 0 {
                    *word &= !(((1 << GROUP_FRAMES) - 1) << (group * GROUP_FRAMES));
                }
            }
        }
        others.count = others.free.iter().map(|w| u64::from(w.count_ones())).sum();
        others
    }

    /// First of `frames` consecutive free ones.
    pub(super) fn find(&self, frames: u64) -> Option<u64> {
        if self.count < frames {
            return None;
        }
        if frames == 1 {
            let word = self.free.iter().position(|&w| w != 0)?;
            return Some(word as u64 * 64 + u64::from(self.free[word].trailing_zeros()));
        }
        let mut run = 0;
        for i in 0..FRAMES_PER_CHUNK {
            run = if self.is_free(i) { run + 1 } else { 0 };
            if run == frames {
                return Some(i + 1 - frames);
            }
        }
        None
    }

    /// How many consecutive frames are free at most.
    pub(super) fn longest(&self) -> u64 {
        let (mut run, mut longest) = (0, 0);
        for i in 0..FRAMES_PER_CHUNK {
            run = if self.is_free(i) { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        longest
    }
}
