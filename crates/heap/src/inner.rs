//! The state of an open pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_format::geometry::{self, REGISTRY_BYTES, STATISTICS_BLOCK_BYTES};
use firn_format::lane::{self, LANE_BYTES, LANES, lane_at, undo_done_at};
use firn_format::reference::PoolId;
use firn_format::sealed::Seal;
use firn_format::statistics::{BLOCKS, Counter, WORDS, block_at};
use firn_format::superblock::{LogKind, PoolKind, Superblock};
use firn_media::{Lock, Medium, MediumExt};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, WORD_BYTES};

use crate::alloc::{Allocator, Limits, Tables};
use crate::collector::Collector;
use crate::error::{Error, OpenError, check_usable};
use crate::handles::HandleTable;
use crate::locks::Locks;
use crate::options::{PoolOptions, limits_of};
use crate::relocation::Cycle;
use crate::relocation::retained::RetainedCycles;
use crate::room::Room;
use crate::safepoint::Safepoint;
use crate::stat_shard;
use crate::stops::Stops;
use crate::superblock::keeps_addresses;
use crate::tx::redo::{RedoLog, Ring};
use crate::types::Types;

/// How long closing, tracing and checking ask for the world to stop, in nanoseconds.
pub(crate) const STOP_LIMIT_NS: u64 = 10_000_000_000;

/// Lanes that no session uses, with their rings.
pub(crate) struct Lanes {
    pub(crate) free: Vec<(usize, Ring)>,
    /// Lanes whose blocks this open has reserved.
    pub(crate) reserved: u64,
    /// A migration has the pool for itself: no session is opened.
    pub(crate) migrating: bool,
}

impl Lanes {
    /// All of a pool's lanes; the first one is taken first.
    fn new(count: usize) -> Self {
        let lanes = (0..count).rev();
        Self {
            free: lanes.map(|lane| (lane, Ring::default())).collect(),
            reserved: 0,
            migrating: false,
        }
    }
}

/// What recovery found out.
pub(crate) struct Recovered<M: Medium> {
    /// The new `W_pool`.
    pub(crate) watermark: u64,
    /// The cycle that goes on.
    pub(crate) resumed: Option<Arc<Cycle<M>>>,
}

/// The state of an open pool.
#[doc(hidden)]
pub struct Inner<M: Medium> {
    pub(crate) medium: M,
    pub(crate) id: PoolId,
    pub(crate) kind: PoolKind,
    pub(crate) log: LogKind,
    /// Whether addresses lead to their objects as long as the pool is open, wherever those are moved.
    pub(crate) keeps_addresses: bool,
    pub(crate) uuid: [u8; 16],
    /// Whether the pool was opened with an undo log before: programs may have stored addresses in it.
    pub(crate) was_raw: bool,
    pub(crate) writable: bool,
    pub(crate) publish_every: u32,
    pub(crate) lane_count: usize,
    pub(crate) lanes: Lock<Lanes>,
    pub(crate) safepoint: Safepoint<M>,
    pub(crate) room: Room,
    pub(crate) allocator: Allocator<M>,
    pub(crate) collector: Collector<M>,
    pub(crate) redo: RedoLog<M>,
    pub(crate) types: Types,
    pub(crate) handles: HandleTable,
    pub(crate) locks: Locks<M>,
    pub(crate) superblock: Lock<Superblock>,
    /// Version of the format in which the pool was found, where that was an older one.
    pub(crate) converted_from: Option<u32>,
    /// Whether counters, and in a traced pool allocation bitmaps, are exact or will be once the pool
    /// is closed.
    pub(crate) exact: AtomicBool,
    /// How often objects were counted anew, see [`Inner::begin_recount`].
    recounts: AtomicU64,
    pub(crate) closed: AtomicBool,
}

impl<M: Medium> Inner<M> {
    /// An open pool of what recovery has left.
    ///
    /// Errors: the registry of types, or the list of kept plans, is damaged.
    pub(crate) fn new(
        medium: M,
        options: &PoolOptions,
        superblock: Superblock,
        recovered: Recovered<M>,
        exact: bool,
        writable: bool,
    ) -> Result<Self, OpenError> {
        let format = |source| OpenError::Format {
            pool: medium.name(),
            source,
        };
        let types = Types::load(&medium, writable).map_err(format)?;
        let lane_count = (superblock.lanes as usize).clamp(1, LANES);
        let keeps = keeps_addresses(superblock.kind, options.log);
        let kept = RetainedCycles::load(&medium, keeps, recovered.resumed.as_deref()).map_err(
            |source| {
                let pool = medium.name();
                OpenError::Recovery { pool, source }
            },
        )?;
        let table = kept.table(&medium);
        let limits = Limits {
            reserves_last_page: keeps,
            ..limits_of(superblock.limit_bytes, medium.capacity())
        };
        Ok(Self {
            id: superblock.pool_id,
            kind: superblock.kind,
            log: options.log,
            keeps_addresses: keeps,
            uuid: superblock.uuid,
            was_raw: false,
            writable,
            publish_every: options.publish_every,
            lane_count,
            lanes: Lock::new(Lanes::new(lane_count)),
            safepoint: Safepoint::new(&medium, lane_count),
            room: Room::new(),
            allocator: Allocator::new(
                &medium,
                limits,
                superblock.kind,
                Tables::of(superblock.kind, exact),
                recovered.resumed.clone(),
                table,
            ),
            collector: Collector::new(recovered.resumed, kept),
            redo: RedoLog::new(&medium, recovered.watermark),
            types,
            handles: HandleTable::new(),
            locks: Locks::new(&medium, lane_count),
            superblock: Lock::new(superblock),
            converted_from: None,
            exact: AtomicBool::new(exact),
            recounts: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            medium,
        })
    }

    /// Whether it is known of each slot if an object lives in it: always in explicit pools.
    pub(crate) fn knows_slots(&self) -> bool {
        self.kind == PoolKind::Explicit || self.exact.load(Ordering::Acquire)
    }

    pub(crate) fn logs_allocation(&self) -> bool {
        self.kind == PoolKind::Explicit
    }

    /// What a counter says: the sum over all lanes.
    pub(crate) fn counter(&self, counter: Counter) -> i64 {
        stat_shard::sum(&self.medium, self.lane_count, counter)
    }

    /// How often objects were counted anew.
    pub(crate) fn recounts(&self) -> u64 {
        self.recounts.load(Ordering::Acquire)
    }

    /// The counters of a moment when no operation is open and from which all objects are counted anew:
    /// what sessions have counted before and not published is in the new count, so they forget it.
    pub(crate) fn begin_recount(&self) -> Box<[i64; WORDS]> {
        self.recounts.fetch_add(1, Ordering::AcqRel);
        stat_shard::sums(&self.medium, self.lane_count)
    }

    /// Errors: the caller is a forked child of the process that opened the pool.
    #[inline(always)]
    pub(crate) fn check_usable(&self) -> Result<(), Error> {
        check_usable(&self.medium)
    }

    /// Runs `change` while no operation is open.
    pub(crate) fn stopped<R>(&self, change: impl FnOnce() -> R) -> Result<R, Error> {
        self.stopped_counting(&mut Stops::default(), change)
    }

    /// Runs `change` while no operation is open; adds how long the program stood to `stops`.
    pub(crate) fn stopped_counting<R>(
        &self,
        stops: &mut Stops,
        change: impl FnOnce() -> R,
    ) -> Result<R, Error> {
        self.stopped_within(STOP_LIMIT_NS, stops, change)
    }

    /// Runs `change` while no operation is open; gives up after `limit_ns`.
    pub(crate) fn stopped_within<R>(
        &self,
        limit_ns: u64,
        stops: &mut Stops,
        change: impl FnOnce() -> R,
    ) -> Result<R, Error> {
        self.check_usable()?;
        let stopped = self.safepoint.stop(&self.medium, limit_ns, stops, change);
        stopped.ok_or(Error::Busy {
            waited_ms: limit_ns / 1_000_000,
        })
    }

    /// Makes sure that a lane's log and counters have blocks.
    pub(crate) fn reserve_lane(&self, lane: usize) -> Result<(), Error> {
        let mut lanes = self.lanes.lock(&self.medium);
        if lanes.reserved >> lane & 1 == 0 {
            self.medium.reserve(lane_at(lane), LANE_BYTES)?;
            self.medium
                .reserve(block_at(lane + 1), STATISTICS_BLOCK_BYTES)?;
            lanes.reserved |= 1 << lane;
        }
        Ok(())
    }

    /// Says on media how long the pool is, if the medium reaches further: what it has is used without growing.
    pub(crate) fn note_length(&self) {
        let medium = &self.medium;
        let chunks = Seal::Length.open(medium.load_u64(geometry::LENGTH));
        let there = medium.len() / CHUNK_BYTES;
        if chunks.is_some_and(|chunks| chunks < there) {
            medium.store_u64(geometry::LENGTH, Seal::Length.seal(there));
            medium.persist(geometry::LENGTH, WORD_BYTES);
        }
    }

    /// Makes a lane fit for undo transactions.
    ///
    /// Errors: no space.
    pub(crate) fn prepare_undo_lane(&self, lane: usize) -> Result<(), OpenError> {
        let at = undo_done_at(lane);
        if self.medium.load_u64(at) == 0 {
            self.medium.reserve(lane_at(lane), LANE_BYTES)?;
            self.medium.store_u64(at, Seal::UndoDone.seal(0));
            self.medium.persist(at, WORD_BYTES);
        }
        Ok(())
    }
}

const _: () = assert!(BLOCKS == LANES + 1 && lane::LANES <= 64);
const _: () = assert!(REGISTRY_BYTES > FRAME_BYTES);
