//! The level of durability: how far a commit has come when its transaction returns.

use core::time::Duration;

/// How far a commit has come when its transaction returns, on a medium that gathers commits
/// ([`crate::Domain::Logged`]). On the others every commit is durable on return, in the sense of the domain.
///
/// Whatever the level, a crash keeps a prefix of the commits in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Level {
    /// On the disk: neither the death of the process nor a power failure loses it.
    Sync,
    /// With the system: the death of the process does not lose it, a power failure may, with all that came after it.
    Written,
    /// In memory: it is on the disk so much later. Until then the death of the process and a power failure may lose it,
    /// with all that came after it.
    Group(Duration),
}

impl Level {
    /// The name as the command line and the statistics print it.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Sync => "sync",
            Level::Written => "written",
            Level::Group(_) => "group",
        }
    }
}
