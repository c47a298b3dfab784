//! The expected content of the writers' maps.

use std::sync::Arc;

use firn_tools::{Entry, Progress, Store, remove_keys};

use fastrand::Rng;

use super::input::Input;
use super::script::{Script, Tide};
use super::verify::{Verified, verify};
use super::{WRITERS, map_of};
use crate::LabError;

/// The expected content of the writers' maps in a pool, and the writers' next operations. A clone keeps the books of a
/// copy of the pool.
#[derive(Clone, Debug)]
pub struct Ledger {
    input: Arc<Input>,
    scripts: Vec<Script>,
    seed: u64,
    life: u64,
}

impl Ledger {
    /// The ledger of maps that are empty, or not made yet. `entries` are sorted by key, without duplicates; values are
    /// longer than theirs by up to `payload_bytes`; the seed decides the writers' operations.
    pub fn new(entries: Vec<Entry>, payload_bytes: usize, seed: u64) -> Self {
        let script = |writer| Script::new(writer, seed, entries.len());
        Self {
            scripts: (0..WRITERS).map(script).collect(),
            input: Arc::new(Input {
                entries,
                payload_bytes,
            }),
            seed,
            life: 0,
        }
    }

    /// The seed of the writers' operations.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Entries of all writers, whether or not they are there now.
    pub fn entries(&self) -> &[Entry] {
        &self.input.entries
    }

    /// Entries that are there now.
    pub fn present(&self) -> u64 {
        self.scripts.iter().map(|s| s.present() as u64).sum()
    }

    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    pub(crate) fn scripts(&self) -> &[Script] {
        &self.scripts
    }

    pub(crate) fn scripts_mut(&mut self) -> &mut [Script] {
        &mut self.scripts
    }

    /// The input, and the scripts.
    pub(super) fn parts(&mut self) -> (&Input, &mut [Script]) {
        (&self.input, &mut self.scripts)
    }

    /// Another life of the writers begins. Returns its number, from 1.
    pub(crate) fn next_life(&mut self) -> u64 {
        self.life += 1;
        for script in &mut self.scripts {
            script.begin(self.life);
        }
        self.life
    }

    /// The tide, if entries come and go in tides.
    pub fn tide(&self) -> Option<Tide> {
        self.scripts.iter().find_map(Script::tide)
    }

    /// From now on entries come and go in tides, beginning with this one.
    pub fn set_tide(&mut self, tide: Tide) {
        for script in &mut self.scripts {
            script.set_tide(tide);
        }
    }

    /// Deletes entries at random until only as many are left as at lowest tide. Returns how many were deleted.
    ///
    /// Errors: see [`Store::remove_all`]; the expected content of the maps is then unknown.
    pub fn thin(
        &mut self,
        store: &mut Store,
        progress: &mut dyn Progress,
    ) -> Result<u64, LabError> {
        let mut rng = Rng::with_seed(self.seed);
        let mut deleted = 0;
        for script in &mut self.scripts {
            let gone = script.thin(&mut rng);
            let keys = gone.iter().map(|&own| self.input.key(script.index(own)));
            let keys: Vec<&[u8]> = keys.collect();
            store.select(&map_of(script.writer()));
            deleted += remove_keys(store, &keys, progress)?;
        }
        Ok(deleted)
    }

    /// Compares the maps with their expected content, and notes operations that were in flight.
    pub(crate) fn verify(&mut self, store: &mut Store) -> Result<Verified, LabError> {
        verify(store, &mut self.scripts, &self.input)
    }

    /// Compares the maps after an undisturbed run, so that nothing was in flight.
    pub(crate) fn verify_settled(&mut self, store: &mut Store) -> Result<Verified, LabError> {
        let mut verified = self.verify(store)?;
        if verified.in_flight > 0 {
            let what = "an operation that nobody began is in a map";
            verified.lost.push(what.into());
        }
        Ok(verified)
    }
}
