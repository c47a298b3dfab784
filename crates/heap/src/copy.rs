//! Copies: a pool's live objects, packed, in a new pool. The way to back up, to compact for good and
//! to bring a pool into another format.

use std::collections::{HashMap, HashSet};

use firn_format::header::{HEADER_BYTES, ObjectHeader, TypeId};
use firn_format::reference::RefWord;
use firn_format::root;
use firn_media::{Medium, MediumExt};
use firn_units::{VirtAddr, WORD_BYTES};

use crate::alloc::Slot;
use crate::check::each_allocated;
use crate::error::{Error, OpenError};
use crate::pool::{Inner, Pool, PoolOptions};
use crate::roots;
use crate::tally::{Tally, type_index};
use crate::trace::{InCycle, Trace, Visitor};
use crate::tx::redo::Ring;
use crate::tx::settle_fresh_frames;

/// How far a copy has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyProgress {
    /// Objects written so far.
    pub done: u64,
    /// Objects in all.
    pub of: u64,
}

/// Objects between two calls of the progress function.
const PROGRESS_STEP: u64 = 1024;

/// One object to copy.
struct Item {
    /// Where references lead to it once they are forwarded.
    at: VirtAddr,
    /// Where it is: an open cycle may not have moved it yet.
    content: VirtAddr,
    header: ObjectHeader,
    requested: u64,
}

/// Collects the objects in the order in which they are reached.
struct Collect<'m, M: Medium> {
    items: Vec<Item>,
    cycle: InCycle<'m, M>,
}

impl<M: Medium> Visitor for Collect<'_, M> {
    fn object(&mut self, slot: &Slot, header: ObjectHeader, requested: u64) {
        self.items.push(Item {
            at: slot.at,
            content: self.content(slot.at),
            header,
            requested,
        });
    }
    fn forward(&self, at: VirtAddr) -> VirtAddr {
        self.cycle.forward(at)
    }
    fn content(&self, at: VirtAddr) -> VirtAddr {
        self.cycle.content(at)
    }
}

impl<M: Medium> Pool<M> {
    /// Copies what lives in this pool into a new one on `target`, packed in the order in which it is
    /// reached. Stops all operations while it runs. Types without objects are left behind; the copy has the pool's
    /// limit.
    ///
    /// Errors: an operation stayed open, this pool is damaged, no space on the target. Crash: until
    /// this returns, `target` holds no complete copy; this pool is only read. A target that has no name yet
    /// ([`Medium::publish`]) gets it when the copy is closed, or from [`Pool::publish`].
    pub fn copy_into<N: Medium>(
        &self,
        target: N,
        progress: &mut dyn FnMut(CopyProgress),
    ) -> Result<Pool<N>, CopyError> {
        let (layout, lanes) = {
            let superblock = self.inner.superblock.lock(&self.inner.medium);
            (superblock.layout.clone(), superblock.lanes as usize)
        };
        let (kind, max_bytes) = (self.inner.kind, self.limit_bytes());
        let options = PoolOptions {
            kind,
            lanes,
            max_bytes,
            ..PoolOptions::new(&layout)
        };
        let copy = Pool::create_unpublished(target, &options)?;
        let stopped = self
            .inner
            .stopped(|| copy_objects(&self.inner, &copy.inner, progress));
        match stopped.and_then(|copied| copied) {
            Ok(()) => Ok(copy),
            Err(error) => {
                copy.abandon();
                Err(error.into())
            }
        }
    }
}

/// A copy failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The new pool could not be made.
    #[error(transparent)]
    Target(#[from] OpenError),
    /// The old pool could not be read, or the new one is full.
    #[error(transparent)]
    Objects(#[from] Error),
}

fn copy_objects<M: Medium, N: Medium>(
    from: &Inner<M>,
    to: &Inner<N>,
    progress: &mut dyn FnMut(CopyProgress),
) -> Result<(), Error> {
    let cycle = InCycle::of(from);
    let items = collect(from, cycle.clone())?;
    let used: HashSet<TypeId> = items.iter().map(|item| item.header.type_id()).collect();
    for record in from.types.records() {
        if used.contains(&record.id) || from.types.is_newest(&record) {
            to.types.append(&to.medium, record)?;
        }
    }
    let (mut cache, mut ring) = (to.allocator.cache(0), Ring::default());
    let mut places = HashMap::with_capacity(items.len());
    for item in &items {
        let slot = to.take_slot(&mut cache, &mut ring, HEADER_BYTES + item.requested)?;
        places.insert(item.at.0, slot);
    }
    to.reserve_lane(0)?;
    let mut writer = Writer {
        from,
        to,
        cycle,
        places,
        tally: Tally::new(0, u32::MAX),
    };
    let of = items.len() as u64;
    for (done, item) in (0..).zip(&items) {
        writer.write(item)?;
        if done % PROGRESS_STEP == 0 {
            progress(CopyProgress { done, of });
        }
    }
    progress(CopyProgress { done: of, of });
    for (i, found) in roots::references(&from.medium).into_iter().enumerate() {
        let (name, _, reference) = found?;
        let words = root::encode(&name, writer.forward(reference)?.0);
        to.medium
            .store_bytes(root::root_at(i), bytemuck::cast_slice(&words));
        to.medium.write_back(root::root_at(i), root::ROOT_BYTES);
    }
    to.roots.build(&to.medium);
    settle_fresh_frames(&to.medium, &mut cache);
    to.allocator.return_all(&to.medium, &cache)?;
    to.medium.fence();
    writer.tally.publish(&to.medium);
    Ok(())
}

fn collect<'m, M: Medium>(from: &'m Inner<M>, cycle: InCycle<'m, M>) -> Result<Vec<Item>, Error> {
    let items = Vec::new();
    let visitor = Collect { items, cycle };
    let mut trace = Trace::new(&from.medium, from.id, &from.types, visitor);
    trace.run(&from.handles.strong(&from.medium));
    if let Some(finding) = trace.findings.first() {
        return Err(Error::Damaged {
            what: "a reference or an object",
            at: finding.at,
        });
    }
    let Collect { mut items, cycle } = trace.visitor;
    if from.logs_allocation() {
        // In an explicit pool objects live that nothing reaches.
        let marks = trace.marks;
        let moved = cycle
            .cycle()
            .or_else(|| from.collector.releasing(&from.medium));
        each_allocated(&from.medium, moved.as_deref(), |slot, header| {
            if !marks.has(&slot)
                && let Some(requested) = crate::object::requested_bytes(header, slot.bytes)
            {
                items.push(Item {
                    at: slot.at,
                    content: cycle.content(slot.at),
                    header,
                    requested,
                });
            }
        })?;
    }
    Ok(items)
}

struct Writer<'a, M: Medium, N: Medium> {
    from: &'a Inner<M>,
    to: &'a Inner<N>,
    cycle: InCycle<'a, M>,
    places: HashMap<u64, Slot>,
    tally: Tally,
}

impl<M: Medium, N: Medium> Writer<'_, M, N> {
    fn forward(&self, reference: RefWord) -> Result<RefWord, Error> {
        if reference.is_null() {
            return Ok(reference);
        }
        let at = self.cycle.forward(reference.address());
        let slot = self
            .places
            .get(&at.0)
            .ok_or(Error::NotAllocated { at: at.0 })?;
        Ok(RefWord::new(self.to.id, slot.at).with_tag(reference.tag()))
    }

    fn write(&mut self, item: &Item) -> Result<(), Error> {
        let slot = self.places[&item.at.0];
        let id = item.header.type_id();
        let mut words = vec![0u64; item.requested.div_ceil(WORD_BYTES) as usize + 1];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let end = (HEADER_BYTES + item.requested) as usize;
        self.from.medium.load_bytes(item.content, &mut bytes[..end]);
        words[0] = ObjectHeader::new(id, slot.bytes - HEADER_BYTES - item.requested)
            .with_flags(item.header.flags())
            .with_scratch(item.header.scratch())
            .0;
        for word in self.reference_words(id, &words) {
            if let Some(reference) = words.get(word).copied().map(RefWord) {
                words[word] = self.forward(reference)?.0;
            }
        }
        let medium = &self.to.medium;
        medium.store_bytes(slot.at, bytemuck::cast_slice(&words));
        medium.write_back(slot.at, words.len() as u64 * WORD_BYTES);
        if self.to.logs_allocation() {
            let at = slot.place.bitmap_word_at();
            medium.update_bits(at, slot.place.bit().1, 0);
            medium.write_back(at, WORD_BYTES);
        }
        let footprint = self.to.allocator.count_live(medium, slot.place, 1)?;
        let (class, bytes) = (slot.place.class_index(), item.requested as i64);
        self.tally
            .objects(medium, (type_index(id), class), (1, bytes));
        self.tally.pages(medium, footprint);
        Ok(())
    }

    /// Which words of an object, its header included, are references.
    fn reference_words(&self, id: TypeId, words: &[u64]) -> Vec<usize> {
        match id {
            TypeId::REFS => (2..2 + words.get(1).map_or(0, |&len| len as usize)).collect(),
            _ => self
                .from
                .types
                .references_of(id)
                .into_iter()
                .map(|w| w + 1)
                .collect(),
        }
    }
}
