//! The thread that brings the log home.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use firn_format::statistics::LogFigure;
use firn_log::Reach;

use super::disk::Disk;
use super::group::{Failed, Group};
use super::home::{HomeFile, Since};
use super::log_file::Hold;
use super::recovery::superblock;
use crate::beside::PUBLISHED;
use crate::file::PoolFile;

/// What a checkpoint needs.
#[derive(Debug)]
pub(super) struct Checkpointer {
    pub(super) group: Arc<Group>,
    pub(super) file: Arc<PoolFile>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) since: Arc<Mutex<Since>>,
    /// One checkpoint at a time.
    pub(super) turn: Mutex<()>,
}

impl Checkpointer {
    /// Brings home what is due, until the medium goes.
    pub(super) fn run(&self) {
        let mut state = self.group.lock();
        while !state.closing && state.failed.is_none() {
            if !(state.starved || state.log.is_half_full()) {
                state = self.group.wait_for_checkpoint(state);
                continue;
            }
            drop(state);
            // A failure is in the group's state: the loop ends. Only what is durable goes home (L5).
            let handed = self.group.handed();
            let _ = self
                .group
                .wait(handed, Reach::Disk)
                .and_then(|()| self.checkpoint());
            state = self.group.lock();
        }
    }

    /// Makes the log that of a pool that has its name, and is home.
    ///
    /// Errors: as [`Checkpointer::checkpoint`].
    pub(super) fn publish(&self) -> Result<(), Failed> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let home = superblock(&self.file).ok().flatten();
        // One before, as of any open pool.
        let generation = home.map_or(0, |superblock| superblock.generation.saturating_sub(1));
        let generation = generation.max(PUBLISHED);
        let head = self.group.lock().log.head_of(generation);
        let written = self.group.file.write_head(&head);
        let mut state = self.group.lock();
        match written {
            Ok(()) => state.log.is_of(head),
            Err(source) => {
                self.group
                    .fail(&mut state, "writing the log's head", source);
            }
        }
        state.failed.clone().map_or(Ok(()), Err)
    }

    /// Brings home all that is durable now.
    ///
    /// Concurrency: waits for backups that hold the log.
    ///
    /// Errors: what the system says; from then on nothing becomes durable.
    pub(super) fn checkpoint(&self) -> Result<(), Failed> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // A backup holds the log while it copies home. Until it is done the program goes on, as long as the log has room.
        let _held = self.group.file.hold(Hold::ToBringHome);
        let mut state = self.group.lock();
        if let Some(failed) = &state.failed {
            return Err(failed.clone());
        }
        let Some(mut checkpoint) = state.log.begin_checkpoint() else {
            self.group.room(&mut state);
            return Ok(());
        };
        let head = state.log.head_after(&checkpoint);
        drop(state);
        let home = checkpoint.take_home();
        let home_file = HomeFile {
            file: &self.file,
            disk: &*self.disk,
        };
        let steps: [(&'static str, &dyn Fn() -> io::Result<()>); 3] = [
            ("writing the pool's file", &|| {
                let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
                home_file.give_back(&home, &since)?;
                drop(since);
                let bytes = home.words.bytes();
                self.group.figures.add(LogFigure::HomeBytes, bytes);
                home_file.write(&home)
            }),
            // L6: what the head declares to be home is durable there before.
            ("syncing the pool's file", &|| home_file.sync()),
            ("writing the log's head", &|| {
                self.group.file.write_head(&head)
            }),
        ];
        let failed = steps
            .iter()
            .find_map(|(doing, step)| step().err().map(|source| (*doing, source)));
        let mut state = self.group.lock();
        if let Some((doing, source)) = failed {
            self.group.fail(&mut state, doing, source);
            let failed = state.failed.clone();
            return failed.map_or(Ok(()), Err);
        }
        state.log.end_checkpoint(checkpoint);
        self.group.figures.add(LogFigure::Checkpoints, 1);
        self.group.tell_figures(&state);
        self.group.room(&mut state);
        Ok(())
    }
}
