//! Objects that are moved alone: those that the program names, and nothing else.
//!
//! A cycle empties whole runs, and what is emptied is nobody's before addresses are forgotten. So a listed object moves
//! if everything that lies in its run with it is listed, too; otherwise it stays, which whoever lists it must expect
//! anyway: it may lie well already.

use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::BITMAP_WORDS;
use firn_format::header::HEADER_BYTES;
use firn_media::Medium;
use firn_units::{VirtAddr, WORD_BYTES};

use super::collection::CollectOptions;
use super::figures::Collected;
use super::kept::Table;
use crate::alloc::Run;
use crate::error::Error;
use crate::pool::Pool;

/// Where listed objects begin, in ascending order.
#[derive(Debug)]
pub(super) struct Listed(Vec<VirtAddr>);

impl Listed {
    /// The objects with these bodies, wherever ended cycles have moved them.
    pub(super) fn of_bodies(bodies: &[VirtAddr], kept: &Table) -> Self {
        let header = |body: &VirtAddr| body.0.checked_sub(HEADER_BYTES).map(VirtAddr);
        let headers = bodies.iter().filter_map(header);
        let mut objects: Vec<_> = headers.map(|at| kept.resolve(at)).collect();
        objects.sort_unstable();
        objects.dedup();
        Self(objects)
    }

    /// Whether all of these slots of a run are listed.
    pub(super) fn holds_all(&self, run: &Run, used: &[u64; BITMAP_WORDS as usize]) -> bool {
        let slots = run.class().map_or(1, Class::slots);
        let slot_bytes = match run.what {
            FrameUse::Slots(class) => class.slot_bytes(),
            _ => 0,
        };
        let is_used = |slot: &u64| used[(slot / 64) as usize] >> (slot % 64) & 1 != 0;
        let begins = |slot| run.frame.start() + slot * slot_bytes;
        let is_listed = |slot| self.0.binary_search(&begins(slot)).is_ok();
        (0..slots).filter(is_used).all(is_listed)
    }

    /// The same of what is allocated in a run now, in an explicit pool. Sessions may be changing it: asked again once
    /// the run is closed.
    pub(super) fn may_hold_all<M: Medium>(&self, medium: &M, run: &Run) -> bool {
        let bitmap = run.frame.bitmap_at();
        let used = core::array::from_fn(|word| medium.load_u64(bitmap + word as u64 * WORD_BYTES));
        self.holds_all(run, &used)
    }
}

impl<M: Medium> Pool<M> {
    /// Collects as [`Pool::collect`] does, but moves the objects alone whose bodies are given, and of these the ones
    /// whose runs hold no other objects. Everything else stays where it is.
    ///
    /// Errors: as [`Pool::collect`]; the pool is none in which addresses stay: explicit, with an undo log.
    /// Crash: as there.
    pub fn collect_listed(
        &self,
        options: &CollectOptions,
        bodies: &[VirtAddr],
    ) -> Result<Collected, Error> {
        if !self.inner.keeps_addresses {
            return Err(Error::WrongKind {
                what: "a collection of listed objects",
                needs: "an explicit pool that was opened with an undo log",
            });
        }
        let mut collection = self.collection(options)?;
        // A cycle that a crash interrupted moves what it had planned.
        collection.finish()?;
        collection.move_only(bodies);
        while collection.cycle()? {}
        Ok(*collection.collected())
    }
}
