//! The child: writes until it is killed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_tools::{Store, StoreOptions, ToolError};

use super::collector::{Collecting, collect_until};
use super::entries;
use super::record::encode;
use crate::LabError;
use crate::power_cut::{CachingDisk, Syncs};
use crate::writers::{Input, Script, Tide, WRITERS, Writer, together};

/// Instructions for a child.
#[derive(Clone, Debug)]
pub struct WriterPlan {
    /// The pool, which exists.
    pub pool: PathBuf,
    /// The file of entries.
    pub entries: PathBuf,
    /// Number of this life, from 1.
    pub life: u64,
    /// Seed of the writers' operations.
    pub seed: u64,
    /// Most bytes by which values are lengthened.
    pub payload_bytes: usize,
    /// Which writers have not yet filled their maps.
    pub filling: [bool; WRITERS],
    /// How a third thread collects, if one does.
    pub collecting: Option<Collecting>,
    /// The tides of a child that collects.
    pub tides: [Tide; WRITERS],
    /// The journal of the disk below a child whose power fails, and what its syncs do.
    pub disk: Option<(PathBuf, Syncs)>,
}

/// Bytes of the log of a child whose power fails: few, so that it often grows and goes home.
const LOG_BYTES: core::ops::Range<u64> = 2 << 20..4 << 20;

impl WriterPlan {
    /// How the pool is opened.
    fn options(&self) -> Result<StoreOptions, LabError> {
        let mut options = StoreOptions::default();
        if let Some((journal, syncs)) = &self.disk {
            let disk = CachingDisk::new(journal, &self.pool, *syncs);
            let disk = disk.map_err(ToolError::file(journal, "beginning a disk's cache"))?;
            let log = &mut options.mapped.log;
            (log.initial_bytes, log.bound_bytes) = (LOG_BYTES.start, LOG_BYTES.end);
            log.disk = Arc::new(disk);
        }
        Ok(options)
    }

    /// The script of a writer, as far as the parent knows it.
    fn script(&self, writer: usize, entries: usize) -> Script {
        let mut script = Script::new(writer, self.seed, entries);
        script.begin(self.life);
        if !self.filling[writer] {
            script.end_filling();
        }
        if self.collecting.is_some() {
            script.set_tide(self.tides[writer]);
        }
        script
    }
}

/// Writes to the pool until killed, and acknowledges each committed operation on standard output before the next
/// begins. A pool that a crash left untraced is traced meanwhile.
///
/// Errors: the pool cannot be opened or written, the parent is gone. It returns only on errors.
pub fn write(plan: &WriterPlan) -> Result<(), LabError> {
    let input = Input {
        entries: entries::read(&plan.entries)?,
        payload_bytes: plan.payload_bytes,
    };
    let store = Store::open_untraced(&plan.pool, &plan.options()?)?;
    let pool = store.pool();
    let name = Path::new("standard output");
    let pipe = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let pipe = pipe.map_err(ToolError::file(name, "opening"))?;
    let script = |writer| plan.script(writer, input.entries.len());
    let mut scripts: Vec<Script> = (0..WRITERS).map(script).collect();
    let write = |script: &mut Script, stop: &AtomicBool| {
        let mut writer = Writer::new(pool, &plan.pool, &input, script)?;
        writer.adopt()?;
        if plan.collecting.is_some() {
            writer.read_too(plan.seed);
        }
        writer.run(
            |_| !stop.load(Ordering::Relaxed),
            |operation| {
                let told = (&pipe).write_all(&encode(operation));
                Ok(told.map_err(ToolError::file(name, "writing"))?)
            },
        )
    };
    let beside = |stop: &AtomicBool| {
        let ended = match &plan.collecting {
            Some(how) => collect_until(pool, how, stop),
            None if pool.needs_trace() => pool.trace().map(|_| ()),
            None => Ok(()),
        };
        Ok(ended.map_err(ToolError::pool(&plan.pool))?)
    };
    together(&mut scripts, write, beside).map(|_| ())
}
