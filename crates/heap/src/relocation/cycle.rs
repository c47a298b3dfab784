//! An open cycle: where each object of the plan goes, and the state of each.
//!
//! A *unit* is one object. Its volatile state is `NONE`, `BUSY` while one thread copies it, `COPIED`
//! when the copy may be used, then `STORED` and `DURABLE` for the settled word on media. The source is
//! never written again. Objects are found by their destination as well as by their source, because a
//! crash leaves references to both (piggyback rule 8).

use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_format::FormatError;
use firn_format::class::Class;
use firn_format::geometry::{Frame, FrameRun};
use firn_format::plan::{Entry, PlanHeader};
use firn_format::reference::RefWord;
use firn_media::{Medium, Table, Words};
use firn_units::{VirtAddr, WORD_BYTES};

use super::frame_map::{FRAME_MAP_BYTES, FrameMap, Part};
use super::plan::{destination_of, exact_slot, frames_of, load_entries, moved};
use super::scheme::Scheme;
use crate::error::Error;

/// No thread has touched the unit.
pub(super) const NONE: u64 = 0;
/// One thread copies it; others wait.
pub(super) const BUSY: u64 = 1;
/// The copy may be used; media may still have only the source.
pub(super) const COPIED: u64 = 2;
/// The settled word is stored; the copy was durable before.
pub(super) const STORED: u64 = 3;
/// The settled word is durable.
pub(super) const DURABLE: u64 = 4;

/// Instructions, beyond the loads, by which x86-64 code finds a frame's part.
const CHECK_INSTRUCTIONS: u64 = 8;
/// Instructions that compute where an object of a source goes: its slot, its rank among the moving objects, and the
/// address for that rank.
const FORWARD_INSTRUCTIONS: u64 = 30;

/// A run that a cycle fills, from its first slot on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub(crate) frame: Frame,
    pub(crate) class: Option<Class>,
    /// Frames of the run.
    pub(crate) frames: u64,
    /// The unit in slot 0; the others follow.
    pub(crate) first_unit: u64,
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

/// A cycle while its plan counts.
#[doc(hidden)]
pub struct Cycle<M: Medium> {
    pub(crate) plan: Frame,
    pub(crate) header: PlanHeader,
    pub(crate) scheme: &'static Scheme,
    pub(crate) entries: Vec<Entry>,
    pub(crate) destinations: Vec<Destination>,
    /// Whether sources may have given their blocks back.
    pub(crate) lacks_blocks: AtomicBool,
    /// Whether a crash interrupted it. Only then can a reference on media name a destination without a copy (rule 8):
    /// it was stored when there was a copy, which the crash lost.
    pub(super) resumed: bool,
    pub(super) map: FrameMap,
    pub(super) states: M::Words,
    /// How many copies this process has made. Says nothing about one of them, only whether there were more since.
    pub(super) copies: AtomicU64,
}

impl<M: Medium> Cycle<M> {
    /// The tables of a plan. Every unit is unclaimed, except the settled ones of a cycle that a crash interrupted.
    ///
    /// Errors: the entries do not belong together, or share frames.
    pub(crate) fn new(
        medium: &M,
        plan: Frame,
        header: PlanHeader,
        scheme: &'static Scheme,
        entries: Vec<Entry>,
    ) -> Result<Self, FormatError> {
        let destinations = destinations_of(plan, &entries)?;
        let map = parts_of(plan, &entries, &destinations)?;
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

    /// Digests the cycle's identity and progress.
    pub(crate) fn digest(&self, into: &mut impl Hasher) {
        let header = &self.header;
        (self.plan.0, header.checksum, header.units, header.scheme).hash(into);
        for unit in 0..self.states.len() {
            self.states.load(unit).hash(into);
        }
    }

    /// Reads the plan that the phase word names, and the units that are settled.
    ///
    /// Errors: the plan is damaged.
    pub(crate) fn load(medium: &M, plan: Frame) -> Result<Self, Error> {
        let (header, entries) = load_entries(medium, plan)?;
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

    /// The part that a frame has in the cycle.
    pub(crate) fn part(&self, frame: Frame) -> Option<Part> {
        self.map.get(frame)
    }

    /// Whether the frame holds a part of the plan.
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

    /// Finds an object in tables in volatile memory. The caller has announced that it looks at the frame's part.
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
    pub(crate) fn unit_at(&self, at: VirtAddr) -> Option<Unit> {
        unit_of(self.run_at(at)?, at)
    }

    /// Whether a reference to `at` may name an object of the cycle, at its source or its destination.
    #[inline]
    pub(crate) fn concerns(&self, medium: &M, at: VirtAddr) -> bool {
        if self.asks_hardware() {
            return self.looked_up(medium, at).is_some() || self.run_at(at).is_some();
        }
        self.part(Frame::holding(at)).is_some()
    }

    /// The destination run that contains `at`.
    pub(crate) fn run_at(&self, at: VirtAddr) -> Option<&Destination> {
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

    /// The unit whose source or destination holds the byte at `at`, and the byte's address after the move.
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

    /// Prefetches the parts of the plan that [`Cycle::find`] will read, all at once.
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

    /// The address of the object at `at` after its move. Moves nothing.
    #[inline]
    pub(crate) fn forward(&self, medium: &M, at: VirtAddr) -> VirtAddr {
        self.find(medium, at).map_or(at, |unit| unit.to)
    }

    /// A reference as it will be after the moves; references are compared in this form (rule T4a).
    #[inline]
    pub(crate) fn forward_word(&self, medium: &M, word: RefWord) -> RefWord {
        match self.find(medium, word.address()) {
            Some(unit) => RefWord::new(word.pool(), unit.to).with_tag(word.tag()),
            None => word,
        }
    }

    /// The source of a unit.
    pub(crate) fn source_of(&self, unit: u64) -> Option<VirtAddr> {
        let after = self.entries.partition_point(|entry| entry.unit <= unit);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        let slot = entry.slot_of_rank(unit - entry.unit)?;
        Some(entry.source.start() + slot * entry.class.map_or(0, Class::slot_bytes))
    }

    /// Where the object whose destination is `to` can be read without moving it: at its source as long as it was not
    /// copied. For a pool at rest.
    pub(crate) fn content(&self, medium: &M, to: VirtAddr) -> VirtAddr {
        match self.find(medium, to) {
            Some(unit) if self.states.load(unit.index as usize) < COPIED => {
                self.source_of(unit.index).unwrap_or(to)
            }
            _ => to,
        }
    }

    /// Every unit of an entry, with its source.
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

    pub(super) fn destination(&self, unit: u64) -> Option<VirtAddr> {
        let after = self.entries.partition_point(|entry| entry.unit <= unit);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        Some(destination_of(entry, unit - entry.unit))
    }
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

/// Announces a look at the part of the frame of `at`.
#[inline(always)]
pub(super) fn load_frame<M: Medium>(medium: &M, at: VirtAddr) {
    medium.table_load(Table::Frames, Frame::holding(at).0 * FRAME_MAP_BYTES);
    medium.work(CHECK_INSTRUCTIONS);
}

/// The runs that a plan fills.
///
/// Errors: the entries do not belong together.
fn destinations_of(plan: Frame, entries: &[Entry]) -> Result<Vec<Destination>, FormatError> {
    let mut destinations: Vec<Destination> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let count = entry.count();
        let (in_first, in_second) = (count.min(entry.split), count.saturating_sub(entry.split));
        for (frame, slot, unit, units) in [
            (entry.first, entry.first_slot, entry.unit, in_first),
            (entry.second, 0, entry.unit + entry.split, in_second),
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
                    frames: frames_of(entry),
                    first_unit: unit,
                    units,
                }),
                _ => return Err(wrong_entry(plan, index, frame)),
            }
        }
    }
    Ok(destinations)
}

/// The part that each frame has.
///
/// Errors: entries share frames.
fn parts_of(
    plan: Frame,
    entries: &[Entry],
    destinations: &[Destination],
) -> Result<FrameMap, FormatError> {
    let mut map = FrameMap::new();
    let mut holds = |first: Frame, frames: u64, part| {
        let free = (0..frames).all(|i| map.get(first.plus(i)).is_none());
        if free {
            (0..frames).for_each(|i| map.set(first.plus(i), part));
        }
        free
    };
    for (index, entry) in entries.iter().enumerate() {
        if !holds(entry.source, frames_of(entry), Part::Source(index)) {
            return Err(wrong_entry(plan, index, entry.source));
        }
    }
    for (index, run) in destinations.iter().enumerate() {
        if !holds(run.frame, run.frames, Part::Destination(index)) {
            return Err(wrong_entry(plan, 0, run.frame));
        }
    }
    Ok(map)
}

fn wrong_entry(plan: Frame, index: usize, found: Frame) -> FormatError {
    FormatError::Range {
        what: "an entry of the collector's plan",
        at: PlanHeader::entry_at(plan, index as u64).bytes(),
        found: found.0,
    }
}
