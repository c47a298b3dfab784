//! Progress bars on standard error, where that is a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use firn_lab::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// Work that is done sooner is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);
const DRAWS_A_SECOND: u8 = 10;
const WITH_TOTAL: &str = "{msg} [{bar:40}] {percent} %, {eta} left";
const WITHOUT_TOTAL: &str = "{msg} {spinner} {human_pos}";

/// Draws a bar for work that takes longer than a second.
pub struct Bars {
    terminal: bool,
    work: Option<Work>,
}

struct Work {
    bar: ProgressBar,
    start: Instant,
    shown: bool,
}

impl Bars {
    pub fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            work: None,
        }
    }
}

impl Progress for Bars {
    fn begin(&mut self, what: &str, total: Option<u64>) {
        self.end();
        if !self.terminal {
            return;
        }
        let hidden = ProgressDrawTarget::hidden();
        let template = if total.is_some() {
            WITH_TOTAL
        } else {
            WITHOUT_TOTAL
        };
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::with_draw_target(total, hidden)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_message(what.to_owned());
        self.work = Some(Work {
            bar,
            start: Instant::now(),
            shown: false,
        });
    }

    fn advance(&mut self, steps: u64) {
        let Some(work) = &mut self.work else { return };
        work.bar.inc(steps);
        if !work.shown && work.start.elapsed() > PATIENCE {
            work.shown = true;
            let target = ProgressDrawTarget::stderr_with_hz(DRAWS_A_SECOND);
            work.bar.set_draw_target(target);
        }
    }

    fn end(&mut self) {
        if let Some(work) = self.work.take() {
            work.bar.finish_and_clear();
        }
    }

    fn remark(&mut self, text: &str) {
        match &self.work {
            Some(work) if work.shown => work.bar.suspend(|| output::remark(text)),
            _ => output::remark(text),
        }
    }
}
