//! Migration: turning the objects of an old version of a type into those of a new one.
//!
//! Restartable at any point. The new version is registered as *migrating*; then each old object is
//! turned into a new one by a transaction of its own: in place where the slot has room, otherwise in
//! a new slot that the old one, flagged, refers to. Then every reference to a flagged object is
//! changed, and the flagged objects are freed. Last, the version is registered as *migrated*.

use firn_format::header::{FLAG_FORWARDED, HEADER_BYTES, ObjectHeader, TypeId};
use firn_format::reference::RefWord;
use firn_format::registry::RecordState;
use firn_media::Medium;
use firn_units::VirtAddr;

use crate::alloc::{Slot, locate};
use crate::error::Error;
use crate::object::{Obj, Revealed, requested_bytes};
use crate::pool::{Inner, Pool};
use crate::session::Session;
use crate::stored::Stored;
use crate::tally::type_index;
use crate::trace::{Trace, Visitor};
use crate::tx::Tx;
use crate::view::View;

/// Objects or references that one transaction changes.
const BATCH: usize = 64;

/// What a trace before a migration collects.
struct Collect {
    old: TypeId,
    /// Objects of the old version that were not turned yet.
    objects: Vec<VirtAddr>,
    /// Flagged objects.
    forwarded: Vec<VirtAddr>,
    /// Every field that refers to something.
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
    /// Turns every reachable object of type `Old` into one of type `New` with `convert`, which
    /// passes references on by moving the fields that hold them. Both have the same name; `New` has
    /// the higher version. Returns the number of objects that were turned.
    ///
    /// Call it before any session is opened. For fields that were only appended, `Old` is the
    /// structure as it was and `convert` fills in the new fields.
    ///
    /// Counters ([`crate::Statistics`]) follow: each object counts under `New` from its transaction on.
    ///
    /// Errors: sessions or operations are open, a collection is under way, the pool is full or damaged,
    /// the types do not belong together. Crash or error midway: call it again; the new type is refused until then.
    /// After a crash the counters lag, as after any, until [`Pool::trace`].
    pub fn migrate<Old: Stored, New: Stored>(
        &self,
        mut convert: impl FnMut(Old) -> New,
    ) -> Result<u64, Error> {
        let inner = &*self.inner;
        if !inner.writable {
            return Err(Error::ReadOnly);
        }
        let _only = inner.without_collector()?;
        let Some((old, new)) = inner.begin_migration::<Old, New>()? else {
            return Ok(0);
        };
        let mut session = self.session()?;
        if inner.lanes.lock(&inner.medium).free.len() + 1 != inner.lane_count {
            return Err(Error::Busy { waited_ms: 0 });
        }
        let objects = inner.collect(old)?.objects;
        for batch in objects.chunks(BATCH) {
            let in_place = session.transaction(|tx| {
                let turned = batch
                    .iter()
                    .map(|&at| turn::<M, Old, New>(tx, at, new, &mut convert));
                turned.collect::<Result<Vec<_>, Error>>()
            })?;
            session.count_turned::<New>(old, new, in_place.into_iter().flatten());
        }
        let found = inner.collect(old)?;
        redirect(&mut session, &found)?;
        drop(session);
        let moved = |word: RefWord| match inner.forwarded(word) {
            Some(to) => to.with_tag(word.tag()),
            None => word,
        };
        inner.handles.forward(&inner.medium, moved);
        self.free_all(&found.forwarded)?;
        inner.end_migration::<New>(new)?;
        Ok(objects.len() as u64)
    }

    fn free_all(&self, objects: &[VirtAddr]) -> Result<(), Error> {
        let mut session = self.session()?;
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
    /// Counts objects that were turned in place; `old_bytes` has what was requested for each.
    fn count_turned<New: Stored>(
        &mut self,
        old: TypeId,
        new: TypeId,
        old_bytes: impl Iterator<Item = u64>,
    ) {
        let recounts = self.core.inner.recounts();
        let tally = &mut self.core.state.get_mut().tally;
        tally.catch_up(recounts);
        let new_bytes = i64::from(New::DESCRIPTOR.size);
        for old_bytes in old_bytes {
            tally.turned(
                (type_index(old), old_bytes as i64),
                (type_index(new), new_bytes),
            );
        }
        self.publish_statistics();
    }
}

impl<M: Medium> Inner<M> {
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
            trace
        })?;
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

    /// Where a flagged object went.
    fn forwarded(&self, word: RefWord) -> Option<RefWord> {
        let at = word.address();
        if word.is_null() || locate(&self.medium, at).is_err() {
            return None;
        }
        let header = ObjectHeader(self.medium.load_u64(at));
        (header.flags() & FLAG_FORWARDED != 0)
            .then(|| RefWord(self.medium.load_u64(at + HEADER_BYTES)))
    }

    /// Numbers of both versions, the new one registered as migrating. `None` if there is nothing to
    /// do.
    fn begin_migration<Old: Stored, New: Stored>(&self) -> Result<Option<(TypeId, TypeId)>, Error> {
        let (old, new) = (Old::DESCRIPTOR, New::DESCRIPTOR);
        if old.name != new.name || old.version >= new.version {
            let (what, needs) = (
                "a migration",
                "two types of one name, the second of the higher version",
            );
            return Err(Error::WrongKind { what, needs });
        }
        let registered = self.types.version(new.name, new.version);
        match (self.types.version(old.name, old.version), registered) {
            (_, Some(new)) if new.state != RecordState::Migrating => Ok(None),
            (None, None) => {
                // Nothing of the old version is there: the new one is simply a new type.
                self.type_id::<New>()?;
                Ok(None)
            }
            (None, Some(_)) => Ok(None),
            (Some(old), Some(new)) => Ok(Some((old.id, new.id))),
            (Some(old), None) => {
                let id = self.types.next_id();
                let record = new.record(id, RecordState::Migrating);
                self.types.append(&self.medium, record)?;
                Ok(Some((old.id, id)))
            }
        }
    }

    fn end_migration<New: Stored>(&self, new: TypeId) -> Result<(), Error> {
        let record = New::DESCRIPTOR.record(new, RecordState::Migrated);
        self.types.append(&self.medium, record)
    }
}

/// Turns one object. Returns the bytes that were requested for the old one if the new one lies in its
/// place; objects that come and go are counted as any.
fn turn<M: Medium, Old: Stored, New: Stored>(
    tx: Tx<'_, M>,
    at: VirtAddr,
    new: TypeId,
    convert: &mut impl FnMut(Old) -> New,
) -> Result<Option<u64>, Error> {
    let object: Obj<'_, Old, _> = Obj::new(tx, tx.medium().place(at));
    let header = object.header();
    let value = convert(Old::decode(&Revealed(object)));
    let slot = locate(tx.medium(), at)?;
    let size = u64::from(New::DESCRIPTOR.size);
    if HEADER_BYTES + size <= slot.bytes {
        let slack = slot.bytes - HEADER_BYTES - size;
        let turned = ObjectHeader::new(new, slack).with_scratch(header.scratch());
        tx.overwrite_object(at, turned, &value);
        let damaged = Error::Damaged {
            what: "the header of an object",
            at: at.0,
        };
        return requested_bytes(header, slot.bytes).ok_or(damaged).map(Some);
    }
    let copy = tx.alloc_as(new, &value)?;
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
                // A flagged object's own word says where it went; it stays.
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
