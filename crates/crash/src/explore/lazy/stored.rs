//! The stores of a run to one line.

use crate::memory::cells::{LINE_CELLS, Line, index_of, line_of};
use crate::memory::event::Event;

/// A bit for each cell of a line.
pub(super) const ALL: u16 = (1 << LINE_CELLS) - 1;

/// The stores to a line.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    /// A bit for each cell.
    pub(super) cells: u16,
    pub(super) content: Line,
}

impl Stored {
    /// What these events store to a line.
    pub(crate) fn to_line(line: u64, events: &[Event]) -> Self {
        let mut stored = Self::default();
        for event in events {
            stored.take_in(line, event);
        }
        stored
    }

    pub(super) fn take_in(&mut self, line: u64, event: &Event) {
        match *event {
            // The content that this run replaced may differ in another image.
            Event::Store { word, new, .. } if line_of(word) == line => {
                self.cells |= 1 << index_of(word);
                self.content[index_of(word)] = new;
            }
            Event::Zero { line: zeroed, .. } if zeroed == line => {
                self.cells = ALL;
                self.content = Line::default();
            }
            _ => {}
        }
    }

    /// `content` after these stores.
    pub(crate) fn applied(&self, content: &Line) -> Line {
        let mut content = *content;
        self.store_to(&mut content);
        content
    }

    /// Whether a content already holds everything that was stored.
    pub(crate) fn is_in(&self, content: &Line) -> bool {
        let cells = content.iter().zip(&self.content).enumerate();
        let mut stored = cells.filter(|(cell, _)| self.cells >> cell & 1 != 0);
        stored.all(|(_, (held, stored))| held == stored)
    }

    pub(super) fn store_to(&self, content: &mut Line) {
        for (cell, word) in content.iter_mut().enumerate() {
            if self.cells >> cell & 1 != 0 {
                *word = self.content[cell];
            }
        }
    }
}
