//! The result of a run.

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum RunEnd {
    /// Every thread ended.
    Finished,
    /// The medium died before the event at which it was told to die.
    Crashed,
    /// Every thread waits, and nothing changes.
    Deadlock,
    /// The run took more steps than the options allow.
    StepLimit,
}

/// A thread that panicked.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct ThreadPanic {
    /// Number of the thread.
    pub thread: usize,
    /// Its panic message.
    pub message: String,
}

/// The result of a run. Equal for equal seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutcome {
    /// How it ended.
    pub end: RunEnd,
    /// Threads that panicked.
    pub panics: Vec<ThreadPanic>,
    /// Hash of all events in order: equal executions have equal hashes.
    pub hash: u64,
    /// Events so far on this medium.
    pub events: u64,
    /// Scheduling points of the run.
    pub steps: u64,
    /// Choices under [`crate::Schedule::Chosen`]; empty under other schedules.
    pub choices: Vec<u32>,
    pub(crate) following: Option<Vec<u32>>,
}

impl RunOutcome {
    /// Whether every thread ended without a panic; otherwise what happened, in a sentence.
    pub fn finished(&self) -> Result<(), String> {
        if let Some(panic) = self.panics.first() {
            return Err(format!(
                "thread {} panicked: {}",
                panic.thread, panic.message
            ));
        }
        match self.end {
            RunEnd::Finished => Ok(()),
            RunEnd::Crashed => Err("the medium crashed".into()),
            RunEnd::Deadlock => Err("deadlock: every thread waits and nothing changes".into()),
            RunEnd::StepLimit => Err("livelock: the run exceeds its step limit".into()),
        }
    }
}
