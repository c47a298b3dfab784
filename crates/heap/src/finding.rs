//! What a check finds.

/// Something that should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The address concerned, zero if there is none.
    pub at: u64,
    /// What is wrong.
    pub what: String,
}

impl core::fmt::Display for Finding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x}: {}", self.at, self.what)
    }
}
