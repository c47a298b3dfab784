//! Where long work says how far it is.

/// Told how far long work is. The command line draws bars, tests stay silent.
pub trait Progress {
    /// Work begins. `total` counts its steps, where that is known.
    fn begin(&mut self, what: &str, total: Option<u64>);
    /// So many more steps are done.
    fn advance(&mut self, steps: u64);
    /// The work that began last is called so from now on: for a rate that changes.
    fn rename(&mut self, what: &str) {
        let _ = what;
    }
    /// The work that began last has ended.
    fn end(&mut self);
    /// Something that the user should know, and that is no result.
    fn remark(&mut self, text: &str);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _what: &str, _total: Option<u64>) {}
    fn advance(&mut self, _steps: u64) {}
    fn end(&mut self) {}
    fn remark(&mut self, _text: &str) {}
}
