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
use crate::pool::Inner;
use crate::shape::Refers;
use crate::steps;
use crate::stored::{Bytes, Raw, Refs, Target, TypeDescriptor};
use crate::type_cache::TypeCache;

/// Types of an open pool.
pub(crate) struct Types {
    table: RwLock<Table>,
    /// Registration, one at a time.
    register: Lock<()>,
    /// The numbers of the program's types.
    cache: TypeCache,
}

#[derive(Default)]
struct Table {
    /// The valid record of each registered number.
    records: HashMap<TypeId, TypeRecord>,
    end: u64,
    next: u32,
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

    pub(crate) fn load<M: Medium>(medium: &M) -> Result<Self, FormatError> {
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
            register: Lock::new(()),
            cache: TypeCache::new(),
        })
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

    /// The record of one version of a type.
    pub(crate) fn version(&self, name: &str, version: u32) -> Option<TypeRecord> {
        let table = self.table();
        table
            .records
            .values()
            .find(|r| r.name == name && r.version == version)
            .cloned()
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

    /// Appends a record: durable before the end word says so.
    pub(crate) fn append<M: Medium>(&self, medium: &M, record: TypeRecord) -> Result<(), Error> {
        let bytes = record.encode();
        let mut table = self
            .table
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let end = table.end + bytes.len() as u64;
        if end > REGISTRY_BYTES || record.id.0 >= TypeId::LIMIT {
            return Err(Error::RegistryFull {
                bytes: REGISTRY_BYTES,
            });
        }
        medium.reserve(REGISTRY, round_up(end, FRAME_BYTES))?;
        medium.store_bytes(REGISTRY + table.end, &bytes);
        let at = REGISTRY + table.end;
        medium.persist_for(&steps::RECORD_PERSIST, at, bytes.len() as u64);
        medium.store_u64(REGISTRY_END, Seal::RegistryEnd.seal(end));
        medium.persist_for(&steps::REGISTRY_END_PERSIST, REGISTRY_END, 8);
        table.end = end;
        table.next = table.next.max(record.id.0 + 1);
        table.records.insert(record.id, record);
        Ok(())
    }
}

impl<M: Medium> Inner<M> {
    /// The number of `T`, registering it if the pool does not know it.
    #[inline]
    pub(crate) fn type_id<T: Target>(&self) -> Result<TypeId, Error> {
        match (T::BUILT_IN, T::DESCRIBED_BY) {
            (Some(id), _) => Ok(id),
            (None, Some(descriptor)) => self.described_type_id(descriptor),
            (None, None) => Ok(TypeId::NONE),
        }
    }

    /// The number of a described type, registering it if the pool does not know it.
    #[inline]
    pub(crate) fn described_type_id(
        &self,
        descriptor: &'static TypeDescriptor,
    ) -> Result<TypeId, Error> {
        match self.types.cache.find(descriptor) {
            Some(id) => Ok(id),
            None => self.find_or_register(descriptor),
        }
    }

    /// The number of a type whose objects refer to others in pairs of words.
    pub(crate) fn pairs_type_id(&self, name: &str) -> Result<TypeId, Error> {
        let _one = self.types.register.lock(&self.medium);
        let field = FieldRecord {
            name: "pairs".into(),
            kind: FieldKind::Pairs,
            offset: 0,
            size: 0,
            count: 1,
            target: String::new(),
        };
        let wanted = |id| TypeRecord {
            id,
            state: RecordState::Current,
            name: name.to_owned(),
            version: 1,
            size: 0,
            fields: vec![field.clone()],
        };
        if let Some(found) = self.types.version(name, 1) {
            return match difference(&found, &wanted(found.id)) {
                None => Ok(found.id),
                Some(difference) => Err(Error::LayoutChanged {
                    name: name.to_owned(),
                    version: 1,
                    difference,
                }),
            };
        }
        let id = self.types.next_id();
        self.types.append(&self.medium, wanted(id))?;
        Ok(id)
    }

    #[cold]
    fn find_or_register(&self, descriptor: &'static TypeDescriptor) -> Result<TypeId, Error> {
        let _one = self.types.register.lock(&self.medium);
        let id = match self.find(descriptor)? {
            Some(id) => id,
            None if !self.writable => return Err(Error::ReadOnly),
            None => {
                let id = TypeId(self.types.table().next);
                self.types
                    .append(&self.medium, descriptor.record(id, RecordState::Current))?;
                id
            }
        };
        self.types.cache.remember(descriptor, id);
        Ok(id)
    }

    /// The number under which exactly this type is registered.
    fn find(&self, descriptor: &'static TypeDescriptor) -> Result<Option<TypeId>, Error> {
        let table = self.types.table();
        let same_name = || table.records.values().filter(|r| r.name == descriptor.name);
        let name = || descriptor.name.to_owned();
        let wanted = descriptor.version;
        if let Some(newer) = same_name().find(|r| r.version > wanted) {
            return Err(Error::NewerType {
                name: name(),
                stored: newer.version,
                wanted,
            });
        }
        let Some(found) = same_name().find(|r| r.version == wanted) else {
            return match same_name().map(|r| r.version).max() {
                Some(stored) => Err(Error::NeedsMigration {
                    name: name(),
                    stored,
                    wanted,
                }),
                None => Ok(None),
            };
        };
        if let Some(difference) = difference(found, &descriptor.record(found.id, found.state)) {
            return Err(Error::LayoutChanged {
                name: name(),
                version: wanted,
                difference,
            });
        }
        if found.state == RecordState::Migrating {
            let stored = same_name().map(|r| r.version).filter(|&v| v < wanted).max();
            return Err(Error::NeedsMigration {
                name: name(),
                stored: stored.unwrap_or(wanted),
                wanted,
            });
        }
        Ok(Some(found.id))
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
        TypeId::REFS => Some(Refs::<Bytes>::NAME),
        TypeId::RAW => Some(Raw::NAME),
        _ => None,
    }
}

/// The first difference between two layouts of one type.
fn difference(stored: &TypeRecord, program: &TypeRecord) -> Option<String> {
    if stored.size != program.size {
        return Some(format!(
            "{} bytes stored, {} in the program",
            stored.size, program.size
        ));
    }
    if stored.fields.len() != program.fields.len() {
        let (s, p) = (stored.fields.len(), program.fields.len());
        return Some(format!("{s} fields stored, {p} in the program"));
    }
    let differs = stored
        .fields
        .iter()
        .zip(&program.fields)
        .find(|(s, p)| s != p)?;
    Some(format!(
        "field `{}` stored, `{}` in the program",
        differs.0.name, differs.1.name
    ))
}
