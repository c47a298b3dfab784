//! Lists of runs with free slots, one per class and lane.
//!
//! A run is on a list exactly while its state is `Listed`; both change together under the list's lock. The list is its
//! owner's: the lane whose session allocated from the run last, or lane 0 if none has since the pool was opened. So a
//! session gets back the slots that it frees, by a lock and words that are in its core's cache. A session whose lane
//! has nothing listed takes from the others and is the owner from then on.
//!
//! A run's owner and class cannot change while the lock of the list that they name is held and the run is active in no
//! session: to change, the run would first have to leave that list. A thread that frees a slot may be so slow that the
//! run was given back and taken for another class meanwhile; so it reads both again under the lock. A run knows its
//! position, so it leaves the list in constant time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use firn_format::class::{CLASSES, Class};
use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_WORDS, Chunk, Frame};
use firn_format::lane::LANES;
use firn_media::{Lock, LockGuard, Medium, Words};
use firn_units::{CHUNK_BYTES, FRAMES_PER_CHUNK};

use super::chunks::{Chunks, FREE, FrameState, LIVE, OWNER, POSITION, STATE, base, slot_mask};
use crate::error::Error;

/// Chunks that one search checks for runs with free slots, before it takes new frames.
const LOOK_AHEAD: usize = 4;

/// Frames of runs with free slots that a list keeps, empty or not: otherwise a program that frees what it allocates
/// would give frames back and take them again, all threads through one lock.
pub(crate) const KEPT_FRAMES: u64 = 8;

/// How far from a list's end a run is prefetched, because removals may soon move it.
const SOON: usize = 4;

/// Words from one class's lanes to the next: a cache line.
const STRIDE: usize = 8;
const _: () = assert!(LANES <= u64::BITS as usize);

/// The lists of one lane, on cache lines of their own.
#[repr(align(128))]
struct LaneLists {
    of: [Lock<Vec<Frame>>; CLASSES],
    /// One bit per class: its list may hold kept runs without an object. Set by the thread that lists or keeps one,
    /// before it has finished; cleared by the thread that searches the list for them.
    empty: [AtomicU64; CLASSES / 64],
}

impl LaneLists {
    fn new() -> Box<Self> {
        Box::new(Self {
            of: [const { Lock::new(Vec::new()) }; CLASSES],
            empty: [const { AtomicU64::new(0) }; CLASSES / 64],
        })
    }

    /// Notes that the list of a class may hold a run without an object.
    fn note_empty(&self, class: Class) {
        let (word, bit) = (&self.empty[class.index() / 64], class.index() % 64);
        if word.load(Relaxed) >> bit & 1 == 0 {
            word.fetch_or(1 << bit, Relaxed);
        }
    }

    /// The classes that were noted, whose bits this clears.
    fn take_noted(&self) -> impl Iterator<Item = Class> {
        let words = self.empty.iter().map(|word| match word.load(Relaxed) {
            0 => 0,
            _ => word.swap(0, Relaxed),
        });
        words.enumerate().flat_map(|(word, bits)| {
            let noted = (0..64).filter(move |bit| bits >> bit & 1 != 0);
            noted.filter_map(move |bit| Class::from_index(word * 64 + bit))
        })
    }
}

const _: () = assert!(CLASSES.is_multiple_of(64));

/// The lists, and how far chunks were searched for runs that belong on them.
pub(crate) struct Lists<M: Medium> {
    lanes: Box<[OnceLock<Box<LaneLists>>]>,
    /// For each class the lanes whose list may hold something, one bit per lane. Set under the list's lock by a thread
    /// that lists a run, and cleared under it by a thread that finds nothing there for another lane. The lane itself
    /// does not touch it, so this word seldom changes.
    listed: M::Words,
    cursor: Lock<u64>,
}

impl<M: Medium> Lists<M> {
    pub(crate) fn new(medium: &M) -> Self {
        Self {
            lanes: (0..LANES).map(|_| OnceLock::new()).collect(),
            listed: medium.words(CLASSES * STRIDE),
            cursor: Lock::new(0),
        }
    }

    fn lock<'a>(
        &'a self,
        medium: &'a M,
        lane: usize,
        class: Class,
    ) -> LockGuard<'a, Vec<Frame>, M> {
        self.lane(lane).of[class.index()].lock(medium)
    }

    fn lane(&self, lane: usize) -> &LaneLists {
        self.lanes[lane].get_or_init(LaneLists::new)
    }

    /// Takes a run off a list and makes `lane` its owner. Searches a few more chunks for one.
    pub(crate) fn pop(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        class: Class,
        lane: usize,
    ) -> Result<Option<Frame>, Error> {
        self.pop_within(medium, chunks, (class, lane), LOOK_AHEAD)
    }

    /// Takes a listed run of any chunk, before the pool grows.
    pub(crate) fn pop_anywhere(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        class: Class,
        lane: usize,
    ) -> Result<Option<Frame>, Error> {
        self.pop_within(medium, chunks, (class, lane), usize::MAX)
    }

    fn pop_within(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        (class, lane): (Class, usize),
        most_chunks: usize,
    ) -> Result<Option<Frame>, Error> {
        for _ in 0..most_chunks {
            if let Some(frame) = self.pop_of(medium, chunks, class, lane, lane)? {
                return Ok(Some(frame));
            }
            let mut others = self.listed.load(class.index() * STRIDE) & !(1 << lane);
            while others != 0 {
                let other = others.trailing_zeros() as usize;
                if let Some(frame) = self.pop_of(medium, chunks, class, other, lane)? {
                    return Ok(Some(frame));
                }
                others &= others - 1;
            }
            if !self.look_further(medium, chunks)? {
                break;
            }
        }
        Ok(None)
    }

    /// Takes a run off the list of lane `from`, for lane `to`.
    fn pop_of(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        class: Class,
        from: usize,
        to: usize,
    ) -> Result<Option<Frame>, Error> {
        let mut list = self.lock(medium, from, class);
        let Some(frame) = list.pop() else {
            if from != to {
                self.listed.fetch_and(class.index() * STRIDE, !(1 << from));
            }
            return Ok(None);
        };
        own(medium, chunks, frame, to)?;
        Ok(Some(frame))
    }

    /// The listed runs of a class in the whole pool.
    pub(crate) fn all_of(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        class: Class,
    ) -> Result<Vec<Frame>, Error> {
        while self.look_further(medium, chunks)? {}
        let lanes = self.lanes.iter().enumerate();
        let used = lanes.filter(|(_, cell)| cell.get().is_some());
        Ok(used
            .flat_map(|(lane, _)| self.lock(medium, lane, class).clone())
            .collect())
    }

    /// Takes this run off its list for a lane. False if it is not listed.
    pub(crate) fn take(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        (frame, class): (Frame, Class),
        lane: usize,
    ) -> Result<bool, Error> {
        let words = chunks.get(medium, frame.chunk())?.words();
        let Some((_, mut list)) = self.lock_of(medium, words, frame, class) else {
            return Ok(false);
        };
        if words.load(base(frame) + STATE) != FrameState::Listed as u64 {
            return Ok(false);
        }
        remove(medium, chunks, &mut list, frame)?;
        own(medium, chunks, frame, lane)?;
        Ok(true)
    }

    /// Lists the runs with free slots of the next chunk. False if there is none, or if media does not know which slots
    /// are free.
    fn look_further(&self, medium: &M, chunks: &Chunks<M>) -> Result<bool, Error> {
        if !chunks.bitmaps_hold() {
            return Ok(false);
        }
        let chunk = {
            let mut cursor = self.cursor.lock(medium);
            while *cursor * CHUNK_BYTES < medium.len() && !Chunk(*cursor).is_data() {
                *cursor += 1;
            }
            if (*cursor + 1) * CHUNK_BYTES > medium.len() {
                return Ok(false);
            }
            *cursor += 1;
            Chunk(*cursor - 1)
        };
        let words = chunks.get(medium, chunk)?.words();
        for i in 0..FRAMES_PER_CHUNK {
            let frame = chunk.first_frame().plus(i);
            let at = frame.word_at();
            if let FrameUse::Slots(class) = FrameUse::from_word(medium.load_u64(at), at)?
                && (0..BITMAP_WORDS as usize).any(|w| words.load(base(frame) + FREE + w) != 0)
            {
                self.offer(medium, chunks, frame, class)?;
            }
        }
        Ok(true)
    }

    /// Locks the list on which a run belongs. `None` if it is no run of `class` any more.
    fn lock_of<'a>(
        &'a self,
        medium: &'a M,
        words: &M::Words,
        frame: Frame,
        class: Class,
    ) -> Option<(usize, LockGuard<'a, Vec<Frame>, M>)> {
        loop {
            let owner = words.load(base(frame) + OWNER) as usize;
            let list = self.lock(medium, owner, class);
            if words.load(base(frame) + OWNER) as usize != owner {
                continue;
            }
            let same = medium.load_u64(frame.word_at()) == FrameUse::Slots(class).to_word();
            return same.then_some((owner, list));
        }
    }

    /// Offers a run with free slots, unless it has an owner or is offered already.
    pub(crate) fn offer(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        frame: Frame,
        class: Class,
    ) -> Result<(), Error> {
        let words = chunks.get(medium, frame.chunk())?.words();
        let Some((owner, mut list)) = self.lock_of(medium, words, frame, class) else {
            return Ok(());
        };
        let (full, listed) = (FrameState::Full as u64, FrameState::Listed as u64);
        if words
            .compare_exchange(base(frame) + STATE, full, listed)
            .is_ok()
        {
            list.push(frame);
            words.store(base(frame) + POSITION, list.len() as u64);
            if words.load(base(frame) + LIVE) == 0 {
                self.lane(owner).note_empty(class);
            }
            let lanes = class.index() * STRIDE;
            if self.listed.load(lanes) >> owner & 1 == 0 {
                self.listed.fetch_or(lanes, 1 << owner);
            }
        }
        Ok(())
    }

    /// Takes a run off its list for good if all of its slots are free and the list has more than `keeps` frames.
    pub(crate) fn withdraw_empty(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        frame: Frame,
        class: Class,
        keeps: u64,
    ) -> Result<bool, Error> {
        let words = chunks.get(medium, frame.chunk())?.words();
        let Some((owner, mut list)) = self.lock_of(medium, words, frame, class) else {
            return Ok(false);
        };
        if list.len() as u64 * class.frames() <= keeps {
            self.lane(owner).note_empty(class);
            return Ok(false);
        }
        if !is_empty::<M>(words, frame, class) {
            return Ok(false);
        }
        words.swap(base(frame) + STATE, FrameState::Leaving as u64);
        remove(medium, chunks, &mut list, frame)?;
        Ok(true)
    }

    /// Takes every run whose slots are all free off its list for good, before the pool grows, because their frames may
    /// serve any class. Looks only where a run was listed or kept since the last time.
    pub(crate) fn withdraw_all_empty(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
    ) -> Result<Vec<(Frame, Class)>, Error> {
        let mut withdrawn = Vec::new();
        let used = self.lanes.iter().enumerate();
        for (lane, lists) in used.filter_map(|(lane, cell)| Some((lane, cell.get()?))) {
            for class in lists.take_noted() {
                let mut list = self.lock(medium, lane, class);
                let listed: Vec<Frame> = list.clone();
                for frame in listed {
                    let words = chunks.get(medium, frame.chunk())?.words();
                    // A run on this list changes its state only under the list's lock.
                    if is_empty::<M>(words, frame, class) {
                        words.swap(base(frame) + STATE, FrameState::Leaving as u64);
                        remove(medium, chunks, &mut list, frame)?;
                        withdrawn.push((frame, class));
                    }
                }
            }
        }
        Ok(withdrawn)
    }

    /// Closes a run for allocation: takes it off its list if it is there. False if it is in a
    /// session's active runs, or no longer a run of `class`.
    pub(crate) fn close(
        &self,
        medium: &M,
        chunks: &Chunks<M>,
        frame: Frame,
        class: Class,
    ) -> Result<bool, Error> {
        let words = chunks.get(medium, frame.chunk())?.words();
        let Some((_, mut list)) = self.lock_of(medium, words, frame, class) else {
            return Ok(false);
        };
        let state = base(frame) + STATE;
        let listed = words.load(state) == FrameState::Listed as u64;
        if listed {
            words.swap(state, FrameState::Source as u64);
            remove(medium, chunks, &mut list, frame)?;
            return Ok(true);
        }
        let (full, source) = (FrameState::Full as u64, FrameState::Source as u64);
        Ok(words.compare_exchange(state, full, source).is_ok())
    }
}

/// Whether a run is listed, and all of its slots are free.
fn is_empty<M: Medium>(words: &M::Words, frame: Frame, class: Class) -> bool {
    words.load(base(frame) + STATE) == FrameState::Listed as u64
        && (0..BITMAP_WORDS).all(|word| {
            words.load(base(frame) + FREE + word as usize) == slot_mask(class.slots(), word)
        })
}

/// Makes a lane the owner of a run that is on no list any more. The list's lock is held.
fn own<M: Medium>(medium: &M, chunks: &Chunks<M>, frame: Frame, lane: usize) -> Result<(), Error> {
    let words = chunks.get(medium, frame.chunk())?.words();
    // The state changes before the owner. A thread that reads the new owner locks that lane's list, not this one, and
    // must not find a listed run there. A thread that reads the old one waits for this lock and reads again; once the
    // run is retired, both words were stored before.
    words.swap(base(frame) + STATE, FrameState::Owned as u64);
    words.store(base(frame) + OWNER, lane as u64);
    Ok(())
}

/// Takes a run off the list that it is on.
fn remove<M: Medium>(
    medium: &M,
    chunks: &Chunks<M>,
    list: &mut Vec<Frame>,
    frame: Frame,
) -> Result<(), Error> {
    let words = chunks.get(medium, frame.chunk())?.words();
    let position = words.load(base(frame) + POSITION) as usize - 1;
    list.swap_remove(position);
    // Prefetches the run that the next removal may move, if removals follow soon.
    if let Some(&soon) = list.len().checked_sub(SOON).and_then(|i| list.get(i))
        && let Some(chunk) = chunks.known(soon.chunk())
    {
        chunk.words().prefetch(base(soon) + POSITION);
    }
    if let Some(&moved) = list.get(position) {
        let words = chunks.get(medium, moved.chunk())?.words();
        words.store(base(moved) + POSITION, position as u64 + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use firn_crash::{Crash, CrashOptions, interleavings};
    use firn_format::geometry::{FIRST_DATA_CHUNK, MIN_POOL_BYTES};

    use super::super::chunks::Tables;
    use firn_media::Memory;

    use super::*;

    /// A run with free slots, listed for its owner, lane 0.
    fn listed(medium: &Crash, lists: &Lists<Crash>, chunks: &Chunks<Crash>, class: Class) -> Frame {
        let frame = Chunk(FIRST_DATA_CHUNK).first_frame();
        let words = chunks.get(medium, frame.chunk()).unwrap().words();
        medium.store_u64(frame.word_at(), FrameUse::Slots(class).to_word());
        for word in 0..BITMAP_WORDS {
            let mask = slot_mask(class.slots(), word);
            words.store(base(frame) + FREE + word as usize, mask);
        }
        lists.offer(medium, chunks, frame, class).unwrap();
        frame
    }

    /// A session of another lane takes a run while the collector closes it: one of them gets it, and no thread looks
    /// for it on its new owner's list.
    #[test]
    fn a_run_that_changes_its_owner_is_on_no_list() {
        let class = Class::all().next().unwrap();
        let found = interleavings(2, 4_000, |schedule| {
            let crash = Crash::new(MIN_POOL_BYTES, CrashOptions::default());
            let chunks = Arc::new(Chunks::new(&crash, Tables::Bitmaps, None, Arc::default()));
            let lists = Arc::new(Lists::new(&crash));
            let frame = listed(&crash, &lists, &chunks, class);
            let had = Arc::new(AtomicU32::new(0));
            let both = [0, 1].map(|_| {
                (
                    crash.clone(),
                    Arc::clone(&lists),
                    Arc::clone(&chunks),
                    Arc::clone(&had),
                )
            });
            let [
                (medium, mine, known, by_session),
                (other, its, seen, by_collector),
            ] = both;
            let jobs: Vec<Box<dyn FnOnce() + Send>> = vec![
                Box::new(move || {
                    let taken = mine.pop(&medium, &known, class, 1).unwrap();
                    by_session.fetch_add(u32::from(taken == Some(frame)), Relaxed);
                }),
                Box::new(move || {
                    let closed = its.close(&other, &seen, frame, class).unwrap();
                    by_collector.fetch_add(u32::from(closed), Relaxed);
                }),
            ];
            let outcome = crash.run(jobs, schedule);
            outcome.finished()?;
            match had.load(Relaxed) {
                1 => Ok(outcome),
                both => Err(format!("{both} have the run")),
            }
        });
        assert_eq!(found.failure, None);
        assert!(
            found.exhaustive,
            "{} executions are not all",
            found.executions
        );
    }
}
