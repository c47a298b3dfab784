//! The medium as an explorer uses it: for one execution after another, each recorded.

use crate::medium::crash::Crash;
use crate::memory::event::Event;

impl Crash {
    /// Begins an execution on this scratch memory: alive, recording, no threads, counts at zero.
    pub(crate) fn begin(&self, seed: u64, boots: u64, trace: Vec<Event>) {
        self.kill_threads();
        let mut state = self.shared.lock();
        state.restart(seed);
        state.persistence = None;
        state.trace = Some(trace);
        self.shared.enter(&mut state, 0);
        self.shared.set_boots_since_base(boots);
        drop(state);
        self.shared.reset_loads();
    }

    /// Ends the execution. Returns its trace, and the length of the trace that counts as recovery.
    pub(crate) fn end(&self) -> (Vec<Event>, usize) {
        self.kill_threads();
        let mut state = self.shared.lock();
        let trace = state.trace.take().unwrap_or_default();
        let end = state.recovery_end.unwrap_or(trace.len());
        (trace, end)
    }
}
