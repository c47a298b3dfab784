//! The trace: which objects are reachable.
//!
//! Reads only. It reports damage and does not follow it, so it serves the checker as well. It runs while no operation
//! is open, or beside operations if its visitor knows the changes since it began (`collector/mark.rs`).

use firn_format::frame::FrameUse;
use firn_format::geometry::{BITMAP_WORDS, Frame};
use firn_format::header::{ObjectHeader, TypeId};
use firn_format::reference::{PoolId, RefWord};
use firn_format::statistics::WORDS;
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, LINE_BYTES, VirtAddr, WORD_BYTES};

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use crate::alloc::{Slot, locate};
use crate::finding::Finding;
use crate::inner::Inner;
use crate::object::requested_bytes;
use crate::relocation::cycle::Cycle;
use crate::roots;
use crate::shape::{ReferenceRange, Refers, Shapes};
use crate::stat_shard;
use crate::types::Types;
use crate::walk::{slot_at, slot_bytes, slots};
use crate::work;

/// Objects that wait for their lines, and bytes of each that are prefetched.
const AHEAD: usize = 12;
const AHEAD_BYTES: u64 = 256;
/// Objects that are followed while the program is stopped, each at most a page long.
const LITTLE: usize = 256;
/// Further findings are only counted.
const MAX_FINDINGS: usize = 1000;

/// Bits of the reachable slots, chunk by chunk.
pub(crate) struct Marks {
    chunks: Vec<Option<Box<[[u64; BITMAP_WORDS as usize]]>>>,
}

impl Marks {
    pub(crate) fn new(len: u64) -> Self {
        Self {
            chunks: (0..len.div_ceil(CHUNK_BYTES)).map(|_| None).collect(),
        }
    }

    /// Marks a slot of the run at `frame`. Returns whether it was unmarked.
    pub(crate) fn mark(&mut self, frame: Frame, slot: u64) -> bool {
        let index = frame.chunk().0 as usize;
        if index >= self.chunks.len() {
            // The pool has grown since then.
            self.chunks.resize_with(index + 1, || None);
        }
        let Some(chunk) = self.chunks.get_mut(index) else {
            return false;
        };
        let empty = || vec![[0; BITMAP_WORDS as usize]; FRAMES_PER_CHUNK as usize].into();
        let bits = &mut chunk.get_or_insert_with(empty)[frame.index_in_chunk() as usize];
        let word = &mut bits[slot as usize / 64];
        let new = *word >> (slot % 64) & 1 == 0;
        *word |= 1 << (slot % 64);
        new
    }

    /// The marks of the run at `frame`.
    pub(crate) fn of(&self, frame: Frame) -> [u64; BITMAP_WORDS as usize] {
        let chunk = self
            .chunks
            .get(frame.chunk().0 as usize)
            .and_then(Option::as_deref);
        chunk.map_or([0; BITMAP_WORDS as usize], |c| {
            c[frame.index_in_chunk() as usize]
        })
    }

    /// Whether the slot is marked.
    pub(crate) fn has(&self, slot: &Slot) -> bool {
        let (word, bit) = slot.place.bit();
        self.of(slot.place.frame)[word as usize] & bit != 0
    }
}

/// The callbacks of a pass, and its questions.
pub(crate) trait Visitor {
    /// An object was reached for the first time.
    fn object(&mut self, slot: &Slot, header: ObjectHeader, requested: u64) {
        let _ = (slot, header, requested);
    }
    /// The word at `field` is a reference.
    fn reference(&mut self, field: VirtAddr, word: RefWord) {
        let _ = (field, word);
    }
    /// Where an object with this referenced address is counted.
    fn forward(&self, at: VirtAddr) -> VirtAddr {
        at
    }
    /// Where the object counted at `at` can be read.
    fn content(&self, at: VirtAddr) -> VirtAddr {
        at
    }
    /// Whether the object in this slot is to be skipped.
    fn skips(&self, slot: &Slot) -> bool {
        let _ = slot;
        false
    }
}

impl Visitor for () {}

/// Counts objects where the open cycle, if there is one, puts them, and reads them where they are. For a pool at rest.
pub(crate) struct InCycle<'m, M: Medium> {
    medium: &'m M,
    cycle: Option<Arc<Cycle<M>>>,
}

impl<'m, M: Medium> InCycle<'m, M> {
    pub(crate) fn of(pool: &'m Inner<M>) -> Self {
        let medium = &pool.medium;
        Self {
            medium,
            cycle: pool.collector.cycle(medium),
        }
    }

    pub(crate) fn cycle(&self) -> Option<Arc<Cycle<M>>> {
        self.cycle.clone()
    }
}

impl<M: Medium> Clone for InCycle<'_, M> {
    fn clone(&self) -> Self {
        Self {
            medium: self.medium,
            cycle: self.cycle(),
        }
    }
}

impl<M: Medium> Visitor for InCycle<'_, M> {
    fn forward(&self, at: VirtAddr) -> VirtAddr {
        let cycle = self.cycle.as_ref();
        cycle.map_or(at, |cycle| cycle.forward(self.medium, at))
    }
    fn content(&self, at: VirtAddr) -> VirtAddr {
        let cycle = self.cycle.as_ref();
        cycle.map_or(at, |cycle| cycle.content(self.medium, at))
    }
}

/// One pass over all reachable objects.
pub(crate) struct Trace<'a, M: Medium, V: Visitor = ()> {
    medium: &'a M,
    pub(crate) visitor: V,
    pool: PoolId,
    shapes: Rc<Shapes>,
    stack: Vec<Slot>,
    pub(crate) marks: Marks,
    /// Objects that have reference fields.
    pub(crate) referring: Marks,
    pub(crate) findings: Vec<Finding>,
    /// Counters as on the statistics page, except footprints.
    pub(crate) sums: Box<[i64; WORDS]>,
    /// Whether objects that cannot refer to anything are marked without looking at them, which would cost a cache miss
    /// each. They are not counted then.
    pub(crate) passes_leaves: bool,
}

impl<'a, M: Medium, V: Visitor> Trace<'a, M, V> {
    pub(crate) fn new(medium: &'a M, pool: PoolId, registry: &Types, visitor: V) -> Self {
        Self {
            medium,
            visitor,
            pool,
            shapes: Rc::new(Shapes::new(registry)),
            stack: Vec::new(),
            marks: Marks::new(medium.len()),
            referring: Marks::new(medium.len()),
            findings: Vec::new(),
            sums: Box::new([0; WORDS]),
            passes_leaves: false,
        }
    }

    /// Loads the types that are registered now.
    pub(crate) fn learn(&mut self, registry: &Types) {
        self.shapes = Rc::new(Shapes::new(registry));
    }

    /// Marks everything that is reachable from the roots and the `further` references.
    pub(crate) fn run(&mut self, further: &[RefWord]) {
        self.begin(further);
        self.drain();
    }

    /// Meets the roots and the `further` references, and follows nothing yet.
    pub(crate) fn begin(&mut self, further: &[RefWord]) {
        for root in roots::references(self.medium) {
            match root {
                Ok((name, field, reference)) => {
                    self.visitor.reference(field, reference);
                    self.meet(reference, false, || format!("root `{name}`"));
                }
                Err(error) => self.find(0, error.to_string()),
            }
        }
        for &reference in further {
            self.meet(reference, false, || "a handle".into());
        }
    }

    pub(crate) fn find(&mut self, at: u64, what: String) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding { at, what });
        }
    }

    /// Meets a reference that is no longer in the pool.
    pub(crate) fn meet_replaced(&mut self, reference: RefWord) {
        self.meet(reference, false, || "a replaced reference".into());
    }

    fn meet(&mut self, reference: RefWord, is_leaf: bool, from: impl Fn() -> String) {
        if reference.is_null() {
            return;
        }
        let at = self.visitor.forward(reference.address());
        if reference.pool() != self.pool {
            let what = format!(
                "{} refers to another pool (id {})",
                from(),
                reference.pool().0
            );
            return self.find(at.0, what);
        }
        match locate(self.medium, at) {
            Ok(slot) => {
                if self.marks.mark(slot.place.frame, slot.place.index)
                    && !(is_leaf && self.passes_leaves)
                    && !self.visitor.skips(&slot)
                {
                    self.stack.push(slot);
                }
            }
            Err(error) => self.find(at.0, format!("{}: {error}", from())),
        }
    }

    /// Follows everything that was met.
    ///
    /// Objects wait in a short queue between the prefetch of their lines and the look at them, so that several cache
    /// misses overlap.
    pub(crate) fn drain(&mut self) {
        let mut waiting: VecDeque<Slot> = VecDeque::with_capacity(AHEAD + 1);
        loop {
            while waiting.len() < AHEAD
                && let Some(slot) = self.stack.pop()
            {
                for line in (0..slot.bytes.min(AHEAD_BYTES)).step_by(LINE_BYTES as usize) {
                    self.medium.prefetch(slot.at + line);
                }
                waiting.push_back(slot);
            }
            let Some(slot) = waiting.pop_front() else {
                return;
            };
            self.scan(&slot);
        }
    }

    /// Follows what was met as long as there is little of it. Returns whether nothing is left.
    pub(crate) fn drain_little(&mut self) -> bool {
        for _ in 0..LITTLE {
            match self.stack.pop_if(|slot| slot.bytes <= FRAME_BYTES) {
                Some(slot) => self.scan(&slot),
                None => break,
            }
        }
        self.stack.is_empty()
    }

    fn scan(&mut self, slot: &Slot) {
        self.medium.work(work::MARKED);
        let at = self.visitor.content(slot.at);
        let header = ObjectHeader(self.medium.load_u64(at));
        let Some(requested) = requested_bytes(header, slot.bytes) else {
            return self.find(at.0, "the object is larger than its slot".into());
        };
        self.count(slot, header.type_id(), requested);
        self.visitor.object(slot, header, requested);
        let shapes = Rc::clone(&self.shapes);
        let medium = self.medium;
        let mut refers = false;
        let scan = |range: ReferenceRange| {
            refers |= range.count > 0;
            self.scan_range(at, range);
        };
        if let Err(what) = shapes.references(medium, at, header, requested, scan) {
            self.find(at.0, what);
        }
        if refers {
            self.referring.mark(slot.place.frame, slot.place.index);
        }
    }

    fn scan_range(&mut self, object: VirtAddr, range: ReferenceRange) {
        // Pairs of words lie in pools where allocated objects live regardless of references.
        if range.what == Refers::InPairs {
            return;
        }
        for i in 0..range.count {
            let field = range.first + i * WORD_BYTES;
            let word = RefWord(self.medium.load_u64(field));
            if word.is_null() {
                continue;
            }
            self.medium.work(work::MET);
            self.visitor.reference(field, word);
            self.meet(word, range.what == Refers::ToLeaves, || {
                format!("the object at {object}")
            });
        }
    }

    fn count(&mut self, slot: &Slot, id: TypeId, requested: u64) {
        let what = (id, slot.place.class_index());
        stat_shard::count(&mut self.sums, what, (1, requested as i64));
    }
}

/// Pages and huge pages that hold an allocated slot, given each run's allocation bits.
pub(crate) struct FootprintCount {
    last_page: Option<u64>,
    last_chunk: Option<u64>,
    pub(crate) frames: u64,
    pub(crate) chunks: u64,
}

impl FootprintCount {
    pub(crate) const fn new() -> Self {
        Self {
            last_page: None,
            last_chunk: None,
            frames: 0,
            chunks: 0,
        }
    }

    /// Counts an object; objects come in ascending order of address.
    pub(crate) fn add(&mut self, at: VirtAddr, bytes: u64) {
        let count = |last: &mut Option<u64>, unit: u64| {
            let (first, end) = (at.0 / unit, (at.0 + bytes - 1) / unit);
            let from = last.map_or(first, |l| first.max(l + 1));
            *last = Some(last.unwrap_or(0).max(end));
            (end + 1).saturating_sub(from)
        };
        self.frames += count(&mut self.last_page, FRAME_BYTES);
        self.chunks += count(&mut self.last_chunk, CHUNK_BYTES);
    }

    /// Counts the used slots of a run.
    pub(crate) fn add_run(&mut self, frame: Frame, what: FrameUse, used: &[u64]) {
        for slot in 0..slots(what) {
            if used[slot as usize / 64] >> (slot % 64) & 1 != 0 {
                self.add(slot_at(frame, what, slot), slot_bytes(what));
            }
        }
    }
}
