//! A scene as PNG.

use std::io;

use tiny_skia::{Color, FillRule, Paint, Pixmap, Rect as Area, Transform};

use super::font::Font;
use super::scene::{Colour, Line, Mark, PAPER, Rect, Scene};

/// The file's bytes.
///
/// Errors: no memory for so many pixels.
pub(super) fn encode(scene: &Scene) -> io::Result<Vec<u8>> {
    let pixels = Pixmap::new(scene.width, scene.height);
    let mut pixels = pixels.ok_or_else(|| io::Error::other("a picture without pixels"))?;
    pixels.fill(color(PAPER));
    for mark in &scene.marks {
        match mark {
            Mark::Rects { colour, rects, .. } => fill(&mut pixels, *colour, rects),
            Mark::Text(line) => write(&mut pixels, line),
        }
    }
    pixels.encode_png().map_err(io::Error::other)
}

fn fill(pixels: &mut Pixmap, colour: Colour, rects: &[Rect]) {
    let mut paint = Paint {
        anti_alias: false,
        ..Paint::default()
    };
    paint.set_color(color(colour));
    for r in rects {
        let (x, y, width, height) = (r.x as f32, r.y as f32, r.width as f32, r.height as f32);
        if let Some(area) = Area::from_xywh(x, y, width, height) {
            pixels.fill_rect(area, &paint, Transform::identity(), None);
        }
    }
}

fn write(pixels: &mut Pixmap, line: &Line) {
    let mut paint = Paint::default();
    paint.set_color(color(line.colour));
    let font = Font::of(line.weight);
    let outline = font.and_then(|f| f.outline(&line.text, line.size, line.x as f32, line.y as f32));
    if let Some(outline) = outline {
        let whole = Transform::identity();
        pixels.fill_path(&outline, &paint, FillRule::Winding, whole, None);
    }
}

fn color(Colour(red, green, blue): Colour) -> Color {
    Color::from_rgba8(red, green, blue, u8::MAX)
}
