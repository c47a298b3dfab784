//! The persistence domain: what a store needs to survive.

use core::fmt;

/// How far a store must travel before a crash can no longer take it away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Domain {
    /// Asynchronous DRAM refresh: the memory controller's queue survives, the caches do not.
    /// A store is durable after a write-back of its line and a fence.
    Adr,
    /// Extended ADR: the caches survive. A store is durable once it is visible; write-backs cost
    /// nothing and a fence only orders.
    Eadr,
    /// The page cache of the operating system: the death of the process loses no store; a power failure may keep any
    /// mixture of old and new pages. [`crate::Space::sync`] makes all earlier stores durable.
    Process,
    /// A log on a disk: what was written back and fenced has its place in the log, and survives whatever comes later. A
    /// crash keeps a prefix of the log, with everything whose ticket was waited for. The log holds words: what else is in
    /// the line of a word that was written back stays as it was.
    Logged,
}

impl Domain {
    /// Whether a store needs a write-back and a fence to survive.
    #[inline(always)]
    pub const fn needs_flush(self) -> bool {
        matches!(self, Domain::Adr | Domain::Logged)
    }

    /// The name as the command line and the statistics print it.
    pub const fn name(self) -> &'static str {
        match self {
            Domain::Adr => "adr",
            Domain::Eadr => "eadr",
            Domain::Process => "process",
            Domain::Logged => "logged",
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
