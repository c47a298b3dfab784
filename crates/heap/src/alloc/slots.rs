//! Slots: allocation and release of objects.

use core::hash::{Hash, Hasher};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use firn_format::class::{Class, MAX_SLOT_BYTES};
use firn_format::frame::{FrameUse, MAX_FRAMES};
use firn_format::geometry::{BITMAP_WORDS, Chunk, Frame};
use firn_format::header::HEADER_BYTES;
use firn_format::lane::LANES;
use firn_format::superblock::PoolKind;
use firn_media::{Lock, Medium, Words};
use firn_units::{FRAME_BYTES, VirtAddr};

use super::cache::{Cache, Hands};
use super::chunks::{Chunks, FREE, FrameState, LIVE, OWNER, STATE, Tables, base, slot_mask};
use super::frames::{FrameSpace, Limits, Reach};
use super::lists::{KEPT_FRAMES, Lists};
use super::reserve::Purpose;
use super::slot::{Place, Slot, locate, run_frames};
use super::taken::TakenSlots;
use crate::alloc::{Footprint, LOGGED_OBJECT_BYTES};
use crate::error::Error;
use crate::relocation::cycle::Cycle;
use crate::relocation::kept::Table;
use crate::steps;
use firn_format::geometry::FrameRun;

/// Largest object, header included, in bytes: what lies between two regions' tables.
const MAX_OBJECT_BYTES: u64 = {
    use firn_format::geometry::{REGION_CHUNKS, TABLE_CHUNKS};
    (REGION_CHUNKS - 2 * TABLE_CHUNKS) * firn_units::CHUNK_BYTES
};
const _: () = assert!(MAX_OBJECT_BYTES / FRAME_BYTES <= MAX_FRAMES);

/// Which number an allocation asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Homes {
    /// The next one to be given out.
    Counter,
    /// The one below which all homes are known to be durable.
    Known,
    /// The one below which all homes are durable, after they were made so.
    Settled,
}

/// All allocation state of a pool.
pub(crate) struct Allocator<M: Medium> {
    pub(super) chunks: Chunks<M>,
    pub(super) lists: Lists<M>,
    space: FrameSpace,
    /// What sessions have in their hands, by lane.
    pub(super) hands: Box<[OnceLock<Arc<Hands>>]>,
    /// Whether slots that come into sessions' hands are noted, and where.
    pub(super) notes: AtomicBool,
    pub(super) takers: Lock<Vec<Arc<TakenSlots<M>>>>,
    /// What was freed in runs that the collector has closed.
    pub(super) held: Lock<Vec<Place>>,
    /// Whether allocation bits on media are kept exact all the time: in explicit pools.
    pub(super) logs_bits: bool,
    /// One word: the highest counter at which a slot was freed whose next object is stored at home.
    freed_at: M::Words,
}

impl<M: Medium> Allocator<M> {
    /// `tables` is what they tell on media; `resumed` is the cycle that a crash interrupted, `kept` what is kept of those before.
    pub(crate) fn new(
        medium: &M,
        limits: Limits,
        kind: PoolKind,
        tables: Tables,
        resumed: Option<Arc<Cycle<M>>>,
        kept: Arc<Table>,
    ) -> Self {
        Self {
            chunks: Chunks::new(medium, tables, resumed, kept),
            lists: Lists::new(medium),
            space: FrameSpace::new(limits, tables == Tables::Frames),
            hands: (0..LANES).map(|_| OnceLock::new()).collect(),
            notes: AtomicBool::new(false),
            takers: Lock::new(Vec::new()),
            held: Lock::new(Vec::new()),
            logs_bits: kind == PoolKind::Explicit,
            freed_at: medium.words(1),
        }
    }

    /// The number below which all homes must be durable before an object is stored at home in a slot (A2):
    /// an older entry may name what lay there before, and would be replayed over it.
    pub(crate) fn awaited(&self) -> u64 {
        self.freed_at.load(0)
    }

    /// Takes in which frames are free, and of all others in which somebody took an interest what is free and
    /// what lives there.
    pub(crate) fn digest(&self, medium: &M, into: &mut impl Hasher) {
        self.awaited().hash(into);
        let space = self.space.lock(medium);
        space.digest(into);
        for (chunk, frames) in space.taken() {
            let Some(state) = self.chunks.known(chunk) else {
                continue;
            };
            for frame in frames {
                for word in [STATE, FREE, LIVE, OWNER] {
                    state.words().load(base(frame) + word).hash(into);
                }
            }
        }
    }

    /// Notes, before a slot is offered, that it was freed.
    fn note_freed(&self, class: Class, stamp: u64) {
        if class.slot_bytes() <= LOGGED_OBJECT_BYTES {
            return;
        }
        let mut seen = self.freed_at.load(0);
        while seen < stamp {
            match self.freed_at.compare_exchange(0, seen, stamp) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    pub(crate) fn space(&self) -> &FrameSpace {
        &self.space
    }

    /// Takes a slot for `bytes` of object, header included. The slot's content is arbitrary. `homes` is asked for
    /// the number below which they are durable.
    #[inline]
    pub(crate) fn take(
        &self,
        medium: &M,
        cache: &mut Cache,
        bytes: u64,
        mut homes: impl FnMut(Homes) -> u64,
    ) -> Result<Slot, Error> {
        let Some(class) = Class::for_bytes(bytes) else {
            return self.take_large(medium, cache, bytes, &mut homes);
        };
        loop {
            let hand = cache.hands.of(class);
            if let Some(index) = hand.next() {
                let frame = hand.frame();
                let at = frame.start() + index * class.slot_bytes();
                let place = Place {
                    frame,
                    index,
                    class: Some(class),
                };
                return Ok(Slot {
                    at,
                    bytes: class.slot_bytes(),
                    place,
                });
            }
            self.refill(medium, cache, class, &mut homes)?;
        }
    }

    /// Puts free slots of `class` into the cache.
    #[cold]
    fn refill(
        &self,
        medium: &M,
        cache: &mut Cache,
        class: Class,
        homes: &mut impl FnMut(Homes) -> u64,
    ) -> Result<(), Error> {
        let hand = cache.hands.of(class);
        if hand.is_owned() {
            let frame = hand.frame();
            if let Some((word, bits)) = self.grab(medium, frame)? {
                hand.fill(word, bits);
                return Ok(());
            }
            hand.let_go();
            self.let_go(medium, frame, class)?;
        }
        let lane = cache.lane;
        if let Some(frame) = self.lists.pop(medium, &self.chunks, class, lane)? {
            hand.own(frame);
            return Ok(());
        }
        let what = FrameUse::Slots(class);
        let run = match self.new_run(medium, cache, what, (homes(Homes::Known), Reach::Held)) {
            Err(Error::PoolFull { .. }) => {
                // Slots that are free anywhere serve before the pool grows.
                let lists = &self.lists;
                if let Some(frame) = lists.pop_anywhere(medium, &self.chunks, class, lane)? {
                    cache.hands.of(class).own(frame);
                    return Ok(());
                }
                let durable = self.give_back_empty(medium, homes)?;
                self.new_run(medium, cache, what, (durable, Reach::Growing))?
            }
            run => run?,
        };
        self.own_new(medium, cache, run.frame, class)
    }

    /// Takes a run that is new into the session's hands, which have none of its class.
    pub(super) fn own_new(
        &self,
        medium: &M,
        cache: &Cache,
        frame: Frame,
        class: Class,
    ) -> Result<(), Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        let words = chunk.words();
        for word in 0..BITMAP_WORDS {
            let mask = slot_mask(class.slots(), word);
            words.store(base(frame) + FREE + word as usize, mask);
        }
        words.store(base(frame) + LIVE, 0);
        words.store(base(frame) + OWNER, cache.lane as u64);
        words.store(base(frame) + STATE, FrameState::Owned as u64);
        cache.hands.of(class).own(frame);
        Ok(())
    }

    /// Gives back the frames of runs that hold nothing and were kept for more of their class, and has all frames wait
    /// no longer that were given back: these serve before the pool grows. Returns the number below which all homes
    /// are durable.
    pub(crate) fn give_back_empty(
        &self,
        medium: &M,
        homes: &mut impl FnMut(Homes) -> u64,
    ) -> Result<u64, Error> {
        let empty = self.lists.withdraw_all_empty(medium, &self.chunks)?;
        if !empty.is_empty() {
            // Above every number that may name what lay in them.
            let stamp = homes(Homes::Counter);
            for (frame, class) in empty {
                let frames = class.frames();
                self.give_frames(medium, FrameRun { frame, frames }, stamp);
            }
        }
        let waits = self.space.lock(medium).has_waiting();
        Ok(homes(match waits {
            true => Homes::Settled,
            false => Homes::Known,
        }))
    }

    /// Takes all free slots of one bitmap word of a frame.
    fn grab(&self, medium: &M, frame: Frame) -> Result<Option<(u64, u64)>, Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        for word in 0..BITMAP_WORDS {
            let index = base(frame) + FREE + word as usize;
            let free = chunk.words().load(index);
            if free != 0 {
                // Noted first: a slot that is not free was noted, or in use before. What is freed in
                // between stays there.
                self.note(medium, frame, word, free);
                return Ok(Some((word, chunk.words().fetch_and(index, !free) & free)));
            }
        }
        Ok(None)
    }

    /// Ends the ownership of a frame.
    pub(super) fn let_go(&self, medium: &M, frame: Frame, class: Class) -> Result<(), Error> {
        let chunk = self.chunks.get(medium, frame.chunk())?;
        chunk
            .words()
            .swap(base(frame) + STATE, FrameState::Full as u64);
        // A slot that was freed before the swap found the frame owned and listed nothing.
        let freed = (0..BITMAP_WORDS as usize)
            .any(|word| chunk.words().load(base(frame) + FREE + word) != 0);
        if freed {
            self.lists.offer(medium, &self.chunks, frame, class)?;
        }
        Ok(())
    }

    /// Takes frames and says on media what for; the words reach media with the next commit.
    fn new_run(
        &self,
        medium: &M,
        cache: &mut Cache,
        what: FrameUse,
        from: (u64, Reach),
    ) -> Result<FrameRun, Error> {
        let run = self.take_within(medium, what.frames(), Purpose::Objects, from)?;
        self.begin_run(medium, cache, what, run);
        Ok(run)
    }

    /// Says on media what frames are for that were taken.
    pub(super) fn begin_run(&self, medium: &M, cache: &mut Cache, what: FrameUse, run: FrameRun) {
        for word in 0..BITMAP_WORDS {
            self.note(medium, run.frame, word, u64::MAX);
        }
        for (i, frame) in run.each().enumerate() {
            let word = if i == 0 {
                what
            } else {
                FrameUse::Tail { back: i as u64 }
            };
            medium.store_u64(frame.word_at(), word.to_word());
        }
        cache.fresh.push(run.frame);
    }

    /// Takes frames for a log's overflow. Nothing of it needs to reach media but what it will hold.
    pub(crate) fn take_log(
        &self,
        medium: &M,
        frames: u64,
        from: (u64, Reach),
    ) -> Result<FrameRun, Error> {
        let run = self.take_within(medium, frames, Purpose::Log, from)?;
        for frame in run.each() {
            medium.store_u64(frame.word_at(), FrameUse::Log.to_word());
        }
        Ok(run)
    }

    /// Takes frames for a collection, whose words are still those of free ones.
    pub(crate) fn take_frames(
        &self,
        medium: &M,
        frames: u64,
        purpose: Purpose,
        durable: u64,
    ) -> Result<FrameRun, Error> {
        self.take_within(medium, frames, purpose, (durable, Reach::Growing))
    }

    /// Takes frames, and lets the pool grow only as far as `from` says.
    pub(super) fn take_within(
        &self,
        medium: &M,
        frames: u64,
        purpose: Purpose,
        from: (u64, Reach),
    ) -> Result<FrameRun, Error> {
        let chunks = &self.chunks;
        let run = self.space.take(medium, chunks, frames, purpose, from)?;
        // The chunks' states are read before their words change, see `Chunks::load`.
        self.chunks.get_all(medium, run.frame, run.frames)?;
        Ok(run)
    }

    /// Takes frames for a plan that is kept, see [`super::frames::Space::take_for_plans`].
    pub(crate) fn take_for_plans(
        &self,
        medium: &M,
        frames: u64,
        shared: &BTreeSet<Chunk>,
    ) -> Result<Option<FrameRun>, Error> {
        let mut space = self.space.lock(medium);
        let taken = space.take_for_plans(medium, frames, shared)?;
        drop(space);
        if let Some(run) = taken {
            self.chunks.get_all(medium, run.frame, run.frames)?;
        }
        Ok(taken)
    }

    /// Looks at every chunk there is.
    pub(crate) fn look_at_all(&self, medium: &M) -> Result<(), Error> {
        self.space.lock(medium).look_at_all(medium, &self.chunks)
    }

    #[cold]
    fn take_large(
        &self,
        medium: &M,
        cache: &mut Cache,
        bytes: u64,
        homes: &mut impl FnMut(Homes) -> u64,
    ) -> Result<Slot, Error> {
        if bytes > MAX_OBJECT_BYTES {
            let limit = MAX_OBJECT_BYTES - HEADER_BYTES;
            return Err(Error::ObjectTooLarge {
                bytes: bytes - HEADER_BYTES,
                limit,
            });
        }
        let frames = bytes.div_ceil(FRAME_BYTES);
        let what = FrameUse::Large { frames };
        let run = match self.new_run(medium, cache, what, (homes(Homes::Known), Reach::Held)) {
            Err(Error::PoolFull { .. }) => {
                let durable = self.give_back_empty(medium, homes)?;
                self.new_run(medium, cache, what, (durable, Reach::Growing))?
            }
            run => run?,
        };
        let chunk = self.chunks.get(medium, run.frame.chunk())?;
        for word in 0..BITMAP_WORDS as usize {
            chunk.words().store(base(run.frame) + FREE + word, 0);
        }
        chunk.words().store(base(run.frame) + LIVE, 0);
        chunk
            .words()
            .store(base(run.frame) + STATE, FrameState::Full as u64);
        let place = Place {
            frame: run.frame,
            index: 0,
            class: None,
        };
        Ok(Slot {
            at: run.start(),
            bytes: run.bytes(),
            place,
        })
    }

    /// The slot whose object's header lies at `at`, allocated or not.
    #[inline]
    pub(crate) fn locate(&self, medium: &M, at: VirtAddr) -> Result<Slot, Error> {
        locate(medium, at)
    }

    /// Asks for what is known of the run at whose first frame an object lies. A hint, and none for an object
    /// further back.
    #[inline]
    pub(crate) fn expect(&self, medium: &M, at: VirtAddr) {
        let frame = Frame::holding(at);
        if at.0 >= medium.len() || !frame.chunk().is_data() {
            return;
        }
        medium.prefetch(frame.word_at());
        if let Some(chunk) = self.chunks.known(frame.chunk()) {
            chunk.words().prefetch(base(frame) + FREE);
        }
    }

    /// Whether a slot is allocated, as far as this open of the pool knows.
    pub(crate) fn is_allocated(&self, medium: &M, place: Place) -> Result<bool, Error> {
        let chunk = self.chunks.get(medium, place.frame.chunk())?;
        let (word, bit) = place.bit();
        Ok(chunk.words().load(base(place.frame) + FREE + word as usize) & bit == 0)
    }

    /// Counts objects that a commit added to a run, or took away.
    pub(crate) fn count_live(
        &self,
        medium: &M,
        place: Place,
        added: i64,
    ) -> Result<Footprint, Error> {
        let chunk = self.chunks.get(medium, place.frame.chunk())?;
        let before = chunk
            .words()
            .fetch_add(base(place.frame) + LIVE, added as u64);
        let after = before.wrapping_add(added as u64);
        if (before == 0) == (after == 0) {
            return Ok(Footprint::default());
        }
        let frames = match place.class {
            Some(class) => class.frames(),
            None => run_frames(medium, place.frame),
        };
        self.count_run(medium, place.frame, frames, after != 0)
    }

    /// Counts a run as holding objects, or no longer, and so every chunk that it lies in, which may
    /// change sides with it.
    pub(super) fn count_run(
        &self,
        medium: &M,
        frame: Frame,
        frames: u64,
        now_live: bool,
    ) -> Result<Footprint, Error> {
        let sign = if now_live { 1 } else { -1 };
        let mut change = Footprint {
            frames: sign * frames as i64,
            chunks: 0,
        };
        for chunk in frame.chunk().0..=frame.plus(frames - 1).chunk().0 {
            let state = self.chunks.get(medium, Chunk(chunk))?;
            change.chunks += sign * i64::from(state.count_live_frame(now_live));
        }
        self.chunks.count_footprint(change);
        Ok(change)
    }

    /// Frames of runs that hold objects, and chunks in which such runs lie. Every chunk was looked at,
    /// and no operation is open.
    pub(crate) fn footprint(&self) -> Footprint {
        self.chunks.footprint()
    }

    /// Makes slots free again: the `bits` of the bitmap word in which `place` lies. Rule A4: the
    /// freeing transaction's in-place stores are done. `stamp` is the counter of numbers now.
    #[inline]
    pub(crate) fn release(
        &self,
        medium: &M,
        place: Place,
        bits: u64,
        stamp: u64,
    ) -> Result<(), Error> {
        let closed = |state: u64| {
            state == FrameState::Source as u64 || state == FrameState::Destination as u64
        };
        let Some(class) = place.class else {
            let chunk = self.chunks.get(medium, place.frame.chunk())?;
            let index = base(place.frame) + STATE;
            loop {
                let state = chunk.words().load(index);
                // A run of a cycle is given back when the cycle ends.
                if closed(state) {
                    self.held.lock(medium).push(place);
                    return Ok(());
                }
                // Closing a run and giving it back race on this exchange; the loser sees the winner's state.
                let leaving = FrameState::Leaving as u64;
                if chunk
                    .words()
                    .compare_exchange(index, state, leaving)
                    .is_ok()
                {
                    break;
                }
            }
            let frames = run_frames(medium, place.frame);
            self.give_frames(
                medium,
                FrameRun {
                    frame: place.frame,
                    frames,
                },
                stamp,
            );
            return Ok(());
        };
        let chunk = self.chunks.get(medium, place.frame.chunk())?;
        let (word, _) = place.bit();
        let index = base(place.frame) + FREE + word as usize;
        self.note_freed(class, stamp);
        chunk.words().fetch_or(index, bits);
        let state = chunk.words().load(base(place.frame) + STATE);
        if closed(state) {
            if state == FrameState::Source as u64 {
                self.hold(medium, place, bits);
            } else if medium.leaves_out(&steps::DESTINATIONS_WAIT) {
                let word = FrameUse::Slots(class).to_word();
                medium.store_u64(place.frame.word_at(), word);
                return self.open_filled(medium, place.frame, Some(class), stamp);
            }
            return Ok(());
        }
        if state == FrameState::Full as u64 {
            self.lists.offer(medium, &self.chunks, place.frame, class)?;
        }
        if chunk.words().load(base(place.frame) + LIVE) == 0 {
            self.leave_if_empty(medium, place.frame, class, stamp)?;
        }
        Ok(())
    }

    /// Gives a listed run of slots back if all of them are free.
    pub(super) fn leave_if_empty(
        &self,
        medium: &M,
        frame: Frame,
        class: Class,
        stamp: u64,
    ) -> Result<(), Error> {
        if self
            .lists
            .withdraw_empty(medium, &self.chunks, frame, class, KEPT_FRAMES)?
        {
            self.give_frames(
                medium,
                FrameRun {
                    frame,
                    frames: class.frames(),
                },
                stamp,
            );
        }
        Ok(())
    }

    /// A large object's run was `Full`. Whoever still holds a place in what was here before must not list it
    /// while it is being made into a run of slots.
    fn leave(&self, run: FrameRun) {
        if let Some(chunk) = self.chunks.known(run.frame.chunk()) {
            let leaving = FrameState::Leaving as u64;
            chunk.words().store(base(run.frame) + STATE, leaving);
        }
    }

    /// Gives frames back in which nothing was stored since they were taken, but their words: they were free of
    /// what may be replayed then, and are.
    pub(crate) fn give_unused(&self, medium: &M, run: FrameRun) {
        self.leave(run);
        let mut space = self.space.lock(medium);
        store_free(medium, run);
        space.give_at_once(run);
    }

    /// Gives frames back: their words say so, and what may be replayed into them is waited for.
    pub(crate) fn give_frames(&self, medium: &M, run: FrameRun, stamp: u64) {
        self.leave(run);
        // Whoever looks at a chunk first believes these words, unless the run waits in quarantine: both
        // change under the lock.
        let mut space = self.space.lock(medium);
        store_free(medium, run);
        space.give(run, stamp);
    }

    /// Keeps what an entry has outside its slot until recovery will not read it ([`Allocator::end_logs`]).
    pub(crate) fn keep_log(&self, medium: &M, number: u64, runs: &[FrameRun]) {
        if !runs.is_empty() {
            self.space.lock(medium).keep_log(number, runs);
        }
    }

    /// Whether anything is kept so.
    pub(crate) fn keeps_logs(&self, medium: &M) -> bool {
        self.space.lock(medium).keeps_logs()
    }

    /// Gives back what is kept of entries below `shown`, than which a durable W is not lower: whose session is idle
    /// does not hold frames that others need.
    pub(crate) fn end_logs(&self, medium: &M, shown: u64) {
        let mut space = self.space.lock(medium);
        for run in space.take_ended_logs(shown) {
            store_free(medium, run);
            space.give_at_once(run);
        }
    }

    /// Gives the overflow of a log back.
    pub(crate) fn give_log(&self, medium: &M, run: FrameRun) {
        let mut space = self.space.lock(medium);
        store_free(medium, run);
        space.give_at_once(run);
    }

    /// Remembers slots that were freed in a closed run, so that the plan leaves them out.
    #[cold]
    fn hold(&self, medium: &M, place: Place, bits: u64) {
        let word = place.index / 64 * 64;
        let slots = (0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| Place {
            index: word + bit,
            ..place
        });
        self.held.lock(medium).extend(slots);
    }

    /// The side of the allocator that belongs to a lane's session.
    pub(crate) fn cache(&self, lane: usize) -> Cache {
        Cache::new(lane, Arc::clone(self.hands[lane].get_or_init(Hands::new)))
    }

    /// Takes back everything that is in a session's hands: inside an operation of the session, or
    /// with the world stopped.
    pub(super) fn drain(&self, medium: &M, hands: &Hands) -> Result<(), Error> {
        for class in Class::all() {
            self.put_down(medium, hands.of(class), class)?;
        }
        Ok(())
    }

    /// Returns everything a session holds.
    pub(crate) fn return_all(&self, medium: &M, cache: &Cache) -> Result<(), Error> {
        self.drain(medium, &cache.hands)
    }
}

/// Says on media that frames are free.
fn store_free<M: Medium>(medium: &M, run: FrameRun) {
    for frame in run.each() {
        medium.store_u64(frame.word_at(), FrameUse::Free.to_word());
    }
}

const _: () = assert!(MAX_SLOT_BYTES < MAX_OBJECT_BYTES);
