//! Statistics: what a pool holds, read without a lock and without opening it.

use core::num::NonZeroU64;

use firn_format::FormatError;
use firn_format::class::{CLASSES, Class};
use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, PHASE};
use firn_format::header::TypeId;
use firn_format::plan::Phase;
use firn_format::sealed::Seal;
use firn_format::statistics::{COUNTED_TYPES, Counter, STEPS, STOP_BUCKETS};
use firn_format::superblock::{LogKind, OpenState, PoolKind, StoredDomain, Superblock};
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, WORD_BYTES};

use crate::stat_shard;
use crate::superblock::newest_superblock;
use crate::trace::FootprintCount;
use crate::types::Types;
use crate::walk::runs;

/// What a pool holds.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Version of the format; an older one than this program's until the pool is opened for writing.
    pub version: u32,
    /// The program's name for the pool's content.
    pub layout: String,
    /// What decides which objects live.
    pub kind: PoolKind,
    /// Domain of the last open: `adr`, `eadr` or `process`.
    pub domain: &'static str,
    /// Whether the pool is open, or was left open by a crash.
    pub open: bool,
    /// Whether the counters are exact: the pool was closed, and traced since its last crash.
    pub exact: bool,
    /// Whether a cycle of the collector is open: objects are moving, or were when a crash came.
    pub cycle_open: bool,
    /// Objects.
    pub objects: u64,
    /// Bytes of the objects as the program requested them.
    pub live_bytes: u64,
    /// Bytes of the 4 KiB pages that hold a live object.
    pub footprint_4k_bytes: u64,
    /// Bytes of the 2 MiB pages that hold a live object.
    pub footprint_2m_bytes: u64,
    /// Bytes of the longest run of free frames, not counting the room to grow.
    pub largest_free_bytes: u64,
    /// Bytes beyond which the pool does not grow; `None` if only the medium's capacity limits it.
    pub limit_bytes: Option<u64>,
    /// Committed transactions.
    pub commits: u64,
    /// Aborted transactions.
    pub aborts: u64,
    /// Operations that waited for a phase change.
    pub stops: u64,
    /// Requests for a phase change that were withdrawn.
    pub starved: u64,
    /// What the collector has done.
    pub collector: CollectorStatistics,
    /// Objects by class, without empty classes.
    pub classes: Vec<ClassStatistics>,
    /// Objects by type, without empty types.
    pub types: Vec<TypeStatistics>,
}

/// What the collector has done with a pool since it was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorStatistics {
    /// Cycles.
    pub cycles: u64,
    /// Objects that were moved.
    pub moved_objects: u64,
    /// Bytes of their slots.
    pub moved_bytes: u64,
    /// Bytes of 4 KiB pages that were emptied.
    pub emptied_bytes: u64,
    /// Bytes of 4 KiB pages that were filled.
    pub filled_bytes: u64,
    /// Unreachable objects that were reclaimed.
    pub reclaimed_objects: u64,
    /// Bytes of blocks that were given back to the device.
    pub released_bytes: u64,
    /// Nanoseconds of marking, summary, compaction, finish.
    pub step_ns: [u64; STEPS],
    /// Nanoseconds of computation in these.
    pub step_cpu_ns: [u64; STEPS],
    /// Nanoseconds that the world was stopped.
    pub stood_ns: u64,
    /// The longest stop, in nanoseconds.
    pub longest_stop_ns: u64,
    /// Entry i counts stops of at least 2^i nanoseconds and less than twice that.
    pub stop_histogram: [u64; STOP_BUCKETS],
}

impl CollectorStatistics {
    fn of(sum: impl Fn(Counter) -> u64) -> Self {
        Self {
            cycles: sum(Counter::Cycles),
            moved_objects: sum(Counter::MovedObjects),
            moved_bytes: sum(Counter::MovedBytes),
            emptied_bytes: sum(Counter::EmptiedFrames).saturating_mul(FRAME_BYTES),
            filled_bytes: sum(Counter::FilledFrames).saturating_mul(FRAME_BYTES),
            reclaimed_objects: sum(Counter::Reclaimed),
            released_bytes: sum(Counter::ReleasedBytes),
            step_ns: core::array::from_fn(|step| sum(Counter::StepNs(step))),
            step_cpu_ns: core::array::from_fn(|step| sum(Counter::StepCpuNs(step))),
            stood_ns: sum(Counter::StoodNs),
            longest_stop_ns: sum(Counter::LongestStopNs),
            stop_histogram: core::array::from_fn(|i| sum(Counter::StopBucket(i))),
        }
    }
}

/// Objects of one size class.
#[derive(Clone, Debug)]
pub struct ClassStatistics {
    /// Bytes of a slot; `None` for large objects.
    pub slot_bytes: Option<u64>,
    /// Objects.
    pub objects: u64,
}

/// Objects of one type.
#[derive(Clone, Debug)]
pub struct TypeStatistics {
    /// The type's name.
    pub name: String,
    /// Its version; zero for built-in types.
    pub version: u32,
    /// Objects.
    pub objects: u64,
    /// Their bytes as requested.
    pub live_bytes: u64,
}

impl Statistics {
    /// Version of the format of the pool on `medium`, if this program reads it.
    ///
    /// Errors: not a pool, damaged, of another version.
    pub fn version<M: Medium>(medium: &M) -> Result<u32, FormatError> {
        newest_superblock(medium).map(|superblock| superblock.version)
    }

    /// The name of the domain in which the pool on `medium` was last opened.
    ///
    /// Errors: as [`Statistics::version`].
    pub fn domain<M: Medium>(medium: &M) -> Result<&'static str, FormatError> {
        newest_superblock(medium).map(|superblock| domain_name(&superblock))
    }

    /// The log with which the pool on `medium` was last opened. A tool that opens it on behalf of its program must use
    /// this log: if it is an undo log, the end of an interrupted collection heals pairs of words and keeps addresses.
    ///
    /// Errors: as [`Statistics::version`].
    pub fn log<M: Medium>(medium: &M) -> Result<LogKind, FormatError> {
        newest_superblock(medium).map(|superblock| superblock.log)
    }

    /// Reads a pool's statistics from its medium. Takes no lock: another program may have the pool open, and then the
    /// counters need not all be of one instant.
    ///
    /// Errors: not a pool, or a damaged one.
    pub fn read<M: Medium>(medium: &M) -> Result<Self, FormatError> {
        let superblock = newest_superblock(medium)?;
        let sums = stat_shard::sums(medium, superblock.lanes as usize);
        let sum = |counter: Counter| sums[counter.word()].max(0) as u64;
        let exact = superblock.state == OpenState::Closed;
        let (frames, chunks) = match exact.then(|| exact_footprint(medium)).flatten() {
            Some(count) => (count.frames, count.chunks),
            None => (sum(Counter::LiveFrames), sum(Counter::LiveChunks)),
        };
        Ok(Self {
            exact,
            open: superblock.state == OpenState::Open,
            cycle_open: cycle_open(medium)?,
            kind: superblock.kind,
            domain: domain_name(&superblock),
            objects: sum(Counter::Objects),
            live_bytes: sum(Counter::LiveBytes),
            footprint_4k_bytes: frames.saturating_mul(FRAME_BYTES),
            footprint_2m_bytes: chunks.saturating_mul(CHUNK_BYTES),
            largest_free_bytes: largest_free(medium) * FRAME_BYTES,
            limit_bytes: superblock.limit_bytes.map(NonZeroU64::get),
            commits: sum(Counter::Commits),
            aborts: sum(Counter::Aborts),
            stops: sum(Counter::Stops),
            starved: sum(Counter::Starved),
            collector: CollectorStatistics::of(sum),
            classes: classes(sum),
            types: types(&Types::load(medium, false)?, sum),
            version: superblock.version,
            layout: superblock.layout,
        })
    }

    /// Footprint on 4 KiB pages divided by live bytes; `None` without objects.
    pub fn ratio_4k(&self) -> Option<f64> {
        (self.live_bytes > 0).then(|| self.footprint_4k_bytes as f64 / self.live_bytes as f64)
    }

    /// Footprint on 2 MiB pages divided by live bytes; `None` without objects.
    pub fn ratio_2m(&self) -> Option<f64> {
        (self.live_bytes > 0).then(|| self.footprint_2m_bytes as f64 / self.live_bytes as f64)
    }
}

fn cycle_open<M: Medium>(medium: &M) -> Result<bool, FormatError> {
    let value = Seal::Phase.open_at(medium.load_u64(PHASE), PHASE)?;
    Ok(Phase::from_value(value, PHASE)? != Phase::Idle)
}

fn domain_name(superblock: &Superblock) -> &'static str {
    match superblock.domain {
        StoredDomain::Adr => "adr",
        StoredDomain::Eadr => "eadr",
        StoredDomain::Process => "process",
        StoredDomain::Logged => "logged",
    }
}

fn classes(sum: impl Fn(Counter) -> u64) -> Vec<ClassStatistics> {
    let slots = Class::all().map(|c| (Some(c.slot_bytes()), c.index()));
    slots
        .chain([(None, CLASSES)])
        .map(|(slot_bytes, i)| ClassStatistics {
            slot_bytes,
            objects: sum(Counter::ClassObjects(i)),
        })
        .filter(|c| c.objects > 0)
        .collect()
}

fn types(registry: &Types, sum: impl Fn(Counter) -> u64) -> Vec<TypeStatistics> {
    let built_in = [
        (TypeId::BYTES, "Bytes"),
        (TypeId::REFS, "Refs"),
        (TypeId::RAW, "Raw"),
    ];
    let built_in = built_in.map(|(id, name)| (id, name.to_owned(), 0));
    let registered = registry.records();
    let all = built_in
        .into_iter()
        .chain(registered.into_iter().map(|r| (r.id, r.name, r.version)));
    let mut counted: Vec<TypeStatistics> = all
        .filter(|(id, ..)| (id.0 as usize) < COUNTED_TYPES - 1)
        .map(|(id, name, version)| TypeStatistics {
            name,
            version,
            objects: sum(Counter::TypeObjects(id.0 as usize)),
            live_bytes: sum(Counter::TypeBytes(id.0 as usize)),
        })
        .collect();
    counted.push(TypeStatistics {
        name: "(all later types)".into(),
        version: 0,
        objects: sum(Counter::TypeObjects(COUNTED_TYPES - 1)),
        live_bytes: sum(Counter::TypeBytes(COUNTED_TYPES - 1)),
    });
    counted.retain(|t| t.objects > 0);
    counted
}

/// Pages under allocated slots, by the allocation bits on media.
fn exact_footprint<M: Medium>(medium: &M) -> Option<FootprintCount> {
    let mut count = FootprintCount::new();
    for (frame, what) in runs(medium).ok()? {
        let used: [u64; 4] =
            core::array::from_fn(|w| medium.load_u64(frame.bitmap_at() + w as u64 * WORD_BYTES));
        count.add_run(frame, what, &used);
    }
    Some(count)
}

/// Frames of the longest free run.
fn largest_free<M: Medium>(medium: &M) -> u64 {
    let (mut best, mut run) = (0, 0);
    for chunk in (0..medium.len() / CHUNK_BYTES).map(Chunk) {
        for i in 0..FRAMES_PER_CHUNK {
            let at = chunk.first_frame().plus(i).word_at();
            let free = chunk.is_data()
                && matches!(
                    FrameUse::from_word(medium.load_u64(at), at),
                    Ok(FrameUse::Free | FrameUse::Log | FrameUse::Plan | FrameUse::Kept)
                );
            run = if free { run + 1 } else { 0 };
            best = best.max(run);
        }
    }
    best
}
