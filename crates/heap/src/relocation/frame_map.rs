//! The frames of the open cycle, and the part of each.

use firn_format::geometry::Frame;
use firn_units::FRAMES_PER_CHUNK;

/// A frame's part in a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// In the source run of this entry.
    Source(usize),
    /// In this destination run.
    Destination(usize),
}

/// Bytes of a frame's entry in the map.
pub(super) const FRAME_MAP_BYTES: u64 = size_of::<u32>() as u64;

type Chunk = Box<[u32; FRAMES_PER_CHUNK as usize]>;

/// A table of two levels: a chunk without a part in the cycle costs one word.
pub(crate) struct FrameMap {
    chunks: Vec<Option<Chunk>>,
}

impl FrameMap {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    pub(crate) fn set(&mut self, frame: Frame, part: Part) {
        let chunk = frame.chunk().0 as usize;
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let frames =
            self.chunks[chunk].get_or_insert_with(|| Box::new([0; FRAMES_PER_CHUNK as usize]));
        // Zero means no part; bit 0 of the rest tells the two kinds apart.
        frames[frame.index_in_chunk() as usize] = match part {
            Part::Source(index) => index as u32 * 2 + 1,
            Part::Destination(index) => index as u32 * 2 + 2,
        };
    }

    #[inline]
    pub(crate) fn get(&self, frame: Frame) -> Option<Part> {
        let chunk = self.chunks.get(frame.chunk().0 as usize)?.as_ref()?;
        let word = chunk[frame.index_in_chunk() as usize].checked_sub(1)?;
        let index = word as usize / 2;
        Some(if word & 1 == 0 {
            Part::Source(index)
        } else {
            Part::Destination(index)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_read_back() {
        let mut map = FrameMap::new();
        map.set(Frame(5000), Part::Source(3));
        map.set(Frame(5001), Part::Destination(3));
        assert_eq!(map.get(Frame(5000)), Some(Part::Source(3)));
        assert_eq!(map.get(Frame(5001)), Some(Part::Destination(3)));
        assert_eq!(map.get(Frame(5002)), None);
        assert_eq!(map.get(Frame(1 << 30)), None);
    }
}
