//! The findings of a check.

/// A defect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The address of the defect, or zero if there is none.
    pub at: u64,
    /// The defect in words.
    pub what: String,
}

impl core::fmt::Display for Finding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x}: {}", self.at, self.what)
    }
}
