//! The destinations of the survivors of a plan's sources.

use core::cmp::Reverse;
use std::collections::HashSet;

use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, Frame};
use firn_format::plan::Entry;
use firn_media::{Medium, MediumExt, Scope};
use firn_units::FRAME_BYTES;

use super::compaction_plan::{CompactionPlan, RUNS_AHEAD};
use super::options::{Forwarding, Goal, PageSize};
use super::survey::{LARGE, MAX_MOVED_FRAMES, is_pinned};
use crate::alloc::{Purpose, Run};
use crate::error::Error;
use crate::inner::Inner;
use crate::walk::data_chunks;
use crate::work;
use firn_format::geometry::FrameRun;

impl CompactionPlan {
    /// Takes and marks destination runs for the survivors of the closed sources. Sources whose survivors do not fit
    /// into the pool are left out, and are open again.
    ///
    /// Errors: the frame table is damaged.
    pub(super) fn place_survivors<M: Medium>(
        &mut self,
        inner: &Inner<M>,
        goal: &Goal,
    ) -> Result<(), Error> {
        let medium = &inner.medium;
        let mut sources = self.closed.clone();
        let _scope = medium.scope(Scope::Summary);
        // Long runs first: short ones fit into the gaps between them.
        sources.sort_by_cached_key(plan_order);
        let mut rooms = Rooms::of(inner)?;
        for (i, run) in sources.iter().enumerate() {
            if let Some(soon) = sources.get(i + RUNS_AHEAD) {
                inner.allocator.expect(medium, soon.frame.start());
            }
            let survivors = inner.allocator.used_slots(medium, run);
            let mut entry = Entry {
                source: run.frame,
                class: run.class(),
                first: Frame(0),
                first_slot: 0,
                split: 0,
                second: Frame(0),
                unit: self.units,
                survivors,
            };
            let count = entry.count();
            medium.work(work::PLANNED_RUN);
            let placed = self.place(inner, goal, run, count, &mut entry, &mut rooms);
            match placed {
                Ok(()) => {
                    self.units += count;
                    self.entries.push(entry);
                }
                Err(error) if error.is_no_room() => {
                    let stamp = inner.redo.counter();
                    inner.allocator.reopen_run(medium, run, stamp)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Finds room for `count` survivors of a run.
    fn place<M: Medium>(
        &mut self,
        inner: &Inner<M>,
        goal: &Goal,
        run: &Run,
        count: u64,
        entry: &mut Entry,
        rooms: &mut Rooms,
    ) -> Result<(), Error> {
        let Some(class) = run.class() else {
            let frames = run.what.frames();
            entry.split = frames;
            if count > 0 {
                let taken = rooms.take(inner, goal, run.what)?;
                entry.first = taken.frame;
                self.filled.push((taken, None, 1));
            }
            return Ok(());
        };
        let slots = class.slots();
        let last = self.filled.last().filter(|(_, of, _)| *of == Some(class));
        let used = last.map_or(slots, |(_, _, used)| *used);
        let mut left = slots - used;
        if goal.forwarding == Forwarding::OneDestination && count > left {
            left = 0;
        }
        let here = count.min(left);
        if here > 0
            && let Some((first, _, used)) = self.filled.last_mut()
        {
            (entry.first, entry.first_slot, entry.split) = (first.frame, *used, here);
            *used += here;
        }
        let rest = count - here;
        if rest > 0 {
            let taken = match rooms.take(inner, goal, run.what) {
                Ok(taken) => taken,
                Err(error) => {
                    if here > 0
                        && let Some((_, _, used)) = self.filled.last_mut()
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
            self.filled.push((taken, Some(class), rest));
        }
        Ok(())
    }
}

/// The position of a source in a plan, by its length, class and address: one word, for a single comparison.
fn plan_order(run: &Run) -> u64 {
    let shortness = MAX_MOVED_FRAMES.saturating_sub(run.what.frames());
    let class = run.class().map_or(LARGE, Class::index) as u64;
    shortness << 56 | class << 48 | run.frame.0
}
const _: () = assert!(MAX_MOVED_FRAMES <= 1 << 8 && LARGE < 1 << 8);
const _: () = assert!(firn_format::geometry::MAX_POOL_BYTES / FRAME_BYTES <= 1 << 48);

/// Chunks from which destinations are taken, the next one last.
struct Rooms {
    chunks: Vec<Chunk>,
}

impl Rooms {
    /// Takes a destination run and marks it on media.
    fn take<M: Medium>(
        &mut self,
        inner: &Inner<M>,
        goal: &Goal,
        what: FrameUse,
    ) -> Result<FrameRun, Error> {
        let medium = &inner.medium;
        let frames = what.frames();
        for place in (0..self.chunks.len()).rev() {
            let chunk = self.chunks[place];
            let mut space = inner.allocator.space().lock(medium);
            let taken = space.take_in(medium, chunk, frames)?;
            let full = space.free_frames(chunk) == 0;
            drop(space);
            if full {
                self.chunks.remove(place);
            }
            if let Some(run) = taken {
                inner.allocator.reserve_run(medium, run, what)?;
                return Ok(run);
            }
        }
        let take = || {
            let durable = inner.redo.known_durable();
            inner
                .allocator
                .take_frames(medium, frames, Purpose::Collection, durable)
        };
        let run = match take() {
            // Holes in almost emptied pages are better than no room.
            Err(error) if error.is_no_room() && goal.pages == PageSize::Small => {
                inner.allocator.space().lock(medium).open_all();
                take()?
            }
            taken => taken?,
        };
        inner.allocator.reserve_run(medium, run, what)?;
        let chunk = run.frame.chunk();
        if !self.chunks.contains(&chunk) {
            self.chunks.push(chunk);
        }
        Ok(run)
    }

    /// The chunks with room that hold objects and are no sources, the fullest last. Behind them come the chunks that
    /// stay in any case, because something in them never moves.
    fn of<M: Medium>(inner: &Inner<M>) -> Result<Self, Error> {
        let medium = &inner.medium;
        let mut chunks: Vec<(bool, Reverse<u64>, Chunk)> = Vec::new();
        let fixed = inner.collector.pinned.lock(medium).clone();
        let mut fixed: HashSet<Chunk> = fixed.iter().map(|frame| frame.chunk()).collect();
        fixed.extend(inner.pages_of_plans());
        let space = inner.allocator.space().lock(medium);
        for chunk in data_chunks(medium.len()) {
            let free = space.free_frames(chunk);
            if free > 0 && inner.allocator.holds_objects(medium, chunk)? {
                let stays = fixed.contains(&chunk) || is_pinned(medium, chunk);
                chunks.push((stays, Reverse(free), chunk));
            }
        }
        chunks.sort_unstable();
        Ok(Self {
            chunks: chunks.into_iter().map(|(_, _, chunk)| chunk).collect(),
        })
    }
}
