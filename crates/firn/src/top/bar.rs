//! Names, figures and bars in columns.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

const FULL: &str = "█";
const EMPTY: &str = "░";

/// A line of a panel: a name, a figure, and a bar where there is room left.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) figure: String,
    /// Length of the bar, between 0 and 1.
    pub(super) share: Option<f64>,
    pub(super) color: Color,
}

impl Row {
    pub(super) fn new(name: impl Into<String>, figure: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            figure: figure.into(),
            ..Self::default()
        }
    }

    pub(super) fn with_bar(self, part: f64, of: f64, color: Color) -> Self {
        let share = if of > 0.0 { part / of } else { 0.0 };
        let share = Some(share.clamp(0.0, 1.0));
        Self {
            share,
            color,
            ..self
        }
    }
}

/// Draws rows below each other, as many as fit, with their figures in one column and their bars in another.
pub(super) fn rows(rows: &[Row], area: Rect, buffer: &mut Buffer) {
    let width = |text: &str| text.chars().count() as u16;
    let names = rows.iter().map(|row| width(&row.name)).max().unwrap_or(0);
    let with_bars = rows.iter().filter(|row| row.share.is_some());
    let figures = with_bars.map(|row| width(&row.figure)).max().unwrap_or(0);
    for (row, y) in rows.iter().zip(area.y..area.bottom()) {
        let mut put = |x: u16, text: &str, style: Style| {
            let left = area.right().saturating_sub(x);
            buffer.set_stringn(x, y, text, left.into(), style);
        };
        put(area.x, &row.name, Style::new().dim());
        let at = area.x.saturating_add(names + u16::from(names > 0));
        put(at, &row.figure, Style::new());
        let at = at.saturating_add(figures + 1);
        let room = usize::from(area.right().saturating_sub(at));
        if let Some(share) = row.share {
            // Any amount above zero is visible.
            let full = match (share * room as f64).round() as usize {
                0 if share > 0.0 => room.min(1),
                full => full.min(room),
            };
            let bar = FULL.repeat(full) + &EMPTY.repeat(room - full);
            put(at, &bar, Style::new().fg(row.color));
        }
    }
}
