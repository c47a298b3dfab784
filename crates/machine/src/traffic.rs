//! The lines that devices moved, by cause.

use firn_units::LINE_BYTES;

/// Why a device read or wrote a line. A walk of the page table takes a fixed time here and reaches no device.
///
/// It has 32 bits because the compiler reads that many: if only a byte had just been stored, the host's processor would
/// have to wait for its cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Cause {
    /// A load for which no cache sufficed.
    Load,
    /// A store or a locked instruction for which no cache sufficed: the line is fetched before it changes.
    Store,
    /// The program wrote a line back (clwb).
    WriteBack,
    /// A line that was stored to had to make room in the last cache.
    Eviction,
    /// The mechanism, for itself.
    Mechanism,
    /// A request that came from no core.
    Outside,
}

/// Number of causes.
const CAUSES: usize = Cause::ALL.len();

impl Cause {
    /// All causes, in the order of their declaration.
    pub const ALL: [Self; 6] = [
        Self::Load,
        Self::Store,
        Self::WriteBack,
        Self::Eviction,
        Self::Mechanism,
        Self::Outside,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::WriteBack => "write_back",
            Self::Eviction => "eviction",
            Self::Mechanism => "mechanism",
            Self::Outside => "outside",
        }
    }

    /// The cause of a read on behalf of this request. A write asks for no data, so the mechanism then reads for itself.
    #[inline(always)]
    pub(crate) const fn of_read(self) -> Self {
        match self {
            Self::WriteBack | Self::Eviction => Self::Mechanism,
            other => other,
        }
    }

    /// The cause of a write issued on behalf of this request. A load or store itself writes no line to a device.
    #[inline(always)]
    pub(crate) const fn of_write(self) -> Self {
        match self {
            Self::Load | Self::Store => Self::Mechanism,
            other => other,
        }
    }
}

/// Lines that a device moved in one direction, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    lines: [u64; CAUSES],
}

impl Traffic {
    #[inline(always)]
    pub(crate) fn count(&mut self, cause: Cause) {
        self.lines[cause as usize] += 1;
    }

    /// Lines moved for a cause.
    pub fn lines(&self, cause: Cause) -> u64 {
        self.lines[cause as usize]
    }

    /// Bytes of each cause, by its name.
    pub fn named_bytes(&self) -> [(&'static str, u64); CAUSES] {
        Cause::ALL.map(|cause| (cause.name(), self.lines(cause) * LINE_BYTES))
    }

    /// The lines moved since `before`, by the same device.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            lines: core::array::from_fn(|cause| self.lines[cause] - before.lines[cause]),
        }
    }
}
