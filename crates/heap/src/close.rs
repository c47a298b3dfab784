//! Closing a pool, and giving its free space back.

use std::sync::atomic::Ordering;

use firn_format::geometry::{self, FIRST_DATA_CHUNK};
use firn_format::sealed::Seal;
use firn_format::statistics::{Counter, WORDS};
use firn_format::superblock::{OpenState, PoolKind};
use firn_media::{Medium, MediumExt};
use firn_units::CHUNK_BYTES;

use crate::error::Error;
use crate::pool::Inner;
use crate::superblock::write_superblock;
use crate::tally;

impl<M: Medium> Inner<M> {
    pub(crate) fn close(&self) -> Result<(), Error> {
        if !self.writable || self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let turn = self.end_open_cycle()?;
        let closed = self.stopped(|| {
            let mut lanes = self.lanes.lock(&self.medium);
            if lanes.free.len() != self.lane_count {
                return Err(Error::Busy { waited_ms: 0 });
            }
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
            // Any lane's ring will do: nothing is in flight.
            let Some((_, ring)) = lanes.free.last_mut() else {
                return Err(Error::Busy { waited_ms: 0 });
            };
            self.redo.retire(&self.medium, ring);
            for (_, ring) in &mut lanes.free {
                for run in ring.take_overflow() {
                    self.allocator.give_log(&self.medium, run);
                }
            }
            let exact = self.exact.load(Ordering::Acquire);
            if exact && self.kind == PoolKind::Traced {
                self.allocator.write_bitmaps(&self.medium)?;
            }
            self.allocator.write_tables(&self.medium);
            tally::fold(&self.medium);
            self.medium.fence();
            let mut superblock = self.superblock.lock(&self.medium);
            superblock.state = if exact {
                OpenState::Closed
            } else {
                OpenState::ClosedUntraced
            };
            self.medium.sync()?;
            write_superblock(&self.medium, &mut superblock);
            self.medium.sync().map_err(Error::from)
        })?;
        match closed {
            // Nothing is collected in a closed pool.
            Ok(()) => core::mem::forget(turn),
            Err(_) => self.closed.store(false, Ordering::Release),
        }
        closed
    }

    pub(crate) fn release_free_space(&self) -> Result<u64, Error> {
        if !self.writable {
            return Err(Error::ReadOnly);
        }
        let mut released = 0;
        let mut cursor = 0;
        loop {
            let durable = self.redo.known_durable();
            let runs = self
                .allocator
                .space()
                .lock(&self.medium)
                .take_punchable(&mut cursor, durable);
            if runs.is_empty() {
                break;
            }
            let mut outcome = Ok(());
            for run in runs {
                if outcome.is_ok() {
                    outcome = self.medium.discard(run.start(), run.bytes());
                }
                let gone = outcome.is_ok();
                released += if gone { run.bytes() } else { 0 };
                self.allocator.space().lock(&self.medium).punched(run, gone);
            }
            outcome?;
        }
        let mut change: Box<[i64; WORDS]> = Box::new([0; WORDS]);
        change[Counter::ReleasedBytes.word()] = released as i64;
        tally::add(&self.medium, &change);
        self.cut_end()?;
        Ok(released)
    }

    /// Gives free chunks at the end back. The length on media falls first, so that a crash between
    /// leaves a pool that is longer than it says, not shorter.
    fn cut_end(&self) -> Result<(), Error> {
        let mut space = self.allocator.space().lock(&self.medium);
        let end = space.used_len().max(FIRST_DATA_CHUNK * CHUNK_BYTES);
        if !space.knows_all(self.medium.len()) || end >= self.medium.len() {
            return Ok(());
        }
        self.medium
            .store_u64(geometry::LENGTH, Seal::Length.seal(end / CHUNK_BYTES));
        self.medium.persist(geometry::LENGTH, 8);
        space.truncate(end);
        Ok(self.medium.truncate(end)?)
    }
}

impl<M: Medium> Drop for Inner<M> {
    fn drop(&mut self) {
        // Best effort: a pool that cannot be closed here is recovered when it is opened next.
        if !std::thread::panicking() {
            let _ = self.close();
        }
    }
}
