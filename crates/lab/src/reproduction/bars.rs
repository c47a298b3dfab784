//! Stacked bars in groups, as SVG.

use svg::Document;
use svg::node::element::{Line, Rectangle, Text, Title};

/// Groups of bars; every bar has the same parts.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) parts: Vec<String>,
    pub(super) groups: Vec<Group>,
}

/// A group of bars.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: String,
    /// Each bar's name, and the heights of its parts, from below.
    pub(super) bars: Vec<(String, Vec<f64>)>,
}

/// Colours that colour-blind readers can tell apart (Okabe and Ito).
const COLOURS: [&str; 6] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
];
const BAR: f64 = 16.0;
const GAP: f64 = 4.0;
const BETWEEN_GROUPS: f64 = 28.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 56.0;
const HEIGHT: f64 = 260.0;
const BELOW: f64 = 150.0;
const LINES: u32 = 5;

impl Chart {
    fn highest(&self) -> f64 {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        let heights = bars.map(|(_, parts)| parts.iter().sum::<f64>());
        heights.fold(f64::MIN_POSITIVE, f64::max)
    }

    fn width(&self) -> f64 {
        let group = |group: &Group| group.bars.len() as f64 * (BAR + GAP) + BETWEEN_GROUPS;
        LEFT + self.groups.iter().map(group).sum::<f64>()
    }

    pub(super) fn svg(&self) -> String {
        let (width, height) = (self.width().max(480.0), TOP + HEIGHT + BELOW);
        let paper = Rectangle::new()
            .set("width", "100%")
            .set("height", "100%")
            .set("fill", "#ffffff");
        let document = Document::new()
            .set("viewBox", (0, 0, width, height))
            .set("role", "img")
            .set("font-family", "DejaVu Sans, Verdana, sans-serif")
            .set("font-size", 11)
            .add(Title::new(self.title.as_str()))
            .add(paper)
            .add(
                Text::new(self.title.as_str())
                    .set("x", LEFT)
                    .set("y", 18)
                    .set("font-size", 13),
            );
        self.with_bars(self.with_legend(self.with_lines(document, width)))
            .to_string()
    }

    fn with_lines(&self, mut document: Document, width: f64) -> Document {
        for line in 0..=LINES {
            let value = self.highest() * f64::from(line) / f64::from(LINES);
            let y = TOP + HEIGHT - HEIGHT * f64::from(line) / f64::from(LINES);
            let rule = Line::new()
                .set("x1", LEFT - 4.0)
                .set("x2", width)
                .set("y1", y)
                .set("y2", y);
            let label = Text::new(format!("{value:.1}"))
                .set("x", LEFT - 8.0)
                .set("y", y + 4.0);
            document = document
                .add(rule.set("stroke", "#d5d9dd"))
                .add(label.set("text-anchor", "end"));
        }
        document
    }

    fn with_legend(&self, mut document: Document) -> Document {
        let mut x = LEFT;
        for (part, colour) in self.parts.iter().zip(COLOURS) {
            let square = Rectangle::new()
                .set("x", x)
                .set("y", 28)
                .set("width", 10)
                .set("height", 10);
            let label = Text::new(part.as_str()).set("x", x + 14.0).set("y", 37);
            document = document.add(square.set("fill", colour)).add(label);
            x += 34.0 + 6.4 * part.len() as f64;
        }
        document
    }

    fn with_bars(&self, mut document: Document) -> Document {
        let (mut x, unit) = (LEFT + BETWEEN_GROUPS / 2.0, HEIGHT / self.highest());
        let base = TOP + HEIGHT;
        for group in &self.groups {
            let middle = x + group.bars.len() as f64 * (BAR + GAP) / 2.0;
            let name = Text::new(group.name.as_str())
                .set("x", middle)
                .set("y", base + BELOW - 8.0);
            document = document.add(name.set("text-anchor", "middle").set("font-size", 13));
            for (bar, parts) in &group.bars {
                let mut y = base;
                for (part, colour) in parts.iter().zip(COLOURS) {
                    y -= part * unit;
                    let piece = Rectangle::new().set("x", x).set("y", y).set("width", BAR);
                    let what = Title::new(format!("{bar}: {part:.2}"));
                    document = document.add(
                        piece
                            .set("height", part * unit)
                            .set("fill", colour)
                            .add(what),
                    );
                }
                let (at, down) = (x + BAR / 2.0 + 4.0, base + 8.0);
                let turned = format!("rotate(-90 {at} {down})");
                let label = Text::new(bar.as_str())
                    .set("x", at)
                    .set("y", down)
                    .set("transform", turned);
                document = document.add(label.set("text-anchor", "end"));
                x += BAR + GAP;
            }
            x += BETWEEN_GROUPS;
        }
        document
    }
}
