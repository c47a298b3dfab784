//! What the log does, for other processes to see: in a block of the pool that is shared with the file.

use std::sync::atomic::{AtomicU64, Ordering};

use firn_format::statistics::LogFigure;

use super::Logged;
use super::pages::Pages;

/// Figures of an open log.
#[derive(Debug, Default)]
pub(super) struct Figures {
    values: [AtomicU64; LogFigure::ALL.len()],
    /// Counts changes, so that they are shown once.
    changes: AtomicU64,
    shown: AtomicU64,
}

impl Figures {
    pub(super) fn set(&self, figure: LogFigure, value: u64) {
        self.values[figure as usize].store(value, Ordering::Relaxed);
    }

    pub(super) fn add(&self, figure: LogFigure, by: u64) {
        self.values[figure as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// Says that figures have changed.
    pub(super) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }
}

impl Logged {
    /// Stores the figures where other processes see them, if they have changed since.
    ///
    /// Concurrency: of two threads the slower one may show older figures, until the next change.
    #[inline]
    pub(super) fn show_figures(&self, on: &impl Pages) {
        let Some(figures) = self.group().map(|group| &group.figures) else {
            return;
        };
        let changes = figures.changes.load(Ordering::Acquire);
        if changes == figures.shown.swap(changes, Ordering::Relaxed) || !self.shares_statistics {
            return;
        }
        for figure in LogFigure::ALL {
            let value = figures.values[figure as usize].load(Ordering::Relaxed);
            on.set_word(figure.at().0, value);
        }
    }
}
