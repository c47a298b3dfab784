//! The child: writes until it is killed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fastrand::Rng;
use firn_heap::Pool;
use firn_mapped::Mapped;

use super::collector::{Collecting, collect_until};
use super::record::encode;
use super::script::{Deed, Operation, Script, Tide, is_value, value};
use super::{WRITERS, entries, map_of};
use crate::{Entry, LabError, Store, StoreOptions};

/// What a child is told.
#[derive(Clone, Debug)]
pub struct WriterPlan {
    /// The pool, which exists.
    pub pool: PathBuf,
    /// The file of entries.
    pub entries: PathBuf,
    /// Number of this life, from 1.
    pub life: u64,
    /// Decides what the writers do.
    pub seed: u64,
    /// Bytes that values are longer by, at most.
    pub payload_bytes: usize,
    /// Which writers have not yet filled their maps.
    pub filling: [bool; WRITERS],
    /// How a third thread collects, if one does.
    pub collecting: Option<Collecting>,
    /// The tides of a child that collects.
    pub tides: [Tide; WRITERS],
}

/// Entries that a writer looks at before each operation of a child that collects.
const READS: usize = 2;

/// Writes to the pool until killed, and acknowledges each committed operation on standard output
/// before the next begins. A pool that a crash left untraced is traced meanwhile.
///
/// Errors: the pool cannot be opened or written, the parent is gone. Returns early only then.
pub fn write(plan: &WriterPlan) -> Result<(), LabError> {
    let entries = entries::read(&plan.entries)?;
    let store = Store::open_untraced(&plan.pool, &StoreOptions::default())?;
    let pool = store.pool();
    let pipe = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let pipe = pipe.map_err(LabError::file(Path::new("standard output"), "opening"))?;
    // Whoever fails ends all.
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (entries, pipe) = (&entries, &pipe);
                let write = move || Writer::new(plan, pool, entries, writer)?.run(pipe, stop);
                scope.spawn(move || write().inspect_err(|_| stop.store(true, Ordering::Relaxed)))
            })
            .collect();
        let beside = match &plan.collecting {
            Some(how) => collect_until(pool, how, stop),
            None if pool.needs_trace() => pool.trace().map(|_| ()),
            None => Ok(()),
        };
        let beside = beside.map_err(LabError::pool(&plan.pool));
        if beside.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        let ended = writers.into_iter().map(|writer| match writer.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<Result<(), _>>().and(beside)
    })
}

/// One thread of the child.
struct Writer<'a> {
    store: Store,
    entries: &'a [Entry],
    script: Script,
    payload_bytes: usize,
    value: Vec<u8>,
    /// Chooses what is read, if anything is.
    reads: Option<Rng>,
}

impl<'a> Writer<'a> {
    /// Opens a session, and looks at what is in the map.
    fn new(
        plan: &WriterPlan,
        pool: &Pool<Mapped>,
        entries: &'a [Entry],
        writer: usize,
    ) -> Result<Self, LabError> {
        let options = StoreOptions {
            map: map_of(writer),
            ..StoreOptions::default()
        };
        let mut store = Store::on(pool.clone(), &plan.pool, &options)?;
        store.make_map()?;
        let mut script = Script::new(writer, plan.seed, entries.len());
        script.begin(plan.life);
        if !plan.filling[writer] {
            script.end_filling();
        }
        if plan.collecting.is_some() {
            script.set_tide(plan.tides[writer]);
        }
        // Both are in the order of the keys.
        let mut own = 0;
        store.scan(b"", |key, _| {
            while own < script.len() && entries[script.index(own)].key != key {
                own += 1;
            }
            if own < script.len() {
                script.set_present(own);
            }
            true
        })?;
        Ok(Self {
            store,
            entries,
            script,
            payload_bytes: plan.payload_bytes,
            value: Vec::new(),
            reads: plan.collecting.map(|_| Rng::with_seed(plan.seed)),
        })
    }

    fn run(mut self, mut pipe: &File, stop: &AtomicBool) -> Result<(), LabError> {
        while let Some(operation) = self.script.next()
            && !stop.load(Ordering::Relaxed)
        {
            self.look()?;
            self.perform(operation)?;
            pipe.write_all(&encode(operation))
                .map_err(LabError::file(Path::new("standard output"), "writing"))?;
            self.script.done(operation);
        }
        Ok(())
    }

    /// Reads some entries and compares them with what was written.
    ///
    /// Errors: one is not as it was written.
    fn look(&mut self) -> Result<(), LabError> {
        let Some(mut rng) = self.reads.take() else {
            return Ok(());
        };
        for _ in 0..READS {
            let own = rng.usize(0..self.script.len());
            let entry = &self.entries[self.script.index(own)];
            let found = self.store.get(&entry.key)?;
            let is_right = match (self.script.stamp(own), &found) {
                (None, found) => found.is_none(),
                (Some(_), None) => false,
                // Of another life: any value that is one.
                (Some(0), Some(found)) => is_value(entry, self.payload_bytes, found),
                (Some(stamp), Some(found)) => {
                    value(entry, stamp, self.payload_bytes, &mut self.value);
                    self.value == *found
                }
            };
            if !is_right {
                return Err(LabError::Misread {
                    key: String::from_utf8_lossy(&entry.key).into_owned(),
                    operations: self.script.operations(),
                });
            }
        }
        self.reads = Some(rng);
        Ok(())
    }

    fn perform(&mut self, operation: Operation) -> Result<(), LabError> {
        let entry = &self.entries[operation.index];
        match operation.deed {
            Deed::Insert | Deed::Update => {
                value(entry, operation.stamp, self.payload_bytes, &mut self.value);
                self.store.insert(&entry.key, &self.value).map(|_| ())
            }
            Deed::Remove => self.store.remove(&entry.key).map(|_| ()),
        }
    }
}
