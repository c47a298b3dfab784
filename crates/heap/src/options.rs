//! How a pool is created or opened.

use std::num::NonZeroU64;

use firn_format::geometry::{MAX_POOL_BYTES, MIN_POOL_BYTES};
use firn_format::lane::LANES;
use firn_format::superblock::{LogKind, MAX_LAYOUT_BYTES, PoolKind};
use firn_units::{CHUNK_BYTES, round_up};

use crate::alloc::Limits;
use crate::error::OpenError;

/// One part in this many of a limited pool is reserved for the trace after a crash.
const RESERVE_SHARE: u64 = 100;

/// How a pool is created or opened.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// The program's name for the pool's content; checked at open, up to 64 bytes.
    pub layout: String,
    /// What decides which objects live. Used only by [`crate::Pool::create`].
    pub kind: PoolKind,
    /// Which log this open of the pool uses.
    pub log: LogKind,
    /// The most sessions at one time. Used only by [`crate::Pool::create`].
    pub lanes: usize,
    /// The pool's limit: the most bytes that it may have. It is stored with the pool and holds for every program that
    /// opens it. Without one, [`crate::Pool::create`] makes a pool that grows up to the medium's capacity, and
    /// [`crate::Pool::open`] leaves the limit as it is; with one, it changes the limit. 256 TiB or more are no limit. A
    /// pool that is longer than its new limit keeps its length, and is full when nothing is free in it.
    ///
    /// A transaction's log may take as much again while the transaction runs, so that a full pool can free any number
    /// of objects at once. Closing the pool cuts that off.
    pub max_bytes: Option<u64>,
    /// Commits after which a session publishes its counters on the statistics page.
    pub publish_every: u32,
}

impl PoolOptions {
    /// A traced pool with a redo log, for content of this name.
    pub fn new(layout: &str) -> Self {
        Self {
            layout: layout.to_owned(),
            kind: PoolKind::Traced,
            log: LogKind::Redo,
            lanes: LANES,
            max_bytes: None,
            publish_every: 1,
        }
    }

    pub(crate) fn check(&self, pool: &str, capacity: u64) -> Result<(), OpenError> {
        let error = |what, range: String, found: String| {
            Err(OpenError::Option {
                pool: pool.to_owned(),
                what,
                range,
                found,
            })
        };
        if self.layout.len() > MAX_LAYOUT_BYTES {
            let range = format!("at most {MAX_LAYOUT_BYTES} bytes long");
            return error(
                "the layout's name",
                range,
                format!("{} bytes", self.layout.len()),
            );
        }
        if !(1..=LANES).contains(&self.lanes) {
            return error(
                "the number of lanes",
                format!("1 to {LANES}"),
                self.lanes.to_string(),
            );
        }
        if self.publish_every == 0 {
            return error("publish_every", "at least 1".into(), "0".into());
        }
        if let Some(limit) = self.limit() {
            let least = MIN_POOL_BYTES + limits_of(self.limit(), capacity).reserve_bytes;
            if limit.get() < least {
                let range = format!("at least {least} bytes");
                return error("the pool's limit", range, limit.to_string());
            }
        }
        Ok(())
    }

    /// The limit that these options give a pool.
    pub(crate) fn limit(&self) -> Option<NonZeroU64> {
        // Zero is refused like every limit that is too small.
        let given = self.max_bytes.filter(|&bytes| bytes < MAX_POOL_BYTES);
        given.map(|bytes| NonZeroU64::new(bytes).unwrap_or(NonZeroU64::MIN))
    }
}

/// How far a pool with this limit may grow, on a medium of this capacity.
pub(crate) fn limits_of(limit: Option<NonZeroU64>, capacity: u64) -> Limits {
    let reserve = |limit: NonZeroU64| (limit.get() / RESERVE_SHARE).max(CHUNK_BYTES);
    Limits {
        max_bytes: limit.map_or(capacity.min(MAX_POOL_BYTES), NonZeroU64::get),
        reserve_bytes: limit.map_or(0, |limit| round_up(reserve(limit), CHUNK_BYTES)),
        reserves_last_page: false,
    }
}
