//! The measured transactions, by name. Names and definitions are those of the rivals.

/// A measured transaction. Each is durable on return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// An empty transaction.
    Empty,
    /// Changes line-aligned ranges, all bytes of each, no two in neighbouring lines.
    Change {
        /// Words of a range, one or eight.
        words: usize,
        /// The number of ranges.
        ranges: usize,
    },
    /// Allocates, initialises, links the object by a word, frees the object linked before.
    AllocLink {
        /// Bytes of the object.
        bytes: usize,
    },
    /// Allocates, initialises and links; frees are outside the timed part.
    AllocOnly {
        /// Bytes of the object.
        bytes: usize,
    },
}

/// Bytes of a small object.
pub(super) const SMALL_BYTES: usize = 128;
/// Bytes of a large object.
const LARGE_BYTES: usize = 64 << 10;
/// Bytes that may be allocated before they are freed.
const MOST_LIVE_BYTES: usize = 4 << 20;
/// Objects that may be allocated before they are freed, where bytes do not limit it further.
pub(super) const MOST_LIVE_OBJECTS: usize = 1024;
/// Transactions between two readings of the clock, where nothing is left behind.
const LONG_BLOCK: u64 = 1 << 16;
/// Transactions with many bytes are measured this many times less often.
const LARGE_SHARE: u64 = 20;

const NAMES: [(&str, Operation, &str); 8] = [
    ("tx_empty", Operation::Empty, "nothing"),
    (
        "tx_snapshot_8",
        Operation::Change {
            words: 1,
            ranges: 1,
        },
        "one word changed",
    ),
    (
        "tx_snapshot_64",
        Operation::Change {
            words: 8,
            ranges: 1,
        },
        "64 bytes changed",
    ),
    (
        "tx_snapshot_64x8",
        Operation::Change {
            words: 8,
            ranges: 8,
        },
        "8 ranges of 64 bytes changed",
    ),
    (
        "tx_alloc_link_128",
        Operation::AllocLink { bytes: SMALL_BYTES },
        "128 bytes allocated, filled, linked; the old object freed",
    ),
    (
        "tx_alloc_snapshot_128",
        Operation::AllocOnly { bytes: SMALL_BYTES },
        "128 bytes allocated, filled, linked",
    ),
    (
        "tx_alloc_64k",
        Operation::AllocLink { bytes: LARGE_BYTES },
        "64 KiB allocated, filled, linked; the old object freed",
    ),
    (
        "tx_alloc_snapshot_64k",
        Operation::AllocOnly { bytes: LARGE_BYTES },
        "64 KiB allocated, filled, linked",
    ),
];

impl Operation {
    /// All of them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(_, operation, _)| *operation)
    }

    fn entry(self) -> &'static (&'static str, Self, &'static str) {
        let found = NAMES.iter().find(|(_, operation, _)| *operation == self);
        found.expect("every operation that is made has a name")
    }

    /// Its name, here and for the rivals.
    pub(super) fn name(self) -> &'static str {
        self.entry().0
    }

    /// Its description, in a few words.
    pub(super) fn what(self) -> &'static str {
        self.entry().2
    }

    /// Bytes of an object that it allocates.
    pub(super) fn object_bytes(self) -> Option<usize> {
        match self {
            Self::AllocLink { bytes } | Self::AllocOnly { bytes } => Some(bytes),
            _ => None,
        }
    }

    /// How many are measured in a block, if `count` small ones are.
    pub(super) fn count_of(self, count: u64) -> u64 {
        match self.object_bytes() {
            Some(bytes) if bytes > SMALL_BYTES => (count / LARGE_SHARE).max(1),
            _ => count,
        }
    }

    /// Maximum number of operations between two readings of the clock.
    pub(super) fn most_at_once(self) -> u64 {
        match self {
            Self::AllocOnly { bytes } => (MOST_LIVE_BYTES / bytes).min(MOST_LIVE_OBJECTS) as u64,
            _ => LONG_BLOCK,
        }
    }
}
