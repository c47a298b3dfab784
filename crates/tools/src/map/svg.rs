//! A scene as SVG. Squares of one colour are one path, so a picture costs only some bytes per square.

use std::fmt::Write;

use svg::Document;
use svg::node::element::{Path, Rectangle, Text, Title};

use super::scene::{Colour, Line, Mark, PAPER, Rect, Scene, Weight};

/// The font of PNGs, then fonts of about its widths for systems without it.
const FONTS: &str = "DejaVu Sans, Verdana, sans-serif";

/// The document's text.
pub(super) fn encode(scene: &Scene, title: &str) -> String {
    let paper = Rectangle::new()
        .set("width", "100%")
        .set("height", "100%")
        .set("fill", colour(PAPER));
    let document = Document::new()
        .set("width", scene.width)
        .set("height", scene.height)
        .set("viewBox", (0, 0, scene.width, scene.height))
        .set("font-family", FONTS)
        .set("role", "img")
        .add(Title::new(title))
        .add(paper);
    let marks = scene.marks.iter();
    let document = marks.fold(document, |document, mark| match mark {
        Mark::Rects {
            name,
            colour,
            rects,
        } => document.add(path(name, *colour, rects)),
        Mark::Text(line) => document.add(text(line)),
    });
    document.to_string()
}

fn path(name: &str, fill: Colour, rects: &[Rect]) -> Path {
    let mut data = String::new();
    for r in rects {
        let (width, height) = (r.width, r.height);
        let _ = write!(data, "M{} {}h{width}v{height}h-{width}z", r.x, r.y);
    }
    Path::new()
        .set("class", name)
        .set("fill", colour(fill))
        .set("shape-rendering", "crispEdges")
        .set("d", data)
}

fn text(line: &Line) -> Text {
    let text = Text::new(line.text.as_str())
        .set("x", line.x)
        .set("y", line.y)
        .set("font-size", line.size)
        .set("fill", colour(line.colour));
    match line.weight {
        Weight::Regular => text,
        Weight::Bold => text.set("font-weight", "bold"),
    }
}

fn colour(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}
