//! One writer: a session, and a map of its own.

use std::path::Path;

use fastrand::Rng;
use firn_heap::Pool;
use firn_mapped::Mapped;
use firn_tools::{Store, StoreOptions, ToolError};

use super::input::Input;
use super::map_of;
use super::script::{Deed, Operation, Script};
use crate::LabError;

/// Entries that a reading writer looks at before each operation.
pub const READS: usize = 2;

/// One thread that writes.
pub(crate) struct Writer<'a> {
    store: Store,
    input: &'a Input,
    script: &'a mut Script,
    value: Vec<u8>,
    /// Chooses the entries to read, if any are read.
    reads: Option<Rng>,
}

impl<'a> Writer<'a> {
    /// Opens a session, and makes the script's map if there is none.
    pub(crate) fn new(
        pool: &Pool<Mapped>,
        path: &Path,
        input: &'a Input,
        script: &'a mut Script,
    ) -> Result<Self, LabError> {
        let options = StoreOptions {
            map: map_of(script.writer()),
            ..StoreOptions::default()
        };
        let mut store = Store::on(pool.clone(), path, &options)?;
        store.make_map()?;
        Ok(Self {
            store,
            input,
            script,
            value: Vec::new(),
            reads: None,
        })
    }

    /// From now on the writer also reads some entries before each operation.
    pub(crate) fn read_too(&mut self, seed: u64) {
        self.reads = Some(Rng::with_seed(seed));
    }

    /// Tells the script what an earlier life left in the map.
    pub(crate) fn adopt(&mut self) -> Result<(), LabError> {
        // Both are in the order of the keys.
        let (input, script) = (self.input, &mut *self.script);
        let mut own = 0;
        self.store.scan(b"", |key, _| {
            while own < script.len() && input.key(script.index(own)) != key {
                own += 1;
            }
            if own < script.len() {
                script.set_present(own);
            }
            true
        })?;
        Ok(())
    }

    /// Writes as long as `goes_on` says so of the script, and acknowledges each committed operation before the next
    /// begins.
    ///
    /// Errors: the pool cannot be written, an entry is not as it was written, an acknowledgement failed.
    pub(crate) fn run(
        &mut self,
        goes_on: impl Fn(&Script) -> bool,
        mut acknowledge: impl FnMut(Operation) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        while goes_on(self.script)
            && let Some(operation) = self.script.next()
        {
            self.look()?;
            self.perform(operation)?;
            acknowledge(operation)?;
            self.script.done(operation);
        }
        Ok(())
    }

    /// Reads some entries and compares them with what was written.
    ///
    /// Errors: one is not as it was written.
    fn look(&mut self) -> Result<(), LabError> {
        let Some(rng) = &mut self.reads else {
            return Ok(());
        };
        for _ in 0..READS {
            let own = rng.usize(0..self.script.len());
            let index = self.script.index(own);
            let found = self.store.get(self.input.key(index))?;
            let is_right = match (self.script.stamp(own), &found) {
                (None, found) => found.is_none(),
                (Some(_), None) => false,
                // Written in another life: any value of the entry is right.
                (Some(0), Some(found)) => self.input.is_value(index, found),
                (Some(stamp), Some(found)) => {
                    self.input.value(index, stamp, &mut self.value);
                    self.value == *found
                }
            };
            if !is_right {
                return Err(LabError::Misread {
                    key: String::from_utf8_lossy(self.input.key(index)).into_owned(),
                    operations: self.script.operations(),
                });
            }
        }
        Ok(())
    }

    fn perform(&mut self, operation: Operation) -> Result<(), ToolError> {
        let Operation { index, stamp, .. } = operation;
        let key = self.input.key(index);
        match operation.deed {
            Deed::Insert | Deed::Update => {
                self.input.value(index, stamp, &mut self.value);
                self.store.insert(key, &self.value).map(|_| ())
            }
            Deed::Remove => self.store.remove(key).map(|_| ()),
        }
    }
}
