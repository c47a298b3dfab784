//! Closing a pool, and giving its free space back.

use std::sync::atomic::Ordering;

use firn_format::geometry::{self, Chunk, FIRST_DATA_CHUNK};
use firn_format::sealed::Seal;
use firn_format::statistics::{Counter, WORDS};
use firn_format::superblock::{OpenState, PoolKind};
use firn_media::{Domain, Medium, MediumExt};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, WORD_BYTES};

use crate::alloc::Space;
use crate::collector::PageSize;
use crate::walk::data_chunks;
use firn_format::geometry::FrameRun;

use crate::error::Error;
use crate::inner::Inner;
use crate::stat_shard;
use crate::steps;
use crate::superblock::write_superblock;
use crate::tx::redo::Ring;

/// The result of discarding some runs.
pub(crate) struct Discarded {
    /// How many of the runs, from the first on, have no blocks any more.
    pub(crate) runs: usize,
    pub(crate) bytes: u64,
    pub(crate) outcome: Result<(), Error>,
}

impl<M: Medium> Inner<M> {
    pub(crate) fn close(&self) -> Result<(), Error> {
        if !self.writable || self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.check_usable()?;
        let _only = self.without_collector()?;
        let closed = self.stopped(|| {
            let mut lanes = self.lanes.lock(&self.medium);
            let open = self.lane_count - lanes.free.len();
            if open > 0 {
                return Err(Error::SessionsOpen { open });
            }
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
            // Any lane's ring will do: nothing is in flight.
            let Some((_, ring)) = lanes.free.last_mut() else {
                return Err(Error::SessionsOpen { open });
            };
            self.redo.retire(&self.medium, ring);
            self.drop_forwarding()?;
            self.end_logs();
            // The frames that logs had beyond the limit.
            self.cut_end(|space| space.len_within_limit())?;
            let exact = self.exact.load(Ordering::Acquire);
            if exact && self.kind == PoolKind::Traced {
                self.allocator.write_bitmaps(&self.medium)?;
            }
            self.allocator.write_tables(&self.medium);
            stat_shard::fold(&self.medium, self.lane_count);
            self.medium.fence();
            let mut superblock = self.superblock.lock(&self.medium);
            superblock.state = if exact {
                OpenState::Closed
            } else {
                OpenState::ClosedUntraced
            };
            if self.medium.keeps(&steps::CLOSING_SYNC) {
                self.medium.sync()?;
            }
            write_superblock(&self.medium, &mut superblock);
            self.medium.sync()?;
            // The pool is whole now: a new one gets its name, by which it was not found before.
            self.medium.publish().map_err(Error::from)
        })?;
        if closed.is_err() {
            self.closed.store(false, Ordering::Release);
        }
        closed
    }

    pub(crate) fn release_free_space(&self, pages: PageSize) -> Result<u64, Error> {
        if !self.writable {
            return Err(Error::ReadOnly);
        }
        self.check_usable()?;
        // A run of a few pages without objects could hold the blocks of a whole piece of the device.
        for chunk in data_chunks(self.medium.len()) {
            for run in self.allocator.runs_of(&self.medium, chunk)? {
                let stamp = self.redo.counter();
                self.allocator.list_empty(&self.medium, &run)?;
                self.allocator.give_empty(&self.medium, &run, stamp)?;
            }
        }
        // Freed frames wait until older homes are durable: settle them.
        self.redo.settle_homes(&self.medium, &mut Ring::default());
        let mut released = 0;
        let mut cursor = 0;
        loop {
            let durable = self.redo.known_durable();
            let runs = self.allocator.space().lock(&self.medium).take_punchable(
                &mut cursor,
                self.frames_given_back(pages),
                durable,
            );
            if runs.is_empty() {
                break;
            }
            let discarded = self.discard(&runs);
            released += discarded.bytes;
            let mut space = self.allocator.space().lock(&self.medium);
            for (index, &run) in runs.iter().enumerate() {
                space.punched(run, index < discarded.runs);
            }
            drop(space);
            discarded.outcome?;
        }
        released += self.release_retained(pages, false)?;
        let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
        change[Counter::ReleasedBytes.word()] = released as i64;
        stat_shard::add(&self.medium, &change);
        self.cut_end(|_| 0)?;
        Ok(released)
    }

    /// Frames whose blocks are given back together: the pages that count, or at least what the medium gives back at
    /// once.
    pub(crate) fn frames_given_back(&self, pages: PageSize) -> u64 {
        let at_once = self.medium.discard_bytes() / FRAME_BYTES;
        pages.frames_together().max(at_once)
    }

    /// Makes durable that recovery finds no mention of these runs, whose blocks will go: one fence.
    ///
    /// When free frames were given back, their words were stored without a fence: with an older word, a crash would
    /// leave a run in use without blocks, and objects would be stored there. Also, they were given back once older LSNs
    /// were known to be durable at home (A2), not once media says so: recovery would carry out the entries of these
    /// LSNs again. Words of sources stay as they are.
    fn forget_durably(&self, runs: &[FrameRun]) {
        if runs.is_empty() {
            return;
        }
        let medium = &self.medium;
        for run in runs {
            // The words of a chunk's frames are contiguous, and no run is in two chunks.
            let (words, len) = (run.frame.word_at(), run.frames * WORD_BYTES);
            medium.write_back_for(&steps::FREED_WORDS_WRITE_BACK, words, len);
        }
        let hidden = self.redo.publish_durable(medium);
        medium.fence_for(&steps::HOLES_FENCE);
        if let Some(known) = hidden {
            self.redo.hidden(known);
        }
    }

    /// Discards unused runs one after the other. After its return they may be used again: the hole is durable by then,
    /// or else a crash could bring the old content back over later stores.
    pub(crate) fn discard(&self, runs: &[FrameRun]) -> Discarded {
        let mut discarded = Discarded {
            runs: 0,
            bytes: 0,
            outcome: Ok(()),
        };
        self.forget_durably(runs);
        for run in runs {
            if let Err(error) = self.medium.discard(run.start(), run.bytes()) {
                discarded.outcome = Err(error.into());
                break;
            }
            discarded.runs += 1;
            discarded.bytes += run.bytes();
        }
        // The death of the process does not undo the holes, and a log keeps them in order with later stores.
        if discarded.runs > 0
            && matches!(self.medium.domain(), Domain::Adr | Domain::Eadr)
            && let Err(error) = self.medium.sync()
        {
            discarded.outcome = Err(error.into());
        }
        discarded
    }

    /// Gives free chunks at the end of the pool back, but keeps at least the first `kept` bytes. The length on media is
    /// lowered first, so a crash in between leaves a pool longer than its recorded length, not shorter.
    fn cut_end(&self, kept: impl FnOnce(&Space) -> u64) -> Result<(), Error> {
        let mut space = self.allocator.space().lock(&self.medium);
        let kept = kept(&space).max(FIRST_DATA_CHUNK * CHUNK_BYTES);
        let end = space.used_len().max(kept);
        if !space.knows_all(self.medium.len()) || end >= self.medium.len() {
            return Ok(());
        }
        let chunks = (end / CHUNK_BYTES..self.medium.len() / CHUNK_BYTES).map(Chunk);
        let runs = chunks
            .filter(|chunk| chunk.is_data())
            .map(|chunk| FrameRun {
                frame: chunk.first_frame(),
                frames: FRAMES_PER_CHUNK,
            });
        self.forget_durably(&runs.collect::<Vec<_>>());
        self.medium
            .store_u64(geometry::LENGTH, Seal::Length.seal(end / CHUNK_BYTES));
        self.medium.persist(geometry::LENGTH, 8);
        space.truncate(end);
        Ok(self.medium.truncate(end)?)
    }
}

impl<M: Medium> Drop for Inner<M> {
    fn drop(&mut self) {
        // Best effort: a pool that cannot be closed here is recovered at the next open.
        if !std::thread::panicking() {
            let _ = self.close();
        }
    }
}
