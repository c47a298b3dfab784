//! Figures of a pool, read without a lock: a program may have it open.

mod collector;

use std::path::Path;

use firn_format::statistics::LogFigure;
use firn_heap::{PoolKind, Statistics};
use firn_mapped::Mapped;
use firn_media::{Domain, Memory, Space};
use serde::Serialize;

use crate::ToolError;

pub use collector::{CollectorFigures, StepTime, StopBucket, StopFigures};

/// Figures of a pool.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stat {
    /// Version of the pool's format. It is older than this program's until the pool is opened for changes.
    pub version: u32,
    /// The name of the pool's content.
    pub layout: String,
    /// `traced` or `explicit`.
    pub kind: &'static str,
    /// Domain at the last open: `adr`, `eadr` or `process`.
    pub domain: &'static str,
    /// What the file lies on: `dax`, `disk` or `tmpfs`.
    pub backing: &'static str,
    /// Whether the file outlives the machine's power.
    pub outlives_power: bool,
    /// Whether a program has the pool open, or died while it had.
    pub open: bool,
    /// Whether the counters are exact: the pool is closed, and was traced since its last crash.
    pub exact: bool,
    /// Whether a cycle of the collector is open: objects are on the move, or were when a crash came.
    pub cycle_open: bool,
    /// Objects.
    pub objects: u64,
    /// Bytes of the objects as requested.
    pub live_bytes: u64,
    /// Bytes of the 4 KiB pages that hold a live object.
    pub footprint_4k_bytes: u64,
    /// Bytes of the 2 MiB pages that hold a live object.
    pub footprint_2m_bytes: u64,
    /// Footprint on 4 KiB pages divided by live bytes; none without objects.
    pub ratio_4k: Option<f64>,
    /// Footprint on 2 MiB pages divided by live bytes; none without objects.
    pub ratio_2m: Option<f64>,
    /// Length of the file.
    pub file_bytes: u64,
    /// Bytes of the file that have blocks.
    pub file_backed_bytes: u64,
    /// Bytes of the longest run of free pages within the file.
    pub largest_free_bytes: u64,
    /// Bytes beyond which the file does not grow; none if the pool has no limit of its own.
    pub limit_bytes: Option<u64>,
    /// Committed transactions.
    pub commits: u64,
    /// Aborted transactions.
    pub aborts: u64,
    /// Operations that waited for a phase change.
    pub stops: u64,
    /// Requests for a phase change that were withdrawn.
    pub starved: u64,
    /// The log of a pool in use that has one.
    pub log: Option<LogFigures>,
    /// The collector's work.
    pub collector: CollectorFigures,
    /// Objects by type.
    pub types: Vec<TypeFigures>,
    /// Objects by size class.
    pub classes: Vec<ClassFigures>,
}

/// What the log beside a pool has done since a program opened the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogFigures {
    /// Bytes of the log's file.
    pub bytes: u64,
    /// Bytes of it that a crash would have to bring home.
    pub lag_bytes: u64,
    /// Records that were written.
    pub records: u64,
    /// Writes that they took.
    pub writes: u64,
    /// Bytes of these writes.
    pub written_bytes: u64,
    /// How often the log was brought home.
    pub checkpoints: u64,
    /// Bytes that were written home.
    pub home_bytes: u64,
}

impl LogFigures {
    /// The figures that the pool's program shows; `None` if none has it open with a log.
    fn read(medium: &Mapped, domain: &str, open: bool) -> Option<Self> {
        let of = |figure: LogFigure| medium.load_u64(figure.at());
        (open && domain == Domain::Logged.name()).then(|| Self {
            bytes: of(LogFigure::Bytes),
            lag_bytes: of(LogFigure::Lag),
            records: of(LogFigure::Records),
            writes: of(LogFigure::Writes),
            written_bytes: of(LogFigure::WrittenBytes),
            checkpoints: of(LogFigure::Checkpoints),
            home_bytes: of(LogFigure::HomeBytes),
        })
    }
}

/// Objects of one type.
#[derive(Clone, Debug, Serialize)]
pub struct TypeFigures {
    /// The type's name.
    pub name: String,
    /// Its version; zero for built-in types.
    pub version: u32,
    /// Objects.
    pub objects: u64,
    /// Their bytes as requested.
    pub live_bytes: u64,
}

/// Objects of one size class.
#[derive(Clone, Debug, Serialize)]
pub struct ClassFigures {
    /// Bytes of a slot; none for large objects.
    pub slot_bytes: Option<u64>,
    /// Objects.
    pub objects: u64,
}

/// Reads the figures of the pool in `path`, whether or not a program has it open.
///
/// Errors: no such file, not a pool, a damaged one.
/// Concurrency: counters of a pool in use need not belong to one instant.
pub fn stat(path: &Path) -> Result<Stat, ToolError> {
    let medium = Mapped::peek(path)?;
    let read = Statistics::read(&medium).map_err(|source| ToolError::Format {
        path: medium.name(),
        source,
    })?;
    let file = std::fs::metadata(path).map_err(ToolError::file(path, "reading the length"))?;
    let backed = medium.backed_bytes();
    Ok(Stat {
        ratio_4k: read.ratio_4k(),
        ratio_2m: read.ratio_2m(),
        kind: match read.kind {
            PoolKind::Traced => "traced",
            PoolKind::Explicit => "explicit",
        },
        version: read.version,
        layout: read.layout,
        domain: read.domain,
        backing: medium.backing().name(),
        outlives_power: medium.backing().outlives_power(),
        open: read.open,
        exact: read.exact,
        cycle_open: read.cycle_open,
        objects: read.objects,
        live_bytes: read.live_bytes,
        footprint_4k_bytes: read.footprint_4k_bytes,
        footprint_2m_bytes: read.footprint_2m_bytes,
        file_bytes: file.len(),
        file_backed_bytes: backed.map_err(|e| ToolError::pool(path)(e.into()))?,
        largest_free_bytes: read.largest_free_bytes,
        limit_bytes: read.limit_bytes,
        commits: read.commits,
        aborts: read.aborts,
        stops: read.stops,
        starved: read.starved,
        log: LogFigures::read(&medium, read.domain, read.open),
        collector: read.collector.into(),
        types: read.types.into_iter().map(TypeFigures::from).collect(),
        classes: read.classes.into_iter().map(ClassFigures::from).collect(),
    })
}

impl From<firn_heap::TypeStatistics> for TypeFigures {
    fn from(read: firn_heap::TypeStatistics) -> Self {
        Self {
            name: read.name,
            version: read.version,
            objects: read.objects,
            live_bytes: read.live_bytes,
        }
    }
}

impl From<firn_heap::ClassStatistics> for ClassFigures {
    fn from(read: firn_heap::ClassStatistics) -> Self {
        Self {
            slot_bytes: read.slot_bytes,
            objects: read.objects,
        }
    }
}
