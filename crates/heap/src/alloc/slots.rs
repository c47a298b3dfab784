//! A pool's allocator: its knowledge of slots and frames.

use core::hash::{Hash, Hasher};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use firn_format::class::Class;
use firn_format::geometry::{Chunk, Frame};
use firn_format::lane::LANES;
use firn_format::superblock::PoolKind;
use firn_media::{Lock, Medium, Words};
use firn_units::VirtAddr;

use super::cache::{ActiveRuns, Cache};
use super::chunks::{Chunks, FREE, LIVE, OWNER, STATE, Tables, base};
use super::frames::{FrameSpace, Limits};
use super::lists::Lists;
use super::slot::{Place, Slot, locate, run_frames};
use super::taken::TakenSlots;
use crate::alloc::Footprint;
use crate::error::Error;
use crate::relocation::cycle::Cycle;
use crate::relocation::retained::Table;

/// All allocation state of a pool.
pub(crate) struct Allocator<M: Medium> {
    pub(super) chunks: Chunks<M>,
    pub(super) lists: Lists<M>,
    pub(super) space: FrameSpace,
    /// The active runs of sessions, by lane.
    pub(super) active: Box<[OnceLock<Arc<ActiveRuns>>]>,
    /// Whether slots that sessions take into use are noted, and where.
    pub(super) notes: AtomicBool,
    pub(super) takers: Lock<Vec<Arc<TakenSlots<M>>>>,
    /// Slots and objects that were freed in runs that the collector has closed.
    pub(super) held: Lock<Vec<Place>>,
    /// Whether allocation bits on media are always exact: in explicit pools.
    pub(super) logs_bits: bool,
    /// One word: the highest LSN counter at which a slot was freed whose next object is stored at home.
    pub(super) freed_at: M::Words,
}

impl<M: Medium> Allocator<M> {
    /// `tables` says what media knows; `resumed` is the cycle that a crash interrupted, `kept` the retained ones before
    /// it.
    pub(crate) fn new(
        medium: &M,
        limits: Limits,
        kind: PoolKind,
        tables: Tables,
        resumed: Option<Arc<Cycle<M>>>,
        kept: Arc<Table>,
    ) -> Self {
        Self {
            chunks: Chunks::new(medium, tables, resumed, kept),
            lists: Lists::new(medium),
            space: FrameSpace::new(limits, tables == Tables::Frames),
            active: (0..LANES).map(|_| OnceLock::new()).collect(),
            notes: AtomicBool::new(false),
            takers: Lock::new(Vec::new()),
            held: Lock::new(Vec::new()),
            logs_bits: kind == PoolKind::Explicit,
            freed_at: medium.words(1),
        }
    }

    /// All homes below this LSN must be durable before an object is stored at home in a slot (A2): an older entry may
    /// name the slot's former object, and would be replayed over the new one.
    pub(crate) fn awaited(&self) -> u64 {
        self.freed_at.load(0)
    }

    /// Digests which frames are free and, for the other frames of known chunks, their free slots and objects.
    pub(crate) fn digest(&self, medium: &M, into: &mut impl Hasher) {
        self.awaited().hash(into);
        let space = self.space.lock(medium);
        space.digest(into);
        for (chunk, frames) in space.taken() {
            let Some(state) = self.chunks.known(chunk) else {
                continue;
            };
            for frame in frames {
                for word in [STATE, FREE, LIVE, OWNER] {
                    state.words().load(base(frame) + word).hash(into);
                }
            }
        }
    }

    pub(crate) fn space(&self) -> &FrameSpace {
        &self.space
    }

    /// Looks at every chunk.
    pub(crate) fn look_at_all(&self, medium: &M) -> Result<(), Error> {
        self.space.lock(medium).look_at_all(medium, &self.chunks)
    }

    /// The slot whose object's header lies at `at`, allocated or not.
    #[inline]
    pub(crate) fn locate(&self, medium: &M, at: VirtAddr) -> Result<Slot, Error> {
        locate(medium, at)
    }

    /// Prefetches the state of the run at whose first frame an object lies. A hint; it does nothing for an object
    /// further back.
    #[inline]
    pub(crate) fn expect(&self, medium: &M, at: VirtAddr) {
        let frame = Frame::holding(at);
        if at.0 >= medium.len() || !frame.chunk().is_data() {
            return;
        }
        medium.prefetch(frame.word_at());
        if let Some(chunk) = self.chunks.known(frame.chunk()) {
            chunk.words().prefetch(base(frame) + FREE);
        }
    }

    /// Whether a slot is allocated, as far as this open of the pool knows.
    pub(crate) fn is_allocated(&self, medium: &M, place: Place) -> Result<bool, Error> {
        let chunk = self.chunks.get(medium, place.frame.chunk())?;
        let (word, bit) = place.bit();
        Ok(chunk.words().load(base(place.frame) + FREE + word as usize) & bit == 0)
    }

    /// Counts objects that a commit added to a run, or took away.
    pub(crate) fn count_live(
        &self,
        medium: &M,
        place: Place,
        added: i64,
    ) -> Result<Footprint, Error> {
        let chunk = self.chunks.get(medium, place.frame.chunk())?;
        let before = chunk
            .words()
            .fetch_add(base(place.frame) + LIVE, added as u64);
        let after = before.wrapping_add(added as u64);
        if (before == 0) == (after == 0) {
            return Ok(Footprint::default());
        }
        let frames = match place.class {
            Some(class) => class.frames(),
            None => run_frames(medium, place.frame),
        };
        self.count_run(medium, place.frame, frames, after != 0)
    }

    /// Counts a run as holding objects, or no longer; so for each of its chunks, where that changes whether it holds
    /// any.
    pub(super) fn count_run(
        &self,
        medium: &M,
        frame: Frame,
        frames: u64,
        now_live: bool,
    ) -> Result<Footprint, Error> {
        let sign = if now_live { 1 } else { -1 };
        let mut change = Footprint {
            frames: sign * frames as i64,
            chunks: 0,
        };
        for chunk in frame.chunk().0..=frame.plus(frames - 1).chunk().0 {
            let state = self.chunks.get(medium, Chunk(chunk))?;
            change.chunks += sign * i64::from(state.count_live_frame(now_live));
        }
        self.chunks.count_footprint(change);
        Ok(change)
    }

    /// Frames of runs that hold objects, and chunks in which such runs lie. Every chunk was looked at, and no operation
    /// is open.
    pub(crate) fn footprint(&self) -> Footprint {
        self.chunks.footprint()
    }

    /// The side of the allocator that belongs to a lane's session.
    pub(crate) fn cache(&self, lane: usize) -> Cache {
        Cache::new(
            lane,
            Arc::clone(self.active[lane].get_or_init(ActiveRuns::new)),
        )
    }

    /// Takes back everything in a session's active runs: inside an operation of the session, or with the world stopped.
    pub(super) fn drain(&self, medium: &M, active: &ActiveRuns) -> Result<(), Error> {
        for class in Class::all() {
            self.put_back(medium, active.of(class), class)?;
        }
        Ok(())
    }

    /// Returns everything a session holds.
    pub(crate) fn return_all(&self, medium: &M, cache: &Cache) -> Result<(), Error> {
        self.drain(medium, &cache.active)
    }
}
