//! The screen as text.

use firn_tools::top::Scene;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw::draw;

/// Columns and lines of the screen.
const AREA: Rect = Rect::new(0, 0, 100, 34);

/// The lines of the screen, without colours and without trailing blanks.
pub(super) fn lines(scene: &Scene) -> Vec<String> {
    let mut buffer = Buffer::empty(AREA);
    draw(scene, AREA, &mut buffer);
    text_of(&buffer)
}

pub(super) fn text_of(buffer: &Buffer) -> Vec<String> {
    let cells = buffer
        .content()
        .chunks(usize::from(buffer.area.width).max(1));
    let line = |cells: &[ratatui::buffer::Cell]| {
        let text: String = cells.iter().map(|cell| cell.symbol()).collect();
        text.trim_end().to_owned()
    };
    cells.map(line).collect()
}
