//! The summary: which pages are emptied, and where everything in them goes (FFCCD sections 2.3.1, 3.3
//! and 5).
//!
//! Sources are the pages that hold least, as many as bring the ratio to its target, or as bring it
//! down at all; a cycle's share of them is capped, so that what is in flight is bounded. Survivors go
//! to fresh runs of their class, one behind the other, in the fullest pages that have room. Where huge
//! pages count, those that a large object pins cannot be emptied, but their sparse runs can: the next
//! cycle finds room there.

use core::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use firn_format::class::{CLASSES, Class};
use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, Frame};
use firn_format::plan::{Entry, plan_bytes};
use firn_format::statistics::Counter;
use firn_media::{Medium, MediumExt, Scope};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK};

use super::cycle::frames_of;
use crate::alloc::{FrameRun, GROUP_FRAMES, Purpose, Room, Run};
use crate::error::Error;
use crate::inner::Inner;
use crate::tx::redo::Ring;
use crate::walk::data_chunks;
use crate::work;

/// Largest object that moves, in frames. Larger ones pin their chunk: copying one would hold up
/// whoever touches it first.
const MAX_MOVED_FRAMES: u64 = 256;
const LARGE: usize = CLASSES;
/// Runs of a pinned chunk that hold at most this share of what they could are emptied, in percent.
const SPARSE_PERCENT: u64 = 75;
/// A chunk in which a plan leaves no more frames than this takes in no survivors, where there are so
/// many of them that the fresh ones that survivors need instead do not weigh.
const FEW_FRAMES: u64 = FRAMES_PER_CHUNK / 4;
const MANY_CHUNKS: usize = 8;
/// Runs of which the allocator's words are asked for ahead.
pub(super) const RUNS_AHEAD: usize = 12;
/// In a pool that cannot grow as it likes, what pages waste is at most this part of what is left of it.
const SHARE_LEFT: f64 = 16.0;
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

/// Runs that are emptied together: those of a chunk, or one alone.
#[derive(Clone)]
pub(super) struct Candidate {
    runs: Vec<Run>,
    /// Bytes that its survivors fill.
    filled: u64,
    frames: u64,
}

impl Candidate {
    fn alone(run: Run) -> Self {
        Self {
            filled: filled_bytes(&run),
            frames: run.what.frames(),
            runs: vec![run],
        }
    }

    fn is_sparse(&self) -> bool {
        self.filled * 100 <= self.frames * FRAME_BYTES * SPARSE_PERCENT
    }

    /// Free frames that are closed with it.
    fn free_frames(&self) -> u64 {
        let used: u64 = self.runs.iter().map(|run| run.what.frames()).sum();
        self.frames.saturating_sub(used)
    }
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

/// What may be emptied, and where the pool stands.
pub(super) struct Survey {
    pub(super) stand: Stand,
    /// Frames that hold objects, chunk by chunk.
    used: HashMap<Chunk, u64>,
    /// The emptiest first.
    pub(super) candidates: Vec<Candidate>,
    /// Sparse runs of chunks that a large object pins; each is a candidate of its own.
    pinned: Vec<Candidate>,
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

/// Where the pool stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stand {
    /// Pages that hold objects.
    pages: u64,
    /// Frames that objects fill where they are densest.
    dense_frames: u64,
    /// Bytes of the objects as the program requested them.
    live_bytes: u64,
    /// Free frames in pages that hold objects.
    free_frames: u64,
    /// Bytes that objects hold which never move: those that are too large.
    pub(super) large_bytes: u64,
    /// Bytes of runs that the program has pinned.
    pub(super) pinned_bytes: u64,
}

impl Survey {
    /// This survey with the sparse runs of pages as candidates, each alone.
    pub(super) fn in_frames(mut self) -> Self {
        let pages = core::mem::take(&mut self.candidates).into_iter();
        let runs = pages.flat_map(|page| page.runs).map(Candidate::alone);
        self.candidates = runs.filter(Candidate::is_sparse).collect();
        self.stand.pages = self.used.values().sum();
        self.pinned.clear();
        self
    }
}

impl Stand {
    /// Bytes of pages at which a collection is content: what its target says, and in a pool that cannot grow as
    /// it likes no more than leaves fifteen sixteenths of what it has left to be used.
    fn aimed_bytes(&self, aim: &Aim, room: &Room) -> f64 {
        let aimed = self.live_bytes as f64 * aim.target;
        let Some(most) = room.most else { return aimed };
        let (dense, most) = (self.dense_frames as f64, most as f64);
        // The frames of pages, so that what they lack in density is such a share of the others.
        let pages = (dense * SHARE_LEFT + most) / (SHARE_LEFT + 1.0);
        aimed.min(pages.max(dense) * FRAME_BYTES as f64)
    }
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

    fn survey(&self, aim: &Aim) -> Result<Survey, Error> {
        let medium = &self.medium;
        let mut stand = Stand {
            live_bytes: self.counter(Counter::LiveBytes).max(0) as u64,
            ..Stand::default()
        };
        let fixed = self.collector.pinned.lock(medium).clone();
        let may_move = |run: &Run| may_move(run) && !fixed.contains(&run.frame);
        let of_plans = self.pages_of_plans();
        let mut used = HashMap::new();
        let mut dense = Needed::new();
        let (mut candidates, mut pinned) = (Vec::new(), Vec::new());
        for chunk in data_chunks(medium.len()) {
            let mut runs = self.allocator.runs_of(medium, chunk)?;
            for run in runs.extract_if(.., |run| run.used == 0) {
                self.allocator
                    .give_empty(medium, &run, self.redo.counter())?;
            }
            let is_pinned = self.is_pinned(chunk);
            if runs.is_empty() && !is_pinned {
                continue;
            }
            let stays = is_pinned || of_plans.contains(&chunk) || !runs.iter().all(&may_move);
            for run in &runs {
                dense.add(run);
                let bytes = run.what.frames() * FRAME_BYTES;
                match self::may_move(run) {
                    false => stand.large_bytes += bytes,
                    true if fixed.contains(&run.frame) => stand.pinned_bytes += bytes,
                    true => {}
                }
            }
            let mut space = self.allocator.space().lock(medium);
            if !stays {
                space.set_aside_no_more(chunk);
            }
            let free = space.free_frames(chunk);
            drop(space);
            stand.free_frames += free;
            let frames = runs.iter().map(|run| run.what.frames());
            used.insert(chunk, frames.sum());
            match aim.pages {
                PageSize::Huge => {
                    stand.pages += 1;
                    let whole = runs.iter().map(|run| run.what.frames()).sum::<u64>() + free;
                    if !stays {
                        let filled = runs.iter().map(filled_bytes).sum();
                        candidates.push(Candidate {
                            runs,
                            filled,
                            frames: whole.min(FRAMES_PER_CHUNK),
                        });
                    } else if !self.keeps_addresses {
                        // What is emptied there is room for others, unless its addresses stay.
                        let alone = runs.into_iter().filter(&may_move).map(Candidate::alone);
                        pinned.extend(alone.filter(Candidate::is_sparse));
                    }
                }
                PageSize::Small => {
                    for run in runs {
                        stand.pages += run.what.frames();
                        let slots = run.class().map_or(1, Class::slots);
                        let wins = run.used < slots && !fixed.contains(&run.frame);
                        if wins || aim.everything && may_move(&run) {
                            candidates.push(Candidate::alone(run));
                        }
                    }
                }
            }
        }
        stand.dense_frames = dense.frames;
        Ok(Survey {
            stand,
            used,
            candidates,
            pinned,
        })
    }

    /// Whether a large object from an earlier chunk reaches into this one.
    fn is_pinned(&self, chunk: Chunk) -> bool {
        let first = chunk.first_frame();
        let word = self.medium.load_u64(first.word_at());
        matches!(
            FrameUse::from_word(word, first.word_at()),
            Ok(FrameUse::Tail { .. }) | Err(_)
        )
    }

    /// Where the survivors of the closed sources go: takes and marks the destination runs. What does not
    /// fit into the pool is left out, and its sources are open again.
    ///
    /// Errors: the frame table is damaged.
    pub(super) fn plan(&self, aim: &Aim, draft: &mut Draft) -> Result<(), Error> {
        let medium = &self.medium;
        let mut sources = draft.closed.clone();
        let _scope = medium.scope(Scope::Summary);
        // Long runs first: what is left between them has room for the short ones.
        sources.sort_by_cached_key(plan_order);
        let mut rooms = self.rooms()?;
        for (i, run) in sources.iter().enumerate() {
            if let Some(soon) = sources.get(i + RUNS_AHEAD) {
                self.allocator.expect(medium, soon.frame.start());
            }
            let survivors = self.allocator.used_slots(medium, run);
            let mut entry = Entry {
                source: run.frame,
                class: run.class(),
                first: Frame(0),
                first_slot: 0,
                split: 0,
                second: Frame(0),
                unit: draft.units,
                survivors,
            };
            let count = entry.count();
            medium.work(work::PLANNED_RUN);
            let placed = self.place(aim, run, count, &mut entry, draft, &mut rooms);
            match placed {
                Ok(()) => {
                    draft.units += count;
                    draft.entries.push(entry);
                }
                Err(error) if error.is_no_room() => {
                    let stamp = self.redo.counter();
                    self.allocator.reopen_run(medium, run, stamp)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Finds room for `count` survivors of a run.
    fn place(
        &self,
        aim: &Aim,
        run: &Run,
        count: u64,
        entry: &mut Entry,
        draft: &mut Draft,
        rooms: &mut Rooms,
    ) -> Result<(), Error> {
        let Some(class) = run.class() else {
            let frames = run.what.frames();
            entry.split = frames;
            if count > 0 {
                let taken = self.take_room(aim, run.what, rooms)?;
                entry.first = taken.frame;
                draft.filled.push((taken, None, 1));
            }
            return Ok(());
        };
        let slots = class.slots();
        let last = draft.filled.last().filter(|(_, of, _)| *of == Some(class));
        let used = last.map_or(slots, |(_, _, used)| *used);
        let mut left = slots - used;
        if aim.forwarding == Forwarding::OneDestination && count > left {
            left = 0;
        }
        let here = count.min(left);
        if here > 0
            && let Some((first, _, used)) = draft.filled.last_mut()
        {
            (entry.first, entry.first_slot, entry.split) = (first.frame, *used, here);
            *used += here;
        }
        let rest = count - here;
        if rest > 0 {
            let taken = match self.take_room(aim, run.what, rooms) {
                Ok(taken) => taken,
                Err(error) => {
                    if here > 0
                        && let Some((_, _, used)) = draft.filled.last_mut()
                    {
                        *used -= here;
                    }
                    return Err(error);
                }
            };
            if here > 0 {
                entry.second = taken.frame;
            } else {
                (entry.first, entry.first_slot, entry.split) = (taken.frame, 0, rest);
            }
            draft.filled.push((taken, Some(class), rest));
        }
        Ok(())
    }

    /// Takes a destination run and says on media that it is one.
    fn take_room(&self, aim: &Aim, what: FrameUse, rooms: &mut Rooms) -> Result<FrameRun, Error> {
        let medium = &self.medium;
        let frames = what.frames();
        for place in (0..rooms.chunks.len()).rev() {
            let chunk = rooms.chunks[place];
            let mut space = self.allocator.space().lock(medium);
            let taken = space.take_in(medium, chunk, frames)?;
            let full = space.free_frames(chunk) == 0;
            drop(space);
            if full {
                rooms.chunks.remove(place);
            }
            if let Some(run) = taken {
                self.allocator.reserve_run(medium, run, what)?;
                return Ok(run);
            }
        }
        let take = || {
            let durable = self.redo.known_durable();
            self.allocator
                .take_frames(medium, frames, Purpose::Collection, durable)
        };
        let run = match take() {
            // Rather holes in pages that are all but emptied than none.
            Err(error) if error.is_no_room() && aim.pages == PageSize::Small => {
                self.allocator.space().lock(medium).open_all();
                take()?
            }
            taken => taken?,
        };
        self.allocator.reserve_run(medium, run, what)?;
        let chunk = run.frame.chunk();
        if !rooms.chunks.contains(&chunk) {
            rooms.chunks.push(chunk);
        }
        Ok(run)
    }

    /// The chunks with room that hold objects and are no sources, the fullest last; behind them those that
    /// stay whatever is done, because something in them never moves.
    fn rooms(&self) -> Result<Rooms, Error> {
        let medium = &self.medium;
        let mut chunks: Vec<(bool, Reverse<u64>, Chunk)> = Vec::new();
        let fixed = self.collector.pinned.lock(medium).clone();
        let mut fixed: HashSet<Chunk> = fixed.iter().map(|frame| frame.chunk()).collect();
        fixed.extend(self.pages_of_plans());
        let space = self.allocator.space().lock(medium);
        for chunk in data_chunks(medium.len()) {
            let free = space.free_frames(chunk);
            if free > 0 && self.allocator.holds_objects(medium, chunk)? {
                let stays = fixed.contains(&chunk) || self.is_pinned(chunk);
                chunks.push((stays, Reverse(free), chunk));
            }
        }
        chunks.sort_unstable();
        Ok(Rooms {
            chunks: chunks.into_iter().map(|(_, _, chunk)| chunk).collect(),
        })
    }
}

/// Where a source comes in a plan: by its length, its class and its address, in one word that is
/// compared at once.
fn plan_order(run: &Run) -> u64 {
    let shortness = MAX_MOVED_FRAMES.saturating_sub(run.what.frames());
    let class = run.class().map_or(LARGE, Class::index) as u64;
    shortness << 56 | class << 48 | run.frame.0
}
const _: () = assert!(MAX_MOVED_FRAMES <= 1 << 8 && LARGE < 1 << 8);
const _: () = assert!(firn_format::geometry::MAX_POOL_BYTES / FRAME_BYTES <= 1 << 48);

/// Chunks that destinations are taken from, the next one last.
struct Rooms {
    chunks: Vec<Chunk>,
}

fn may_move(run: &Run) -> bool {
    run.what.frames() <= MAX_MOVED_FRAMES
}

fn filled_bytes(run: &Run) -> u64 {
    match run.class() {
        Some(class) => run.used * class.slot_bytes(),
        None => run.what.frames() * FRAME_BYTES,
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

/// Frames that the survivors of sources need.
struct Needed {
    slots: [u64; CLASSES + 1],
    frames: u64,
    units: u64,
}

impl Needed {
    const fn new() -> Self {
        Self {
            slots: [0; CLASSES + 1],
            frames: 0,
            units: 0,
        }
    }

    fn add(&mut self, run: &Run) {
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

/// Frames that so many slots of a class fill; for large objects, frames themselves.
fn frames_for(class: usize, slots: u64) -> u64 {
    match Class::from_index(class) {
        Some(class) => slots.div_ceil(class.slots()) * class.frames(),
        None => slots,
    }
}
