//! Space: what is reserved, discarded or cut is a record, and the file changes when the log is home that far.

use core::ops::Range;
use std::io;
use std::sync::{MutexGuard, PoisonError};

use firn_format::log::Record;
use firn_format::statistics::{ALL_BLOCKS, LOG_FIGURES};
use firn_media::MediumError;

use super::pages::Pages;
use super::{Covered, Logged, recovery};
use crate::MappedError;
use crate::beside::UNPUBLISHED;
use crate::window::FileMapping;

impl Logged {
    /// Makes the log of a new pool.
    pub(crate) fn begin(&self, on: &impl Pages, identity: [u8; 16]) -> Result<(), MediumError> {
        let file = on.file();
        let begun = recovery::begin(file, identity, UNPUBLISHED, on.randomness(), &self.options);
        let started = begun.and_then(|(log, log_file)| self.start(on, log, log_file));
        started.map_err(|refused| match refused {
            MappedError::Space(refused) => refused,
            other => on.io("making the log", io::Error::other(other)),
        })?;
        self.reserve(on, LOG_FIGURES)
    }

    /// Blocks are allocated at once, so that words never lack one on their way home.
    pub(crate) fn reserve(&self, on: &impl Pages, range: Range<u64>) -> Result<(), MediumError> {
        let mut since = self.lock_since();
        let old = on.bytes();
        on.allocate(range.clone())?;
        self.share_statistics(on, old)?;
        self.uncover(on, &range)?;
        since.len = on.bytes();
        since.reserved.insert(range.clone());
        self.append(&Record::Reserve(range));
        Ok(())
    }

    /// Shares the pages of the statistics with the file, as far as they came to be when the medium grew from `old` bytes.
    ///
    /// Their blocks are reserved before anybody stores to them, like all others. On a file system on which that is not
    /// enough they are not shared.
    pub(crate) fn share_statistics(&self, on: &impl Pages, old: u64) -> Result<(), MediumError> {
        let new = ALL_BLOCKS.start.max(old)..ALL_BLOCKS.end.min(on.bytes());
        if !self.shares_statistics || new.is_empty() {
            return Ok(());
        }
        let file = on.file();
        let shared = FileMapping {
            writable: true,
            dax: false,
            private: false,
        };
        let mapped = on.window().map_file(new, &file.file, shared);
        mapped.map_err(|e| on.io("sharing the statistics", e))
    }

    /// The blocks go when the log is home that far.
    pub(crate) fn discard(&self, on: &impl Pages, range: Range<u64>) -> Result<(), MediumError> {
        let mut since = self.lock_since();
        let range = range.start.min(on.bytes())..range.end.min(on.bytes());
        if range.is_empty() {
            return Ok(());
        }
        self.cover(on, &range)?;
        since.reserved.remove(range.clone());
        self.append(&Record::Discard(range));
        Ok(())
    }

    pub(crate) fn truncate(&self, on: &impl Pages, len: u64) -> Result<(), MediumError> {
        let mut since = self.lock_since();
        let old = on.bytes();
        if len >= old {
            return Ok(());
        }
        on.set_bytes(len);
        self.cover(on, &(len..old))?;
        since.len = len;
        since.reserved.remove(len..u64::MAX);
        self.append(&Record::Truncate(len));
        Ok(())
    }

    /// Brings everything up to now home. When a pool is opened this makes its file say so before anything is
    /// acknowledged: without its log it is refused from then on.
    pub(crate) fn sync(&self, on: &impl Pages) -> Result<(), MediumError> {
        self.fence(on);
        self.bring_all_home().map_err(|failed| failed.of(on))
    }

    /// Brings a new pool home and gives it its name.
    pub(crate) fn publish(&self, on: &impl Pages) -> Result<(), MediumError> {
        if !on.file().is_draft() {
            return Ok(());
        }
        self.sync(on)?;
        on.give_name()?;
        let checkpointer = self.running.get().map(|running| &running.checkpointer);
        let published = checkpointer.map_or(Ok(()), |checkpointer| checkpointer.publish());
        published.map_err(|failed| failed.of(on))
    }

    /// Shows zeros in a range, which keeps its blocks if it can be stored to.
    fn cover(&self, on: &impl Pages, range: &Range<u64>) -> Result<(), MediumError> {
        let shown = on.window().map_zeros(range.clone());
        shown.map_err(|e| on.io("mapping zeros", e))?;
        let mut covered = self.lock_covered();
        covered.zeros.insert(range.clone());
        covered.memory.remove(range.clone());
        if let Some(group) = self.group() {
            let mut state = group.lock();
            state.copies.forget(range);
            group.tell_copies(&state);
        }
        Ok(())
    }

    /// Has memory of zeros in the place of what was covered in a range: the file may hold older content there.
    fn uncover(&self, on: &impl Pages, range: &Range<u64>) -> Result<(), MediumError> {
        let mut covered = self.lock_covered();
        let parts: Vec<_> = covered.zeros.overlapping(range).cloned().collect();
        for part in parts {
            let part = part.start.max(range.start)..part.end.min(range.end);
            let mapped = on.window().map_memory(part.clone());
            mapped.map_err(|e| on.io("mapping reserved space", e))?;
            covered.zeros.remove(part.clone());
            covered.memory.insert(part);
        }
        Ok(())
    }

    pub(super) fn lock_covered(&self) -> MutexGuard<'_, Covered> {
        self.covered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
