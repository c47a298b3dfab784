//! Letters as outlines, from a font that comes with the program: no font needs to be installed.

use tiny_skia::{Path, PathBuilder, Transform};
use ttf_parser::{Face, OutlineBuilder};

use super::scene::Weight;

/// A font.
pub(super) struct Font {
    face: Face<'static>,
}

impl Font {
    /// The font of a weight; `None` if the one that came with the program is unreadable.
    pub(super) fn of(weight: Weight) -> Option<Self> {
        let bytes = match weight {
            Weight::Regular => dejavu::sans::regular(),
            Weight::Bold => dejavu::sans::bold(),
        };
        let face = Face::parse(bytes, 0).ok()?;
        Some(Self { face })
    }

    /// Pixels that a text takes across.
    pub(super) fn width(&self, text: &str, size: u32) -> f32 {
        let advance = |letter| self.advance(letter);
        text.chars().map(advance).sum::<f32>() * self.scale(size)
    }

    /// The outlines of a text whose base line starts at `x`, `y`; `None` if there is nothing to see.
    pub(super) fn outline(&self, text: &str, size: u32, x: f32, y: f32) -> Option<Path> {
        let mut outline = Outline(PathBuilder::new(), 0.0);
        for letter in text.chars() {
            if let Some(glyph) = self.face.glyph_index(letter) {
                self.face.outline_glyph(glyph, &mut outline);
            }
            outline.1 += self.advance(letter);
        }
        let scale = self.scale(size);
        let on_paper = Transform::from_row(scale, 0.0, 0.0, -scale, x, y);
        outline.0.finish()?.transform(on_paper)
    }

    fn advance(&self, letter: char) -> f32 {
        let glyph = self.face.glyph_index(letter);
        let advance = glyph.and_then(|glyph| self.face.glyph_hor_advance(glyph));
        advance.map_or(0.0, f32::from)
    }

    fn scale(&self, size: u32) -> f32 {
        size as f32 / f32::from(self.face.units_per_em())
    }
}

/// A path, and where on the base line the letter being added starts.
struct Outline(PathBuilder, f32);

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(self.1 + x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(self.1 + x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(self.1 + x1, y1, self.1 + x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let at = self.1;
        self.0.cubic_to(at + x1, y1, at + x2, y2, at + x, y);
    }

    fn close(&mut self) {
        self.0.close();
    }
}
