//! Migration: converting the objects of an old version of a type to a new one.
//!
//! Restartable at any point. The new version is registered as *migrating*, which refuses every program that does not
//! continue the migration. Then each old object is converted, several in a transaction: in place where the slot has
//! room, otherwise into a new slot to which the old one, flagged, refers. Then every reference to a flagged object is
//! changed, and the flagged objects are freed. Last, the version is registered as *migrated*.
//!
//! Types that refer to the migrated one do so by its name, so their registry records do not change.

use firn_format::header::{FLAG_FORWARDED, HEADER_BYTES, ObjectHeader, TypeId};
use firn_format::reference::RefWord;
use firn_media::{Medium, MediumExt};
use firn_units::{VirtAddr, WORD_BYTES};

use crate::alloc::{Slot, locate};
use crate::error::Error;
use crate::inner::Inner;
use crate::object::{Obj, Revealed, requested_bytes};
use crate::pool::Pool;
use crate::session::Session;
use crate::shape::{Refers, Shapes};
use crate::stat_shard::type_index;
use crate::steps;
use crate::stored::{Stored, TypeDescriptor};
use crate::trace::{Trace, Visitor};
use crate::tx::{Body, Tx};
use crate::untyped::{Untyped, check_described};
use crate::view::View;
use crate::walk::each_allocated;

/// Objects or references that one transaction changes.
const BATCH: usize = 64;

/// Makes the body of a new object from the old one at an address, whose requested length is given: returns its words,
/// and its number of bytes.
type Convert<'c, M> = dyn for<'t> FnMut(Tx<'t, M>, VirtAddr, u64) -> (Vec<u64>, u64) + 'c;

/// What a trace before a migration collects.
struct Collect {
    old: TypeId,
    /// Objects of the old version that were not converted yet.
    objects: Vec<VirtAddr>,
    /// Flagged objects.
    forwarded: Vec<VirtAddr>,
    /// Every field with a reference.
    references: Vec<(VirtAddr, RefWord)>,
}

impl Visitor for Collect {
    fn object(&mut self, slot: &Slot, header: ObjectHeader, _: u64) {
        if header.type_id() == self.old {
            if header.flags() & FLAG_FORWARDED == 0 {
                self.objects.push(slot.at);
            } else {
                self.forwarded.push(slot.at);
            }
        }
    }
    fn reference(&mut self, field: VirtAddr, word: RefWord) {
        self.references.push((field, word));
    }
}

impl<M: Medium> Pool<M> {
    /// Converts every object of type `Old` to type `New` with `convert`, which passes references on by moving the
    /// fields that hold them: every reachable one, and in an explicit pool every allocated one. Both types have one
    /// name; `New` has the higher version. Returns the number of converted objects. This is 0 if the pool has none, or
    /// already has version `New` or a later one, so a program may make one call for each step since its first version.
    ///
    /// Call it before any session is opened. If fields were only appended, `Old` is the former structure and `convert`
    /// fills in the new fields. If several types have changed, migrate them in any order; a type is refused until all
    /// targets of its references are migrated.
    ///
    /// Counters ([`crate::Statistics`]) follow: each object counts under `New` from its transaction on.
    ///
    /// Errors: sessions or operations are open, a handle names an object of type `Old`, a collection is under way, the
    /// pool is full or damaged, the types do not belong together, or one of them is not the pool's. After a crash, or
    /// an error after some objects were converted, call it again; until it returns no program can open a session
    /// ([`Error::MigrationUnfinished`]).
    /// After a crash the counters lag, as after any, until [`Pool::trace`].
    pub fn migrate<Old: Stored, New: Stored>(
        &self,
        mut convert: impl FnMut(Old) -> New,
    ) -> Result<u64, Error> {
        let size = New::DESCRIPTOR.size;
        self.migrate_between([Old::DESCRIPTOR, New::DESCRIPTOR], &mut |tx, at, _| {
            let object: Obj<'_, Old, _> = Obj::new(tx, tx.medium().place(at));
            let value = convert(Old::decode(&Revealed(object)));
            let mut words = vec![0; size.div_ceil(WORD_BYTES as u32) as usize];
            value.encode(&mut Body(&mut words));
            (words, u64::from(size))
        })
    }

    /// Migrates objects of types that are described while the program runs. `convert` gets the bytes of an old object
    /// and room for those of the new one. The room holds zeros, and behind the type's bytes the old object's content
    /// there. References are copied unchanged from one to the other.
    ///
    /// Errors, crash: as [`Pool::migrate`], and a description that contradicts itself.
    pub fn migrate_described(
        &self,
        types: [&'static TypeDescriptor; 2],
        mut convert: impl FnMut(&[u8], &mut [u8]),
    ) -> Result<u64, Error> {
        types.into_iter().try_for_each(check_described)?;
        let [old_bytes, new_bytes] = types.map(|of| u64::from(of.size));
        self.migrate_between(types, &mut |tx, at, requested| {
            let words = |bytes: u64| vec![0; bytes.div_ceil(WORD_BYTES) as usize];
            let mut old: Vec<u64> = words(requested);
            let old: &mut [u8] = bytemuck::cast_slice_mut(&mut old);
            let old = &mut old[..requested as usize];
            tx.load_range(at + HEADER_BYTES, old);
            let bytes = new_bytes + requested.saturating_sub(old_bytes);
            let mut new = words(bytes);
            let body: &mut [u8] = bytemuck::cast_slice_mut(&mut new);
            let (front, behind) = body[..bytes as usize].split_at_mut(new_bytes as usize);
            behind.copy_from_slice(&old[old_bytes.min(requested) as usize..]);
            convert(&old[..old_bytes.min(requested) as usize], front);
            (new, bytes)
        })
    }

    fn migrate_between(
        &self,
        [from, to]: [&'static TypeDescriptor; 2],
        convert: &mut Convert<'_, M>,
    ) -> Result<u64, Error> {
        let inner = &*self.inner;
        inner.check_usable()?;
        if !inner.writable {
            return Err(Error::ReadOnly);
        }
        if from.name != to.name || from.version >= to.version {
            let (what, needs) = (
                "a migration",
                "two types of one name, the second of the higher version",
            );
            return Err(Error::WrongKind { what, needs });
        }
        let _only = inner.without_collector()?;
        let _alone = Alone::in_pool(inner)?;
        if let Some(current) = inner.types.versions(from.name).current
            && current.version == from.version
        {
            inner.refuse_handles(from.name, current.id)?;
        }
        let (medium, types) = (&inner.medium, &inner.types);
        let Some((old, new)) = types.begin_migration(medium, [from, to])? else {
            return Ok(0);
        };
        // The type counts as migrated only once no unmigrated object or reference is left (rule P6).
        let last = medium.keeps(&steps::MIGRATED_LAST);
        if !last {
            types.end_migration(medium, to, new)?;
        }
        let turned = self.turn_all(old, new, convert)?;
        if last {
            types.end_migration(medium, to, new)?;
        }
        Ok(turned)
    }

    /// Converts the objects, redirects every reference to the new ones, and frees the old ones that were outgrown.
    fn turn_all(
        &self,
        old: TypeId,
        new: TypeId,
        convert: &mut Convert<'_, M>,
    ) -> Result<u64, Error> {
        let inner = &*self.inner;
        let mut session = Session::of_migration(&self.inner)?;
        let objects = inner.collect(old)?.objects;
        for batch in objects.chunks(BATCH) {
            let in_place = session.transaction(|tx| {
                let turned = batch.iter().map(|&at| turn(tx, at, new, convert));
                turned.collect::<Result<Vec<_>, Error>>()
            })?;
            session.count_turned(old, new, in_place.into_iter().flatten());
        }
        let found = inner.collect(old)?;
        redirect(&mut session, &found)?;
        drop(session);
        self.free_all(&found.forwarded)?;
        Ok(objects.len() as u64)
    }

    fn free_all(&self, objects: &[VirtAddr]) -> Result<(), Error> {
        let mut session = Session::of_migration(&self.inner)?;
        for batch in objects.chunks(BATCH) {
            session.transaction(|tx| {
                batch.iter().try_for_each(|&at| {
                    let header = ObjectHeader(self.inner.medium.load_u64(at));
                    tx.free_at(at, header)
                })
            })?;
        }
        Ok(())
    }
}

impl<M: Medium> Session<M> {
    /// Counts objects that were converted in place, by the requested bytes of each before and after.
    fn count_turned(&mut self, old: TypeId, new: TypeId, bytes: impl Iterator<Item = (u64, u64)>) {
        let recounts = self.core.inner.recounts();
        let tally = &mut self.core.state.get_mut().tally;
        tally.catch_up(recounts);
        for (old_bytes, new_bytes) in bytes {
            tally.turned(
                (type_index(old), old_bytes as i64),
                (type_index(new), new_bytes as i64),
            );
        }
        self.publish_statistics();
    }
}

/// A migration's exclusive access to the pool, until this is dropped.
struct Alone<'p, M: Medium>(&'p Inner<M>);

impl<'p, M: Medium> Alone<'p, M> {
    /// Errors: a session is open, or another migration is under way.
    fn in_pool(inner: &'p Inner<M>) -> Result<Self, Error> {
        let mut lanes = inner.lanes.lock(&inner.medium);
        if lanes.migrating {
            return Err(Error::Migrating);
        }
        let open = inner.lane_count - lanes.free.len();
        if open > 0 {
            return Err(Error::SessionsOpen { open });
        }
        lanes.migrating = true;
        drop(lanes);
        Ok(Self(inner))
    }
}

impl<M: Medium> Drop for Alone<'_, M> {
    fn drop(&mut self) {
        self.0.lanes.lock(&self.0.medium).migrating = false;
    }
}

impl<M: Medium> Inner<M> {
    /// Errors: a handle names an object of the type; it would read the new version as the old one.
    fn refuse_handles(&self, name: &str, old: TypeId) -> Result<(), Error> {
        let medium = &self.medium;
        let is_old = |word: &RefWord| {
            let at = word.address();
            locate(medium, at).is_ok() && ObjectHeader(medium.load_u64(at)).type_id() == old
        };
        match self.handles.all(medium).into_iter().find(is_old) {
            None => Ok(()),
            Some(word) => Err(Error::HandleInTheWay {
                name: name.to_owned(),
                at: word.address().0,
            }),
        }
    }

    fn collect(&self, old: TypeId) -> Result<Collect, Error> {
        let collect = Collect {
            old,
            objects: Vec::new(),
            forwarded: Vec::new(),
            references: Vec::new(),
        };
        let trace = self.stopped(|| {
            let mut trace = Trace::new(&self.medium, self.id, &self.types, collect);
            trace.run(&self.handles.strong(&self.medium));
            self.collect_unreached(&mut trace).map(|()| trace)
        })??;
        match trace.findings.first() {
            Some(finding) => Err(Error::Damaged {
                what: "a reference or an object",
                at: finding.at,
            }),
            None => {
                let mut found = trace.visitor;
                found.forwarded.sort_unstable();
                Ok(found)
            }
        }
    }

    /// In an explicit pool unreachable objects live, too.
    fn collect_unreached(&self, trace: &mut Trace<'_, M, Collect>) -> Result<(), Error> {
        if !self.logs_allocation() {
            return Ok(());
        }
        let (medium, shapes) = (&self.medium, Shapes::new(&self.types));
        let mut findings = Vec::new();
        each_allocated(medium, None, |slot, header| {
            if trace.marks.has(&slot) {
                return;
            }
            let requested = requested_bytes(header, slot.bytes).unwrap_or(0);
            trace.visitor.object(&slot, header, requested);
            let visitor = &mut trace.visitor;
            let read = shapes.references(medium, slot.at, header, requested, |range| {
                for field in (0..range.count).map(|i| range.first + i * WORD_BYTES) {
                    let word = RefWord(medium.load_u64(field));
                    if range.what != Refers::InPairs && !word.is_null() {
                        visitor.reference(field, word);
                    }
                }
            });
            findings.extend(read.err().map(|what| (slot.at.0, what)));
        })?;
        for (at, what) in findings {
            trace.find(at, what);
        }
        Ok(())
    }

    /// The new place of a flagged object.
    fn forwarded(&self, word: RefWord) -> Option<RefWord> {
        let at = word.address();
        if word.is_null() || locate(&self.medium, at).is_err() {
            return None;
        }
        let header = ObjectHeader(self.medium.load_u64(at));
        (header.flags() & FLAG_FORWARDED != 0)
            .then(|| RefWord(self.medium.load_u64(at + HEADER_BYTES)))
    }
}

/// Converts one object. Returns its requested bytes before and after if it was converted in place; other conversions
/// are counted as an allocation and a free.
fn turn<M: Medium>(
    tx: Tx<'_, M>,
    at: VirtAddr,
    new: TypeId,
    convert: &mut Convert<'_, M>,
) -> Result<Option<(u64, u64)>, Error> {
    let slot = locate(tx.medium(), at)?;
    let header = ObjectHeader(tx.medium().load_u64(at));
    let requested = requested_bytes(header, slot.bytes).ok_or(Error::Damaged {
        what: "the header of an object",
        at: at.0,
    })?;
    let (words, bytes) = convert(tx, at, requested);
    if HEADER_BYTES + bytes <= slot.bytes {
        let slack = slot.bytes - HEADER_BYTES - bytes;
        let turned = ObjectHeader::new(new, slack).with_scratch(header.scratch());
        tx.store_at(at, &[turned.0]);
        tx.store_at(at + HEADER_BYTES, &words);
        return Ok(Some((requested, bytes)));
    }
    let copy: Obj<'_, Untyped, _> = tx.alloc_filled(new, bytes, |body| {
        body[..words.len()].copy_from_slice(&words);
    })?;
    tx.store_at(
        at,
        &[header.with_flags(FLAG_FORWARDED).0, copy.reference().0],
    );
    Ok(None)
}

/// Changes every reference to a flagged object.
fn redirect<M: Medium>(session: &mut Session<M>, found: &Collect) -> Result<(), Error> {
    if found.forwarded.is_empty() {
        return Ok(());
    }
    for batch in found.references.chunks(BATCH) {
        session.transaction(|tx| {
            for &(field, word) in batch {
                // A flagged object's own word names its new place; it stays.
                let own = found
                    .forwarded
                    .binary_search(&VirtAddr(field.0 - HEADER_BYTES))
                    .is_ok();
                if !own && let Some(to) = tx.inner().forwarded(word) {
                    tx.store_at(field, &[to.with_tag(word.tag()).0]);
                }
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}
