//! An open cycle: where each object of the plan goes, how far each one has come, and the read barrier.
//!
//! A *unit* is one object. Its volatile state is `NONE`, `BUSY` while one thread copies it, `COPIED`
//! when the copy may be used, then `STORED` and `DURABLE` for the settled word on media. The source is
//! never written again. Objects are found by their destination as well as by their source, because a
//! crash leaves references to both (piggyback rule 8).

use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_format::FormatError;
use firn_format::class::Class;
use firn_format::geometry::Frame;
use firn_format::header::{HEADER_BYTES, ObjectHeader};
use firn_format::plan::{ENTRY_WORDS, Entry, PlanHeader, entries_checksum};
use firn_format::reference::RefWord;
use firn_media::{Medium, MediumExt, Scope, Table, Words};
use firn_units::{FRAME_BYTES, VirtAddr, WORD_BYTES, round_up};

use super::frame_map::{FRAME_MAP_BYTES, FrameMap, Part};
use super::kept::moved;
use super::scheme::{Scheme, Settle, Shown};
use super::soundness::is_sound;
use crate::alloc::FrameRun;
use crate::error::Error;
use crate::steps;
use crate::work;

/// Nobody has touched the unit.
const NONE: u64 = 0;
/// One thread copies it; others wait.
const BUSY: u64 = 1;
/// The copy may be used; media may still have the source only.
const COPIED: u64 = 2;
/// The settled word is stored, the copy was durable before.
const STORED: u64 = 3;
/// The settled word is durable.
const DURABLE: u64 = 4;

/// Instructions, beyond the loads, in which x86-64 code finds a frame's part.
const CHECK_INSTRUCTIONS: u64 = 8;
/// Instructions that compute where an object of a source goes: its slot, its rank among those that move, and where
/// that lies.
const FORWARD_INSTRUCTIONS: u64 = 30;

/// A run that a cycle fills, from its first slot on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub(crate) frame: Frame,
    pub(crate) class: Option<Class>,
    /// Frames of the run.
    pub(crate) frames: u64,
    /// Unit in slot 0; the others follow.
    pub(super) first_unit: u64,
    /// Slots that are filled.
    pub(crate) units: u64,
}

impl Destination {
    pub(crate) fn run(&self) -> FrameRun {
        FrameRun {
            frame: self.frame,
            frames: self.frames,
        }
    }
}

/// One object that moves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Unit {
    pub(crate) index: u64,
    pub(crate) to: VirtAddr,
}

/// A cycle between the moment when its plan counts and the moment when it no longer does.
#[doc(hidden)]
pub struct Cycle<M: Medium> {
    pub(crate) plan: Frame,
    pub(crate) header: PlanHeader,
    pub(crate) scheme: &'static Scheme,
    pub(crate) entries: Vec<Entry>,
    pub(crate) destinations: Vec<Destination>,
    /// Whether sources may have given their blocks back.
    pub(crate) lacks_blocks: AtomicBool,
    /// Whether a crash interrupted it. Only then does a reference on media name a destination that nobody
    /// has copied to (rule 8): it was stored when somebody had, and the copy was lost.
    resumed: bool,
    map: FrameMap,
    states: M::Words,
    /// Copies that this process has made. Says nothing of any of them: only whether there were more since.
    copies: AtomicU64,
}

impl<M: Medium> Cycle<M> {
    /// The tables of a plan. Every unit is unclaimed, the settled ones of a cycle that a crash
    /// interrupted excepted.
    ///
    /// Errors: the entries do not belong together, or share frames.
    pub(crate) fn new(
        medium: &M,
        plan: Frame,
        header: PlanHeader,
        scheme: &'static Scheme,
        entries: Vec<Entry>,
    ) -> Result<Self, FormatError> {
        let mut map = FrameMap::new();
        let mut destinations: Vec<Destination> = Vec::new();
        let wrong = |index: usize, found: Frame| FormatError::Range {
            what: "an entry of the collector's plan",
            at: PlanHeader::entry_at(plan, index as u64).bytes(),
            found: found.0,
        };
        let mut holds = |first: Frame, frames: u64, part| {
            let free = (0..frames).all(|i| map.get(first.plus(i)).is_none());
            if free {
                (0..frames).for_each(|i| map.set(first.plus(i), part));
            }
            free
        };
        for (index, entry) in entries.iter().enumerate() {
            let frames = frames_of(entry);
            if !holds(entry.source, frames, Part::Source(index)) {
                return Err(wrong(index, entry.source));
            }
            let count = entry.count();
            for (frame, slot, unit, units) in [
                (
                    entry.first,
                    entry.first_slot,
                    entry.unit,
                    count.min(entry.split),
                ),
                (
                    entry.second,
                    0,
                    entry.unit + entry.split,
                    count.saturating_sub(entry.split),
                ),
            ] {
                if units == 0 {
                    continue;
                }
                match destinations.last_mut() {
                    Some(last) if last.frame == frame && last.first_unit + slot == unit => {
                        last.units = slot + units;
                    }
                    _ if slot == 0 => destinations.push(Destination {
                        frame,
                        class: entry.class,
                        frames,
                        first_unit: unit,
                        units,
                    }),
                    _ => return Err(wrong(index, frame)),
                }
            }
        }
        for (index, run) in destinations.iter().enumerate() {
            if !holds(run.frame, run.frames, Part::Destination(index)) {
                return Err(wrong(0, run.frame));
            }
        }
        Ok(Self {
            plan,
            header,
            scheme,
            entries,
            destinations,
            lacks_blocks: AtomicBool::new(false),
            resumed: false,
            map,
            states: medium.words(header.units as usize),
            copies: AtomicU64::new(0),
        })
    }

    /// Takes in what tells the cycle from others, and how far it has come.
    pub(crate) fn digest(&self, into: &mut impl Hasher) {
        let header = &self.header;
        (self.plan.0, header.checksum, header.units, header.scheme).hash(into);
        for unit in 0..self.states.len() {
            self.states.load(unit).hash(into);
        }
    }

    /// Reads the plan that the phase word names, and which of its units are settled.
    ///
    /// Errors: the plan is damaged.
    pub(crate) fn load(medium: &M, plan: Frame) -> Result<Self, Error> {
        let (header, entries) = Self::load_entries(medium, plan)?;
        let scheme = Scheme::numbered(header.scheme).ok_or(Error::Damaged {
            what: "the collector's plan",
            at: plan.start().0,
        })?;
        let mut cycle = Self::new(medium, plan, header, scheme, entries)?;
        cycle.resumed = true;
        cycle.lacks_blocks.store(true, Ordering::Relaxed);
        let mut settled = vec![0u64; header.units as usize];
        medium.load_bytes(
            header.settled_at(plan),
            bytemuck::cast_slice_mut(&mut settled),
        );
        for (unit, &word) in settled.iter().enumerate() {
            if word != 0 {
                cycle.states.store(unit, DURABLE);
            }
        }
        Ok(cycle)
    }

    /// Reads what a plan moves where.
    ///
    /// Errors: the plan is damaged.
    pub(super) fn load_entries(medium: &M, plan: Frame) -> Result<(PlanHeader, Vec<Entry>), Error> {
        let line = |at: VirtAddr| -> [u64; ENTRY_WORDS] {
            core::array::from_fn(|i| medium.load_u64(at + i as u64 * WORD_BYTES))
        };
        let header = PlanHeader::from_words(&line(plan.start()), plan.start())?;
        let damaged = || Error::Damaged {
            what: "the collector's plan",
            at: plan.start().0,
        };
        if plan.start().0 + header.frames() * FRAME_BYTES > medium.len() {
            return Err(damaged());
        }
        let mut words = vec![0u64; header.entries as usize * ENTRY_WORDS];
        medium.load_bytes(
            PlanHeader::entry_at(plan, 0),
            bytemuck::cast_slice_mut(&mut words),
        );
        if entries_checksum(&words) != header.checksum {
            return Err(damaged());
        }
        let mut entries = Vec::with_capacity(header.entries as usize);
        for (index, words) in words.as_chunks::<ENTRY_WORDS>().0.iter().enumerate() {
            let at = PlanHeader::entry_at(plan, index as u64);
            entries.push(Entry::from_words(words, at)?);
        }
        match is_sound(medium.len(), plan, &header, &entries) {
            true => Ok((header, entries)),
            false => Err(damaged()),
        }
    }

    /// The part that a frame has in the cycle.
    pub(crate) fn part(&self, frame: Frame) -> Option<Part> {
        self.map.get(frame)
    }

    /// Whether the frame is one of the plan's.
    pub(crate) fn holds_plan(&self, frame: Frame) -> bool {
        (self.plan.0..self.plan.0 + self.header.frames()).contains(&frame.0)
    }

    /// Where a unit's settled word lies.
    #[inline]
    pub(crate) fn settled_at(&self, unit: u64) -> VirtAddr {
        self.header.settled_at(self.plan) + unit * WORD_BYTES
    }

    /// The unit whose settled word lies at `at`.
    pub(crate) fn unit_settled_at(&self, at: VirtAddr) -> Option<u64> {
        let first = self.header.settled_at(self.plan);
        let unit = at.0.checked_sub(first.0)? / WORD_BYTES;
        (unit < self.header.units).then_some(unit)
    }

    /// The unit of the object at `at`, which is its source or its destination.
    #[inline]
    pub(crate) fn find(&self, medium: &M, at: VirtAddr) -> Option<Unit> {
        if self.asks_hardware() {
            let moved = self.looked_up(medium, at);
            return self.unit_at(moved.unwrap_or(at));
        }
        load_frame(medium, at);
        self.find_in_tables(medium, at)
    }

    /// Finds an object in tables in volatile memory. The caller has said that it looks at the frame's part.
    #[inline]
    pub(super) fn find_in_tables(&self, medium: &M, at: VirtAddr) -> Option<Unit> {
        match self.map.get(Frame::holding(at))? {
            Part::Source(index) => {
                medium.table_load(Table::Forwarding, index as u64 * size_of::<Entry>() as u64);
                medium.work(FORWARD_INSTRUCTIONS);
                let entry = &self.entries[index];
                let slot = exact_slot(entry.class, at.0.checked_sub(entry.source.start().0)?)?;
                let rank = entry.rank(slot)?;
                Some(Unit {
                    index: entry.unit + rank,
                    to: destination_of(entry, rank),
                })
            }
            Part::Destination(index) => unit_of(&self.destinations[index], at),
        }
    }

    /// The unit whose destination is `at`.
    pub(super) fn unit_at(&self, at: VirtAddr) -> Option<Unit> {
        unit_of(self.run_at(at)?, at)
    }

    /// Whether a reference to `at` may name an object of the cycle, at its source or its destination.
    #[inline]
    pub(super) fn concerns(&self, medium: &M, at: VirtAddr) -> bool {
        if self.asks_hardware() {
            return self.looked_up(medium, at).is_some() || self.run_at(at).is_some();
        }
        self.part(Frame::holding(at)).is_some()
    }

    /// The run that is filled at `at`.
    pub(super) fn run_at(&self, at: VirtAddr) -> Option<&Destination> {
        match self.map.get(Frame::holding(at))? {
            Part::Destination(index) => self.destinations.get(index),
            Part::Source(_) => None,
        }
    }

    /// The unit whose destination covers the byte at `at`.
    pub(crate) fn covering(&self, at: VirtAddr) -> Option<Unit> {
        let Part::Destination(index) = self.map.get(Frame::holding(at))? else {
            return None;
        };
        let run = &self.destinations[index];
        let offset = at.0.checked_sub(run.frame.start().0)?;
        let (slot, bytes) = match run.class {
            Some(class) => (class.slot_of(offset), class.slot_bytes()),
            None => (0, 0),
        };
        (slot < run.units).then(|| Unit {
            index: run.first_unit + slot,
            to: run.frame.start() + slot * bytes,
        })
    }

    /// The unit that holds the byte at `at`, in its source or its destination, and where the byte is once it
    /// has moved.
    pub(crate) fn holding(&self, at: VirtAddr) -> Option<(Unit, VirtAddr)> {
        match self.map.get(Frame::holding(at))? {
            Part::Source(index) => {
                let entry = &self.entries[index];
                let to = moved(entry, at)?;
                Some((self.covering(to)?, to))
            }
            Part::Destination(_) => Some((self.covering(at)?, at)),
        }
    }

    /// Prepares stores to a unit without a log (rule 9): from the next fence of this thread on, which comes
    /// before any of them counts, the copy counts durably. One fence, if nobody has done it yet.
    pub(crate) fn settle_for_stores(&self, medium: &M, unit: Unit) {
        let state = self.states.load(unit.index as usize);
        // A line that reached persistence counts by itself where hardware says so.
        if state == DURABLE || self.scheme.relocates() {
            return;
        }
        if state != STORED {
            let len = self.bytes_of(medium, unit.to, unit.to);
            medium.write_back_for(&steps::RAW_COPY_WRITE_BACK, unit.to, len);
            medium.fence_for(&steps::RAW_COPY_FENCE);
            self.settle(medium, unit.index);
        }
        // Rule 5: whoever stored it.
        let at = self.settled_at(unit.index);
        medium.write_back_for(&steps::RAW_SETTLED_WRITE_BACK, at, WORD_BYTES);
    }

    /// Asks for the parts of the plan with which [`Cycle::find`] will answer, all at once.
    #[inline]
    pub(crate) fn look_ahead(&self, at: impl Iterator<Item = VirtAddr>) {
        if self.asks_hardware() {
            return;
        }
        let unit = |at| match self.map.get(Frame::holding(at)) {
            Some(Part::Source(index)) => self.entries[index].unit,
            Some(Part::Destination(index)) => self.destinations[index].first_unit,
            None => 0,
        };
        core::hint::black_box(at.map(unit).fold(0, |all, unit| all ^ unit));
    }

    /// Where the object at `at` is once it has moved. Moves nothing.
    #[inline]
    pub(crate) fn forward(&self, medium: &M, at: VirtAddr) -> VirtAddr {
        self.find(medium, at).map_or(at, |unit| unit.to)
    }

    /// A reference as it will be; references are compared in this form (rule T4a).
    #[inline]
    pub(crate) fn forward_word(&self, medium: &M, word: RefWord) -> RefWord {
        match self.find(medium, word.address()) {
            Some(unit) => RefWord::new(word.pool(), unit.to).with_tag(word.tag()),
            None => word,
        }
    }

    /// The read barrier: the address at which the object named by `word`, which the program read from
    /// media, may be used. Copies it if nobody has, and heals the reference in `field`, where the word was
    /// read.
    #[cold]
    #[inline(never)]
    pub(crate) fn touch(&self, medium: &M, word: RefWord, field: Option<VirtAddr>) -> VirtAddr {
        let at = word.address();
        if self.asks_hardware() {
            return self.touch_by_hardware(medium, word, field);
        }
        {
            let _scope = medium.scope(Scope::Check);
            load_frame(medium, at);
            match self.part(Frame::holding(at)) {
                None => return at,
                Some(Part::Destination(_)) if !self.has_lost_copies(medium) => return at,
                Some(_) => {}
            }
        }
        let found = {
            let _scope = medium.scope(Scope::Lookup);
            self.find_in_tables(medium, at)
        };
        let Some(unit) = found else {
            return at;
        };
        self.relocate(medium, unit);
        if let Some(field) = field
            && unit.to != at
        {
            let _scope = medium.scope(Scope::Reference);
            heal(medium, field, word, unit);
        }
        unit.to
    }

    /// Whether a reference on media may name a destination that nobody has copied to (rule 8).
    #[inline]
    pub(super) fn has_lost_copies(&self, medium: &M) -> bool {
        self.resumed && medium.keeps(&steps::FOUND_BY_DESTINATION)
    }

    /// Makes sure that the object at `at`, its destination if it moves, may be used.
    pub(crate) fn bring(&self, medium: &M, at: VirtAddr) {
        if let Some(unit) = self.find(medium, at) {
            self.relocate(medium, unit);
        }
    }

    /// Makes sure that the unit's copy may be used.
    #[inline]
    pub(crate) fn relocate(&self, medium: &M, unit: Unit) {
        if self.states.load(unit.index as usize) < COPIED {
            let from = self.source_of(unit.index).unwrap_or(unit.to);
            self.claim(medium, unit, from);
        }
    }

    /// Relocates a unit whose source is known. Returns how many objects this thread copied for it.
    #[inline]
    pub(crate) fn relocate_from(&self, medium: &M, unit: Unit, from: VirtAddr) -> u64 {
        match self.states.load(unit.index as usize) < COPIED {
            true => self.claim(medium, unit, from),
            false => 0,
        }
    }

    /// Copies the unit, and what is copied with it, or waits for who does. Returns how many objects this
    /// thread copied.
    fn claim(&self, medium: &M, unit: Unit, from: VirtAddr) -> u64 {
        medium.work(work::MOVED);
        if self.scheme.relocates() {
            return self.claim_group(medium, unit);
        }
        if self.scheme.claims && !self.takes(medium, unit.index) {
            return 0;
        }
        self.move_unit(medium, unit, from);
        self.count_copy();
        1
    }

    /// Rule 2: one thread copies, losers wait. Whether it is this one.
    pub(super) fn takes(&self, medium: &M, unit: u64) -> bool {
        let index = unit as usize;
        let taken = self.states.compare_exchange(index, NONE, BUSY).is_ok()
            || medium.leaves_out(&steps::CLAIM);
        if !taken {
            let mut attempt = 0;
            while self.states.load(index) < COPIED {
                medium.pause(attempt);
                attempt += 1;
            }
        }
        taken
    }

    /// Copies that this process has made so far, a group that is copied together counting once.
    pub(super) fn copies(&self) -> u64 {
        self.copies.load(Ordering::Relaxed)
    }

    /// A copy was made.
    pub(super) fn count_copy(&self) {
        self.copies.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the unit's copy may be used.
    pub(super) fn is_copied(&self, unit: u64) -> bool {
        self.states.load(unit as usize) >= COPIED
    }

    /// The unit's copy may be used.
    pub(super) fn copied(&self, unit: u64) {
        if !self.is_copied(unit) {
            self.states.store(unit as usize, COPIED);
        }
    }

    fn move_unit(&self, medium: &M, unit: Unit, from: VirtAddr) {
        let needs_flush = medium.domain().needs_flush();
        let scheme = self.scheme;
        {
            let _scope = medium.scope(Scope::Copy);
            let len = self.copy(medium, from, unit.to);
            if scheme.write_back_copy {
                medium.write_back_for(&steps::SCHEME_COPY_WRITE_BACK, unit.to, len);
            }
            if scheme.fence_copy && needs_flush {
                medium.fence_for(&steps::SCHEME_COPY_FENCE);
            }
        }
        let _scope = medium.scope(Scope::State);
        // Where visible stores are durable in their order, the word after the copy is all there is.
        let state = if !needs_flush || scheme.settle == Settle::AtCopy {
            let at = self.settled_at(unit.index);
            medium.store_u64(at, 1);
            if scheme.shown == Shown::AtStore {
                self.states.store(unit.index as usize, DURABLE);
            }
            medium.write_back_for(&steps::SCHEME_SETTLED_WRITE_BACK, at, WORD_BYTES);
            if scheme.fence_settled && needs_flush {
                medium.fence_for(&steps::SCHEME_SETTLED_FENCE);
            }
            if scheme.fence_settled || !needs_flush {
                DURABLE
            } else {
                STORED
            }
        } else {
            COPIED
        };
        self.states.store(unit.index as usize, state);
    }

    /// Copies an object by ordinary stores. Returns its length.
    fn copy(&self, medium: &M, from: VirtAddr, to: VirtAddr) -> u64 {
        let len = self.bytes_of(medium, from, to);
        medium.copy(from, to, len);
        len
    }

    /// Bytes of the object at `from`: its slot without what the program did not ask for.
    pub(super) fn bytes_of(&self, medium: &M, from: VirtAddr, to: VirtAddr) -> u64 {
        let slot = match self.map.get(Frame::holding(to)) {
            Some(Part::Destination(index)) => {
                let run = &self.destinations[index];
                run.class
                    .map_or(run.frames * FRAME_BYTES, Class::slot_bytes)
            }
            _ => HEADER_BYTES,
        };
        let slack = ObjectHeader(medium.load_u64(from)).slack_bytes();
        round_up(slot.saturating_sub(slack).max(HEADER_BYTES), WORD_BYTES)
    }

    /// Where a unit comes from.
    pub(crate) fn source_of(&self, unit: u64) -> Option<VirtAddr> {
        let after = self.entries.partition_point(|entry| entry.unit <= unit);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        let slot = entry.slot_of_rank(unit - entry.unit)?;
        Some(entry.source.start() + slot * entry.class.map_or(0, Class::slot_bytes))
    }

    /// Where the object that is, or will be, at `to` can be read without moving it: at its source as
    /// long as nobody has copied it. For a pool at rest.
    pub(crate) fn content(&self, medium: &M, to: VirtAddr) -> VirtAddr {
        match self.find(medium, to) {
            Some(unit) if self.states.load(unit.index as usize) < COPIED => {
                self.source_of(unit.index).unwrap_or(to)
            }
            _ => to,
        }
    }

    /// Every unit of an entry, and where it comes from.
    pub(crate) fn units_of<'a>(
        &self,
        entry: &'a Entry,
    ) -> impl Iterator<Item = (Unit, VirtAddr)> + use<'a, M> {
        let bytes = entry.class.map_or(0, Class::slot_bytes);
        entry.slots().enumerate().map(move |(rank, slot)| {
            let rank = rank as u64;
            let unit = Unit {
                index: entry.unit + rank,
                to: destination_of(entry, rank),
            };
            (unit, entry.source.start() + slot * bytes)
        })
    }

    /// Writes the copies of an entry back, whose every object has moved, but for those that count
    /// already.
    pub(crate) fn write_back_copies(&self, medium: &M, entry: &Entry) {
        let bytes = entry
            .class
            .map_or(frames_of(entry) * FRAME_BYTES, Class::slot_bytes);
        let (mut start, mut len) = (VirtAddr(0), 0);
        for (unit, _) in self.units_of(entry) {
            // Rule 4: what is settled was durable before.
            if self.states.load(unit.index as usize) >= STORED {
                continue;
            }
            if start + len != unit.to {
                medium.write_back(start, len);
                (start, len) = (unit.to, 0);
            }
            len += bytes;
        }
        medium.write_back(start, len);
    }

    /// Stores the settled words of an entry and writes them back; the copies are durable (rule 4). A
    /// word that somebody stored may still be in his cache: it is written back, too (rule 5).
    pub(crate) fn settle_all(&self, medium: &M, entry: &Entry) {
        let count = entry.count();
        for unit in entry.unit..entry.unit + count {
            if self.states.load(unit as usize) < STORED {
                self.settle(medium, unit);
            }
        }
        medium.write_back(self.settled_at(entry.unit), count * WORD_BYTES);
    }

    /// Notes that the settled words of an entry are durable.
    pub(crate) fn settled_all_durably(&self, entry: &Entry) {
        for unit in entry.unit..entry.unit + entry.count() {
            self.settled_durably(unit);
        }
    }

    // ---- changes by transactions ----

    /// Prepares the change of a unit, before the log's fence: its lines must be durable under that
    /// fence (rule 3, C4). Returns whether the change must also make the settled word durable.
    pub(crate) fn before_change(&self, medium: &M, unit: Unit) -> bool {
        match self.states.load(unit.index as usize) {
            // A home that is durable is in a line that reached persistence, and such a line counts.
            _ if self.scheme.relocates() => false,
            DURABLE => false,
            STORED => medium.keeps(&steps::SETTLED_BY_EVERY_ENTRY),
            _ => {
                let len = self.bytes_of(medium, unit.to, unit.to);
                medium.write_back_for(&steps::COPY_WRITE_BACK, unit.to, len);
                true
            }
        }
    }

    /// Settles a unit, strictly after the log's fence (rule 4). The caller writes the word back with
    /// its homes, whoever stored it first (rule 5, C5).
    pub(crate) fn settle(&self, medium: &M, unit: u64) {
        medium.store_u64(self.settled_at(unit), 1);
        self.states.store(unit as usize, STORED);
    }

    // ---- recovery ----

    /// Copies a unit again if its copy does not count yet, and writes it back. The state is that of a
    /// unit whose copy may be used, to be settled.
    pub(crate) fn recover_unit(&self, medium: &M, unit: u64) {
        if self.states.load(unit as usize) != NONE && medium.keeps(&steps::SETTLED_STAYS) {
            return;
        }
        if let (Some(from), Some(to)) = (self.source_of(unit), self.destination(unit)) {
            let len = self.copy(medium, from, to);
            medium.write_back_for(&steps::RECOVERED_COPY_WRITE_BACK, to, len);
            self.states.store(unit as usize, COPIED);
        }
    }

    /// What figure 7b does: copies settled units again whose copy differs from the source.
    pub(crate) fn recover_different(&self, medium: &M) {
        for unit in 0..self.header.units {
            let (Some(from), Some(to)) = (self.source_of(unit), self.destination(unit)) else {
                continue;
            };
            if self.states.load(unit as usize) == NONE {
                continue;
            }
            let len = self.bytes_of(medium, from, to);
            let differs = (0..len / WORD_BYTES).any(|i| {
                medium.load_u64(from + i * WORD_BYTES) != medium.load_u64(to + i * WORD_BYTES)
            });
            if differs {
                self.copy(medium, from, to);
                medium.write_back(to, len);
            }
        }
    }

    /// Notes that a unit's settled word is durable.
    pub(crate) fn settled_durably(&self, unit: u64) {
        self.states.store(unit as usize, DURABLE);
    }

    fn destination(&self, unit: u64) -> Option<VirtAddr> {
        let after = self.entries.partition_point(|entry| entry.unit <= unit);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        Some(destination_of(entry, unit - entry.unit))
    }
}

/// Makes a reference to a moved object name its destination, T3 and C7: only the old reference is
/// replaced, never the program's own update. Whether it was there still.
pub(super) fn heal<M: Medium>(medium: &M, field: VirtAddr, old: RefWord, unit: Unit) -> bool {
    let healed = RefWord::new(old.pool(), unit.to).with_tag(old.tag());
    if medium.leaves_out(&steps::HEAL_BY_EXCHANGE) {
        medium.store_u64(field, healed.0);
        return true;
    }
    let found = medium.compare_exchange_u64(field, old.0, healed.0);
    found.is_ok()
}

/// Says that the part of the frame of `at` is looked at.
#[inline(always)]
fn load_frame<M: Medium>(medium: &M, at: VirtAddr) {
    medium.table_load(Table::Frames, Frame::holding(at).0 * FRAME_MAP_BYTES);
    medium.work(CHECK_INSTRUCTIONS);
}

/// The unit that fills the slot at `at` of a run.
#[inline]
fn unit_of(run: &Destination, at: VirtAddr) -> Option<Unit> {
    let slot = exact_slot(run.class, at.0.checked_sub(run.frame.start().0)?)?;
    (slot < run.units).then_some(Unit {
        index: run.first_unit + slot,
        to: at,
    })
}

#[inline]
pub(super) fn destination_of(entry: &Entry, rank: u64) -> VirtAddr {
    let (frame, slot) = entry.destination(rank);
    frame.start() + slot * entry.class.map_or(0, Class::slot_bytes)
}

/// The slot that starts `offset` bytes into a run.
#[inline]
fn exact_slot(class: Option<Class>, offset: u64) -> Option<u64> {
    match class {
        Some(class) => {
            let slot = class.slot_of(offset);
            (slot * class.slot_bytes() == offset).then_some(slot)
        }
        None => (offset == 0).then_some(0),
    }
}

/// Frames of an entry's runs; that of a large object keeps them where others keep the split.
pub(crate) fn frames_of(entry: &Entry) -> u64 {
    entry.class.map_or(entry.split, Class::frames)
}
