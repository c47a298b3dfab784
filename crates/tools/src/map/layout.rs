//! The arrangement of squares: chunks as blocks, in rows, however large the pool is.

use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK};

use super::scene::Rect;

/// Pixels from one square to the next; the first that fits is taken.
const PITCHES: [u32; 5] = [10, 8, 7, 6, 5];
/// Pixels between squares.
const JOINT: u32 = 1;
/// Squares of a chunk's block if each is a page.
const BLOCK: (u32, u32) = (32, 16);
/// Pixels between blocks at most.
const MAX_GAP: u32 = 12;
/// A gap is a block's width divided by this.
const GAP_SHARE: u32 = 14;

/// The room for a pool's squares, and the best-looking shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Width divided by height.
    pub(super) aspect: f64,
}

/// An arrangement of squares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Pages for which a square stands, a power of two.
    pub(super) pages_a_square: u64,
    pitch: u32,
    /// Squares of a block, across and down.
    block: (u32, u32),
    gap: u32,
    /// Blocks in a row.
    columns: u32,
    rows: u32,
}

impl Layout {
    /// The finest arrangement of `pages` that fits.
    pub(super) fn of(pages: u64, room: Room) -> Self {
        let mut pages_a_square = 1;
        loop {
            for pitch in PITCHES {
                if let Some(layout) = Self::try_of(pages, pages_a_square, pitch, room) {
                    return layout;
                }
            }
            pages_a_square *= 2;
        }
    }

    fn try_of(pages: u64, pages_a_square: u64, pitch: u32, room: Room) -> Option<Self> {
        let (mut block, mut shrunk) = (BLOCK, 1);
        while shrunk < pages_a_square.min(FRAMES_PER_CHUNK) {
            if block.0 > block.1 {
                block.0 /= 2;
            } else {
                block.1 /= 2;
            }
            shrunk *= 2;
        }
        let pages_a_block = pages_a_square * u64::from(block.0 * block.1);
        let blocks = u32::try_from(pages.div_ceil(pages_a_block).max(1)).ok()?;
        let gap = (block.0 * pitch / GAP_SHARE).min(MAX_GAP);
        let layout = |columns: u32| Self {
            pages_a_square,
            pitch,
            block,
            gap,
            columns,
            rows: blocks.div_ceil(columns),
        };
        let across = (room.width + gap) / (block.0 * pitch + gap);
        (1..=across.min(blocks))
            .map(layout)
            .filter(|l| l.height() <= room.height)
            .min_by(|a, b| a.distance(room.aspect).total_cmp(&b.distance(room.aspect)))
    }

    /// How far the shape is from the best-looking one.
    fn distance(&self, aspect: f64) -> f64 {
        (f64::from(self.width()) / f64::from(self.height()) / aspect)
            .ln()
            .abs()
    }

    /// Pixels across.
    pub(super) fn width(&self) -> u32 {
        self.columns * (self.block.0 * self.pitch + self.gap) - self.gap
    }

    /// Pixels down.
    pub(super) fn height(&self) -> u32 {
        self.rows
            .saturating_mul(self.block.1 * self.pitch + self.gap)
            - self.gap
    }

    /// Pixels along the edge of a square.
    pub(super) fn side(&self) -> u32 {
        self.pitch - JOINT
    }

    /// Where square number `index` lies, from the corner at `x`, `y`.
    pub(super) fn cell(&self, index: usize, x: u32, y: u32) -> Rect {
        let index = index as u32;
        let squares = self.block.0 * self.block.1;
        let (block, within) = (index / squares, index % squares);
        let step = |blocks: u32, size: u32, squares: u32| {
            blocks * (size * self.pitch + self.gap) + squares * self.pitch
        };
        Rect::square(
            x + step(block % self.columns, self.block.0, within % self.block.0),
            y + step(block / self.columns, self.block.1, within / self.block.0),
            self.side(),
        )
    }

    /// What a square and a block stand for, in a sentence.
    pub(super) fn sentence(&self) -> String {
        let bytes = crate::figures::bytes(self.pages_a_square * FRAME_BYTES);
        let square = match self.pages_a_square {
            1 => "A square is a page of 4 KiB".to_owned(),
            n => {
                format!("A square is {n} pages of 4 KiB, {bytes} in all, coloured by their average")
            }
        };
        if self.pages_a_square * FRAME_BYTES < CHUNK_BYTES {
            format!("{square}; a block is 2 MiB. Chunks with only tables or logs are left out.")
        } else {
            format!("{square}. Chunks with only tables or logs are left out.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        width: 1936,
        height: 1700,
        aspect: 1.6,
    };

    #[test]
    fn every_pool_fits_and_no_squares_overlap() {
        for chunks in [1, 8, 20, 64, 100, 300, 1000, 5000, 1 << 19, 1 << 27] {
            let pages = chunks * FRAMES_PER_CHUNK;
            let layout = Layout::of(pages, ROOM);
            assert!(layout.width() <= ROOM.width && layout.height() <= ROOM.height);
            let squares = pages.div_ceil(layout.pages_a_square) as usize;
            let mut corners: Vec<_> = (0..squares)
                .map(|i| layout.cell(i, 0, 0))
                .inspect(|cell| {
                    assert!(cell.x + cell.width <= layout.width());
                    assert!(cell.y + cell.height <= layout.height());
                })
                .map(|cell| (cell.x, cell.y))
                .collect();
            corners.sort_unstable();
            let apart = |two: &[(u32, u32)]| {
                two[1].0 >= two[0].0 + layout.pitch || two[1].1 >= two[0].1 + layout.pitch
            };
            assert!(corners.windows(2).all(apart), "{chunks} chunks");
        }
    }

    #[test]
    fn small_pools_show_every_page() {
        assert_eq!(Layout::of(64 * FRAMES_PER_CHUNK, ROOM).pages_a_square, 1);
        assert!(Layout::of(1 << 24, ROOM).pages_a_square > 1);
    }
}
