//! The kinds of pages in a picture, and their looks.
//!
//! Fuller pages are darker, in the colours of viridis, which keep their order in grey and for the colour-blind. Every
//! other kind is grey, and distinguished by its shape.

use firn_heap::{FrameContent, FrameOccupancy};
use firn_units::FRAME_BYTES;

use super::scene::{Colour, PAPER, Rect, Scene};

/// Steps from a page with one object to a full one.
pub(super) const LEVELS: usize = 16;
/// The colours of the steps.
pub(super) const RAMP: [Colour; LEVELS] = [
    Colour(0xfd, 0xe7, 0x25),
    Colour(0xd2, 0xe2, 0x1b),
    Colour(0xa5, 0xdb, 0x36),
    Colour(0x7a, 0xd1, 0x51),
    Colour(0x54, 0xc5, 0x68),
    Colour(0x35, 0xb7, 0x79),
    Colour(0x22, 0xa8, 0x84),
    Colour(0x1f, 0x98, 0x8b),
    Colour(0x23, 0x88, 0x8e),
    Colour(0x2a, 0x78, 0x8e),
    Colour(0x31, 0x68, 0x8e),
    Colour(0x39, 0x56, 0x8c),
    Colour(0x41, 0x44, 0x87),
    Colour(0x47, 0x2f, 0x7d),
    Colour(0x48, 0x1a, 0x6c),
    Colour(0x44, 0x01, 0x54),
];

/// The kind of a page, or of several pages that share a square.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Square {
    /// Free, or never used, and without data on the device as far as is known.
    Empty,
    /// Free, while the device still holds data for it.
    FreeWithData,
    /// Metadata, logs, tables.
    Own,
    /// In use, without an object.
    Unoccupied,
    /// In use; the level of fullness is below [`LEVELS`].
    Level(u8),
    /// In use, with unknown fullness.
    Unknown,
}

impl Square {
    /// The kind of several pages together: their fullness if any is in use, otherwise the kind that takes most of the
    /// device.
    pub(super) fn of(pages: &[FrameOccupancy]) -> Self {
        let used = |page: &&FrameOccupancy| {
            matches!(
                page.content,
                FrameContent::Slots { .. } | FrameContent::Large { .. }
            )
        };
        if pages.iter().any(|page| used(&page)) {
            let live: Option<u64> = pages.iter().map(|page| page.content.live_bytes()).sum();
            return live.map_or(Self::Unknown, |live| {
                Self::filled(live, pages.len() as u64 * FRAME_BYTES)
            });
        }
        let free = |page: &FrameOccupancy| page.content == FrameContent::Free;
        let own = |page: &FrameOccupancy| !free(page) && page.has_data != Some(false);
        if pages.iter().any(own) {
            Self::Own
        } else if pages.iter().any(|p| free(p) && p.has_data == Some(true)) {
            Self::FreeWithData
        } else {
            Self::Empty
        }
    }

    fn filled(live: u64, bytes: u64) -> Self {
        match live.checked_sub(1) {
            None => Self::Unoccupied,
            Some(below) => {
                let level = below * LEVELS as u64 / bytes;
                Self::Level(level.min(LEVELS as u64 - 1) as u8)
            }
        }
    }

    /// A name for programs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::FreeWithData => "free-with-data",
            Self::Own => "own",
            Self::Unoccupied => "unoccupied",
            Self::Level(_) => "live",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn colour(self) -> Colour {
        match self {
            Self::Empty => Colour(0xef, 0xf1, 0xf4),
            Self::FreeWithData => Colour(0xa3, 0xad, 0xb8),
            Self::Own => Colour(0x8a, 0x93, 0x9e),
            Self::Unoccupied => RAMP[0],
            Self::Level(level) => RAMP[usize::from(level).min(LEVELS - 1)],
            Self::Unknown => Colour(0x4a, 0x54, 0x60),
        }
    }

    /// Draws squares of this kind, each in a cell.
    pub(super) fn draw(self, scene: &mut Scene, cells: Vec<Rect>) {
        let side = cells.first().map_or(0, |cell| cell.width);
        let rim = (side / 8).max(1);
        let inside = |by: u32| cells.iter().map(|cell| cell.inset(by)).collect();
        match self {
            Self::FreeWithData | Self::Unoccupied => {
                let holes = inside(rim);
                scene.rects(self.name(), self.colour(), cells);
                scene.rects("hole", PAPER, holes);
            }
            Self::Own => scene.rects(self.name(), self.colour(), inside(side.div_ceil(4))),
            Self::Unknown => {
                let bar = |cell: &Rect| Rect {
                    y: cell.y + cell.height.div_ceil(4),
                    height: cell.height - 2 * cell.height.div_ceil(4),
                    ..*cell
                };
                let bars = cells.iter().map(bar).collect();
                scene.rects(self.name(), self.colour(), bars);
            }
            Self::Empty | Self::Level(_) => scene.rects(self.name(), self.colour(), cells),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content: FrameContent, has_data: Option<bool>) -> FrameOccupancy {
        FrameOccupancy { content, has_data }
    }

    fn slots(live_bytes: Option<u16>) -> FrameOccupancy {
        page(FrameContent::Slots { live_bytes }, Some(true))
    }

    #[test]
    fn pages_count_as_what_they_hold() {
        let free = |has_data| page(FrameContent::Free, has_data);
        let table = |has_data| page(FrameContent::Table, has_data);
        for (pages, square) in [
            (&[free(None)][..], Square::Empty),
            (&[free(Some(false))], Square::Empty),
            (&[free(Some(true))], Square::FreeWithData),
            (
                &[free(Some(true)), table(Some(false))],
                Square::FreeWithData,
            ),
            (&[table(None)], Square::Own),
            (&[table(Some(false))], Square::Empty),
            (&[free(Some(true)), table(Some(true))], Square::Own),
            (&[slots(Some(0))], Square::Unoccupied),
            (&[slots(Some(1))], Square::Level(0)),
            (&[slots(Some(256))], Square::Level(0)),
            (&[slots(Some(257))], Square::Level(1)),
            (&[slots(Some(4096))], Square::Level(15)),
            (&[slots(Some(4096)), free(None)], Square::Level(7)),
            (&[slots(Some(4096)), slots(None)], Square::Unknown),
        ] {
            assert_eq!(Square::of(pages), square, "{pages:?}");
        }
    }

    #[test]
    fn the_ramp_darkens_step_by_step() {
        let grey = |c: Colour| 299 * u32::from(c.0) + 587 * u32::from(c.1) + 114 * u32::from(c.2);
        assert!(RAMP.windows(2).all(|two| grey(two[0]) > grey(two[1])));
    }
}
