//! How many instructions the heap executes besides those that access its medium.
//!
//! A simulated machine counts an instruction for each operation of the medium, and of the work in between only the
//! counts reported by `Probe::work`. On real memory these reports cost nothing. The figures are fitted to the
//! instructions of a real processor, see `docs/decisions/calibrated-work.md`: each covers everything that is done about
//! as often as the work in its name.

// ---- transactions ----

/// Beginning and committing a transaction that changes something.
pub(crate) const TRANSACTION: u64 = 940;
/// A line that a transaction stores to: its shadow, its record, its place, its write-back.
pub(crate) const LOGGED_LINE: u64 = 130;
/// A word of a log's entry: gathering it, its part of the checksum.
pub(crate) const LOGGED_WORD: u64 = 21;
/// Allocating an object: finding its slot, filling its words, counting it.
pub(crate) const ALLOCATION: u64 = 1_110;
/// Freeing an object: finding what it is, counting it, giving its slot back.
pub(crate) const FREE: u64 = 780;
/// Storing a word in a transaction, and the program's work to choose it.
pub(crate) const STORED_WORD: u64 = 165;
/// Looking a word up among those that the transaction stored.
pub(crate) const OWN_WORD: u64 = 75;
/// Loading a word in a transaction, and the program's work on it.
pub(crate) const LOADED_WORD: u64 = 35;

// ---- reading ----

/// Following a reference while nothing moves. Bounded in the fit: the cost of a get leaves no room for more.
pub(crate) const DEREFERENCE: u64 = 30;
/// An object on the way of `Obj::descend`.
pub(crate) const DESCENT: u64 = 30;

// ---- the collector ----

/// Looking at an object that is marked.
pub(crate) const MARKED: u64 = 310;
/// A reference that marking meets: finding its slot, marking that.
pub(crate) const MET: u64 = 440;
/// A run of pages that is emptied: judging it, closing it, planning for it, giving it back.
pub(crate) const PLANNED_RUN: u64 = 6_300;
/// Copying an object, or a group of objects that are copied together.
pub(crate) const MOVED: u64 = 220;
/// An object whose references are scanned, to heal those that name moved objects.
pub(crate) const SWEPT: u64 = 330;
