//! The operations, by name.

/// An operation that can be requested. Each is durable when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A transaction with nothing in it.
    TxEmpty,
    /// A transaction that snapshots ranges of the pool and stores to every word of them.
    TxSnapshot {
        /// Bytes of a range.
        bytes: usize,
        /// The number of ranges, each in lines of its own, no two in neighbouring lines.
        ranges: usize,
    },
    /// A transaction that allocates and initialises an object, links it by a word that it snapshots, and frees the
    /// object that was linked before.
    TxAllocLink {
        /// Bytes of an object.
        bytes: usize,
    },
    /// Allocates, initialises and links; frees are outside the timed part.
    TxAllocSnapshot {
        /// Bytes of an object.
        bytes: usize,
    },
    /// An allocation without a transaction, published in the pool; frees are not timed.
    Alloc {
        /// Bytes of an object.
        bytes: usize,
    },
    /// A free without a transaction; allocations are not timed.
    Free {
        /// Bytes of an object.
        bytes: usize,
    },
}

const NAMES: [(&str, Kind); 10] = [
    ("tx_empty", Kind::TxEmpty),
    (
        "tx_snapshot_8",
        Kind::TxSnapshot {
            bytes: 8,
            ranges: 1,
        },
    ),
    (
        "tx_snapshot_64",
        Kind::TxSnapshot {
            bytes: 64,
            ranges: 1,
        },
    ),
    (
        "tx_snapshot_64x8",
        Kind::TxSnapshot {
            bytes: 64,
            ranges: 8,
        },
    ),
    ("tx_alloc_link_128", Kind::TxAllocLink { bytes: 128 }),
    (
        "tx_alloc_snapshot_128",
        Kind::TxAllocSnapshot { bytes: 128 },
    ),
    ("tx_alloc_64k", Kind::TxAllocLink { bytes: 64 << 10 }),
    (
        "tx_alloc_snapshot_64k",
        Kind::TxAllocSnapshot { bytes: 64 << 10 },
    ),
    ("alloc_128", Kind::Alloc { bytes: 128 }),
    ("free_128", Kind::Free { bytes: 128 }),
];

impl Kind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(_, kind)| *kind)
    }

    /// The operation called `name`.
    pub fn named(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| *kind)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(_, kind)| *kind == self);
        found.expect("every kind that can be made has a name").0
    }
}
