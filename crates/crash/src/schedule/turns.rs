//! A schedule of few switches, each at a given point.

use crate::schedule::view::{Action, View};

/// After this many scheduling points of a run, a thread interrupts the running one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Turn {
    /// Scheduling points before it, of all threads.
    pub after: u64,
    /// The thread that runs then. If it cannot run, nothing happens.
    pub thread: usize,
}

/// Progress of a run through its turns.
pub(crate) struct Turns {
    turns: Vec<Turn>,
    /// Number of turns that are over.
    over: usize,
    /// The threads to run when the current one waits or ends: the last one first. An interrupted thread is put last; a
    /// waiting one is put first, so that threads that wait for each other do not keep others out.
    next: Vec<usize>,
}

impl Turns {
    pub(crate) fn new(turns: Vec<Turn>) -> Self {
        Self {
            turns,
            over: 0,
            next: Vec::new(),
        }
    }

    /// Told when a thread waits.
    pub(crate) fn paused(&mut self, thread: usize) {
        self.next.insert(0, thread);
    }

    pub(crate) fn next(&mut self, view: &View<'_>) -> Action {
        if let Some(current) = view.current {
            let due = self
                .turns
                .get(self.over)
                .filter(|turn| turn.after <= view.point);
            let Some(&Turn { thread, .. }) = due else {
                return Action::Run(current);
            };
            self.over += 1;
            if thread == current || !view.runnable.contains(&thread) {
                return Action::Run(current);
            }
            self.next.push(current);
            return self.run(thread);
        }
        let of_next = self
            .next
            .iter()
            .rev()
            .find(|thread| view.runnable.contains(thread));
        self.run(of_next.copied().unwrap_or(view.runnable[0]))
    }

    fn run(&mut self, thread: usize) -> Action {
        self.next.retain(|&other| other != thread);
        Action::Run(thread)
    }
}
