//! What the colours mean, below the squares.

use super::layout::Layout;
use super::picture::text_width;
use super::scene::{FAINT_INK, INK, Line, Rect, Scene, Weight};
use super::square::{LEVELS, Square};

const SWATCH: u32 = 15;
/// Pixels across for a step of the ramp.
const STEP: u32 = 17;
const LETTERS: u32 = 13;
/// From the top of a row to the next.
const ROW: u32 = 26;
/// From the top of a row to its base line.
const BASE: u32 = 12;
/// Pixels between a swatch and its words, and between two entries.
const NEAR: u32 = 8;
const FAR: u32 = 28;
/// Rows that the entries take at most, the sentence included.
const MAX_ROWS: u32 = 5;

/// The legend of a picture.
pub(super) struct Legend<'a> {
    pub(super) layout: &'a Layout,
    /// The kinds of squares in the picture.
    pub(super) shown: &'a [Square],
}

impl Legend<'_> {
    /// Its maximum height in pixels.
    pub(super) const MAX_HEIGHT: u32 = MAX_ROWS * ROW;

    /// Draws it into the given width. Returns where it ends.
    pub(super) fn draw(&self, scene: &mut Scene, left: u32, top: u32, width: u32) -> u32 {
        let (mut x, mut y) = (ramp(scene, left, top), top);
        for square in [
            Square::Unoccupied,
            Square::Unknown,
            Square::Own,
            Square::FreeWithData,
            Square::Empty,
        ] {
            if !self.shown.contains(&square) {
                continue;
            }
            let words = self.words(square);
            let needs = SWATCH + NEAR + text_width(words, LETTERS);
            if x + needs > left + width {
                (x, y) = (left, y + ROW);
            }
            square.draw(scene, vec![Rect::square(x, y, SWATCH)]);
            write(scene, x + SWATCH + NEAR, y, words);
            x += needs + FAR;
        }
        y += ROW;
        let sentence = self.layout.sentence();
        scene.line(Line {
            x: left,
            y: y + BASE,
            size: LETTERS,
            weight: Weight::Regular,
            colour: FAINT_INK,
            text: sentence,
        });
        y + BASE
    }

    fn words(&self, square: Square) -> &'static str {
        let tells = self.shown.contains(&Square::FreeWithData);
        match square {
            Square::Unoccupied => "in use, no object",
            Square::Unknown => "in use, not known how full",
            Square::Own => "log",
            Square::FreeWithData => "free, old data on the device",
            Square::Empty if tells => "free, given back or never used",
            Square::Empty => "free",
            Square::Level(_) => "",
        }
    }
}

/// Draws the steps from empty to full. Returns where the next entry starts.
fn ramp(scene: &mut Scene, left: u32, top: u32) -> u32 {
    let (before, after) = ("under live objects: 0 %", "100 %");
    write(scene, left, top, before);
    let first = left + text_width(before, LETTERS) + NEAR;
    for level in 0..LEVELS as u32 {
        let step = Rect {
            x: first + level * STEP,
            y: top,
            width: STEP,
            height: SWATCH,
        };
        Square::Level(level as u8).draw(scene, vec![step]);
    }
    let end = first + LEVELS as u32 * STEP + NEAR;
    write(scene, end, top, after);
    end + text_width(after, LETTERS) + FAR
}

fn write(scene: &mut Scene, x: u32, top: u32, words: &str) {
    scene.line(Line {
        x,
        y: top + BASE,
        size: LETTERS,
        weight: Weight::Regular,
        colour: INK,
        text: words.to_owned(),
    });
}
