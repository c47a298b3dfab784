//! Copies: a pool's live objects, packed, in a new pool. The way to back up a pool, to compact it for good and to bring
//! it into another format.

use std::collections::{HashMap, HashSet};

use firn_format::class::GRAIN_BYTES;
use firn_format::header::{FLAG_FORWARDED, HEADER_BYTES, ObjectHeader, TypeId};
use firn_format::reference::RefWord;
use firn_format::root;
use firn_format::statistics::Counter;
use firn_media::{Medium, MediumExt};
use firn_units::{VirtAddr, WORD_BYTES};

use crate::alloc::{Slot, locate};
use crate::clone;
use crate::error::{Error, OpenError};
use crate::finding::Finding;
use crate::inner::Inner;
use crate::options::PoolOptions;
use crate::pool::{Identity, Pool};
use crate::roots;
use crate::salvage::Salvaged;
use crate::shape::Shapes;
use crate::stat_shard::{StatShard, type_index};
use crate::trace::{InCycle, Trace, Visitor};
use crate::tx::redo::Ring;
use crate::tx::settle_fresh_frames;
use crate::walk::each_allocated;

/// How far a copy has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyProgress {
    /// Objects written so far; or pieces of the pool, if its objects keep their places.
    pub done: u64,
    /// The total.
    pub of: u64,
}

/// The identity of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyIdentity {
    /// The original's identity: the copy will take its place, now or later. This process may not use both.
    Kept,
    /// A new identity, to be used beside the original. Every reference is rewritten; so pools with undeclared
    /// references are refused.
    New,
}

/// Objects between two calls of the progress function.
const PROGRESS_STEP: u64 = 1024;

/// One object to copy.
struct Item {
    /// The object's final address, to which references lead.
    at: VirtAddr,
    header: ObjectHeader,
    requested: u64,
}

/// Collects the objects in the order in which the trace reaches them.
struct Collect<'m, M: Medium> {
    items: Vec<Item>,
    cycle: InCycle<'m, M>,
}

impl<M: Medium> Visitor for Collect<'_, M> {
    fn object(&mut self, slot: &Slot, header: ObjectHeader, requested: u64) {
        self.items.push(Item {
            at: slot.at,
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
    /// Copies the live objects of this pool into a new one on `target`, packed in the order in which they are reached.
    /// Stops all operations while it runs. Types without objects are left behind; the copy has the pool's limit.
    ///
    /// A pool in which programs store addresses that no type declares (an explicit one with pairs of words, any that
    /// was opened with an undo log) is copied as it is, and not packed.
    ///
    /// While this pool is open, a copy with its identity may only be inspected and closed: the process cannot tell
    /// their references apart.
    ///
    /// Errors: an operation stayed open, this pool is damaged, no space on the target; a new identity for a pool whose
    /// references are not declared. Crash: until this returns, `target` holds no complete copy; this pool is only read.
    /// A target without a name ([`firn_media::Space::publish`]) gets it when the copy is closed, or from
    /// [`Pool::publish`].
    pub fn copy_into<N: Medium>(
        &self,
        target: N,
        identity: CopyIdentity,
        progress: &mut dyn FnMut(CopyProgress),
    ) -> Result<Pool<N>, CopyError> {
        match (clone::undeclared(&self.inner), identity) {
            (None, _) => {}
            (Some(_), CopyIdentity::Kept) => {
                return clone::clone_into(&self.inner, target, progress);
            }
            (Some(what), CopyIdentity::New) => return Err(CopyError::Undeclared { what }),
        }
        let options = self.options_of_copy();
        let copy = match identity {
            CopyIdentity::New => Pool::create_unpublished(target, &options)?,
            CopyIdentity::Kept => Pool::create_as(target, &options, Identity::of(&self.inner))?,
        };
        let stopped = self
            .inner
            .stopped(|| copy_objects(&self.inner, &copy.inner, &mut Loss::Refused, progress));
        match stopped.and_then(|copied| copied) {
            Ok(()) => Ok(copy),
            Err(error) => {
                copy.abandon();
                Err(error.into())
            }
        }
    }
}

impl<M: Medium> Pool<M> {
    /// The options with which a copy of this pool is created.
    pub(crate) fn options_of_copy(&self) -> PoolOptions {
        let max_bytes = self.limit_bytes();
        let superblock = self.inner.superblock.lock(&self.inner.medium);
        PoolOptions {
            kind: self.inner.kind,
            lanes: superblock.lanes as usize,
            max_bytes,
            ..PoolOptions::new(&superblock.layout)
        }
    }
}

/// How to copy a pool with damaged parts.
pub(crate) enum Loss {
    /// Refuse to copy it.
    Refused,
    /// Leave them out, and list them here.
    Counted(Salvaged),
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
    /// The pool is damaged, and nothing in it can be left out: its references lie in pairs of words.
    #[error(
        "the pool is damaged ({finding}), and a pool of a libpmemobj program can be salvaged only if it is intact; restore the last copy"
    )]
    NotWhole {
        /// The first damage.
        finding: Finding,
    },
    /// Not all references of the old pool are known, so they cannot be rewritten.
    #[error(
        "the copy cannot get a new identity, because references in this pool are {what}, which cannot be told from numbers and rewritten; copy it without a new identity, and use one of the two at a time"
    )]
    Undeclared {
        /// The kind of these references.
        what: &'static str,
    },
}

pub(crate) fn copy_objects<M: Medium, N: Medium>(
    from: &Inner<M>,
    to: &Inner<N>,
    loss: &mut Loss,
    progress: &mut dyn FnMut(CopyProgress),
) -> Result<(), Error> {
    let cycle = InCycle::of(from);
    let items = collect(from, cycle.clone(), loss)?;
    let used: HashSet<TypeId> = items.iter().map(|item| item.header.type_id()).collect();
    let mut records = from.types.records();
    records.retain(|record| used.contains(&record.id) || from.types.is_newest(record));
    to.types.append(&to.medium, records)?;
    let (mut cache, mut ring) = (to.allocator.cache(0), Ring::default());
    let mut places = HashMap::with_capacity(items.len());
    for item in &items {
        let slot = to.take_slot(&mut cache, &mut ring, HEADER_BYTES + item.requested)?;
        places.insert(item.at, slot.at);
    }
    to.reserve_lane(0)?;
    let mut writer = Writer {
        from,
        to,
        cycle,
        places,
        tally: StatShard::new(0, u32::MAX),
        loss,
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
        let Some((name, reference)) = writer.root(found)? else {
            continue;
        };
        let words = root::encode(&name, reference.0);
        to.medium
            .store_bytes(root::root_at(i), bytemuck::cast_slice(&words));
        to.medium.write_back(root::root_at(i), root::ROOT_BYTES);
    }
    to.locks.roots.build(&to.medium);
    settle_fresh_frames(&to.medium, &mut cache);
    to.allocator.return_all(&to.medium, &cache)?;
    to.medium.fence();
    writer.tally.publish(&to.medium);
    Ok(())
}

fn collect<'m, M: Medium>(
    from: &'m Inner<M>,
    cycle: InCycle<'m, M>,
    loss: &mut Loss,
) -> Result<Vec<Item>, Error> {
    // Reserves room for the counted objects if possible: a growing list is in memory twice while it grows.
    let counted = from.counter(Counter::Objects).max(0) as u64;
    let most = from.medium.len() / GRAIN_BYTES;
    let items = Vec::with_capacity(counted.min(most) as usize);
    let visitor = Collect { items, cycle };
    let mut trace = Trace::new(&from.medium, from.id, &from.types, visitor);
    trace.run(&from.handles.strong(&from.medium));
    match loss {
        Loss::Counted(salvaged) => salvaged.findings = trace.findings,
        Loss::Refused => {
            if let Some(finding) = trace.findings.first() {
                return Err(Error::Damaged {
                    what: "a reference or an object",
                    at: finding.at,
                });
            }
        }
    }
    let Collect { mut items, cycle } = trace.visitor;
    if from.logs_allocation() {
        // In an explicit pool unreachable objects live, too.
        let marks = trace.marks;
        let moved = cycle
            .cycle()
            .or_else(|| from.collector.releasing(&from.medium));
        let walked = each_allocated(&from.medium, moved.as_deref(), |slot, header| {
            if !marks.has(&slot)
                && let Some(requested) = crate::object::requested_bytes(header, slot.bytes)
            {
                items.push(Item {
                    at: slot.at,
                    header,
                    requested,
                });
            }
        });
        match (walked, &mut *loss) {
            (Err(error), Loss::Counted(salvaged)) => salvaged.findings.push(Finding {
                at: 0,
                what: error.to_string(),
            }),
            (walked, _) => walked?,
        }
    }
    if let Loss::Counted(salvaged) = loss {
        keep_whole(from, &cycle, &mut items);
        salvaged.objects = items.len() as u64;
        salvaged.bytes = items.iter().map(|item| item.requested).sum();
    }
    Ok(items)
}

/// Leaves out objects that do not fit their types: their references cannot be found.
fn keep_whole<M: Medium>(from: &Inner<M>, cycle: &InCycle<'_, M>, items: &mut Vec<Item>) {
    let shapes = Shapes::new(&from.types);
    items.retain(|item| {
        let (content, header) = (cycle.content(item.at), item.header);
        let whole = shapes.references(&from.medium, content, header, item.requested, |_| {});
        whole.is_ok()
    });
}

struct Writer<'a, M: Medium, N: Medium> {
    from: &'a Inner<M>,
    to: &'a Inner<N>,
    cycle: InCycle<'a, M>,
    /// Where objects are in the copy. One entry is as small as possible, because there may be many millions.
    places: HashMap<VirtAddr, VirtAddr>,
    tally: StatShard,
    loss: &'a mut Loss,
}

impl<M: Medium, N: Medium> Writer<'_, M, N> {
    /// The copy's object of a root.
    fn root(
        &mut self,
        found: Result<(String, VirtAddr, RefWord), Error>,
    ) -> Result<Option<(String, RefWord)>, Error> {
        match (found, &mut *self.loss) {
            (Err(_), Loss::Counted(salvaged)) => {
                salvaged
                    .lost_roots
                    .push("a root whose name is damaged".into());
                Ok(None)
            }
            (Ok((name, _, reference)), Loss::Counted(salvaged)) => {
                let lost = salvaged.lost_references;
                let forwarded = self.forward(reference)?;
                match &mut *self.loss {
                    Loss::Counted(salvaged) if salvaged.lost_references > lost => {
                        salvaged.lost_references = lost;
                        salvaged.lost_roots.push(name);
                        Ok(None)
                    }
                    _ => Ok(Some((name, forwarded))),
                }
            }
            (found, Loss::Refused) => {
                let (name, _, reference) = found?;
                Ok(Some((name, self.forward(reference)?)))
            }
        }
    }

    fn forward(&mut self, reference: RefWord) -> Result<RefWord, Error> {
        if reference.is_null() {
            return Ok(reference);
        }
        let at = self.cycle.forward(reference.address());
        let foreign = reference.pool() != self.from.id;
        let to = match (self.places.get(&at).filter(|_| !foreign), &mut *self.loss) {
            (Some(to), _) => *to,
            (None, Loss::Refused) => return Err(Error::NotAllocated { at: at.0 }),
            (None, Loss::Counted(salvaged)) => {
                salvaged.lost_references += 1;
                return Ok(RefWord::NULL);
            }
        };
        Ok(RefWord::new(self.to.id, to).with_tag(reference.tag()))
    }

    fn write(&mut self, item: &Item) -> Result<(), Error> {
        let slot = locate(&self.to.medium, self.places[&item.at])?;
        let id = item.header.type_id();
        let mut words = vec![0u64; item.requested.div_ceil(WORD_BYTES) as usize + 1];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let end = (HEADER_BYTES + item.requested) as usize;
        // An open cycle may not have moved it yet.
        let content = self.cycle.content(item.at);
        self.from.medium.load_bytes(content, &mut bytes[..end]);
        words[0] = ObjectHeader::new(id, slot.bytes - HEADER_BYTES - item.requested)
            .with_flags(item.header.flags())
            .with_scratch(item.header.scratch())
            .0;
        for word in self.reference_words(item.header, &words) {
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
    fn reference_words(&self, header: ObjectHeader, words: &[u64]) -> Vec<usize> {
        match header.type_id() {
            // An unfinished migration has left only the object's new place; nothing else of it counts.
            _ if header.flags() & FLAG_FORWARDED != 0 => vec![1],
            TypeId::REFS => (2..2 + words.get(1).map_or(0, |&len| len as usize)).collect(),
            id => self
                .from
                .types
                .references_of(id)
                .into_iter()
                .map(|w| w + 1)
                .collect(),
        }
    }
}
