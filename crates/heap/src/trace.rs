//! The trace: which objects are reachable, found while no operation is open.
//!
//! Reads only. What it meets that makes no sense it reports and does not follow, so it serves the
//! checker as well.

use firn_format::geometry::{BITMAP_WORDS, Frame};
use firn_format::header::{FLAG_FORWARDED, HEADER_BYTES, ObjectHeader, TypeId};
use firn_format::reference::{PoolId, RefWord};
use firn_format::statistics::{Counter, WORDS};
use firn_media::Medium;
use firn_units::{CHUNK_BYTES, FRAME_BYTES, FRAMES_PER_CHUNK, VirtAddr};

use crate::alloc::{Slot, locate};
use crate::check::Finding;
use crate::object::requested_bytes;
use crate::roots;
use crate::tally::type_index;
use crate::types::{ReferenceMap, Types};

/// Findings after which only their number is kept.
const MAX_FINDINGS: usize = 1000;

/// Bits of the reachable slots, chunk by chunk.
pub(crate) struct Marks {
    chunks: Vec<Option<Box<[[u64; BITMAP_WORDS as usize]]>>>,
}

impl Marks {
    fn new(len: u64) -> Self {
        Self {
            chunks: (0..len.div_ceil(CHUNK_BYTES)).map(|_| None).collect(),
        }
    }

    /// Marks a slot of the run at `frame`. Whether it was unmarked.
    fn mark(&mut self, frame: Frame, slot: u64) -> bool {
        let Some(chunk) = self.chunks.get_mut(frame.chunk().0 as usize) else {
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

    /// Whether the slot at an address is marked.
    pub(crate) fn has(&self, slot: &Slot) -> bool {
        let (word, bit) = slot.place.bit();
        self.of(slot.place.frame)[word as usize] & bit != 0
    }
}

/// What a pass is told besides.
pub(crate) trait Visitor {
    /// An object was reached for the first time.
    fn object(&mut self, slot: &Slot, header: ObjectHeader, requested: u64);
    /// The word at `field` refers to something.
    fn reference(&mut self, field: VirtAddr, word: RefWord);
}

impl Visitor for () {
    #[inline(always)]
    fn object(&mut self, _: &Slot, _: ObjectHeader, _: u64) {}
    #[inline(always)]
    fn reference(&mut self, _: VirtAddr, _: RefWord) {}
}

/// One pass over everything reachable.
pub(crate) struct Trace<'a, M: Medium, V: Visitor = ()> {
    medium: &'a M,
    pub(crate) visitor: V,
    pool: PoolId,
    /// Size and references by type number.
    types: Vec<Option<(u32, ReferenceMap)>>,
    stack: Vec<Slot>,
    pub(crate) marks: Marks,
    pub(crate) findings: Vec<Finding>,
    /// Counters as the statistics page has them, footprints excepted.
    pub(crate) sums: Box<[i64; WORDS]>,
}

impl<'a, M: Medium, V: Visitor> Trace<'a, M, V> {
    pub(crate) fn new(medium: &'a M, pool: PoolId, registry: &Types, visitor: V) -> Self {
        let maps = registry.reference_maps();
        let most = maps.keys().map(|id| id.0 as usize + 1).max().unwrap_or(0);
        let mut types = vec![None; most];
        for (id, map) in maps {
            types[id.0 as usize] = Some(map);
        }
        Self {
            medium,
            visitor,
            pool,
            types,
            stack: Vec::new(),
            marks: Marks::new(medium.len()),
            findings: Vec::new(),
            sums: Box::new([0; WORDS]),
        }
    }

    /// Marks everything reachable from the roots and `further` references.
    pub(crate) fn run(&mut self, further: &[RefWord]) {
        for root in roots::references(self.medium) {
            match root {
                Ok((name, field, reference)) => {
                    self.visitor.reference(field, reference);
                    self.meet(reference, || format!("root `{name}`"));
                }
                Err(error) => self.find(0, error.to_string()),
            }
            self.drain();
        }
        for &reference in further {
            self.meet(reference, || "a handle".into());
            self.drain();
        }
    }

    pub(crate) fn find(&mut self, at: u64, what: String) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding { at, what });
        }
    }

    fn meet(&mut self, reference: RefWord, from: impl Fn() -> String) {
        if reference.is_null() {
            return;
        }
        let at = reference.address();
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
                if self.marks.mark(slot.place.frame, slot.place.index) {
                    self.stack.push(slot);
                }
            }
            Err(error) => self.find(at.0, format!("{}: {error}", from())),
        }
    }

    fn drain(&mut self) {
        while let Some(slot) = self.stack.pop() {
            self.scan(&slot);
        }
    }

    fn scan(&mut self, slot: &Slot) {
        let at = slot.at;
        let header = ObjectHeader(self.medium.load_u64(at));
        let Some(requested) = requested_bytes(header, slot.bytes) else {
            return self.find(at.0, "the object is larger than its slot".into());
        };
        self.count(slot, header.type_id(), requested);
        self.visitor.object(slot, header, requested);
        let body = at + HEADER_BYTES;
        if header.flags() & FLAG_FORWARDED != 0 {
            let word = RefWord(self.medium.load_u64(body));
            self.visitor.reference(body, word);
            return self.meet(word, || format!("the replaced object at {at}"));
        }
        match header.type_id() {
            TypeId::NONE => self.find(at.0, "a reference to a free slot".into()),
            TypeId::RAW => {}
            TypeId::BYTES => {
                if self.medium.load_u64(body) > requested.saturating_sub(8) {
                    self.find(at.0, "an array of bytes is longer than its object".into());
                }
            }
            TypeId::REFS => {
                let len = self.medium.load_u64(body);
                if len > requested.saturating_sub(8) / 8 {
                    return self.find(
                        at.0,
                        "an array of references is longer than its object".into(),
                    );
                }
                self.scan_words(at, body + 8, len);
            }
            id => match self.types.get(id.0 as usize).cloned().flatten() {
                None => self.find(
                    at.0,
                    format!("an object of type number {}, which is not registered", id.0),
                ),
                Some((size, _)) if u64::from(size) > requested => {
                    self.find(at.0, "the object is smaller than its type".into());
                }
                Some((_, references)) => {
                    for (offset, count) in references {
                        self.scan_words(at, body + u64::from(offset), u64::from(count));
                    }
                }
            },
        }
    }

    fn scan_words(&mut self, object: VirtAddr, first: VirtAddr, count: u64) {
        for i in 0..count {
            let word = RefWord(self.medium.load_u64(first + i * 8));
            if !word.is_null() {
                self.visitor.reference(first + i * 8, word);
            }
            self.meet(word, || format!("the object at {object}"));
        }
    }

    fn count(&mut self, slot: &Slot, id: TypeId, requested: u64) {
        let type_index = type_index(id);
        let mut add = |counter: Counter, by: u64| self.sums[counter.word()] += by as i64;
        add(Counter::Objects, 1);
        add(Counter::LiveBytes, requested);
        add(Counter::ClassObjects(slot.place.class_index()), 1);
        add(Counter::TypeObjects(type_index), 1);
        add(Counter::TypeBytes(type_index), requested);
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
}
