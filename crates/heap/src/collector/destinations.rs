//! Where the survivors of a plan's sources go.

use core::cmp::Reverse;
use std::collections::HashSet;

use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, Frame};
use firn_format::plan::Entry;
use firn_media::{Medium, MediumExt, Scope};
use firn_units::FRAME_BYTES;

use super::summary::{Aim, Draft, Forwarding, LARGE, MAX_MOVED_FRAMES, PageSize, RUNS_AHEAD};
use crate::alloc::{Purpose, Run};
use crate::error::Error;
use crate::inner::Inner;
use crate::walk::data_chunks;
use crate::work;
use firn_format::geometry::FrameRun;

impl<M: Medium> Inner<M> {
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
