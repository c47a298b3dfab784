//! `firn top`: what goes on in a pool, live.
//!
//! ```text
//! screen   the terminal, given back whatever happens      panels   what stands in which part of it
//! draw     what fits where                                bar      names, figures and bars in columns
//! plain    the same as text
//! ```

mod bar;
mod draw;
mod panels;
mod plain;
mod screen;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use firn_tools::top::Watch;

use crate::Verdict;
use crate::arguments::Top;
use crate::failure::Failure;
use crate::output::Output;

use screen::Screen;

pub fn run(top: &Top, output: &mut Output) -> Result<Verdict, Failure> {
    let mut watch = Watch::begin(&top.pool)?;
    if top.once || output.json() || !io::stdout().is_terminal() {
        thread::sleep(top.interval);
        watch.look();
        print(&watch, output)?;
    } else {
        live(&mut watch, top.interval).map_err(Failure::Terminal)?;
    }
    Ok(Verdict::Well)
}

fn print(watch: &Watch, output: &mut Output) -> io::Result<()> {
    if output.json() {
        return output.object(watch.scene());
    }
    for line in plain::lines(watch.scene()) {
        output.line(&line)?;
    }
    Ok(())
}

/// Draws until a key ends it. The terminal is restored, whatever is returned.
fn live(watch: &mut Watch, interval: Duration) -> io::Result<()> {
    let mut screen = Screen::open()?;
    let mut next = Instant::now() + interval;
    loop {
        screen.draw(watch.scene())?;
        // Resizing the terminal is an event too, and the next iteration redraws.
        if event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if ends(&key) => return Ok(()),
                _ => {}
            }
        }
        if Instant::now() >= next {
            watch.look();
            next = Instant::now() + interval;
        }
    }
}

fn ends(key: &KeyEvent) -> bool {
    let pressed = key.kind != KeyEventKind::Release;
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    pressed && (control_c || matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc))
}
