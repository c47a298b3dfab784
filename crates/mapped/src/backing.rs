//! What backs a mapping.

use core::fmt;

/// What backs a mapping, which decides whether the content outlives the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Backing {
    /// A file whose mapping reaches persistent memory without a page cache (`MAP_SYNC`).
    Dax,
    /// A file behind the page cache of the operating system.
    Disk,
    /// A file that lives in memory: it outlives the process and dies with the machine.
    Tmpfs,
    /// Memory of the process, without a file.
    Anonymous,
}

impl Backing {
    /// The name as statistics print it.
    pub const fn name(self) -> &'static str {
        match self {
            Backing::Dax => "dax",
            Backing::Disk => "disk",
            Backing::Tmpfs => "tmpfs",
            Backing::Anonymous => "anonymous",
        }
    }

    /// Whether synced content survives a power failure of the machine.
    pub const fn outlives_power(self) -> bool {
        matches!(self, Backing::Dax | Backing::Disk)
    }
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
