//! Which pages are emptied (FFCCD sections 2.3.1, 3.3 and 5).
//!
//! Sources are the pages that hold least: as many as bring the ratio to its target, or else as low as possible. Their
//! number in a cycle is capped, so that the bytes in flight are bounded. Survivors go to fresh runs of their class, one
//! behind the other, in the fullest pages that have room. Where huge pages count, those that a large object pins cannot
//! be emptied, but their sparse runs can: the next cycle finds room there.

use std::collections::HashSet;

use firn_format::geometry::Chunk;
use firn_format::plan::plan_bytes;
use firn_media::Medium;
use firn_units::{FRAME_BYTES, FRAMES_PER_CHUNK};

use super::compaction_plan::CompactionPlan;
use super::options::{Goal, PageSize};
use super::survey::{Candidate, Needed, Occupied, Survey, is_pinned};
use crate::alloc::{Room, Run};
use crate::error::Error;
use crate::inner::Inner;
use crate::relocation::plan::frames_of;

/// A chunk in which a plan leaves at most this many frames takes in no survivors, if there are so many such chunks that
/// the fresh ones, which survivors need instead, carry little weight.
const FEW_FRAMES: u64 = FRAMES_PER_CHUNK / 4;
const MANY_CHUNKS: usize = 8;
/// At most this many candidates are passed over, because others win more in the same room.
const MOST_PASSED_OVER: usize = 64;
/// Emptying the runs of pinned chunks must win at least this many frames.
const LEAST_ROOM: u64 = FRAMES_PER_CHUNK / 16;

/// Consecutive candidates, and the effect of emptying them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    /// The first of them.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Pages that will hold objects afterwards.
    pages: u64,
    emptied_frames: u64,
    units: u64,
    /// Frames that it takes: for survivors and for the plan.
    pub(super) frames: u64,
    /// Whether more could be won if there were room.
    pub(super) lacks_room: bool,
    /// Whether the pool is, or will be, at its goal.
    pub(super) reached: bool,
}

impl Selection {
    /// No candidate.
    const fn none(first: usize, occupied: &Occupied) -> Self {
        Self {
            first,
            count: 0,
            pages: occupied.pages,
            emptied_frames: 0,
            units: 0,
            frames: 0,
            lacks_room: false,
            reached: false,
        }
    }
}

impl Survey {
    /// How many of the first `most` candidates are emptied, as far as there is room for their survivors.
    ///
    /// Errors: the pool cannot grow for a reason other than a lack of room.
    pub(super) fn select<M: Medium>(
        &self,
        inner: &Inner<M>,
        goal: &Goal,
        most: usize,
    ) -> Result<Selection, Error> {
        let medium = &inner.medium;
        let mut space = inner.allocator.space().lock(medium);
        let candidates = &self.candidates[..self.candidates.len().min(most)];
        let room = space.room(medium);
        let selection = choose_count(goal, &self.occupied, &room, candidates);
        if selection.frames <= room.frames || room.growth == 0 {
            return Ok(selection);
        }
        // The device may not have what the limit allows: only existing room counts.
        space.grow_for(medium, selection.frames)?;
        let grown = space.room(medium);
        let room = Room { growth: 0, ..grown };
        match selection.frames <= room.frames {
            true => Ok(selection),
            false => Ok(choose_count(goal, &self.occupied, &room, candidates)),
        }
    }

    /// The runs of a selection. Closes the chunks that are almost emptied: survivors must not go there.
    pub(super) fn sources<M: Medium>(
        &self,
        inner: &Inner<M>,
        goal: &Goal,
        selection: &Selection,
    ) -> Vec<Run> {
        let mut used = self.used.clone();
        let chosen = &self.candidates[selection.first..selection.first + selection.count];
        let mut runs: Vec<Run> = chosen.iter().flat_map(|c| c.runs.clone()).collect();
        for run in &runs {
            if let Some(left) = used.get_mut(&run.frame.chunk()) {
                *left = left.saturating_sub(run.what.frames());
            }
        }
        let mut emptied: Vec<Chunk> = runs.iter().map(|run| run.frame.chunk()).collect();
        emptied.sort_unstable();
        emptied.dedup();
        let few = |most: u64| {
            let left = |chunk: &&Chunk| used.get(chunk).is_none_or(|&left| left <= most);
            emptied.iter().filter(left).copied().collect::<Vec<_>>()
        };
        let mut closed = few(FEW_FRAMES);
        if closed.len() < MANY_CHUNKS {
            closed = few(0);
        }
        let mut space = inner.allocator.space().lock(&inner.medium);
        closed.into_iter().for_each(|chunk| space.close(chunk));
        drop(space);
        runs.extend(choose_pinned(goal, &self.occupied, selection, &self.pinned));
        runs
    }

    /// Whether a plan wins what it is made for: pages, or frames where pages stay as many. Its promise came before its
    /// destinations were known; the holes of the pool may be too small to keep it.
    ///
    /// Errors: the frame table is damaged.
    pub(super) fn wins<M: Medium>(
        &self,
        inner: &Inner<M>,
        goal: &Goal,
        plan: &CompactionPlan,
    ) -> Result<bool, Error> {
        let emptied: u64 = plan.entries.iter().map(frames_of).sum();
        let filled: u64 = plan.filled.iter().map(|(run, _, _)| run.frames).sum();
        if goal.everything || goal.pages == PageSize::Small && !goal.spares_pages {
            return Ok(goal.everything || filled < emptied);
        }
        let mut left = self.used.clone();
        for entry in &plan.entries {
            if let Some(left) = left.get_mut(&entry.source.chunk()) {
                *left = left.saturating_sub(frames_of(entry));
            }
        }
        let mut new: HashSet<Chunk> = HashSet::new();
        for (run, _, _) in &plan.filled {
            let chunk = run.frame.chunk();
            *left.entry(chunk).or_insert(0) += run.frames;
            if !inner.allocator.holds_objects(&inner.medium, chunk)? {
                new.insert(chunk);
            }
        }
        let sources = plan.entries.iter().map(|entry| entry.source.chunk());
        let of_plans = inner.pages_of_plans();
        let has_gone = |chunk: &Chunk| {
            let is_empty = left.get(chunk).is_none_or(|&left| left == 0);
            is_empty && !is_pinned(&inner.medium, *chunk) && !of_plans.contains(chunk)
        };
        let gone = sources.filter(has_gone).collect::<HashSet<_>>().len();
        Ok(gone > new.len() || gone == new.len() && filled < emptied)
    }
}

/// How many of the candidates, which are ordered by what they hold, bring the ratio to its target, or else as low as
/// possible, as far as there is room.
fn choose_count(
    goal: &Goal,
    occupied: &Occupied,
    room: &Room,
    candidates: &[Candidate],
) -> Selection {
    let emptiest = choose_from(goal, occupied, room, candidates, 0);
    if !emptiest.lacks_room || emptiest.pages < occupied.pages {
        return emptiest;
    }
    // The emptiest may be those that the last cycle has filled in part: they are dense, so emptying them wins nothing,
    // and their free frames are the room that the others need.
    let later = 1..candidates.len().min(MOST_PASSED_OVER);
    let mut selections = later.map(|first| choose_from(goal, occupied, room, candidates, first));
    selections
        .find(|selection| selection.pages < occupied.pages)
        .unwrap_or(emptiest)
}

/// Chooses among the candidates from the first one on.
fn choose_from(
    goal: &Goal,
    occupied: &Occupied,
    room: &Room,
    candidates: &[Candidate],
    first: usize,
) -> Selection {
    let aimed = occupied.aimed_bytes(goal, room);
    let mut taken = Taken::new();
    let mut best = Selection::none(first, occupied);
    // The longest prefix that wins frames, though no page: it gives the next cycle more room.
    let mut stepping = best;
    for (index, candidate) in candidates[first.min(candidates.len())..].iter().enumerate() {
        if !goal.everything && best.pages as f64 * goal.pages.bytes() as f64 <= aimed {
            best.reached = true;
            break;
        }
        taken.add(candidate);
        let Needed { frames, units, .. } = taken.needed;
        let over = taken.emptied * FRAME_BYTES > goal.max_source_bytes || units > goal.max_units;
        if over && index > 0 {
            break;
        }
        if !taken.fits(room) {
            // If no page can be won at all, room would not help.
            best.lacks_room = match goal.pages {
                PageSize::Huge => occupied.pages > occupied.dense_frames.div_ceil(FRAMES_PER_CHUNK),
                PageSize::Small => true,
            };
            break;
        }
        let pages = taken.pages_left(goal, occupied);
        let selection = Selection {
            first,
            count: index + 1,
            pages,
            emptied_frames: taken.emptied,
            units,
            frames: frames + taken.plan_frames() + taken.closed_room,
            lacks_room: false,
            reached: false,
        };
        if pages < best.pages || goal.everything {
            best = selection;
        } else if best.count == 0 && pages == occupied.pages && frames < taken.emptied {
            stepping = selection;
        }
    }
    match best.count == 0 && best.lacks_room && !goal.everything {
        true => Selection {
            lacks_room: true,
            ..stepping
        },
        false => best,
    }
}

/// A prefix of the candidates, and what emptying it takes.
struct Taken {
    /// What the survivors fill.
    needed: Needed,
    candidates: u64,
    /// Frames that are emptied.
    emptied: u64,
    /// Free frames that are closed with the candidates.
    closed_room: u64,
    /// Entries of the plan.
    entries: u64,
}

impl Taken {
    const fn new() -> Self {
        Self {
            needed: Needed::new(),
            candidates: 0,
            emptied: 0,
            closed_room: 0,
            entries: 0,
        }
    }

    fn add(&mut self, candidate: &Candidate) {
        candidate.runs.iter().for_each(|run| self.needed.add(run));
        self.candidates += 1;
        self.emptied += candidate.frames;
        self.closed_room += candidate.free_frames();
        self.entries += candidate.runs.len() as u64;
    }

    /// Frames that the plan itself takes.
    fn plan_frames(&self) -> u64 {
        plan_bytes(self.entries, self.needed.units) / FRAME_BYTES
    }

    /// Whether there is room for the survivors and for the plan.
    fn fits(&self, room: &Room) -> bool {
        let plan = self.plan_frames();
        let there = room.frames.saturating_sub(self.closed_room) + room.growth;
        self.needed.frames + plan <= there && (plan <= room.longest || room.growth > 0)
    }

    /// Pages that will hold objects afterwards.
    fn pages_left(&self, goal: &Goal, occupied: &Occupied) -> u64 {
        let frames = self.needed.frames;
        match goal.pages {
            PageSize::Small => (occupied.pages + frames).saturating_sub(self.emptied),
            PageSize::Huge => {
                let room = occupied.free_frames.saturating_sub(self.closed_room);
                let new = frames.saturating_sub(room).div_ceil(FRAMES_PER_CHUNK);
                (occupied.pages + new).saturating_sub(self.candidates)
            }
        }
    }
}

/// The runs of pinned chunks that are emptied in addition, if the target is not reached without them: all together, and
/// only if they win room.
fn choose_pinned(
    goal: &Goal,
    occupied: &Occupied,
    selection: &Selection,
    pinned: &[Candidate],
) -> Vec<Run> {
    let page = goal.pages.bytes() as f64;
    if selection.lacks_room
        || selection.pages as f64 * page <= occupied.live_bytes as f64 * goal.target
    {
        return Vec::new();
    }
    let mut needed = Needed::new();
    let (mut runs, mut emptied) = (Vec::new(), 0);
    for run in pinned.iter().flat_map(|candidate| &candidate.runs) {
        let over = (selection.emptied_frames + emptied) * FRAME_BYTES > goal.max_source_bytes
            || selection.units + needed.units > goal.max_units;
        if over {
            break;
        }
        needed.add(run);
        emptied += run.what.frames();
        runs.push(*run);
    }
    if emptied < needed.frames + LEAST_ROOM {
        runs.clear();
    }
    runs
}
