//! The frames of one chunk: which are free, which have blocks, and who may take them.

use firn_units::FRAMES_PER_CHUNK;

/// Blocks are given back and requested for at least this many frames together: 64 KiB.
pub(crate) const GROUP_FRAMES: u64 = 16;
pub(super) const GROUPS: u64 = FRAMES_PER_CHUNK / GROUP_FRAMES;
const _: () = assert!(GROUPS == u32::BITS as u64);
pub(super) const BITMAP: usize = (FRAMES_PER_CHUNK / 64) as usize;

/// One chunk's free frames.
#[derive(Clone, Copy)]
pub(super) struct ChunkFrames {
    /// Whether the chunk was looked at; until then it has no free frames.
    pub(super) known: bool,
    pub(super) free: [u64; BITMAP],
    pub(super) count: u64,
    /// Groups that may have no blocks on the device: bit i for the frames from i * 16.
    pub(super) unbacked: u32,
    /// Groups that certainly have no blocks: this open has given them back.
    pub(super) punched: u32,
    /// Groups among `unbacked` for which the device has refused blocks.
    pub(super) hollow: u32,
    /// Whether the open cycle empties the chunk: nothing is taken from it.
    pub(super) closed: bool,
    /// Whether a cycle has emptied it, and most of its frames are retained: its free frames are taken last, because a
    /// few objects would turn it into a page with objects again.
    pub(super) deprioritised: bool,
    /// Free frames that no one may use, because everything else in the chunk is retained, and they have no blocks: bits
    /// as in `free`.
    pub(super) retired: [u64; BITMAP],
    /// Whether something in it never moves: plans take its free frames first, and allocation takes them last, so that
    /// plans find them.
    pub(super) reserved_for_plans: bool,
    /// Whether it holds retained plans and nothing else: its free frames are for more of them.
    pub(super) for_plans: bool,
    /// Whether it lies behind the pool's limit: only logs take frames from it. Such chunks are the last ones.
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

    /// Whether plans may move objects there.
    pub(super) fn is_open(&self) -> bool {
        !self.closed && !self.deprioritised && !self.for_plans && !self.for_logs
    }

    /// Whether allocation may use it.
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
        // An entirely free chunk holds nothing that never moves.
        self.reserved_for_plans &= self.count < FRAMES_PER_CHUNK;
        self.for_plans &= self.count < FRAMES_PER_CHUNK;
    }

    /// The chunk without the free frames of these groups.
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

    /// The first of `frames` consecutive free frames.
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

    /// The longest row of free frames.
    pub(super) fn longest(&self) -> u64 {
        let (mut run, mut longest) = (0, 0);
        for i in 0..FRAMES_PER_CHUNK {
            run = if self.is_free(i) { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        longest
    }
}
