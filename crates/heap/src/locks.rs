//! Structures' locks: one writer, many readers, in a volatile table.
//!
//! A structure has an id, stored in its root object, that survives moves and reopening; the id picks
//! a lock. Two structures may share one, so a transaction that holds a lock may ask for it again.
//!
//! Deadlock cannot happen between transactions. One that holds nothing waits without end; then only for locks of a higher
//! index than all it holds, and of these only for a while, because guards know no order; otherwise it tries once and
//! starts over. Started over it takes all that it held and what it was refused before it does anything else, in order,
//! so that each lock refuses it once at most.
//!
//! The lock of the root table comes first. Transactions that read roots share it without taking it: each says in a word
//! of its own what it has read ([`crate::roots::RootIndex`]), and has not given up the right to wait without end for a
//! structure by that. Who wants to change what they have read is the one who gives up.
//!
//! A thread with several sessions could wait for itself: for an operation of one of them to end, in another. It gets an
//! error instead ([`Holders`]).

mod holders;

use firn_media::{Medium, RwLockTable};

use self::holders::Holders;
use crate::error::{Error, check_usable};
use crate::roots::{self, RootIndex};

/// Pauses for which a transaction that holds locks waits for another. Guards know no order of
/// locks, so one that holds this lock may wait for what the transaction holds.
const PATIENCE: u32 = 200;
/// Locks of structures.
const OF_STRUCTURES: usize = 256;
/// Locks of a pool: that of the root table, and those that structures share.
const LOCKS: usize = 1 + OF_STRUCTURES;
/// The lock of the root table, which is no structure's.
const ROOTS: usize = 0;

#[inline]
pub(crate) fn index_of(id: u64) -> usize {
    1 + (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % OF_STRUCTURES
}

/// The locks of a pool, and the root table's index, where those who read roots say so.
pub(crate) struct Locks<M: Medium> {
    table: RwLockTable<M>,
    pub(crate) roots: RootIndex<M>,
    /// `None` where threads are simulated.
    holders: Option<Holders>,
}

impl<M: Medium> Locks<M> {
    pub(crate) fn new(medium: &M, lanes: usize) -> Self {
        Self {
            table: RwLockTable::new(medium, LOCKS),
            roots: RootIndex::new(medium, lanes),
            holders: (medium.thread() != 0).then(|| Holders::new(lanes, LOCKS)),
        }
    }

    /// A session of the calling thread begins to use a lane.
    pub(crate) fn session_opened(&self, medium: &M, lane: usize) {
        if let Some(holders) = &self.holders {
            holders.set_thread(lane, medium.thread());
        }
    }

    /// The session that used a lane has ended.
    pub(crate) fn session_ended(&self, lane: usize) {
        if let Some(holders) = &self.holders {
            holders.set_thread(lane, 0);
        }
    }

    #[inline]
    fn note(&self, lane: usize, index: usize) {
        if let Some(holders) = &self.holders {
            holders.note(lane, index);
        }
    }

    #[inline]
    fn forget(&self, lane: usize, index: usize) {
        if let Some(holders) = &self.holders {
            holders.forget(lane, index);
        }
    }

    /// Whether another session of this lane's thread keeps a lock from being taken. The thread that waits for it cannot
    /// end that session's operation, so this stays as it is.
    fn is_own(&self, lane: usize, index: usize, mode: Mode) -> bool {
        // Two sessions may share a lock: then it is refused for a writer of another thread, who will end.
        let excludes = mode == Mode::Write || self.table.is_written(index);
        (self.holders.iter()).any(|holders| {
            excludes
                && holders
                    .of_same_thread(lane)
                    .any(|other| holders.holds(other, index))
        })
    }

    /// Whether an open transaction of another session of this lane's thread has read one of these places of the root
    /// table.
    fn is_own_root(&self, lane: usize, bits: u64) -> bool {
        let holders = self.holders.iter();
        let mut others = holders.flat_map(|holders| holders.of_same_thread(lane));
        others.any(|other| self.roots.is_read_on(other, bits))
    }
}

/// A structure's lock, held for reading until this is dropped. In a transaction the transaction
/// holds it, to its end.
pub struct ReadLock<'g, M: Medium> {
    /// With the lane of the session and the lock's index.
    held: Option<(&'g Locks<M>, usize, usize)>,
}

impl<'g, M: Medium> ReadLock<'g, M> {
    /// Errors: [`Error::OwnLock`].
    pub(crate) fn take(
        medium: &M,
        locks: &'g Locks<M>,
        lane: usize,
        id: u64,
    ) -> Result<Self, Error> {
        let index = index_of(id);
        wait(medium, locks, lane, (index, Mode::Read), None)?;
        locks.note(lane, index);
        Ok(Self {
            held: Some((locks, lane, index)),
        })
    }

    pub(crate) const fn held_by_transaction() -> Self {
        Self { held: None }
    }
}

impl<M: Medium> Drop for ReadLock<'_, M> {
    fn drop(&mut self) {
        if let Some((locks, lane, index)) = self.held {
            locks.forget(lane, index);
            locks.table.unlock_read(index);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// Locks that a transaction holds.
#[derive(Default)]
pub(crate) struct LockSet {
    lane: usize,
    held: Vec<(usize, Mode)>,
    /// Places of the root table, as bits, that it has read without the table's lock.
    roots: u64,
    /// Those that it changes.
    claimed: u64,
    /// What it held, and what it was refused, when it had to start over: taken first of all from then on.
    wanted: Vec<(usize, Mode)>,
    wanted_roots: u64,
    /// Locks that others read too when they were asked for to write. The lane's transactions take them to write from the
    /// first: two that read before they write would refuse each other again and again.
    eager: [u64; LOCKS.div_ceil(64)],
    /// Of those held to write, which were only asked for to read.
    unused: Vec<usize>,
}

impl LockSet {
    pub(crate) fn new(lane: usize) -> Self {
        Self {
            lane,
            ..Self::default()
        }
    }

    /// Takes the lock of a structure, or finds that it is held.
    ///
    /// Errors: [`Error::Conflict`], [`Error::OwnLock`]; a forked child, a device that has failed.
    pub(crate) fn take<M: Medium>(
        &mut self,
        medium: &M,
        locks: &Locks<M>,
        id: u64,
        mode: Mode,
    ) -> Result<(), Error> {
        self.take_wanted(medium, locks)?;
        let index = index_of(id);
        if let Some(place) = self.held.iter().position(|(i, _)| *i == index) {
            return self.retake(locks, place, mode);
        }
        check_usable(medium)?;
        let is_eager = mode == Mode::Read && self.eager[index / 64] >> (index % 64) & 1 != 0;
        let mode = if is_eager { Mode::Write } else { mode };
        let first = self.held.is_empty();
        let in_order = self.held.iter().all(|(i, _)| *i < index);
        let patience = match (first, in_order) {
            (true, _) => None,
            (_, true) => Some(PATIENCE),
            (_, false) => Some(0),
        };
        if !wait(medium, locks, self.lane, (index, mode), patience)? {
            return Err(self.refuse(index, mode));
        }
        self.hold(locks, index, mode);
        if is_eager {
            self.unused.push(index);
        }
        Ok(())
    }

    /// Takes a lock that is held.
    fn retake<M: Medium>(
        &mut self,
        locks: &Locks<M>,
        place: usize,
        mode: Mode,
    ) -> Result<(), Error> {
        let (index, held) = self.held[place];
        if mode == Mode::Write {
            if held == Mode::Read && !locks.table.try_upgrade(index) {
                if locks.is_own(self.lane, index, mode) {
                    return Err(Error::OwnLock);
                }
                self.eager[index / 64] |= 1 << (index % 64);
                return Err(self.refuse(index, mode));
            }
            self.held[place].1 = mode;
            self.unused.retain(|&unused| unused != index);
        }
        Ok(())
    }

    /// Adds a lock that was taken.
    #[inline]
    fn hold<M: Medium>(&mut self, locks: &Locks<M>, index: usize, mode: Mode) {
        locks.note(self.lane, index);
        self.held.push((index, mode));
    }

    /// Makes a note of what the transaction needs when it starts over.
    fn refuse(&mut self, index: usize, mode: Mode) -> Error {
        self.wanted.extend_from_slice(&self.held);
        self.wanted.push((index, mode));
        self.wanted.sort_unstable();
        // The last of each index is the one that allows most.
        self.wanted.reverse();
        self.wanted.dedup_by_key(|(index, _)| *index);
        self.wanted.reverse();
        self.wanted_roots |= self.claimed;
        Error::Conflict
    }

    /// Takes what the transaction needed when it had to start over, if it holds nothing.
    #[inline]
    fn take_wanted<M: Medium>(&mut self, medium: &M, locks: &Locks<M>) -> Result<(), Error> {
        match !self.wanted.is_empty() && self.held.is_empty() && self.roots == 0 {
            true => self.take_all(medium, locks),
            false => Ok(()),
        }
    }

    #[cold]
    fn take_all<M: Medium>(&mut self, medium: &M, locks: &Locks<M>) -> Result<(), Error> {
        let wanted = core::mem::take(&mut self.wanted);
        while let Some(&(index, mode)) = wanted.get(self.held.len()) {
            let patience = (!self.held.is_empty()).then_some(PATIENCE);
            if wait(medium, locks, self.lane, (index, mode), patience)? {
                self.hold(locks, index, mode);
                if index == ROOTS && self.wanted_roots != 0 {
                    self.claim_waiting(medium, locks)?;
                }
                continue;
            }
            // A guard may hold this one and wait for another. It is waited for with empty hands.
            self.give_back(locks);
            wait(medium, locks, self.lane, (index, mode), None)?;
            unlock(locks, index, mode);
        }
        self.wanted = wanted;
        Ok(())
    }

    /// Claims what it was refused before, holding nothing but the table: whoever has read it ends some time, as nobody
    /// who reads roots waits without end for the table.
    fn claim_waiting<M: Medium>(&mut self, medium: &M, locks: &Locks<M>) -> Result<(), Error> {
        let bits = self.wanted_roots;
        locks.roots.claim(bits);
        self.claimed |= bits;
        let mut attempt = 0;
        while locks.roots.is_read(medium, self.lane, bits) {
            if locks.is_own_root(self.lane, bits) {
                return Err(Error::OwnLock);
            }
            medium.pause(attempt);
            attempt += 1;
        }
        Ok(())
    }

    fn holds_roots(&self) -> bool {
        self.held.iter().any(|(index, _)| *index == ROOTS)
    }

    /// Keeps a place of the root table as it is, to the transaction's end.
    #[inline]
    pub(crate) fn hold_root<M: Medium>(
        &mut self,
        medium: &M,
        locks: &Locks<M>,
        place: usize,
    ) -> Result<(), Error> {
        if self.roots & roots::bit(place) != 0 {
            return Ok(());
        }
        self.hold_further_root(medium, locks, place)
    }

    fn hold_further_root<M: Medium>(
        &mut self,
        medium: &M,
        locks: &Locks<M>,
        place: usize,
    ) -> Result<(), Error> {
        self.take_wanted(medium, locks)?;
        if self.holds_roots() {
            return Ok(());
        }
        if locks.roots.hold(medium, self.lane, place) {
            self.roots |= roots::bit(place);
            return Ok(());
        }
        // Somebody changes it, and does not wait for this lane.
        locks.roots.release(self.lane, self.roots);
        self.take_roots(medium, locks, Mode::Read)
    }

    /// Keeps all names of the root table as they are, to the transaction's end. Returns whether they were kept already.
    pub(crate) fn hold_names<M: Medium>(
        &mut self,
        medium: &M,
        locks: &Locks<M>,
    ) -> Result<bool, Error> {
        self.take_wanted(medium, locks)?;
        if self.holds_roots() {
            return Ok(true);
        }
        self.take_roots(medium, locks, Mode::Read).map(|()| false)
    }

    /// Takes the root table.
    pub(crate) fn take_roots<M: Medium>(
        &mut self,
        medium: &M,
        locks: &Locks<M>,
        mode: Mode,
    ) -> Result<(), Error> {
        self.take_wanted(medium, locks)?;
        if let Some(place) = self.held.iter().position(|(index, _)| *index == ROOTS) {
            return self.retake(locks, place, mode);
        }
        let first = self.held.is_empty() && self.roots == 0;
        let taken = match first {
            true => wait(medium, locks, self.lane, (ROOTS, mode), None)?,
            false => self.wait_for_roots(medium, locks, mode)?,
        };
        if !taken {
            return Err(self.refuse(ROOTS, mode));
        }
        self.hold(locks, ROOTS, mode);
        Ok(())
    }

    /// Waits for the table for a while, but not for one who waits for what this transaction has read.
    fn wait_for_roots<M: Medium>(
        &self,
        medium: &M,
        locks: &Locks<M>,
        mode: Mode,
    ) -> Result<bool, Error> {
        for attempt in 0..PATIENCE {
            if wait(medium, locks, self.lane, (ROOTS, mode), Some(0))? {
                return Ok(true);
            }
            if locks.roots.is_changing(self.roots) {
                return Ok(false);
            }
            medium.pause(attempt);
        }
        Ok(false)
    }

    /// Claims a place of the root table, which is held to write: waits until no other transaction has read it.
    ///
    /// Errors: [`Error::Conflict`] if one goes on for long, which may wait for what this one holds; [`Error::OwnLock`].
    pub(crate) fn claim_root<M: Medium>(
        &mut self,
        medium: &M,
        locks: &Locks<M>,
        place: usize,
    ) -> Result<(), Error> {
        let bit = roots::bit(place);
        if self.claimed & bit != 0 {
            return Ok(());
        }
        locks.roots.claim(bit);
        self.claimed |= bit;
        let mut attempt = 0;
        while locks.roots.is_read(medium, self.lane, bit) {
            let is_own = locks.is_own_root(self.lane, bit);
            if is_own || attempt == PATIENCE {
                let refused = match is_own {
                    true => Error::OwnLock,
                    false => self.refuse(ROOTS, Mode::Write),
                };
                self.claimed &= !bit;
                locks.roots.unclaim(bit);
                return Err(refused);
            }
            medium.pause(attempt);
            attempt += 1;
        }
        Ok(())
    }

    /// Gives every lock back at the end of a transaction that was committed.
    pub(crate) fn end<M: Medium>(&mut self, locks: &Locks<M>) {
        for index in self.unused.drain(..) {
            self.eager[index / 64] &= !(1 << (index % 64));
        }
        self.release(locks);
        self.wanted.clear();
        self.wanted_roots = 0;
    }

    /// Gives every lock back.
    pub(crate) fn release<M: Medium>(&mut self, locks: &Locks<M>) {
        self.unused.clear();
        if self.roots != 0 {
            self.roots = 0;
            locks.roots.release(self.lane, 0);
        }
        self.give_back(locks);
    }

    fn give_back<M: Medium>(&mut self, locks: &Locks<M>) {
        // While the table is still held.
        if self.claimed != 0 {
            self.claimed = 0;
            locks.roots.disclaim();
        }
        for (index, mode) in self.held.drain(..) {
            locks.forget(self.lane, index);
            unlock(locks, index, mode);
        }
    }
}

/// Takes a lock for the session of a lane. Waits `patience` pauses, or without a limit if that is `None`. Returns
/// whether the lock was taken.
///
/// Errors: [`Error::OwnLock`], at once.
fn wait<M: Medium>(
    medium: &M,
    locks: &Locks<M>,
    lane: usize,
    (index, mode): (usize, Mode),
    patience: Option<u32>,
) -> Result<bool, Error> {
    let table = &locks.table;
    if locks.holders.is_some() {
        let taken = match mode {
            Mode::Read => table.try_read(index),
            Mode::Write => table.try_write(index),
        };
        if taken {
            return Ok(true);
        }
        if locks.is_own(lane, index, mode) {
            return Err(Error::OwnLock);
        }
    }
    match (mode, patience) {
        (Mode::Read, None) => table.read(medium, index),
        (Mode::Write, None) => table.write(medium, index),
        (Mode::Read, Some(0)) => return Ok(table.try_read(index)),
        (Mode::Write, Some(0)) => return Ok(table.try_write(index)),
        (Mode::Read, Some(pauses)) => return Ok(table.read_within(medium, index, pauses)),
        (Mode::Write, Some(pauses)) => return Ok(table.write_within(medium, index, pauses)),
    }
    Ok(true)
}

fn unlock<M: Medium>(locks: &Locks<M>, index: usize, mode: Mode) {
    match mode {
        Mode::Read => locks.table.unlock_read(index),
        Mode::Write => locks.table.unlock_write(index),
    }
}
