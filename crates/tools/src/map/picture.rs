//! The picture: one pool, or two side by side.

use std::collections::BTreeMap;
use std::path::Path;

use firn_format::geometry::Chunk;
use firn_heap::{FrameOccupancy, Occupancy};
use firn_mapped::write_whole;
use firn_units::{FRAME_BYTES, FRAMES_PER_CHUNK};

use super::font::Font;
use super::layout::{Layout, Room};
use super::legend::Legend;
use super::scene::{Colour, FAINT_INK, INK, Line, Rect, Scene, Weight};
use super::square::Square;
use super::{PictureKind, png, svg};
use crate::ToolError;
use crate::figures::{bytes, count};

/// A picture's width and height in pixels, at most.
const MAX_SIDE: u32 = 2000;
/// Pixels at the edges.
const MARGIN: u32 = 36;
/// Pixels between two pools.
const GUTTER: u32 = 56;
/// Pixels across that the figures above a pool need.
const LEAST_WIDTH: u32 = 620;
/// Pixels that a column of figures takes at most.
const COLUMN: u32 = 230;
/// Base lines above the squares, from the panel's top.
const HEADING: u32 = 22;
const LABEL: u32 = 54;
const VALUE: u32 = 80;
const REMARK: u32 = 100;
const WARNING: u32 = 124;
/// Where the squares start without a warning, and how much lower they start with one.
const SQUARES: u32 = 122;
const WARNING_HEIGHT: u32 = 22;
/// Pixels between the squares and the legend.
const ABOVE_LEGEND: u32 = 30;
/// The best-looking ratio of width to height: for one pool, and for each of two.
const ASPECT: f64 = 1.7;
const ASPECT_BESIDE: f64 = 0.95;

const ALARM: Colour = Colour(0xa3, 0x3b, 0x12);
/// Letters of a heading that are shown.
const HEADING_LETTERS: usize = 44;

/// A pool in a picture: its heading, and its snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Panel<'a> {
    /// The pool's name, or `before` and `after`.
    pub heading: &'a str,
    /// What its pages held.
    pub occupancy: &'a Occupancy,
}

/// A picture of one pool or several.
#[derive(Clone, Debug)]
pub struct Picture {
    title: String,
    scene: Scene,
    pages_a_square: u64,
}

impl Picture {
    /// Draws the panels side by side, all in one scale: the finest in which the largest of them fits. Chunks that hold
    /// only metadata, logs or tables are left out.
    pub fn draw(panels: &[Panel<'_>]) -> Self {
        let frame = Frame::of(panels);
        let mut scene = Scene::default();
        let mut shown = Vec::new();
        for (number, panel) in panels.iter().enumerate() {
            let left = MARGIN + number as u32 * (frame.panel_width + GUTTER);
            head(&mut scene, panel, left, frame.panel_width);
            shown.extend(squares(&mut scene, panel, &frame, left));
        }
        let width = frame.width - 2 * MARGIN;
        let below = frame.squares_top + frame.layout.height() + ABOVE_LEGEND;
        let legend = Legend {
            layout: &frame.layout,
            shown: &shown,
        };
        let bottom = legend.draw(&mut scene, MARGIN, below, width);
        (scene.width, scene.height) = (frame.width, bottom + MARGIN);
        let names: Vec<&str> = panels.iter().map(|panel| panel.heading).collect();
        Self {
            title: format!("Occupancy of {}", names.join(", ")),
            scene,
            pages_a_square: frame.layout.pages_a_square,
        }
    }

    /// Pages for which a square stands.
    pub fn pages_a_square(&self) -> u64 {
        self.pages_a_square
    }

    /// The picture as an SVG document.
    pub fn svg(&self) -> String {
        svg::encode(&self.scene, &self.title)
    }

    /// The picture as the bytes of a PNG file.
    ///
    /// Errors: no memory.
    pub fn png(&self) -> std::io::Result<Vec<u8>> {
        png::encode(&self.scene)
    }

    /// Writes the picture into a file that is made or replaced, as SVG or PNG by its extension.
    ///
    /// Errors: another extension, a directory, no space.
    pub fn write(&self, path: &Path) -> Result<(), ToolError> {
        self.write_as(PictureKind::of(path)?, path)
    }

    pub(crate) fn write_as(&self, kind: PictureKind, path: &Path) -> Result<(), ToolError> {
        let content = match kind {
            PictureKind::Svg => self.svg().into_bytes(),
            PictureKind::Png => self
                .png()
                .map_err(ToolError::file(path, "drawing the picture"))?,
        };
        write_whole(path, &content).map_err(ToolError::file(path, "writing the picture"))
    }
}

/// Where the parts of a picture lie.
struct Frame {
    layout: Layout,
    width: u32,
    panel_width: u32,
    squares_top: u32,
}

impl Frame {
    fn of(panels: &[Panel<'_>]) -> Self {
        let many = panels.len().max(1) as u32;
        let pages = |panel: &Panel<'_>| data_frames(panel.occupancy).count() as u64;
        let warned = panels.iter().any(|panel| !panel.occupancy.exact);
        let squares_top = MARGIN + SQUARES + if warned { WARNING_HEIGHT } else { 0 };
        let across = MAX_SIDE - 2 * MARGIN - (many - 1) * GUTTER;
        let room = Room {
            width: across / many,
            height: MAX_SIDE - squares_top - ABOVE_LEGEND - Legend::MAX_HEIGHT - MARGIN,
            aspect: if many == 1 { ASPECT } else { ASPECT_BESIDE },
        };
        let layout = Layout::of(panels.iter().map(pages).max().unwrap_or(0), room);
        let panel_width = layout.width().max(LEAST_WIDTH).min(room.width);
        Self {
            layout,
            width: 2 * MARGIN + many * panel_width + (many - 1) * GUTTER,
            panel_width,
            squares_top,
        }
    }
}

/// Draws the heading above a pool.
fn head(scene: &mut Scene, panel: &Panel<'_>, left: u32, width: u32) {
    let occupancy = panel.occupancy;
    let heading = match panel.heading.char_indices().nth(HEADING_LETTERS) {
        None => panel.heading.to_owned(),
        Some((end, _)) => format!("{}…", &panel.heading[..end]),
    };
    let mut line = |x, y, size, weight, colour, text: String| {
        scene.line(Line {
            x,
            y: MARGIN + y,
            size,
            weight,
            colour,
            text,
        });
    };
    line(left, HEADING, 24, Weight::Bold, INK, heading);
    let columns = columns(occupancy);
    let step = (width / columns.len() as u32).min(COLUMN);
    for (number, [label, value, remark]) in columns.into_iter().enumerate() {
        let x = left + number as u32 * step;
        line(x, LABEL, 12, Weight::Regular, FAINT_INK, label);
        line(x, VALUE, 22, Weight::Bold, INK, value);
        line(x, REMARK, 12, Weight::Regular, FAINT_INK, remark);
    }
    if !occupancy.exact {
        let warning = "In use, or not traced since a crash: it is unknown how full pages are, and the figures may lag.";
        line(left, WARNING, 12, Weight::Regular, ALARM, warning.into());
    }
}

/// Label, value and remark of the figures above a pool.
fn columns(occupancy: &Occupancy) -> [[String; 3]; 4] {
    let ratio = |pages: &str, ratio: Option<f64>, footprint: u64| {
        [
            format!("ratio on {pages} pages"),
            ratio.map_or_else(|| "none".into(), |ratio| format!("{ratio:.2}")),
            format!("footprint {}", bytes(footprint)),
        ]
    };
    let frames = &occupancy.frames;
    let with_data = frames.iter().filter(|f| f.has_data == Some(true)).count() as u64;
    let of_device = match frames.first().and_then(|frame| frame.has_data) {
        Some(_) => format!("{} with data", bytes(with_data * FRAME_BYTES)),
        None => String::new(),
    };
    let objects = format!("in {} objects", count(occupancy.objects));
    [
        ["live".into(), bytes(occupancy.live_bytes), objects],
        ratio("4 KiB", occupancy.ratio_4k(), occupancy.footprint_4k_bytes),
        ratio("2 MiB", occupancy.ratio_2m(), occupancy.footprint_2m_bytes),
        [
            "pool".into(),
            bytes(frames.len() as u64 * FRAME_BYTES),
            of_device,
        ],
    ]
}

/// Draws the squares of a pool. Returns the kinds that occur.
fn squares(scene: &mut Scene, panel: &Panel<'_>, frame: &Frame, left: u32) -> Vec<Square> {
    let mut cells: BTreeMap<Square, Vec<Rect>> = BTreeMap::new();
    let drawn: Vec<FrameOccupancy> = data_frames(panel.occupancy).copied().collect();
    let pages_a_square = frame.layout.pages_a_square as usize;
    for (index, pages) in drawn.chunks(pages_a_square).enumerate() {
        let cell = frame.layout.cell(index, left, frame.squares_top);
        cells.entry(Square::of(pages)).or_default().push(cell);
    }
    let kinds = cells.keys().copied().collect();
    for (square, cells) in cells {
        square.draw(scene, cells);
    }
    kinds
}

/// The frames of the chunks that can hold objects. The others would fill half of a small pool's
/// picture with tables that say nothing.
fn data_frames(occupancy: &Occupancy) -> impl Iterator<Item = &FrameOccupancy> {
    let chunks = occupancy.frames.chunks(FRAMES_PER_CHUNK as usize);
    let numbered = chunks.zip((0..).map(Chunk));
    numbered
        .filter(|(_, chunk)| chunk.is_data())
        .flat_map(|(frames, _)| frames)
}

/// Pixels that a text takes across.
pub(super) fn text_width(text: &str, size: u32) -> u32 {
    let font = Font::of(Weight::Regular);
    font.map_or(0, |font| font.width(text, size).ceil() as u32)
}

#[cfg(test)]
mod tests;
