//! The output lines.

use serde::Serialize;

use crate::phases::Outcome;

/// The first output line: it identifies the rival.
#[derive(Serialize)]
pub struct Hello {
    /// The rival's name.
    pub rival: &'static str,
    /// All rivals that this program knows.
    pub rivals: Vec<&'static str>,
    /// The version that the library's own file states.
    pub version: String,
    /// Whether and how fences are counted.
    pub fences_counted: &'static str,
    /// The operations that can be requested.
    pub operations: Vec<&'static str>,
    /// The structures that the phases can be run on.
    pub structures: Vec<&'static str>,
}

/// The answer to a line that was carried out.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// To an operation.
    Timed(Timed),
    /// To `count_fences`.
    Counted(Counted),
    /// To `phases`.
    Phased(Phased),
    /// To `defrag`.
    Defragmented(Defragmented),
    /// To `two_threads`.
    Shared(SharedByTwo),
    /// To `durable_insert`.
    Inserted(Inserted),
    /// To `durable_reopen`.
    Reopened(Reopened),
    /// To `durable_volume`.
    Volume(Volume),
}

/// The answer to a timed operation.
#[derive(Serialize)]
pub struct Timed {
    /// The operation.
    pub op: &'static str,
    /// Operations that were timed, of all threads together.
    pub count: u64,
    /// Threads that shared them.
    pub threads: u64,
    /// Thread CPU time of all threads over `count`.
    pub ns_cpu_per_op: f64,
    /// Wall time of the slowest thread over `count`: with two threads that do not disturb each other it is half of one
    /// thread's.
    pub ns_wall_per_op: f64,
    /// Fences, if `count_fences` was requested before.
    pub fences_per_op: Option<f64>,
    /// Where `fences_per_op` comes from, or how to get it.
    pub how_fences_were_counted: &'static str,
}

/// The answer to `count_fences`. All but `op` and `of` are means over `count` operations.
#[derive(Serialize)]
pub struct Counted {
    /// `count_fences`.
    pub op: &'static str,
    /// The operation that was counted.
    pub of: String,
    /// Operations that were single-stepped.
    pub count: u64,
    /// `sfence` and `mfence`.
    pub fences_per_op: f64,
    /// The operation with the fewest.
    pub fences_least: u64,
    /// The operation with the most.
    pub fences_most: u64,
    /// Lines written back, by whichever instruction.
    pub write_backs_per_op: f64,
    /// Of those, by `clwb`.
    pub clwb_per_op: f64,
    /// Of those, by `clflushopt`.
    pub clflushopt_per_op: f64,
    /// Of those, by `clflush`.
    pub clflush_per_op: f64,
    /// Stores past the cache, in instructions, whatever their width.
    pub nontemporal_stores_per_op: f64,
    /// Instructions with a lock prefix, and exchanges with memory: they order memory, but do not count as fences.
    pub locked_per_op: f64,
    /// System calls: above zero, the library would not be flushing from user space.
    pub system_calls_per_op: f64,
    /// Instructions in all.
    pub instructions_per_op: f64,
    /// How.
    pub how_fences_were_counted: &'static str,
}

/// The answer to `phases`. Ratios are null where blocks have no addresses.
#[derive(Serialize)]
pub struct Phased {
    /// `phases`.
    pub op: &'static str,
    /// The structure.
    pub structure: &'static str,
    /// Its entries.
    pub n: u32,
    /// The measurements.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Fences of an operation, if `count_fences` was requested before.
    pub fences: Option<Fences>,
    /// How.
    pub how: &'static str,
}

/// The answer to `defrag`.
#[derive(Serialize)]
pub struct Defragmented {
    /// `defrag`.
    pub op: &'static str,
    /// The structure.
    pub structure: &'static str,
    /// Its entries before four fifths were deleted.
    pub n: u32,
    /// Objects that moved.
    pub moved: usize,
    /// CPU time of the thread over `moved`.
    pub ns_cpu_per_moved: f64,
    /// Wall time over `moved`.
    pub ns_wall_per_moved: f64,
    /// Bytes of 2 MiB pages over live bytes afterwards.
    pub ratio_2m: Option<f64>,
    /// Bytes of 4 KiB pages over live bytes afterwards.
    pub ratio_4k: Option<f64>,
    /// How.
    pub how: &'static str,
}

/// The answer to `two_threads`.
#[derive(Serialize)]
pub struct SharedByTwo {
    /// `two_threads`.
    pub op: &'static str,
    /// The structure.
    pub structure: &'static str,
    /// Entries that were inserted and deleted.
    pub n: u32,
    /// CPU time of both threads over `n`.
    pub ns_cpu: Changes,
    /// Wall time of the slower one over `n`.
    pub ns_wall: Changes,
    /// How.
    pub how: &'static str,
}

/// The answer to `durable_insert`.
#[derive(Serialize)]
pub struct Inserted {
    /// `durable_insert`.
    pub op: &'static str,
    /// Entries that were inserted.
    pub count: u64,
    /// Entries of a commit.
    pub batch: u64,
    /// Threads that shared them.
    pub threads: u64,
    /// Wall time until the last thread was done, over `count`.
    pub ns_wall_per_op: f64,
    /// Wall time of a commit, the median of all.
    pub ns_median_per_commit: f64,
    /// How a commit is durable.
    pub how: &'static str,
}

/// The answer to `durable_reopen`, after every entry was read and found right.
#[derive(Serialize)]
pub struct Reopened {
    /// `durable_reopen`.
    pub op: &'static str,
    /// Entries that are there.
    pub entries: u64,
    /// Wall time until the first of them was read.
    pub ns_wall: f64,
    /// How a commit is durable.
    pub how: &'static str,
}

/// The answer to `durable_volume`.
#[derive(Serialize)]
pub struct Volume {
    /// `durable_volume`.
    pub op: &'static str,
    /// Entries that were inserted, and updates that were made.
    pub n: u64,
    /// Entries of a commit.
    pub batch: u64,
    /// What was written.
    pub digest: u64,
    /// Wall time of the commits, over both.
    pub ns_wall_per_op: f64,
    /// How a commit is durable.
    pub how: &'static str,
}

/// Nanoseconds of a change.
#[derive(Clone, Copy, Serialize)]
pub struct Changes {
    /// An insertion.
    pub insert: f64,
    /// A deletion.
    pub delete: f64,
}

/// Fences of a structure's operations.
#[derive(Clone, Copy, Serialize)]
pub struct Fences {
    /// Of an insertion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insert: Option<f64>,
    /// Of a deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<f64>,
}

impl Fences {
    /// These, if any of them is known.
    pub fn any(self) -> Option<Self> {
        self.insert.or(self.delete).map(|_| self)
    }
}

/// The answer to a line that could not be carried out.
#[derive(Serialize)]
pub struct Complaint {
    /// The number of the line, from one.
    pub line: u64,
    /// What is wrong with it.
    pub error: String,
}
