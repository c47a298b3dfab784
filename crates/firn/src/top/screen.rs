//! The terminal, given back whatever happens.

use std::io;

use firn_tools::top::Scene;
use ratatui::DefaultTerminal;

use super::draw::draw;

/// The terminal, its other content put aside. Dropped, it is as before; a panic restores it before it
/// says anything.
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        // Half of the way there is no way to be in.
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
    // A terminal that went away needs nothing back.
    let _ = ratatui::try_restore();
}
