//! Allocation from a chosen run: the destination of objects that are moved one by one.

use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_WORDS, Frame};
use firn_media::{Medium, Words};

use super::cache::{ActiveRun, Cache};
use super::chunks::{FREE, base};
use super::frames::Reach;
use super::reserve::Purpose;
use super::slots::Allocator;
use crate::error::Error;

impl<M: Medium> Allocator<M> {
    /// The runs of a class from which any session may allocate.
    ///
    /// Errors: the frame table is damaged.
    pub(crate) fn with_free_slots(&self, medium: &M, class: Class) -> Result<Vec<Frame>, Error> {
        self.lists.all_of(medium, &self.chunks, class)
    }

    /// Makes a run active in the session, in place of its active run of that class. False if another session has taken
    /// the run.
    ///
    /// Errors: the frame table is damaged.
    pub(crate) fn make_active(
        &self,
        medium: &M,
        cache: &Cache,
        frame: Frame,
        class: Class,
    ) -> Result<bool, Error> {
        let run = cache.active.of(class);
        self.put_back(medium, run, class)?;
        let lane = cache.lane;
        let taken = self
            .lists
            .take(medium, &self.chunks, (frame, class), lane)?;
        if taken {
            run.own(frame);
        }
        Ok(taken)
    }

    /// Makes a new run in front of this frame active in the session, in place of its active run of that class. False if
    /// there are no free frames.
    ///
    /// Errors: the frame table is damaged.
    pub(crate) fn take_new_before(
        &self,
        medium: &M,
        cache: &mut Cache,
        before: Frame,
        class: Class,
        durable: u64,
    ) -> Result<bool, Error> {
        let from = (durable, Reach::Held);
        let run = match self.take_within(medium, class.frames(), Purpose::Objects, from) {
            Ok(run) => run,
            Err(error) if error.is_no_room() => return Ok(false),
            Err(error) => return Err(error),
        };
        // The first run that is found is the foremost.
        if run.frame.0 > before.0 {
            self.give_unused(medium, run);
            return Ok(false);
        }
        self.put_back(medium, cache.active.of(class), class)?;
        self.begin_run(medium, cache, FrameUse::Slots(class), run);
        self.own_new(medium, cache, run.frame, class)?;
        Ok(true)
    }

    /// The session's active run of a class, if it has free slots.
    ///
    /// Errors: the frame table is damaged.
    pub(crate) fn active_with_room(
        &self,
        medium: &M,
        cache: &Cache,
        class: Class,
    ) -> Result<Option<Frame>, Error> {
        let run = cache.active.of(class);
        if !run.is_owned() {
            return Ok(None);
        }
        let frame = run.frame();
        let chunk = self.chunks.get(medium, frame.chunk())?;
        let is_free = |word| chunk.words().load(base(frame) + FREE + word) != 0;
        let has_free = run.has_slots() || (0..BITMAP_WORDS as usize).any(is_free);
        Ok(has_free.then_some(frame))
    }

    /// Takes back the free slots of an active run.
    ///
    /// Errors: the frame table is damaged.
    pub(super) fn put_back(&self, medium: &M, run: &ActiveRun, class: Class) -> Result<(), Error> {
        if !run.is_owned() {
            return Ok(());
        }
        let frame = run.frame();
        let (word, bits) = run.retire();
        let chunk = self.chunks.get(medium, frame.chunk())?;
        chunk
            .words()
            .fetch_or(base(frame) + FREE + word as usize, bits);
        self.retire_run(medium, frame, class)
    }
}
