//! Allocation waits for homes: its slot may have been freed by a transaction that recovery replays (A2).

use firn_format::superblock::LogKind;
use firn_media::Medium;

use super::redo;
use crate::alloc::{Cache, Homes, Slot};
use crate::error::Error;
use crate::inner::Inner;

impl<M: Medium> Inner<M> {
    pub(crate) fn take_slot(
        &self,
        cache: &mut Cache,
        ring: &mut redo::Ring,
        bytes: u64,
    ) -> Result<Slot, Error> {
        self.check_usable()?;
        self.allocator
            .take(&self.medium, cache, bytes, |which| self.homes(ring, which))
    }

    /// The LSN for which an allocation asks. The caller has no LSN in flight.
    pub(crate) fn homes(&self, ring: &mut redo::Ring, which: Homes) -> u64 {
        let (redo, medium) = (&self.redo, &self.medium);
        match which {
            Homes::Counter => return redo.counter(),
            Homes::Known => {}
            // Frames of logs wait until no entry needs them any more.
            Homes::Settled if self.allocator.keeps_logs(medium) => {
                redo.retire(medium, ring);
                self.end_logs();
            }
            // Freed frames wait until older homes are durable: settle them.
            Homes::Settled => redo.settle_homes(medium, ring),
        }
        redo.known_durable()
    }

    /// Gives back the frames of logs that recovery will not read.
    pub(crate) fn end_logs(&self) {
        self.allocator.end_logs(&self.medium, self.redo.shown());
    }

    /// A2: waits until recovery replays no entry that may name a slot's former object. Transactions in flight wait for
    /// no one, so this ends; this transaction has no LSN yet. Its own entry, without which the object cannot be found,
    /// carries at least the W that is awaited here.
    pub(super) fn await_older_homes(&self, ring: &mut redo::Ring) {
        if self.log != LogKind::Redo {
            return;
        }
        let awaited = self.allocator.awaited();
        let mut attempt = 0;
        while self.redo.known_durable() < awaited {
            if attempt > 0 {
                self.medium.pause(attempt - 1);
            }
            self.redo.settle_homes(&self.medium, ring);
            attempt += 1;
        }
    }
}
