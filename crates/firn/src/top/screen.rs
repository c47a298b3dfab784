//! The terminal, always restored.

use std::io;

use firn_tools::top::Scene;
use ratatui::DefaultTerminal;

use super::draw::draw;

/// The terminal, with its other content saved. Dropping it restores the terminal; a panic restores it before printing
/// its message.
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        // After a partial failure the terminal is restored.
        let terminal = ratatui::try_init().inspect_err(|_| give_back())?;
        Ok(Self { terminal })
    }

    pub(super) fn draw(&mut self, scene: &Scene) -> io::Result<()> {
        self.terminal
            .draw(|frame| draw(scene, frame.area(), frame.buffer_mut()))
            .map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        give_back();
    }
}

fn give_back() {
    // A terminal that has gone needs no restoring.
    let _ = ratatui::try_restore();
}
