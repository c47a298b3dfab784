//! Ended cycles whose old addresses still lead to their objects.
//!
//! A program that stores in place through raw addresses keeps addresses where nothing heals them: in its own variables,
//! and in objects, to which it copies them unannounced, between the end of a cycle and a crash. So in its pools frames
//! that a cycle emptied are not reused before the pool is closed: they have no blocks, but their addresses belong to no
//! other object. The plan stays, too, in a list on media, so that it survives a crash as those references do. When the
//! pool is closed, or the program says that its variables hold no such address, every reference is healed, then the
//! list is emptied, then the frames are free.
//!
//! An address may lead through several cycles. It reaches the newest place in at most as many steps as there are
//! cycles, because nothing is moved to frames that were emptied before.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use firn_format::geometry::{self, Frame, FrameRun};
use firn_format::plan::{Entry, PlanHeader};
use firn_format::sealed::Seal;
use firn_media::{Lock, Medium};
use firn_units::{FRAME_BYTES, FRAMES_PER_CHUNK, VirtAddr};

use super::cycle::Cycle;
use super::media::retained_head;
use super::plan::{frames_of, load_entries, moved};
use crate::error::Error;

/// A retained cycle.
#[derive(Clone)]
pub(crate) struct RetainedCycle {
    /// The retained frames of its plan.
    pub(crate) plan: FrameRun,
    pub(crate) entries: Arc<[Entry]>,
}

impl RetainedCycle {
    fn of<M: Medium>(cycle: &Cycle<M>) -> Self {
        Self {
            plan: FrameRun {
                frame: cycle.plan,
                frames: cycle.header.entry_frames(),
            },
            entries: cycle.entries.iter().copied().collect(),
        }
    }

    /// The runs that it emptied.
    pub(crate) fn emptied(&self) -> impl Iterator<Item = FrameRun> {
        self.entries.iter().map(|entry| FrameRun {
            frame: entry.source,
            frames: frames_of(entry),
        })
    }
}

/// A frame's word: its cycle's number plus one, and its entry's number.
type Chunk = [u64; FRAMES_PER_CHUNK as usize];
const ENTRY_BITS: u32 = 32;
/// The entry of frames that hold a plan.
const PLAN: u64 = u32::MAX as u64;

/// All retained cycles, at one time.
#[derive(Clone, Default)]
pub(crate) struct Table {
    cycles: Vec<RetainedCycle>,
    emptied_frames: u64,
    chunks: Vec<Option<Arc<Chunk>>>,
}

impl Table {
    /// The retained cycles, in the order of their ends.
    pub(crate) fn cycles(&self) -> &[RetainedCycle] {
        &self.cycles
    }

    /// How many frames they have emptied.
    pub(crate) fn emptied_frames(&self) -> u64 {
        self.emptied_frames
    }

    fn word(&self, frame: Frame) -> Option<u64> {
        let chunk = self.chunks.get(frame.chunk().0 as usize)?.as_ref()?;
        Some(chunk[frame.index_in_chunk() as usize]).filter(|&word| word != 0)
    }

    /// Frames of a chunk that cycles have emptied.
    pub(crate) fn emptied_in(&self, chunk: geometry::Chunk) -> Vec<Frame> {
        let frames = (0..FRAMES_PER_CHUNK).map(|i| chunk.first_frame().plus(i));
        let emptied = |frame: &Frame| self.word(*frame).is_some_and(|word| word & PLAN != PLAN);
        frames.filter(emptied).collect()
    }

    /// The chunks in which plans lie.
    pub(crate) fn chunks_of_plans(&self) -> BTreeSet<geometry::Chunk> {
        let plans = self.cycles.iter().flat_map(|cycle| cycle.plan.each());
        plans.map(|frame| frame.chunk()).collect()
    }

    /// Whether the frame is retained.
    pub(crate) fn holds(&self, frame: Frame) -> bool {
        self.word(frame).is_some()
    }

    /// Adds a cycle. False if a frame of its sources is retained already; then nothing was added.
    fn add(&mut self, cycle: RetainedCycle) -> bool {
        let number = (self.cycles.len() as u64 + 1) << ENTRY_BITS;
        let mut frames = Vec::new();
        for (index, run) in cycle.emptied().enumerate() {
            frames.extend(run.each().map(|frame| (frame, number | index as u64)));
        }
        let emptied_frames = frames.len() as u64;
        frames.extend(cycle.plan.each().map(|frame| (frame, number | PLAN)));
        if frames.iter().any(|&(frame, _)| self.holds(frame)) {
            return false;
        }
        for (frame, word) in frames {
            let chunk = frame.chunk().0 as usize;
            if self.chunks.len() <= chunk {
                self.chunks.resize(chunk + 1, None);
            }
            let chunk =
                self.chunks[chunk].get_or_insert_with(|| Arc::new([0; FRAMES_PER_CHUNK as usize]));
            Arc::make_mut(chunk)[frame.index_in_chunk() as usize] = word;
        }
        self.cycles.push(cycle);
        self.emptied_frames += emptied_frames;
        true
    }

    /// The current address of the byte that was at `at` before the retained cycles.
    pub(crate) fn resolve(&self, mut at: VirtAddr) -> VirtAddr {
        while let Some(word) = self.word(Frame::holding(at)) {
            let cycle = &self.cycles[(word >> ENTRY_BITS) as usize - 1];
            let Some(entry) = cycle.entries.get((word & PLAN) as usize) else {
                break;
            };
            match moved(entry, at) {
                Some(new) => at = new,
                None => break,
            }
        }
        at
    }

    /// The object that contained the byte at `at` before the retained cycles: its former and its current start.
    pub(crate) fn object_around(&self, at: VirtAddr) -> Option<(VirtAddr, VirtAddr)> {
        let word = self.word(Frame::holding(at))?;
        let cycle = &self.cycles[(word >> ENTRY_BITS) as usize - 1];
        let entry = cycle.entries.get((word & PLAN) as usize)?;
        let start = entry.source.start();
        let began = match entry.class {
            Some(class) => start + class.slot_of(at.0.checked_sub(start.0)?) * class.slot_bytes(),
            None => start,
        };
        let begins = self.resolve(began);
        (begins != began).then_some((began, begins))
    }
}

/// The retained cycles of an open pool. They change while no operation is open.
pub(crate) struct RetainedCycles {
    table: Lock<Arc<Table>>,
    /// Chunks in which emptied frames may have blocks.
    with_blocks: Lock<BTreeSet<geometry::Chunk>>,
    /// Counts the changes of the table.
    version: AtomicU64,
    /// One per frame, in a pool that retains addresses: not zero where an address is forwarded, or may need preparation
    /// for stores.
    marks: Box<[AtomicU8]>,
    /// How many marks are not zero.
    marked: AtomicU64,
}

/// A session's snapshot of the retained cycles: complete while the session is inside an operation.
#[derive(Default)]
pub(crate) struct RetainedSnapshot {
    /// Zero before the first refresh.
    version: u64,
    table: Arc<Table>,
}

impl RetainedSnapshot {
    /// See [`Table::resolve`].
    #[inline]
    pub(crate) fn resolve(&self, at: VirtAddr) -> VirtAddr {
        match self.table.cycles.is_empty() {
            true => at,
            false => self.table.resolve(at),
        }
    }
}

impl RetainedCycles {
    /// Reads the list on media.
    ///
    /// Errors: it is damaged.
    pub(crate) fn load<M: Medium>(
        medium: &M,
        keeps: bool,
        resumed: Option<&Cycle<M>>,
    ) -> Result<Self, Error> {
        let table = load_table(medium)?;
        let frames = if keeps {
            medium.capacity() / FRAME_BYTES
        } else {
            0
        };
        let kept = Self {
            table: Lock::new(Arc::default()),
            with_blocks: Lock::new(BTreeSet::new()),
            version: AtomicU64::new(1),
            // Zeroed and untouched, so that the marks of distant frames take no memory.
            marks: bytemuck::allocation::zeroed_slice_box(frames as usize),
            marked: AtomicU64::new(0),
        };
        for cycle in &table.cycles {
            kept.mark_emptied(cycle, 1);
            // A crash may have come before its blocks were given back.
            kept.may_have_blocks(medium, cycle);
        }
        resumed.into_iter().for_each(|cycle| kept.mark(cycle));
        *kept.table.lock(medium) = Arc::new(table);
        Ok(kept)
    }

    /// One per frame: not zero where [`crate::RawGuard::resolve`] has something to do. They change while no operation
    /// is open.
    pub(crate) fn marks(&self) -> &[AtomicU8] {
        &self.marks
    }

    /// Whether any mark is not zero. The answer holds as long as an operation is open.
    pub(crate) fn has_marks(&self) -> bool {
        self.marked.load(Ordering::Relaxed) != 0
    }

    fn set(&self, run: FrameRun, mark: u8) {
        for frame in run.each() {
            if let Some(place) = self.marks.get(frame.0 as usize) {
                let before = place.swap(mark, Ordering::Relaxed);
                let added = u64::from(mark).wrapping_sub(u64::from(before));
                self.marked.fetch_add(added, Ordering::Relaxed);
            }
        }
    }

    fn mark_emptied(&self, cycle: &RetainedCycle, mark: u8) {
        cycle.emptied().for_each(|run| self.set(run, mark));
    }

    /// Marks the sources and destinations of a cycle. No operation is open.
    pub(crate) fn mark<M: Medium>(&self, cycle: &Cycle<M>) {
        self.mark_emptied(&RetainedCycle::of(cycle), 1);
        cycle
            .destinations
            .iter()
            .for_each(|run| self.set(run.run(), 1));
    }

    /// The current table.
    pub(crate) fn table<M: Medium>(&self, medium: &M) -> Arc<Table> {
        Arc::clone(&self.table.lock(medium))
    }

    /// Refreshes the snapshot of a session that has entered an operation. The table changes only while no operation is
    /// open, so the snapshot stays valid until the session leaves (rule T2).
    #[inline]
    pub(crate) fn refresh<M: Medium>(&self, medium: &M, known: &mut RetainedSnapshot) {
        let version = self.version.load(Ordering::Acquire);
        if known.version != version {
            let table = self.table(medium);
            *known = RetainedSnapshot { version, table };
        }
    }

    /// Notes that frames emptied by the cycle may have blocks, and also older ones beside its plan: these can be given
    /// back only in whole pieces of the device.
    fn may_have_blocks<M: Medium>(&self, medium: &M, cycle: &RetainedCycle) {
        let mut with_blocks = self.with_blocks.lock(medium);
        for run in cycle.emptied().chain([cycle.plan]) {
            with_blocks.extend(run.each().map(|frame| frame.chunk()));
        }
    }

    /// Takes the chunks in which emptied frames may have blocks. The caller reports those that still do.
    pub(crate) fn take_with_blocks<M: Medium>(&self, medium: &M) -> BTreeSet<geometry::Chunk> {
        core::mem::take(&mut *self.with_blocks.lock(medium))
    }

    /// Reports chunks taken by [`Self::take_with_blocks`] whose emptied frames still have blocks.
    pub(crate) fn still_have_blocks<M: Medium>(
        &self,
        medium: &M,
        chunks: BTreeSet<geometry::Chunk>,
    ) {
        self.with_blocks.lock(medium).extend(chunks);
    }

    /// The version of the table.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    fn has_changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Adds a cycle that is retained on media. No operation is open.
    pub(crate) fn add<M: Medium>(&self, medium: &M, cycle: &Cycle<M>) {
        cycle
            .destinations
            .iter()
            .for_each(|run| self.set(run.run(), 0));
        let cycle = RetainedCycle::of(cycle);
        self.may_have_blocks(medium, &cycle);
        let mut table = self.table.lock(medium);
        // Sources are frames in use, and retained frames are not.
        let added = Arc::make_mut(&mut table).add(cycle);
        debug_assert!(added);
        self.has_changed();
    }

    /// Drops all of them. No operation is open.
    pub(crate) fn forget<M: Medium>(&self, medium: &M) {
        let table = core::mem::take(&mut *self.table.lock(medium));
        self.with_blocks.lock(medium).clear();
        self.has_changed();
        table
            .cycles
            .iter()
            .for_each(|cycle| self.mark_emptied(cycle, 0));
    }
}

/// Reads the list of retained plans.
///
/// Errors: it is damaged.
fn load_table<M: Medium>(medium: &M) -> Result<Table, Error> {
    let damaged = |frame: Frame| Error::Damaged {
        what: "the list of kept plans",
        at: frame.start().0,
    };
    let mut found: Vec<(Frame, RetainedCycle)> = Vec::new();
    let mut next = retained_head(medium)?;
    while let Some(frame) = next {
        if !frame.chunk().is_data() || found.iter().any(|(other, _)| *other == frame) {
            return Err(damaged(frame));
        }
        let (header, entries) = load_entries(medium, frame)?;
        let at = PlanHeader::before_at(frame);
        let before = Seal::KeptBefore.open_at(medium.load_u64(at), at)?;
        let plan = FrameRun {
            frame,
            frames: header.entry_frames(),
        };
        let entries = entries.into();
        found.push((frame, RetainedCycle { plan, entries }));
        next = (before != 0).then_some(Frame(before));
    }
    let mut table = Table::default();
    for (frame, cycle) in found.into_iter().rev() {
        if !table.add(cycle) {
            return Err(damaged(frame));
        }
    }
    Ok(table)
}
