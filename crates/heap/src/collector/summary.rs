//! The summary: which pages are emptied, and where everything in them goes (FFCCD sections 2.3.1, 3.3
//! and 5).
//!
//! Sources are the pages that hold least, as many as bring the ratio to its target, or as bring it
//! down at all; a cycle's share of them is capped, so that what is in flight is bounded. Survivors go
//! to fresh runs of their class, one behind the other, in the fullest pages that have room. Where huge
//! pages count, those that a large object pins cannot be emptied, but their sparse runs can: the next
//! cycle finds room there.

use std::collections::HashSet;

use firn_format::class::{CLASSES, Class};
use firn_format::geometry::Chunk;
use firn_format::plan::{Entry, plan_bytes};
use firn_format::statistics::Counter;
use firn_media::{Medium, MediumExt, Scope};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK};

use super::survey::{Candidate, Needed, Stand, Survey};
use crate::alloc::{GROUP_FRAMES, Room, Run};
use crate::error::Error;
use crate::inner::Inner;
use crate::relocation::plan::frames_of;
use crate::tx::redo::Ring;
use firn_format::geometry::FrameRun;

/// Largest object that moves, in frames. Larger ones pin their chunk: copying one would hold up
/// whoever touches it first.
pub(super) const MAX_MOVED_FRAMES: u64 = 256;
/// The place of large objects behind the classes.
pub(super) const LARGE: usize = CLASSES;
/// A chunk in which a plan leaves no more frames than this takes in no survivors, where there are so
/// many of them that the fresh ones that survivors need instead do not weigh.
const FEW_FRAMES: u64 = FRAMES_PER_CHUNK / 4;
const MANY_CHUNKS: usize = 8;
/// Runs of which the allocator's words are asked for ahead.
pub(super) const RUNS_AHEAD: usize = 12;
/// Candidates that are passed over at most, because others win more in the room that there is.
const MOST_PASSED_OVER: usize = 64;
/// Frames that emptying them must win.
const LEAST_ROOM: u64 = FRAMES_PER_CHUNK / 16;

/// Which pages count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PageSize {
    /// Pages of 4 KiB.
    Small,
    /// Huge pages of 2 MiB: sources are whole chunks, or nothing is won.
    #[default]
    Huge,
}

impl PageSize {
    /// Bytes of a page.
    pub const fn bytes(self) -> u64 {
        match self {
            PageSize::Small => FRAME_BYTES,
            PageSize::Huge => CHUNK_BYTES,
        }
    }

    /// Frames whose blocks are given back to the device together: a hole in a huge page makes small ones of
    /// it, and wins nothing where it is huge ones that count.
    pub(crate) const fn frames_together(self) -> u64 {
        match self {
            PageSize::Small => GROUP_FRAMES,
            PageSize::Huge => FRAMES_PER_CHUNK,
        }
    }
}

/// How many destinations a source page may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Forwarding {
    /// Two: survivors from the split on start the next page.
    #[default]
    Split,
    /// One, as FFCCD prints it (section 4.3.1): what does not fit whole starts a new page.
    OneDestination,
}

/// What a plan aims at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    pub(super) pages: PageSize,
    pub(super) everything: bool,
    /// Whether no more pages of 2 MiB may hold objects afterwards, whichever pages count.
    pub(super) spares_pages: bool,
    pub(super) target: f64,
    pub(super) forwarding: Forwarding,
    /// Bytes of source pages at most.
    pub(super) max_source_bytes: u64,
    /// Objects at most.
    pub(super) max_units: u64,
}

/// A chosen plan, before anything is written.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) entries: Vec<Entry>,
    /// Destination runs with the slots that are filled.
    pub(super) filled: Vec<(FrameRun, Option<Class>, u64)>,
    pub(super) units: u64,
    /// Runs that were closed. Those that found no room are open again.
    pub(super) closed: Vec<Run>,
}

impl Draft {
    /// Bytes of the slots that are filled.
    pub(super) fn filled_bytes(&self) -> u64 {
        let bytes = |(run, class, units): &(FrameRun, Option<Class>, u64)| match class {
            Some(class) => units * class.slot_bytes(),
            None => run.bytes(),
        };
        self.filled.iter().map(bytes).sum()
    }
}

/// The first so many candidates, and what emptying them comes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// The first of them.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Pages that hold objects afterwards.
    pages: u64,
    emptied_frames: u64,
    units: u64,
    /// Frames that it takes: those that survivors fill, and those of the plan.
    pub(super) frames: u64,
    /// Whether more was to be won, for which there is no room.
    pub(super) lacks_room: bool,
    /// Whether the pool is as it should be, or will be.
    pub(super) reached: bool,
}

impl<M: Medium> Inner<M> {
    /// The fragmentation ratio: bytes of pages that hold an object, over live bytes. One where
    /// nothing lives.
    pub(crate) fn ratio(&self, pages: PageSize) -> f64 {
        let sum = |counter: Counter| self.counter(counter).max(0) as f64;
        let used = match pages {
            PageSize::Small => sum(Counter::LiveFrames) * FRAME_BYTES as f64,
            PageSize::Huge => sum(Counter::LiveChunks) * CHUNK_BYTES as f64,
        };
        let live = sum(Counter::LiveBytes);
        if live == 0.0 { 1.0 } else { used / live }
    }

    /// Pages that hold objects.
    pub(super) fn footprint_pages(&self, pages: PageSize) -> i64 {
        match pages {
            PageSize::Small => self.counter(Counter::LiveFrames),
            PageSize::Huge => self.counter(Counter::LiveChunks),
        }
    }

    /// Looks at what may be emptied, the emptiest first.
    ///
    /// Errors: the frame table is damaged.
    pub(super) fn look(&self, aim: &Aim) -> Result<Survey, Error> {
        let medium = &self.medium;
        let _scope = medium.scope(Scope::Summary);
        self.allocator.look_at_all(medium)?;
        self.end_quarantine();
        let mut survey = self.survey(aim)?;
        // Runs that held nothing were given back.
        self.end_quarantine();
        let fullness = |c: &Candidate| c.filled * FRAMES_PER_CHUNK / c.frames.max(1);
        survey.candidates.sort_by_key(|c| (fullness(c), c.frames));
        Ok(survey)
    }

    /// How many of the first `most` candidates are emptied, as far as there is room for what is in them.
    ///
    /// Errors: the pool cannot grow for another reason than that there is no room.
    pub(super) fn choose(&self, aim: &Aim, survey: &Survey, most: usize) -> Result<Choice, Error> {
        let medium = &self.medium;
        let mut space = self.allocator.space().lock(medium);
        let candidates = &survey.candidates[..survey.candidates.len().min(most)];
        let room = space.room(medium);
        let choice = choose_count(aim, &survey.stand, &room, candidates);
        if choice.frames <= room.frames || room.growth == 0 {
            return Ok(choice);
        }
        // What the limit allows the device may not have: what is there counts.
        space.grow_for(medium, choice.frames)?;
        let grown = space.room(medium);
        let room = Room { growth: 0, ..grown };
        match choice.frames <= room.frames {
            true => Ok(choice),
            false => Ok(choose_count(aim, &survey.stand, &room, candidates)),
        }
    }

    /// The runs of a choice. Closes the chunks that are all but emptied: survivors shall not go there.
    pub(super) fn sources(&self, aim: &Aim, survey: &Survey, choice: &Choice) -> Vec<Run> {
        let mut used = survey.used.clone();
        let chosen = &survey.candidates[choice.first..choice.first + choice.count];
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
        let mut space = self.allocator.space().lock(&self.medium);
        closed.into_iter().for_each(|chunk| space.close(chunk));
        drop(space);
        runs.extend(choose_pinned(aim, &survey.stand, choice, &survey.pinned));
        runs
    }

    /// Whether a plan wins what it is made for: pages, or frames where pages stay as many. What it promised
    /// before its destinations were known, the holes of the pool may be too small to keep.
    ///
    /// Errors: the frame table is damaged.
    pub(super) fn wins(&self, aim: &Aim, survey: &Survey, draft: &Draft) -> Result<bool, Error> {
        let emptied: u64 = draft.entries.iter().map(frames_of).sum();
        let filled: u64 = draft.filled.iter().map(|(run, _, _)| run.frames).sum();
        if aim.everything || aim.pages == PageSize::Small && !aim.spares_pages {
            return Ok(aim.everything || filled < emptied);
        }
        let mut left = survey.used.clone();
        for entry in &draft.entries {
            if let Some(left) = left.get_mut(&entry.source.chunk()) {
                *left = left.saturating_sub(frames_of(entry));
            }
        }
        let mut new: HashSet<Chunk> = HashSet::new();
        for (run, _, _) in &draft.filled {
            let chunk = run.frame.chunk();
            *left.entry(chunk).or_insert(0) += run.frames;
            if !self.allocator.holds_objects(&self.medium, chunk)? {
                new.insert(chunk);
            }
        }
        let sources = draft.entries.iter().map(|entry| entry.source.chunk());
        let of_plans = self.pages_of_plans();
        let has_gone = |chunk: &Chunk| {
            let is_empty = left.get(chunk).is_none_or(|&left| left == 0);
            is_empty && !self.is_pinned(*chunk) && !of_plans.contains(chunk)
        };
        let gone = sources.filter(has_gone).collect::<HashSet<_>>().len();
        Ok(gone > new.len() || gone == new.len() && filled < emptied)
    }

    /// Freed frames wait for older homes to become durable: makes them so.
    fn end_quarantine(&self) {
        let medium = &self.medium;
        self.redo.settle_homes(medium, &mut Ring::default());
        let durable = self.redo.known_durable();
        self.allocator.space().lock(medium).end_quarantine(durable);
    }
}

/// How many of the candidates, which come by what they hold, bring the ratio to its target, or else
/// lowest, as far as there is room.
fn choose_count(aim: &Aim, stand: &Stand, room: &Room, candidates: &[Candidate]) -> Choice {
    let emptiest = choose_from(aim, stand, room, candidates, 0);
    if !emptiest.lacks_room || emptiest.pages < stand.pages {
        return emptiest;
    }
    // The emptiest may be those that the last cycle has filled in part: what is dense there wins nothing, and their
    // room is what the others need.
    let later = 1..candidates.len().min(MOST_PASSED_OVER);
    let mut choices = later.map(|first| choose_from(aim, stand, room, candidates, first));
    choices
        .find(|choice| choice.pages < stand.pages)
        .unwrap_or(emptiest)
}

/// Chooses among the candidates from the first one on.
fn choose_from(
    aim: &Aim,
    stand: &Stand,
    room: &Room,
    candidates: &[Candidate],
    first: usize,
) -> Choice {
    let page = aim.pages.bytes();
    let aimed = stand.aimed_bytes(aim, room);
    let mut needed = Needed::new();
    let (mut emptied, mut closed_room, mut entries) = (0u64, 0u64, 0u64);
    let mut best = Choice {
        first,
        count: 0,
        pages: stand.pages,
        emptied_frames: 0,
        units: 0,
        frames: 0,
        lacks_room: false,
        reached: false,
    };
    // The first so many that win frames, though no page: with these the next cycle has more room.
    let mut stepping = best;
    for (index, candidate) in candidates[first.min(candidates.len())..].iter().enumerate() {
        if !aim.everything && best.pages as f64 * page as f64 <= aimed {
            best.reached = true;
            break;
        }
        candidate.runs.iter().for_each(|run| needed.add(run));
        let Needed { frames, units, .. } = needed;
        emptied += candidate.frames;
        closed_room += candidate.free_frames();
        entries += candidate.runs.len() as u64;
        let over = emptied * FRAME_BYTES > aim.max_source_bytes || units > aim.max_units;
        if over && index > 0 {
            break;
        }
        let plan = plan_bytes(entries, units) / FRAME_BYTES;
        let there = room.frames.saturating_sub(closed_room) + room.growth;
        if frames + plan > there || plan > room.longest && room.growth == 0 {
            // If no page is to be won at all, room would not help.
            best.lacks_room = match aim.pages {
                PageSize::Huge => stand.pages > stand.dense_frames.div_ceil(FRAMES_PER_CHUNK),
                PageSize::Small => true,
            };
            break;
        }
        let pages = match aim.pages {
            PageSize::Small => (stand.pages + frames).saturating_sub(emptied),
            PageSize::Huge => {
                let room = stand.free_frames.saturating_sub(closed_room);
                let new = frames.saturating_sub(room).div_ceil(FRAMES_PER_CHUNK);
                (stand.pages + new).saturating_sub(index as u64 + 1)
            }
        };
        let choice = Choice {
            first,
            count: index + 1,
            pages,
            emptied_frames: emptied,
            units,
            frames: frames + plan + closed_room,
            lacks_room: false,
            reached: false,
        };
        if pages < best.pages || aim.everything {
            best = choice;
        } else if best.count == 0 && pages == stand.pages && frames < emptied {
            stepping = choice;
        }
    }
    match best.count == 0 && best.lacks_room && !aim.everything {
        true => Choice {
            lacks_room: true,
            ..stepping
        },
        false => best,
    }
}

/// The runs of pinned chunks that are emptied besides, if the target is not reached without: only
/// together, and only if they win room.
fn choose_pinned(aim: &Aim, stand: &Stand, choice: &Choice, pinned: &[Candidate]) -> Vec<Run> {
    let page = aim.pages.bytes() as f64;
    if choice.lacks_room || choice.pages as f64 * page <= stand.live_bytes as f64 * aim.target {
        return Vec::new();
    }
    let mut needed = Needed::new();
    let (mut runs, mut emptied) = (Vec::new(), 0);
    for run in pinned.iter().flat_map(|candidate| &candidate.runs) {
        let over = (choice.emptied_frames + emptied) * FRAME_BYTES > aim.max_source_bytes
            || choice.units + needed.units > aim.max_units;
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
