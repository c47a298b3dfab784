//! What pages hold, run by run, before the choice of sources.

use std::collections::{HashMap, HashSet};

use firn_format::class::{CLASSES, Class};
use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, Frame};
use firn_format::statistics::Counter;
use firn_media::{Medium, MediumExt, Scope};
use firn_units::{FRAME_BYTES, FRAMES_PER_CHUNK};

use super::options::{Goal, PageSize};
use crate::alloc::{Room, Run};
use crate::error::Error;
use crate::inner::Inner;
use crate::tx::redo::Ring;
use crate::walk::data_chunks;

/// Largest object that moves, in frames. Larger ones pin their chunk: copying one would delay the thread that touches
/// it first.
pub(super) const MAX_MOVED_FRAMES: u64 = 256;
/// The index of large objects, behind the classes.
pub(super) const LARGE: usize = CLASSES;
/// In a pool that cannot grow as it likes, pages may waste at most this part of its remaining room.
const SHARE_LEFT: f64 = 16.0;
/// Runs of a pinned chunk that hold at most this share of what they could are emptied, in percent.
const SPARSE_PERCENT: u64 = 75;

/// Runs that are emptied together: those of a chunk, or one alone.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) runs: Vec<Run>,
    /// Bytes that the survivors fill.
    pub(super) filled: u64,
    pub(super) frames: u64,
}

impl Candidate {
    pub(super) fn alone(run: Run) -> Self {
        Self {
            filled: filled_bytes(&run),
            frames: run.what.frames(),
            runs: vec![run],
        }
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.filled * 100 <= self.frames * FRAME_BYTES * SPARSE_PERCENT
    }

    /// Free frames that are closed with it.
    pub(super) fn free_frames(&self) -> u64 {
        let used: u64 = self.runs.iter().map(|run| run.what.frames()).sum();
        self.frames.saturating_sub(used)
    }
}

/// What may be emptied, and what the pool holds.
pub(super) struct Survey {
    pub(super) occupied: Occupied,
    /// Frames that hold objects, chunk by chunk.
    pub(super) used: HashMap<Chunk, u64>,
    /// The emptiest first.
    pub(super) candidates: Vec<Candidate>,
    /// Sparse runs of chunks that a large object pins; each is a candidate of its own.
    pub(super) pinned: Vec<Candidate>,
}

/// What the pool holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Occupied {
    /// Pages that hold objects.
    pub(super) pages: u64,
    /// Frames that objects would fill at best density.
    pub(super) dense_frames: u64,
    /// Bytes of the objects as the program requested them.
    pub(super) live_bytes: u64,
    /// Free frames in pages that hold objects.
    pub(super) free_frames: u64,
    /// Bytes of objects that never move: those that are too large.
    pub(super) large_bytes: u64,
    /// Bytes of runs that the program has pinned.
    pub(super) pinned_bytes: u64,
}

impl Survey {
    /// Surveys what may be emptied, the emptiest first.
    ///
    /// Errors: the frame table is damaged.
    pub(super) fn of<M: Medium>(inner: &Inner<M>, goal: &Goal) -> Result<Self, Error> {
        let medium = &inner.medium;
        let _scope = medium.scope(Scope::Summary);
        inner.allocator.look_at_all(medium)?;
        end_quarantine(inner);
        let mut survey = Self::unsorted(inner, goal)?;
        // Runs that held nothing were given back.
        end_quarantine(inner);
        let fullness = |c: &Candidate| c.filled * FRAMES_PER_CHUNK / c.frames.max(1);
        survey.candidates.sort_by_key(|c| (fullness(c), c.frames));
        Ok(survey)
    }

    fn unsorted<M: Medium>(inner: &Inner<M>, goal: &Goal) -> Result<Self, Error> {
        let medium = &inner.medium;
        let live_bytes = inner.counter(Counter::LiveBytes).max(0) as u64;
        let mut surveyor = Surveyor {
            goal,
            keeps_addresses: inner.keeps_addresses,
            fixed: inner.collector.pinned.lock(medium).clone(),
            dense: Needed::new(),
            survey: Self {
                occupied: Occupied {
                    live_bytes,
                    ..Occupied::default()
                },
                used: HashMap::new(),
                candidates: Vec::new(),
                pinned: Vec::new(),
            },
        };
        let of_plans = inner.pages_of_plans();
        for chunk in data_chunks(medium.len()) {
            let mut runs = inner.allocator.runs_of(medium, chunk)?;
            for run in runs.extract_if(.., |run| run.used == 0) {
                inner
                    .allocator
                    .give_empty(medium, &run, inner.redo.counter())?;
            }
            let is_pinned = is_pinned(medium, chunk);
            if runs.is_empty() && !is_pinned {
                continue;
            }
            let all_move = runs.iter().all(|run| surveyor.may_move(run));
            let stays = is_pinned || of_plans.contains(&chunk) || !all_move;
            let mut space = inner.allocator.space().lock(medium);
            if !stays {
                space.unreserve(chunk);
            }
            let free = space.free_frames(chunk);
            drop(space);
            surveyor.count(chunk, &runs, free);
            match goal.pages {
                PageSize::Huge => surveyor.add_page(runs, free, stays),
                PageSize::Small => surveyor.add_runs(runs),
            }
        }
        let Surveyor {
            dense, mut survey, ..
        } = surveyor;
        survey.occupied.dense_frames = dense.frames;
        Ok(survey)
    }

    /// This survey with the sparse runs of pages as candidates, each alone.
    pub(super) fn in_frames(mut self) -> Self {
        let pages = core::mem::take(&mut self.candidates).into_iter();
        let runs = pages.flat_map(|page| page.runs).map(Candidate::alone);
        self.candidates = runs.filter(Candidate::is_sparse).collect();
        self.occupied.pages = self.used.values().sum();
        self.pinned.clear();
        self
    }
}

impl Occupied {
    /// Bytes of pages at which a collection is content: the target's, and in a pool that cannot grow as it likes few
    /// enough that pages waste at most a share of its remaining room.
    pub(super) fn aimed_bytes(&self, goal: &Goal, room: &Room) -> f64 {
        let aimed = self.live_bytes as f64 * goal.target;
        let Some(most) = room.most else { return aimed };
        let (dense, most) = (self.dense_frames as f64, most as f64);
        // Solved for the frames of pages, so that their waste is this share of the remaining frames.
        let pages = (dense * SHARE_LEFT + most) / (SHARE_LEFT + 1.0);
        aimed.min(pages.max(dense) * FRAME_BYTES as f64)
    }
}

/// A survey in progress.
struct Surveyor<'a> {
    goal: &'a Goal,
    keeps_addresses: bool,
    /// First frames of runs that the program has pinned.
    fixed: HashSet<Frame>,
    /// What all survivors would fill.
    dense: Needed,
    survey: Survey,
}

impl Surveyor<'_> {
    fn may_move(&self, run: &Run) -> bool {
        may_be_moved(run) && !self.fixed.contains(&run.frame)
    }

    /// Counts a chunk's runs, and the free frames beside them.
    fn count(&mut self, chunk: Chunk, runs: &[Run], free: u64) {
        let occupied = &mut self.survey.occupied;
        for run in runs {
            self.dense.add(run);
            let bytes = run.what.frames() * FRAME_BYTES;
            match may_be_moved(run) {
                false => occupied.large_bytes += bytes,
                true if self.fixed.contains(&run.frame) => occupied.pinned_bytes += bytes,
                true => {}
            }
        }
        occupied.free_frames += free;
        let frames = runs.iter().map(|run| run.what.frames());
        self.survey.used.insert(chunk, frames.sum());
    }

    /// Adds a chunk as a candidate; if it stays, adds its sparse runs instead.
    fn add_page(&mut self, runs: Vec<Run>, free: u64, stays: bool) {
        self.survey.occupied.pages += 1;
        if !stays {
            let whole = runs.iter().map(|run| run.what.frames()).sum::<u64>() + free;
            let filled = runs.iter().map(filled_bytes).sum();
            self.survey.candidates.push(Candidate {
                runs,
                filled,
                frames: whole.min(FRAMES_PER_CHUNK),
            });
        } else if !self.keeps_addresses {
            // Emptied frames there are room for others, unless their addresses stay.
            let moving = runs.into_iter().filter(|run| self.may_move(run));
            let sparse: Vec<_> = moving
                .map(Candidate::alone)
                .filter(Candidate::is_sparse)
                .collect();
            self.survey.pinned.extend(sparse);
        }
    }

    /// Adds runs as candidates, each alone.
    fn add_runs(&mut self, runs: Vec<Run>) {
        for run in runs {
            self.survey.occupied.pages += run.what.frames();
            let slots = run.class().map_or(1, Class::slots);
            let wins = run.used < slots && !self.fixed.contains(&run.frame);
            if wins || self.goal.everything && self.may_move(&run) {
                self.survey.candidates.push(Candidate::alone(run));
            }
        }
    }
}

fn may_be_moved(run: &Run) -> bool {
    run.what.frames() <= MAX_MOVED_FRAMES
}

pub(super) fn filled_bytes(run: &Run) -> u64 {
    match run.class() {
        Some(class) => run.used * class.slot_bytes(),
        None => run.what.frames() * FRAME_BYTES,
    }
}

/// Frames that the survivors of sources need.
pub(super) struct Needed {
    pub(super) slots: [u64; CLASSES + 1],
    pub(super) frames: u64,
    pub(super) units: u64,
}

impl Needed {
    pub(super) const fn new() -> Self {
        Self {
            slots: [0; CLASSES + 1],
            frames: 0,
            units: 0,
        }
    }

    pub(super) fn add(&mut self, run: &Run) {
        let class = run.class().map_or(LARGE, Class::index);
        let before = frames_for(class, self.slots[class]);
        self.slots[class] += match run.class() {
            Some(_) => run.used,
            None => run.what.frames(),
        };
        self.frames += frames_for(class, self.slots[class]) - before;
        self.units += run.used;
    }
}

/// Frames that hold `slots` slots of a class; of large objects, `slots` counts frames.
pub(super) fn frames_for(class: usize, slots: u64) -> u64 {
    match Class::from_index(class) {
        Some(class) => slots.div_ceil(class.slots()) * class.frames(),
        None => slots,
    }
}

/// Whether a large object from an earlier chunk reaches into this one.
pub(super) fn is_pinned<M: Medium>(medium: &M, chunk: Chunk) -> bool {
    let first = chunk.first_frame();
    let word = medium.load_u64(first.word_at());
    matches!(
        FrameUse::from_word(word, first.word_at()),
        Ok(FrameUse::Tail { .. }) | Err(_)
    )
}

/// Freed frames wait until older homes are durable: settles these.
fn end_quarantine<M: Medium>(inner: &Inner<M>) {
    let medium = &inner.medium;
    inner.redo.settle_homes(medium, &mut Ring::default());
    let durable = inner.redo.known_durable();
    inner.allocator.space().lock(medium).end_quarantine(durable);
}
