//! A drawing in whole pixels, independent of the file format.

/// A colour, as red, green and blue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Colour(pub(super) u8, pub(super) u8, pub(super) u8);

pub(super) const PAPER: Colour = Colour(0xff, 0xff, 0xff);
pub(super) const INK: Colour = Colour(0x1c, 0x23, 0x2b);
pub(super) const FAINT_INK: Colour = Colour(0x5d, 0x67, 0x73);

/// A rectangle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rect {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Rect {
    pub(super) fn square(x: u32, y: u32, side: u32) -> Self {
        Self {
            x,
            y,
            width: side,
            height: side,
        }
    }

    /// The rectangle without `by` pixels at each edge.
    pub(super) fn inset(self, by: u32) -> Self {
        Self {
            x: self.x + by,
            y: self.y + by,
            width: self.width.saturating_sub(2 * by),
            height: self.height.saturating_sub(2 * by),
        }
    }
}

/// How heavy letters are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Weight {
    Regular,
    Bold,
}

/// A line of text.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Line {
    /// Its left end.
    pub(super) x: u32,
    /// Its base line.
    pub(super) y: u32,
    /// Height of the letters' box, in pixels.
    pub(super) size: u32,
    pub(super) weight: Weight,
    pub(super) colour: Colour,
    pub(super) text: String,
}

/// An element of a drawing.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Mark {
    /// Rectangles of one colour.
    Rects {
        /// What the rectangles stand for.
        name: &'static str,
        colour: Colour,
        rects: Vec<Rect>,
    },
    Text(Line),
}

/// A drawing; later marks lie above earlier ones.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Scene {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) marks: Vec<Mark>,
}

impl Scene {
    pub(super) fn rects(&mut self, name: &'static str, colour: Colour, rects: Vec<Rect>) {
        if !rects.is_empty() {
            self.marks.push(Mark::Rects {
                name,
                colour,
                rects,
            });
        }
    }

    pub(super) fn line(&mut self, line: Line) {
        self.marks.push(Mark::Text(line));
    }
}
