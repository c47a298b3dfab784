//! The contents that the sectors of a file may have when the power fails.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::{BLOCK, SECTOR};

/// A sector's bytes; `None` stands for zeros.
pub(super) type Content = Option<Box<[u8; SECTOR as usize]>>;

/// A sector that is not durable.
#[derive(Debug)]
struct Sector {
    durable: Content,
    /// What is on its way, the oldest first, each with the number of its write.
    newer: Vec<(u64, Content)>,
}

/// The sectors of a file that may not hold what was written last.
#[derive(Debug, Default)]
pub(super) struct Sectors {
    by_offset: BTreeMap<u64, Sector>,
    /// Where the writes on their way begin and end.
    writes: BTreeMap<u64, (u64, u64)>,
}

/// How a power failure treats a file's sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// Nothing arrived that was on its way.
    Nothing,
    /// All of it arrived.
    Everything,
    /// Each sector has any of its contents.
    BySector,
    /// Most blocks have the newest content, or the oldest, as a whole; some are torn.
    ByBlock,
}

impl Manner {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        match rng.u8(0..6) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2 | 3 => Self::ByBlock,
            _ => Self::BySector,
        }
    }
}

/// What a sector has after the power failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// The newest content.
    Arrived,
    /// A content that was replaced on its way.
    Older,
    /// What was durable before.
    Lost,
}

/// A sector after the power failure.
#[derive(Debug)]
pub(super) struct Drawn<'s> {
    pub(super) at: u64,
    pub(super) content: &'s Content,
    /// `None` if all its contents are equal.
    pub(super) fate: Option<Fate>,
}

impl Sectors {
    /// A write is on its way.
    pub(super) fn begin(
        &mut self,
        number: u64,
        (at, len): (u64, u64),
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) {
        let piece = |of: Option<&[u8]>, index: usize| {
            let piece = of.and_then(|bytes| bytes.as_chunks().0.get(index).copied());
            piece.map(Box::new)
        };
        for (index, at) in (at..at + len).step_by(SECTOR as usize).enumerate() {
            let sector = self.by_offset.entry(at).or_insert_with(|| Sector {
                durable: piece(old, index),
                newer: Vec::new(),
            });
            sector.newer.push((number, piece(new, index)));
        }
        self.writes.insert(number, (at, at + len));
    }

    /// A write is durable, if it is one of this file. What was on its way before to its sectors never arrives.
    pub(super) fn settle(&mut self, number: u64) {
        let Some((from, to)) = self.writes.remove(&number) else {
            return;
        };
        for (_, sector) in self.by_offset.range_mut(from..to) {
            let newer = core::mem::take(&mut sector.newer);
            for (write, content) in newer {
                match write <= number {
                    true => sector.durable = content,
                    false => sector.newer.push((write, content)),
                }
            }
        }
    }

    /// A write is not on its way, if it is one of this file.
    pub(super) fn withdraw(&mut self, number: u64) {
        let Some((from, to)) = self.writes.remove(&number) else {
            return;
        };
        for (_, sector) in self.by_offset.range_mut(from..to) {
            sector.newer.retain(|(write, _)| *write != number);
        }
    }

    /// The contents after a power failure.
    pub(super) fn draw(&self, manner: Manner, rng: &mut Rng) -> Vec<Drawn<'_>> {
        let (mut drawn, mut block, mut in_block) = (Vec::new(), None, manner);
        for (&at, sector) in &self.by_offset {
            if block != Some(at / BLOCK) {
                block = Some(at / BLOCK);
                in_block = match (manner, rng.u8(0..4)) {
                    (Manner::ByBlock, 0) => Manner::BySector,
                    (Manner::ByBlock, 1) => Manner::Nothing,
                    (Manner::ByBlock, _) => Manner::Everything,
                    (other, _) => other,
                };
            }
            let newest = sector.newer.len();
            let kept = match in_block {
                Manner::Nothing => 0,
                Manner::Everything => newest,
                Manner::BySector | Manner::ByBlock => rng.usize(0..=newest),
            };
            let content = |kept: usize| match kept.checked_sub(1) {
                None => &sector.durable,
                Some(index) => &sector.newer[index].1,
            };
            let fate = match kept {
                _ if (1..=newest).all(|other| content(other) == content(0)) => None,
                0 => Some(Fate::Lost),
                kept if kept == newest => Some(Fate::Arrived),
                _ => Some(Fate::Older),
            };
            let content = content(kept);
            drawn.push(Drawn { at, content, fate });
        }
        drawn
    }
}
