//! Registration: a program's types are compared with those of the pool.
//!
//! The rule: by a name objects of a pool have one version and one layout. So a type is registered together with all
//! that its declared references lead to, at once: each of them is compared with the pool's record of that name, or
//! recorded as what objects of that name will be, if the pool has none. From then on following a reference needs no
//! check. A program gets hold of an object by [`Types::type_id`] of its type, or by a reference from another one.

use firn_format::header::TypeId;
use firn_format::registry::{FieldKind, FieldRecord, RecordState, TypeRecord};
use firn_media::Medium;

use crate::error::Error;
use crate::layout::{Comparison, compare, difference};
use crate::stored::{Target, TypeDescriptor};
use crate::types::{Types, Versions};

/// A type of the program, and by which field of which other one it was found.
struct Found {
    descriptor: &'static TypeDescriptor,
    by: Option<(&'static str, &'static str)>,
}

/// A type and all that its declared references lead to, each descriptor once.
fn closure(of: &'static TypeDescriptor) -> Vec<Found> {
    let mut found = vec![Found {
        descriptor: of,
        by: None,
    }];
    let add = |found: &mut Vec<Found>, descriptor: &'static TypeDescriptor, by| {
        if !found
            .iter()
            .any(|f| core::ptr::eq(f.descriptor, descriptor))
        {
            found.push(Found { descriptor, by });
        }
    };
    let mut next = 0;
    while let Some(&Found { descriptor, .. }) = found.get(next) {
        for field in descriptor.fields {
            if let Some(to) = (field.leads_to)() {
                add(&mut found, to, Some((descriptor.name, field.name)));
            }
        }
        for &with in descriptor.with {
            let leads = descriptor.fields.iter().find(|f| f.target == with.name);
            add(&mut found, with, leads.map(|f| (descriptor.name, f.name)));
        }
        next += 1;
    }
    found
}

/// Records that a registration appends.
struct Plan<'t> {
    types: &'t Types,
    records: Vec<TypeRecord>,
    next: u32,
}

impl<'t> Plan<'t> {
    fn new(types: &'t Types) -> Self {
        Self {
            types,
            records: Vec::new(),
            next: types.next_id().0,
        }
    }

    /// What the pool knows by a name, or will.
    fn versions(&self, name: &str) -> Versions {
        let mut versions = self.types.versions(name);
        if let Some(planned) = self.records.iter().find(|r| r.name == name) {
            versions.current = Some(planned.clone());
        }
        versions
    }

    /// Plans a record, in the place of one of the same number.
    fn put(&mut self, record: TypeRecord) {
        match self.records.iter_mut().find(|r| r.id == record.id) {
            Some(planned) => *planned = record,
            None => self.records.push(record),
        }
    }

    /// The number for a new record.
    fn new_id(&mut self) -> TypeId {
        let id = TypeId(self.next);
        self.next += 1;
        id
    }

    /// Compares a type with what the pool knows by its name, or plans its registration.
    ///
    /// Errors: another version or layout is current; its objects are being turned into another version.
    fn admit(&mut self, found: &Found) -> Result<TypeId, Error> {
        let descriptor = found.descriptor;
        let versions = self.versions(descriptor.name);
        if let Some(migrating) = versions.migrating {
            return Err(unfinished(&migrating));
        }
        let Some(current) = versions.current else {
            let id = self.new_id();
            self.put(descriptor.record(id, RecordState::Current));
            return Ok(id);
        };
        let program = descriptor.record(current.id, current.state);
        match compare_versions(&current, &program, found.by)? {
            Comparison::Fuller(record) => self.put(record),
            Comparison::Same | Comparison::Differ(_) => {}
        }
        Ok(current.id)
    }
}

/// Compares two records of a name.
///
/// Errors: they are of two versions, or two layouts.
fn compare_versions(
    current: &TypeRecord,
    program: &TypeRecord,
    by: Option<(&'static str, &'static str)>,
) -> Result<Comparison, Error> {
    let name = current.name.clone();
    let by = || {
        by.map_or(String::new(), |(of, field)| {
            format!(", reached by field `{field}` of `{of}`")
        })
    };
    let (stored, wanted) = (current.version, program.version);
    if stored < wanted {
        let difference = difference(current, program) + &by();
        return Err(Error::NeedsMigration {
            name,
            stored,
            wanted,
            difference,
        });
    }
    if stored > wanted {
        let difference = difference(current, program) + &by();
        return Err(Error::NewerType {
            name,
            stored,
            wanted,
            difference,
        });
    }
    match compare(current, program) {
        Comparison::Differ(difference) => Err(Error::LayoutChanged {
            name,
            version: wanted,
            difference: difference + &by(),
        }),
        agreed => Ok(agreed),
    }
}

/// The error of whoever wants to use a pool in the middle of a migration.
pub(crate) fn unfinished(migrating: &TypeRecord) -> Error {
    Error::MigrationUnfinished {
        name: migrating.name.clone(),
        version: migrating.version,
    }
}

impl Types {
    /// The number of `T`, registering it if the pool does not know it. Of an array of references it is the number
    /// that all have, once what they lead to is known.
    ///
    /// Errors: another version or layout of one of the types is registered; the registry is full.
    #[inline]
    pub(crate) fn type_id<T: Target, M: Medium>(&self, medium: &M) -> Result<TypeId, Error> {
        match (T::BUILT_IN, T::described()) {
            (Some(id), None) => Ok(id),
            (Some(id), Some(descriptor)) => match self.cache.find(descriptor) {
                Some(_) => Ok(id),
                None => self.compare_or_register(medium, descriptor).map(|_| id),
            },
            (None, Some(descriptor)) => self.described_type_id(medium, descriptor),
            (None, None) => Ok(TypeId::NONE),
        }
    }

    /// The number of a described type, registering it if the pool does not know it.
    #[inline]
    pub(crate) fn described_type_id<M: Medium>(
        &self,
        medium: &M,
        descriptor: &'static TypeDescriptor,
    ) -> Result<TypeId, Error> {
        match self.cache.find(descriptor) {
            Some(id) => Ok(id),
            None => self
                .compare_or_register(medium, descriptor)?
                .ok_or(Error::ReadOnly),
        }
    }

    /// Compares a type and all that its references lead to with what is registered, and registers those of which
    /// the pool knows nothing. `None` if the type is one of these and the pool is open for reading: it has no
    /// object of it.
    #[cold]
    fn compare_or_register<M: Medium>(
        &self,
        medium: &M,
        descriptor: &'static TypeDescriptor,
    ) -> Result<Option<TypeId>, Error> {
        let _one = self.register.lock(medium);
        if let Some(id) = self.compared(descriptor) {
            self.cache.remember(descriptor, id);
            return Ok(Some(id));
        }
        let mut plan = Plan::new(self);
        let ids = closure(descriptor)
            .iter()
            .map(|found| plan.admit(found))
            .collect::<Result<Vec<_>, _>>()?;
        let id = ids[0];
        if self.writable {
            self.append(medium, plan.records)?;
        } else if id >= self.next_id() {
            return Ok(None);
        }
        self.remember(descriptor, id);
        Ok(Some(id))
    }

    /// The number of a type whose objects refer to others in pairs of words.
    pub(crate) fn pairs_type_id<M: Medium>(&self, medium: &M, name: &str) -> Result<TypeId, Error> {
        let _one = self.register.lock(medium);
        let field = FieldRecord {
            name: "pairs".into(),
            kind: FieldKind::Pairs,
            offset: 0,
            size: 0,
            count: 1,
            target: String::new(),
            layout: 0,
        };
        let record = |id| TypeRecord {
            id,
            state: RecordState::Current,
            name: name.to_owned(),
            version: 1,
            size: 0,
            fields: vec![field],
        };
        let versions = self.versions(name);
        if let Some(migrating) = versions.migrating {
            return Err(unfinished(&migrating));
        }
        match versions.current {
            Some(current) => {
                compare_versions(&current, &record(current.id), None)?;
                Ok(current.id)
            }
            None => {
                let id = self.next_id();
                self.append(medium, vec![record(id)])?;
                Ok(id)
            }
        }
    }

    /// The numbers of both versions of a type, the new one registered as migrating together with all that its
    /// references lead to. `None` if there is nothing to do.
    ///
    /// What is itself an older version in the pool is left to its own migration: the new type is refused until
    /// then.
    ///
    /// Errors: a version or a layout is not what the pool has.
    pub(crate) fn begin_migration<M: Medium>(
        &self,
        medium: &M,
        [old, new]: [&'static TypeDescriptor; 2],
    ) -> Result<Option<(TypeId, TypeId)>, Error> {
        let _one = self.register.lock(medium);
        let Versions { current, migrating } = self.versions(new.name);
        let mut plan = Plan::new(self);
        let id = match &migrating {
            Some(begun) if begun.version != new.version => return Err(unfinished(begun)),
            Some(begun) => {
                compare_versions(begun, &new.record(begun.id, begun.state), None)?;
                begun.id
            }
            None => plan.new_id(),
        };
        let old_id = match &current {
            None => None,
            Some(current) if current.version == new.version => {
                compare_versions(current, &new.record(current.id, current.state), None)?;
                return Ok(None);
            }
            // A later migration came after this one.
            Some(current) if current.version > new.version => return Ok(None),
            Some(current) if current.version == old.version => {
                compare_versions(current, &old.record(current.id, current.state), None)?;
                Some(current.id)
            }
            Some(current) => {
                return Err(Error::NeedsMigration {
                    name: new.name.to_owned(),
                    stored: current.version,
                    wanted: new.version,
                    difference: difference(current, &new.record(id, current.state)),
                });
            }
        };
        if migrating.is_none() {
            if old_id.is_none() {
                return Ok(None);
            }
            plan.put(new.record(id, RecordState::Migrating));
        }
        for found in closure(new) {
            let Versions { current, migrating } = self.versions(found.descriptor.name);
            let older = current.is_some_and(|r| r.version < found.descriptor.version);
            if found.descriptor.name != new.name && migrating.is_none() && !older {
                plan.admit(&found)?;
            }
        }
        // What was compared holds no longer.
        self.forget_compared();
        self.append(medium, plan.records)?;
        let Some(old) = old_id else {
            // Its objects were left behind by a copy: there were none.
            self.end_migration(medium, new, id)?;
            return Ok(None);
        };
        Ok(Some((old, id)))
    }

    /// Says that no object of an older version is left.
    pub(crate) fn end_migration<M: Medium>(
        &self,
        medium: &M,
        new: &'static TypeDescriptor,
        id: TypeId,
    ) -> Result<(), Error> {
        let record = new.record(id, RecordState::Migrated);
        self.append(medium, vec![record])
    }
}
