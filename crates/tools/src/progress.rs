//! Progress reports of long work.

/// Receives the progress of long work. The command line draws bars; tests stay silent.
pub trait Progress {
    /// Work begins. `total` counts its steps, where that is known.
    fn begin(&mut self, what: &str, total: Option<u64>);
    /// This many more steps are done.
    fn advance(&mut self, steps: u64);
    /// Renames the work that began last, for a rate that changes.
    fn rename(&mut self, what: &str) {
        let _ = what;
    }
    /// The work that began last has ended.
    fn end(&mut self);
    /// A remark that the user should know and that is not a result.
    fn remark(&mut self, text: &str);
}

/// Reports nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _what: &str, _total: Option<u64>) {}
    fn advance(&mut self, _steps: u64) {}
    fn end(&mut self) {}
    fn remark(&mut self, _text: &str) {}
}
