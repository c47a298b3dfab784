//! The parts of a machine. Latencies are in cycles of a core, rounded from the description's figures.
//!
//! ```text
//! registry   the known machines, by name, and those of files
//! file       a description as it is written, and its conversion for the model
//! quantity   a number with its unit, kind and source
//! error      errors in a description
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
    /// Its name on the command line.
    pub name: String,
    /// Its description in a sentence.
    pub about: String,
    /// The cores.
    pub core: Core,
    /// Caches from the nearest to the last level, which all cores share.
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

/// The properties of every core.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Core {
    /// Number of cores.
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
    /// Its name in the paper.
    pub name: String,
    /// Bytes of data, of one core or of all.
    pub bytes: u64,
    /// Lines of a set.
    pub ways: u32,
    /// Cycles of a hit, from the request to the data.
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
    /// Translations of a set.
    pub ways: u32,
    /// Cycles of a hit beyond those of the access; zero if the access hides it.
    pub hit_cycles: u32,
}

/// The memory controller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Controller {
    /// Lines that the write-pending queue holds.
    pub queue_entries: u32,
    /// Cycles until a line that is written back is accepted.
    pub accept_cycles: u32,
    /// Cycles to fetch a line from another core's cache.
    pub transfer_cycles: u32,
}

/// Memory behind the controller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    /// Latency of an access.
    pub latency: Latency,
    /// Bytes that can be read per second, in millions.
    pub read_megabytes_per_s: u32,
    /// Bytes that can be written per second, in millions.
    pub write_megabytes_per_s: u32,
    /// Energy of its accesses, if a source gives it.
    pub energy: Option<BitEnergy>,
}

/// Energy of a device's parts, in femtojoules per bit.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BitEnergy {
    /// Reading the row buffer.
    pub buffer_read: u32,
    /// Writing the row buffer.
    pub buffer_write: u32,
    /// Reading a row's cells.
    pub array_read: u32,
    /// Writing a row's cells.
    pub array_write: u32,
}

/// Cycles of an access to a device, from the controller's request to its data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Latency {
    /// Every access takes equally long, whatever its address.
    Fixed {
        /// Cycles of a read.
        read: u32,
        /// Cycles of a write.
        write: u32,
    },
    /// The latency depends on the row that the bank has open.
    Rows {
        /// Banks, each with an open row.
        banks: u32,
        /// Bytes of a row.
        row_bytes: u32,
        /// Cycles if the row is open.
        hit: u32,
        /// Cycles if another row is open and was only read.
        clean_miss: u32,
        /// Cycles if another row is open and was written.
        dirty_miss: u32,
    },
}
