//! Waiting for the medium before an operation begins, and having it drop memory.

use firn_format::geometry::FIRST_DATA_CHUNK;
use firn_format::superblock::LogKind;
use firn_media::{Lock, LockGuard, Medium, MediumExt};
use firn_units::{CHUNK_BYTES, VirtAddr};

use crate::error::Error;
use crate::inner::Inner;
use crate::steps;
use crate::stops::Stops;

/// How long an operation may stay open before dropping memory is given up for now, in nanoseconds.
const PATIENCE_NS: u64 = 100_000_000;
/// Where objects begin. What lies before changes outside of operations, too, and keeps its memory.
const OBJECTS: VirtAddr = VirtAddr(FIRST_DATA_CHUNK * CHUNK_BYTES);

/// Who may store to objects without an open operation, and who has memory dropped.
pub(crate) struct Room {
    /// Held by steps of a collection that store to objects or plans, and while memory is dropped. Never taken in an
    /// operation: a holder may wait for the end of all of them.
    storing: Lock<()>,
    /// One thread at a time has memory dropped.
    dropping: Lock<()>,
}

impl Room {
    pub(crate) const fn new() -> Self {
        Self {
            storing: Lock::new(()),
            dropping: Lock::new(()),
        }
    }

    /// The right to store to objects without an open operation (rule T5).
    pub(crate) fn storing<'a, M: Medium>(&'a self, medium: &'a M) -> Option<LockGuard<'a, (), M>> {
        let waits = medium.keeps(&steps::STORES_WAIT);
        waits.then(|| self.storing.lock(medium))
    }
}

impl<M: Medium> Inner<M> {
    /// Waits until the medium has room for what an operation stores. The caller has no operation open.
    ///
    /// Errors: the device failed.
    #[inline(always)]
    pub(crate) fn wait_for_room(&self) -> Result<(), Error> {
        self.medium.wait_for_room()?;
        match self.medium.is_full_of_copies() {
            true => self.drop_copies(),
            false => Ok(()),
        }
    }

    /// Has the medium drop memory that holds what is home. Operations wait meanwhile, a millisecond at a time.
    #[cold]
    #[inline(never)]
    fn drop_copies(&self) -> Result<(), Error> {
        // Programs with an undo log store whenever they like, through addresses of their own.
        if self.log == LogKind::Undo {
            return Ok(());
        }
        let medium = &self.medium;
        let _dropping = self.room.dropping.lock(medium);
        if !medium.is_full_of_copies() {
            return Ok(());
        }
        // Waits for the disk, with no lock that anything but this waits for.
        medium.sync()?;
        loop {
            medium.ready_copies(OBJECTS);
            // Nobody stores to objects: neither a step of a collection nor, in the stop, an operation.
            let _storing = self.room.storing.lock(medium);
            let drop = || medium.drop_copies(OBJECTS);
            match self.stopped_within(PATIENCE_NS, &mut Stops::default(), drop) {
                Ok(true) => {}
                // An operation is taking long. The next transaction tries again.
                Ok(false) | Err(Error::Busy { .. }) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
    }
}
