//! The checker and the trace's use: whether every invariant holds, and what may be reclaimed.

use std::sync::atomic::Ordering;

use firn_format::FormatError;
use firn_format::frame::FrameUse;
use firn_format::geometry::{Chunk, Frame};
use firn_format::header::ObjectHeader;
use firn_format::statistics::{Counter, FIRST_CLASS, FIRST_EVENT, WORDS};
use firn_format::superblock::PoolKind;
use firn_media::Medium;
use firn_units::{FRAMES_PER_CHUNK, VirtAddr, WORD_BYTES};

use crate::alloc::{Footprint, Place, Slot, locate};
use crate::collector::cycle::Cycle;
use crate::collector::{Part, data_chunks};
use crate::error::Error;
use crate::object::requested_bytes;
use crate::pool::{Inner, Pool};
use crate::shape::Shapes;
use crate::tally;
use crate::trace::{FootprintCount, InCycle, Trace};

/// Something that should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The address concerned, zero if there is none.
    pub at: u64,
    /// What is wrong.
    pub what: String,
}

impl core::fmt::Display for Finding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x}: {}", self.at, self.what)
    }
}

/// What [`Pool::trace`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// Reachable objects.
    pub objects: u64,
    /// Their bytes as requested.
    pub live_bytes: u64,
    /// Allocated slots that nothing reached, free now. Counted where that was known.
    pub reclaimed: u64,
}

impl<M: Medium> Pool<M> {
    /// Walks the pool while no operation is open and lists what is wrong with it: tables, headers,
    /// types, references, allocation.
    ///
    /// Errors: an operation stayed open.
    pub fn check(&self) -> Result<Vec<Finding>, Error> {
        self.inner.stopped(|| self.inner.check())
    }

    /// Finds what is reachable, and in a traced pool reclaims the rest; counts what lives. Stops all
    /// operations while it runs. Needed once after a crash; see [`Pool::needs_trace`].
    ///
    /// Errors: an operation stayed open, a collection is under way; the pool is damaged, and nothing was
    /// reclaimed.
    pub fn trace(&self) -> Result<Traced, Error> {
        if !self.inner.writable {
            return Err(Error::ReadOnly);
        }
        let _only = self.inner.without_collector()?;
        self.inner.stopped(|| self.inner.trace())?
    }
}

impl<M: Medium> Inner<M> {
    fn trace_all(&self) -> Trace<'_, M, InCycle<'_, M>> {
        let mut trace = Trace::new(&self.medium, self.id, &self.types, InCycle::of(self));
        trace.run(&self.handles.strong(&self.medium));
        trace
    }

    fn check(&self) -> Vec<Finding> {
        let mut trace = self.trace_all();
        if self.writable
            && let Err(error) = self.allocator.look_at_all(&self.medium)
        {
            trace.find(0, error.to_string());
        }
        let runs = match runs(&self.medium) {
            Ok(runs) => runs,
            Err(findings) => {
                trace.findings.extend(findings);
                return trace.findings;
            }
        };
        // Where allocation bits are exact, nothing reachable may be free.
        let exact = self.knows_slots();
        for (frame, what) in runs {
            let used = self.allocator.used_bits(&self.medium, frame);
            let reached = trace.marks.of(frame);
            for (word, (&used, &reached)) in used.iter().zip(&reached).enumerate() {
                let lost = reached & !used;
                if exact && lost != 0 {
                    let slot = word as u64 * 64 + u64::from(lost.trailing_zeros());
                    trace.find(
                        slot_at(frame, what, slot).0,
                        "reachable, but its slot is free".into(),
                    );
                }
            }
        }
        if self.kind == PoolKind::Explicit {
            self.check_bits(&mut trace);
            self.check_allocated(&mut trace);
        }
        trace.findings
    }

    /// In an explicit pool an object lives whether anything reaches it or not, so each must make sense by itself.
    fn check_allocated(&self, trace: &mut Trace<'_, M, InCycle<'_, M>>) {
        let shapes = Shapes::new(&self.types);
        let cycle = trace.visitor.cycle();
        let walked = each_allocated(&self.medium, cycle.as_deref(), |slot, header| {
            if trace.marks.has(&slot) {
                return;
            }
            let content = |cycle: &Cycle<M>| cycle.content(&self.medium, slot.at);
            let at = cycle.as_deref().map_or(slot.at, content);
            let sense = match requested_bytes(header, slot.bytes) {
                None => Err("the object is larger than its slot".into()),
                Some(requested) => shapes.references(&self.medium, at, header, requested, |_| {}),
            };
            if let Err(what) = sense {
                trace.find(at.0, what);
            }
        });
        if let Err(error) = walked {
            trace.find(0, error.to_string());
        }
    }

    /// In an explicit pool the bits on media are the truth, and must equal what this open knows.
    fn check_bits(&self, trace: &mut Trace<'_, M, InCycle<'_, M>>) {
        for (frame, what) in runs(&self.medium).unwrap_or_default() {
            let used = self.allocator.used_bits(&self.medium, frame);
            for (word, &used) in used
                .iter()
                .enumerate()
                .take(slots(what).div_ceil(64) as usize)
            {
                let at = frame.bitmap_at() + word as u64 * WORD_BYTES;
                let stored = self.medium.load_u64(at);
                // Slots in a session's hands are used here and free there.
                if stored & !used != 0 {
                    trace.find(
                        at.0,
                        "the allocation bits differ from what is in use".into(),
                    );
                }
            }
        }
    }

    fn trace(&self) -> Result<Traced, Error> {
        let mut trace = self.trace_all();
        if let Some(finding) = trace.findings.first() {
            return Err(Error::Damaged {
                what: "a reference or an object",
                at: finding.at,
            });
        }
        // What a crash left of runs without objects goes.
        self.allocator.look_at_all(&self.medium)?;
        let mut result = Traced {
            objects: trace.sums[Counter::Objects.word()] as u64,
            live_bytes: trace.sums[Counter::LiveBytes.word()] as u64,
            reclaimed: 0,
        };
        if self.kind == PoolKind::Traced {
            let runs = runs(&self.medium).map_err(|findings| {
                let at = findings.first().map_or(0, |f| f.at);
                Error::Damaged {
                    what: "the frame table",
                    at,
                }
            })?;
            for (frame, what) in runs {
                let used = trace.marks.of(frame);
                result.reclaimed += self.replace_used(frame, what, &used)?;
            }
            self.handles.clear_weak(&self.medium, |reference| {
                locate(&self.medium, reference.address()).is_ok_and(|s| trace.marks.has(&s))
            });
            self.allocator
                .space()
                .lock(&self.medium)
                .set_emergency(false);
        } else {
            trace.sums = self.count_allocated()?;
        }
        self.replace_counters(&mut trace.sums);
        Ok(result)
    }

    /// Counts the objects of an explicit pool, which live whether anything reaches them or not.
    fn count_allocated(&self) -> Result<Box<[i64; WORDS]>, Error> {
        let mut sums = Box::new([0; WORDS]);
        let mut damaged = None;
        each_allocated(&self.medium, None, |slot, header| {
            let what = (header.type_id(), slot.place.class_index());
            match requested_bytes(header, slot.bytes) {
                Some(requested) => tally::count(&mut sums, what, (1, requested as i64)),
                None => damaged = Some(slot.at.0),
            }
        })?;
        match damaged {
            Some(at) => Err(Error::Damaged {
                what: "the header of an object",
                at,
            }),
            None => Ok(sums),
        }
    }

    /// Makes `sums` the counters of objects; pages are what the allocator knows, events what they were.
    fn replace_counters(&self, sums: &mut [i64; WORDS]) {
        let before = self.begin_recount();
        let events = FIRST_EVENT..FIRST_CLASS;
        sums[events.clone()].copy_from_slice(&before[events]);
        let Footprint { frames, chunks } = self.allocator.footprint();
        sums[Counter::LiveFrames.word()] = frames;
        sums[Counter::LiveChunks.word()] = chunks;
        tally::replace(&self.medium, self.lane_count, sums);
        self.exact.store(true, Ordering::Release);
    }

    fn replace_used(&self, frame: Frame, what: FrameUse, used: &[u64]) -> Result<u64, Error> {
        let stamp = self.redo.counter();
        match what {
            FrameUse::Slots(class) => {
                self.allocator
                    .set_used(&self.medium, frame, class, used, stamp)
            }
            FrameUse::Large { .. } if used[0] & 1 == 0 => {
                self.allocator.drop_large(&self.medium, frame, stamp)?;
                Ok(1)
            }
            _ => Ok(0),
        }
    }
}

/// Counts the pages under the used slots of a run.
pub(crate) fn count_run(frame: Frame, what: FrameUse, used: &[u64], count: &mut FootprintCount) {
    for slot in 0..slots(what) {
        if used[slot as usize / 64] >> (slot % 64) & 1 != 0 {
            count.add(slot_at(frame, what, slot), slot_bytes(what));
        }
    }
}

fn slots(what: FrameUse) -> u64 {
    match what {
        FrameUse::Slots(class) => class.slots(),
        _ => 1,
    }
}

fn slot_bytes(what: FrameUse) -> u64 {
    match what {
        FrameUse::Slots(class) => class.slot_bytes(),
        other => other.frames() * firn_units::FRAME_BYTES,
    }
}

fn slot_at(frame: Frame, what: FrameUse, slot: u64) -> VirtAddr {
    frame.start() + slot * slot_bytes(what)
}

/// Every run that holds objects, in ascending order, or what is wrong with the tables.
pub(crate) fn runs<M: Medium>(medium: &M) -> Result<Vec<(Frame, FrameUse)>, Vec<Finding>> {
    let mut runs = Vec::new();
    let mut findings = Vec::new();
    let mut expect: u64 = 0;
    let mut head = Frame(0);
    for chunk in data_chunks(medium.len()) {
        for i in 0..FRAMES_PER_CHUNK {
            let frame = chunk.first_frame().plus(i);
            let at = frame.word_at();
            let mut find = |what: &str| {
                findings.push(Finding {
                    at: at.0,
                    what: what.into(),
                })
            };
            let what = match FrameUse::from_word(medium.load_u64(at), at) {
                Ok(what) => what,
                Err(error) => {
                    find(&error.to_string());
                    continue;
                }
            };
            match what {
                FrameUse::Tail { back } if expect > 0 => {
                    if frame.0 - head.0 != back {
                        find("a tail frame does not belong to the run before it");
                    }
                    expect -= 1;
                }
                FrameUse::Tail { .. } => find("a tail frame without a run"),
                _ if expect > 0 => {
                    find("a run ends early");
                    expect = 0;
                }
                FrameUse::Free | FrameUse::Log | FrameUse::Plan | FrameUse::Kept => {}
                FrameUse::Slots(_) | FrameUse::Large { .. } => {
                    (expect, head) = (what.frames() - 1, frame);
                    runs.push((frame, what));
                }
            }
        }
    }
    if findings.is_empty() {
        Ok(runs)
    } else {
        Err(findings)
    }
}

/// Every allocated object of a pool whose allocation bits on media hold, by address. Runs that come or
/// go meanwhile are seen or not.
///
/// `cycle` is the one that is open or being released: its objects count once, at their destinations.
/// Other runs that are reserved are of a plan that does not count yet.
///
/// Errors: a frame word is damaged.
pub(crate) fn each_allocated<M: Medium>(
    medium: &M,
    cycle: Option<&Cycle<M>>,
    mut visit: impl FnMut(Slot, ObjectHeader),
) -> Result<(), FormatError> {
    for chunk in data_chunks(medium.len()) {
        each_allocated_in(medium, chunk, cycle, &mut visit)?;
    }
    Ok(())
}

/// The same, of the runs that begin in one chunk.
pub(crate) fn each_allocated_in<M: Medium>(
    medium: &M,
    chunk: Chunk,
    cycle: Option<&Cycle<M>>,
    visit: &mut impl FnMut(Slot, ObjectHeader),
) -> Result<(), FormatError> {
    for i in 0..FRAMES_PER_CHUNK {
        let frame = chunk.first_frame().plus(i);
        let Some(what) = counted_run(medium, cycle, frame)? else {
            continue;
        };
        for index in 0..slots(what) {
            if let Some(slot) = allocated_slot(medium, frame, what, index) {
                let content = cycle.map_or(slot.at, |cycle| cycle.content(medium, slot.at));
                let header = ObjectHeader(medium.load_u64(content));
                visit(slot, header);
            }
        }
    }
    Ok(())
}

/// The first allocated object that begins behind `after`, by address; see [`each_allocated`].
///
/// Errors: a frame word is damaged.
pub(crate) fn next_allocated<M: Medium>(
    medium: &M,
    cycle: Option<&Cycle<M>>,
    after: VirtAddr,
) -> Result<Option<Slot>, FormatError> {
    let mut frame = Frame::holding(after);
    let word = frame.word_at();
    // In the middle of a run its first frame knows what follows.
    if frame.chunk().is_data()
        && after.0 < medium.len()
        && let FrameUse::Tail { back } = FrameUse::from_word(medium.load_u64(word), word)?
    {
        frame = Frame(frame.0.saturating_sub(back));
    }
    while frame.start().0 < medium.len() {
        if !frame.chunk().is_data() {
            frame = Chunk(frame.chunk().0 + 1).first_frame();
            continue;
        }
        let Some(what) = counted_run(medium, cycle, frame)? else {
            frame = frame.plus(1);
            continue;
        };
        let passed = after.0.checked_sub(frame.start().0);
        let first = passed.map_or(0, |offset| offset / slot_bytes(what) + 1);
        let found = (first..slots(what)).find_map(|i| allocated_slot(medium, frame, what, i));
        if found.is_some() {
            return Ok(found);
        }
        frame = frame.plus(what.frames());
    }
    Ok(None)
}

/// The run that begins with a frame, if its objects count.
fn counted_run<M: Medium>(
    medium: &M,
    cycle: Option<&Cycle<M>>,
    frame: Frame,
) -> Result<Option<FrameUse>, FormatError> {
    let word = medium.load_u64(frame.word_at());
    let what = FrameUse::from_word(word, frame.word_at())?;
    if !matches!(what, FrameUse::Slots(_) | FrameUse::Large { .. }) {
        return Ok(None);
    }
    let counts = match cycle.and_then(|cycle| cycle.part(frame)) {
        Some(Part::Source(_)) => false,
        Some(Part::Destination(_)) => true,
        None => !FrameUse::is_reserved(word),
    };
    Ok(counts.then_some(what))
}

/// A slot of a run, if media says that an object is allocated there.
fn allocated_slot<M: Medium>(medium: &M, frame: Frame, what: FrameUse, index: u64) -> Option<Slot> {
    let class = match what {
        FrameUse::Slots(class) => Some(class),
        _ => None,
    };
    let place = Place {
        frame,
        index,
        class,
    };
    let is_allocated = medium.load_u64(place.bitmap_word_at()) & place.bit().1 != 0;
    is_allocated.then(|| Slot {
        at: slot_at(frame, what, index),
        bytes: slot_bytes(what),
        place,
    })
}
