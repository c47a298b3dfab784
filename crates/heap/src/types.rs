//! The registry of types, as an open pool keeps it.

use std::collections::HashMap;
use std::sync::RwLock;

use firn_format::FormatError;
use firn_format::geometry::{REGISTRY, REGISTRY_BYTES, REGISTRY_END};
use firn_format::header::TypeId;
use firn_format::registry::{FieldKind, FieldRecord, RecordState, TypeRecord};
use firn_format::sealed::Seal;
use firn_media::{Lock, Medium, MediumExt};
use firn_units::{FRAME_BYTES, WORD_BYTES, round_up};

use crate::error::Error;
use crate::shape::Refers;
use crate::steps;
use crate::stored::{Bytes, REFS, Raw, Target, TypeDescriptor};
use crate::type_cache::TypeCache;

/// Types of an open pool.
pub(crate) struct Types {
    table: RwLock<Table>,
    /// Whether the pool is open for writing: what it does not know is registered.
    pub(crate) writable: bool,
    /// Registration, one at a time.
    pub(crate) register: Lock<()>,
    /// The numbers of the program's types.
    pub(crate) cache: TypeCache,
}

#[derive(Default)]
struct Table {
    /// The valid record of each registered number.
    records: HashMap<TypeId, TypeRecord>,
    /// The numbers of the program's types that were compared with the pool's, by where their descriptors lie: those
    /// that the cache has no place for are not compared again.
    compared: HashMap<usize, TypeId>,
    end: u64,
    next: u32,
}

/// What a registry knows by one name.
#[derive(Default)]
pub(crate) struct Versions {
    /// The version that objects of this name have.
    pub(crate) current: Option<TypeRecord>,
    /// The version that they are being turned into: then they may have either.
    pub(crate) migrating: Option<TypeRecord>,
}

/// Where the references of a type's objects are.
pub(crate) type ReferenceMap = Vec<References>;

/// A field that is a reference, or an array of references; or a whole object in which pairs of words are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct References {
    /// Bytes from the start of the body.
    pub(crate) offset: u32,
    pub(crate) count: u32,
    /// Objects of a built-in type have no references, whatever the version.
    pub(crate) what: Refers,
}

impl References {
    /// Where in the body its words begin.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + use<> {
        let first = u64::from(self.offset);
        (0..u64::from(self.count)).map(move |i| first + i * WORD_BYTES)
    }
}

impl Types {
    /// Bytes of the registry that records take.
    pub(crate) fn end(&self) -> u64 {
        self.table
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .end
    }

    pub(crate) fn load<M: Medium>(medium: &M, writable: bool) -> Result<Self, FormatError> {
        let end = Seal::RegistryEnd.open_at(medium.load_u64(REGISTRY_END), REGISTRY_END)?;
        if end > REGISTRY_BYTES {
            let (what, at) = ("the end of the type registry", REGISTRY_END.0);
            return Err(FormatError::Range {
                what,
                at,
                found: end,
            });
        }
        let mut bytes = vec![0; end as usize];
        medium.load_bytes(REGISTRY, &mut bytes);
        let mut rest = bytes.as_slice();
        let mut table = Table {
            end,
            next: TypeId::FIRST_REGISTERED.0,
            ..Table::default()
        };
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let record = TypeRecord::take(&mut rest, at)?;
            table.next = table.next.max(record.id.0.saturating_add(1));
            table.records.insert(record.id, record);
        }
        Ok(Self {
            table: RwLock::new(table),
            writable,
            register: Lock::new(()),
            cache: TypeCache::new(),
        })
    }

    fn table_mut(&self) -> std::sync::RwLockWriteGuard<'_, Table> {
        self.table
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn table(&self) -> std::sync::RwLockReadGuard<'_, Table> {
        self.table
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Name and version of a type, for messages.
    pub(crate) fn describe(&self, id: TypeId) -> String {
        match (id, built_in_name(id)) {
            (TypeId::NONE, _) => "none (a free slot)".into(),
            (_, Some(name)) => name.into(),
            (other, None) => match self.table().records.get(&other) {
                Some(record) => format!("{} version {}", record.name, record.version),
                None => format!("number {} (not registered)", other.0),
            },
        }
    }

    /// Name of a type; `None` for a number that is not registered.
    pub(crate) fn name(&self, id: TypeId) -> Option<String> {
        let registered = || self.table().records.get(&id).map(|r| r.name.clone());
        built_in_name(id).map(str::to_owned).or_else(registered)
    }

    /// The versions of a type that count: one at most is current. Older ones have no objects any more.
    pub(crate) fn versions(&self, name: &str) -> Versions {
        let table = self.table();
        let mut versions = Versions::default();
        for record in table.records.values().filter(|r| r.name == name) {
            let place = match record.state {
                RecordState::Migrating => &mut versions.migrating,
                RecordState::Current | RecordState::Migrated => &mut versions.current,
            };
            if place.as_ref().is_none_or(|r| r.version < record.version) {
                *place = Some(record.clone());
            }
        }
        // A later version that is current was reached by another way.
        let later = versions.current.as_ref().map_or(0, |r| r.version);
        versions.migrating = versions.migrating.filter(|r| r.version > later);
        versions
    }

    /// The type whose objects are being turned into another version, if there is one.
    pub(crate) fn unfinished(&self) -> Option<TypeRecord> {
        let migrating = |r: &TypeRecord| r.state == RecordState::Migrating;
        let names: Vec<String> = {
            let table = self.table();
            let records = table.records.values().filter(|r| migrating(r));
            records.map(|r| r.name.clone()).collect()
        };
        names
            .into_iter()
            .find_map(|name| self.versions(&name).migrating)
    }

    /// Remembers that a program's type was compared, and its number.
    pub(crate) fn remember(&self, descriptor: &'static TypeDescriptor, id: TypeId) {
        let mut table = self.table_mut();
        table
            .compared
            .insert(core::ptr::from_ref(descriptor).addr(), id);
        self.cache.remember(descriptor, id);
    }

    /// The number of a type that was compared before.
    pub(crate) fn compared(&self, descriptor: &'static TypeDescriptor) -> Option<TypeId> {
        let at = core::ptr::from_ref(descriptor).addr();
        self.table().compared.get(&at).copied()
    }

    /// Forgets what was compared: a version ceases to be current. No operation is open.
    pub(crate) fn forget_compared(&self) {
        self.table_mut().compared.clear();
        self.cache.forget();
    }

    /// The number that the next registered type gets.
    pub(crate) fn next_id(&self) -> TypeId {
        TypeId(self.table().next)
    }

    /// Every registered type.
    pub(crate) fn records(&self) -> Vec<TypeRecord> {
        let mut records: Vec<_> = self.table().records.values().cloned().collect();
        records.sort_by_key(|r| r.id);
        records
    }

    /// Words of a registered type's body that are references.
    pub(crate) fn references_of(&self, id: TypeId) -> Vec<usize> {
        let table = self.table();
        let fields = table.records.get(&id).into_iter().flat_map(|r| &r.fields);
        fields
            .filter(|f| f.kind == FieldKind::Reference)
            .flat_map(|f| (0..f.count as usize).map(move |i| f.offset as usize / 8 + i))
            .collect()
    }

    /// Whether no later version of the same type is registered.
    pub(crate) fn is_newest(&self, record: &TypeRecord) -> bool {
        let table = self.table();
        !table
            .records
            .values()
            .any(|r| r.name == record.name && r.version > record.version)
    }

    /// Where each registered type's references are.
    pub(crate) fn reference_maps(&self) -> HashMap<TypeId, (u32, ReferenceMap)> {
        let table = self.table();
        let records = table.records.iter();
        records
            .map(|(&id, r)| (id, (r.size, references_in(r))))
            .collect()
    }

    /// Size of a registered type and where its references are.
    pub(crate) fn reference_map(&self, id: TypeId) -> Option<(u32, ReferenceMap)> {
        let table = self.table();
        let record = table.records.get(&id)?;
        Some((record.size, references_in(record)))
    }

    /// Appends records, whose numbers are new or say more of what is registered: durable before the end word says
    /// so, which it says of all of them at once (rule P4). Crash midway: none of them is there.
    pub(crate) fn append<M: Medium>(
        &self,
        medium: &M,
        records: Vec<TypeRecord>,
    ) -> Result<(), Error> {
        let mut table = self.table_mut();
        if medium.keeps(&steps::RECORDS_AT_ONCE) {
            return table.append(medium, records);
        }
        records
            .into_iter()
            .try_for_each(|record| table.append(medium, vec![record]))
    }
}

impl Table {
    fn append<M: Medium>(&mut self, medium: &M, records: Vec<TypeRecord>) -> Result<(), Error> {
        let bytes: Vec<u8> = records.iter().flat_map(TypeRecord::encode).collect();
        let end = self.end + bytes.len() as u64;
        if end > REGISTRY_BYTES || records.iter().any(|r| r.id.0 >= TypeId::LIMIT) {
            return Err(Error::RegistryFull {
                bytes: REGISTRY_BYTES,
            });
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let at = REGISTRY + self.end;
        medium.reserve(REGISTRY, round_up(end, FRAME_BYTES))?;
        medium.store_bytes(at, &bytes);
        medium.persist_for(&steps::RECORD_PERSIST, at, bytes.len() as u64);
        medium.store_u64(REGISTRY_END, Seal::RegistryEnd.seal(end));
        medium.persist_for(&steps::REGISTRY_END_PERSIST, REGISTRY_END, 8);
        self.end = end;
        for record in records {
            self.next = self.next.max(record.id.0 + 1);
            self.records.insert(record.id, record);
        }
        Ok(())
    }
}

/// Where the references of a type's objects are.
fn references_in(record: &TypeRecord) -> ReferenceMap {
    let fields = record.fields.iter();
    let reference = |f: &FieldRecord| References {
        offset: f.offset,
        count: f.count,
        what: match f.kind {
            FieldKind::Pairs => Refers::InPairs,
            _ if f.target == Bytes::NAME || f.target == Raw::NAME => Refers::ToLeaves,
            _ => Refers::ToObjects,
        },
    };
    fields
        .filter(|f| matches!(f.kind, FieldKind::Reference | FieldKind::Pairs))
        .map(reference)
        .collect()
}

fn built_in_name(id: TypeId) -> Option<&'static str> {
    match id {
        TypeId::BYTES => Some(Bytes::NAME),
        TypeId::REFS => Some(REFS),
        TypeId::RAW => Some(Raw::NAME),
        _ => None,
    }
}
