//! Progress bars on standard error, where that is a terminal.

use std::fmt;
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use firn_tools::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::figures::count;
use crate::output;

/// Shorter work is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);
/// As wide as the terminal: a wrapped bar is useless.
const WITH_TOTAL: &str = "{msg} [{wide_bar}] {percent:>3} %, {eta} left";
const WITHOUT_TOTAL: &str = "{msg} {spinner} {steps}";

/// Draws a bar for work that takes longer than a second.
pub struct Bars {
    terminal: bool,
    work: Option<Work>,
}

/// A bar, hidden until the work has taken long enough.
struct Work {
    bar: ProgressBar,
    /// Dropping it ends the wait.
    done: Option<mpsc::Sender<()>>,
    waiting: Option<JoinHandle<()>>,
}

impl Bars {
    pub fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            work: None,
        }
    }
}

impl Work {
    fn begin(what: &str, total: Option<u64>) -> Self {
        let template = if total.is_some() {
            WITH_TOTAL
        } else {
            WITHOUT_TOTAL
        };
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden())
            .with_style(
                style
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .with_key("steps", steps),
            )
            .with_message(what.to_owned());
        let (done, wait) = mpsc::channel();
        let shown = bar.clone();
        let waiting = thread::spawn(move || {
            if wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        });
        Self {
            bar,
            done: Some(done),
            waiting: Some(waiting),
        }
    }
}

/// The number of steps done; nothing for work that reports none.
fn steps(state: &ProgressState, text: &mut dyn fmt::Write) {
    if state.pos() > 0 {
        // A bar that cannot be written is not worth an error.
        let _ = text.write_str(&count(state.pos()));
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        drop(self.done.take());
        // A thread that panicked has drawn no bar; nothing else is lost.
        let _ = self.waiting.take().map(JoinHandle::join);
        self.bar.finish_and_clear();
    }
}

impl Progress for Bars {
    fn begin(&mut self, what: &str, total: Option<u64>) {
        self.end();
        if self.terminal {
            self.work = Some(Work::begin(what, total));
        }
    }

    fn advance(&mut self, steps: u64) {
        if let Some(work) = &self.work {
            work.bar.inc(steps);
        }
    }

    fn rename(&mut self, what: &str) {
        if let Some(work) = &self.work {
            work.bar.set_message(what.to_owned());
        }
    }

    fn end(&mut self) {
        self.work = None;
    }

    fn remark(&mut self, text: &str) {
        match &self.work {
            Some(work) => work.bar.suspend(|| output::remark(text)),
            None => output::remark(text),
        }
    }
}
