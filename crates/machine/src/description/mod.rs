//! What a machine is made of. Latencies are cycles of a core, rounded from what a description says.
//!
//! ```text
//! registry   the machines there are, by name, and those of files
//! file       a description as it is written, and what the model makes of it
//! quantity   a number with its unit, kind and source
//! error      what can be wrong with one
//! ```

mod error;
mod file;
mod quantity;
mod registry;

pub use error::DescriptionError;
pub use quantity::{Kind, Number};
pub use registry::NAMES;

/// A machine, as the model uses it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Description {
    /// What the command line calls it.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// The cores.
    pub core: Core,
    /// Caches from the nearest to the last level, of which the last is shared by all cores.
    pub caches: Vec<Cache>,
    /// Translations of addresses.
    pub translation: Translation,
    /// The controller.
    pub controller: Controller,
    /// Volatile memory.
    pub dram: Device,
    /// Persistent memory.
    pub nvm: Device,
}

/// What all cores are like.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Core {
    /// Cores there are.
    pub count: u32,
    /// Megahertz.
    pub clock_mhz: u32,
    /// Cycles that an instruction takes, in thousandths.
    pub millicycles_per_instruction: u32,
    /// Independent misses that overlap.
    pub parallel_misses: u32,
    /// Stores that wait to enter the nearest cache.
    pub store_buffer_entries: u32,
}

/// A level of cache.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cache {
    /// What the paper calls it.
    pub name: String,
    /// Bytes of data, of one core or of all.
    pub bytes: u64,
    /// Lines that a set holds.
    pub ways: u32,
    /// Cycles from the request to the data, of a hit.
    pub hit_cycles: u32,
    /// Whether all cores share it.
    pub shared: bool,
}

/// Translations of addresses: levels from the nearest on, for pages of either size.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Translation {
    /// For pages of 4 KiB.
    pub small: Vec<Buffer>,
    /// For pages of 2 MiB.
    pub huge: Vec<Buffer>,
    /// Cycles of a walk that ends in a page of 4 KiB.
    pub small_walk_cycles: u32,
    /// Cycles of a walk that ends in a page of 2 MiB.
    pub huge_walk_cycles: u32,
}

/// A translation look-aside buffer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Buffer {
    /// Translations that it holds.
    pub entries: u32,
    /// Translations that a set holds.
    pub ways: u32,
    /// Cycles of a hit beyond those of the access. Zero where the access hides it.
    pub hit_cycles: u32,
}

/// The memory controller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Controller {
    /// Lines that the write-pending queue holds.
    pub queue_entries: u32,
    /// Cycles until a line that is written back is accepted.
    pub accept_cycles: u32,
    /// Cycles that a line takes from another core's cache.
    pub transfer_cycles: u32,
}

/// Memory behind the controller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    /// What an access takes.
    pub latency: Latency,
    /// Bytes a second that can be read, in millions.
    pub read_megabytes_per_s: u32,
    /// Bytes a second that can be written, in millions.
    pub write_megabytes_per_s: u32,
    /// What accesses take, if somebody says so.
    pub energy: Option<BitEnergy>,
}

/// Energy of a device's parts, in femtojoules a bit.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BitEnergy {
    /// The row buffer is read.
    pub buffer_read: u32,
    /// The row buffer is written.
    pub buffer_write: u32,
    /// A row's cells are read.
    pub array_read: u32,
    /// A row's cells are written.
    pub array_write: u32,
}

/// Cycles of an access to a device, from the controller's request to its data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Latency {
    /// Every access takes as long, wherever it goes.
    Fixed {
        /// Cycles of a read.
        read: u32,
        /// Cycles of a write, for which its bank is busy.
        write: u32,
    },
    /// By the row that the bank has open.
    Rows {
        /// Banks, each with an open row.
        banks: u32,
        /// Bytes of a row.
        row_bytes: u32,
        /// The row is open.
        hit: u32,
        /// Another one is, and was only read.
        clean_miss: u32,
        /// Another one is, and was written.
        dirty_miss: u32,
    },
}
