//! The file of a log: beside the pool, read and written in whole blocks.

use core::ops::Range;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use firn_format::log::{BLOCK_BYTES, Head, head_offset};
use firn_log::{Blocks, Growth, Write};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open, unlink};
use rustix::io::Errno;

use super::disk::{Disk, Durability, Part, write_all};
use crate::draft::{leads_to, sync_directory};
use crate::file::retry;

/// An open log.
#[derive(Debug)]
pub(crate) struct LogFile {
    disk: Arc<dyn Disk>,
    /// Writes to the disk past the system's page cache, where the file system can.
    direct: File,
    /// Writes to the page cache.
    file: File,
    pub(super) path: PathBuf,
}

/// Who holds a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hold {
    /// Who reads it and home: neither the head nor home changes meanwhile.
    ToRead,
    /// Who brings it home.
    ToBringHome,
}

/// A log that is held; let go on drop, or at the latest when the process ends.
#[derive(Debug)]
pub(super) struct Held<'l>(Option<&'l File>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            let _ = retry(|| flock(file, FlockOperation::Unlock));
        }
    }
}

/// Fills `into` from byte `at` on, as far as the file goes. Returns how far.
pub(super) fn read_up_to(file: &File, at: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], at + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

impl LogFile {
    /// Opens a log.
    pub(super) fn open(path: PathBuf, disk: &Arc<dyn Disk>) -> io::Result<Self> {
        let open_as = |access| open(&path, access | OFlags::CLOEXEC, Mode::empty());
        let file = match retry(|| open_as(OFlags::RDWR)) {
            // Enough to look at it.
            Err(Errno::ACCESS | Errno::ROFS) => retry(|| open_as(OFlags::RDONLY))?,
            other => other?,
        };
        Self::around(file.into(), path, disk)
    }

    /// Shortens the file.
    pub(super) fn cut(&self, bytes: u64) -> io::Result<()> {
        match self.bytes()? > bytes {
            true => self.disk.set_len((&self.file, Part::Log), bytes),
            false => Ok(()),
        }
    }

    /// Makes a log whose heads and `slots` are written with zeros (L8), then its first head, all of it durable, the name
    /// included. It replaces one that is left of an earlier pool.
    ///
    /// Errors: what the system says; then there is no log.
    pub(super) fn create(
        path: PathBuf,
        head: &Head,
        slots: &Growth,
        disk: &Arc<dyn Disk>,
    ) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let file = retry(|| open(&path, flags, mode))?.into();
        let log = Self::around(file, path, disk)?;
        let made = log
            .write_zeros(0..slots.bytes().end)
            .and_then(|()| log.sync())
            .and_then(|()| log.write_head(head))
            .and_then(|()| sync_directory(&log.path));
        match made {
            Ok(()) => Ok(log),
            Err(refused) => {
                // One that stays is no log: it has no head.
                let _ = unlink(&log.path);
                Err(refused)
            }
        }
    }

    fn around(file: File, path: PathBuf, disk: &Arc<dyn Disk>) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::DIRECT;
        let direct = match retry(|| open(&path, flags, Mode::empty())) {
            Ok(direct) => direct.into(),
            // Through the page cache a write is as durable, and slower.
            Err(_) => file.try_clone()?,
        };
        Ok(Self {
            disk: Arc::clone(disk),
            direct,
            file,
            path,
        })
    }

    /// Waits until nobody holds the log in a way that excludes this one, and holds it. The pool's own lock is on the pool's
    /// file, so that the two have nothing to do with each other.
    ///
    /// On a file system without locks nobody holds anything. Then who reads sees by the head that home has changed.
    pub(super) fn hold(&self, hold: Hold) -> Held<'_> {
        let operation = match hold {
            Hold::ToRead => FlockOperation::LockShared,
            Hold::ToBringHome => FlockOperation::LockExclusive,
        };
        let held = retry(|| flock(&self.file, operation));
        Held(held.is_ok().then_some(&self.file))
    }

    /// Whether the log's name still leads to this file.
    pub(super) fn has_its_name(&self) -> io::Result<bool> {
        Ok(leads_to(&self.path, &self.file)?)
    }

    /// Bytes of the file.
    pub(super) fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Fills `into` from byte `at` on, as far as the file goes.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        read_up_to(&self.file, at, into)
    }

    /// Writes blocks of the log, durable on return if the write is to be.
    pub(super) fn write(&self, write: &Write) -> io::Result<()> {
        let mut from = 0;
        while from < write.offsets.len() {
            let at = write.offsets[from];
            let follows =
                |index: usize| write.offsets[from + index] == at + index as u64 * BLOCK_BYTES;
            let most = write.offsets.len() - from;
            let count = (1..most).find(|&index| !follows(index)).unwrap_or(most);
            let (file, durability) = match write.durable {
                true => (&self.direct, Durability::AtOnce),
                false => (&self.file, Durability::WithNextSync),
            };
            let blocks = write.blocks.bytes(from..from + count);
            self.write_blocks(file, at, blocks, durability)?;
            from += count;
        }
        Ok(())
    }

    /// Writes a head, durable on return.
    pub(super) fn write_head(&self, head: &Head) -> io::Result<()> {
        let mut block = Blocks::zeros(1);
        block.first_mut().copy_from_slice(&head.encode());
        let at = head_offset(head.generation);
        self.write_blocks(&self.direct, at, block.bytes(0..1), Durability::AtOnce)
    }

    /// Writes zeros to new slots, durable on return, so that later writes there change no metadata.
    pub(super) fn grow(&self, growth: &Growth) -> io::Result<()> {
        self.write_zeros(growth.bytes())?;
        self.sync()
    }

    /// Writes zeros to blocks, durable after the next sync.
    fn write_zeros(&self, bytes: Range<u64>) -> io::Result<()> {
        const STEP_BLOCKS: u64 = 256;
        let zeros = Blocks::zeros(STEP_BLOCKS as usize);
        for at in bytes.clone().step_by((STEP_BLOCKS * BLOCK_BYTES) as usize) {
            let count = (bytes.end - at) / BLOCK_BYTES;
            let count = count.min(STEP_BLOCKS) as usize;
            let zeros = zeros.bytes(0..count);
            self.write_blocks(&self.direct, at, zeros, Durability::WithNextSync)?;
        }
        Ok(())
    }

    /// Makes the file's length and everything that was written durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.disk.sync((&self.file, Part::Log))
    }

    /// Removes the log; its name is gone for good on return.
    pub(super) fn remove(&self) -> io::Result<()> {
        unlink(&self.path)?;
        sync_directory(&self.path)
    }

    fn write_blocks(
        &self,
        file: &File,
        at: u64,
        blocks: &[u8],
        durability: Durability,
    ) -> io::Result<()> {
        let (file, blocks) = ((file, Part::Log), (blocks, BLOCK_BYTES as usize));
        write_all(&*self.disk, file, at, blocks, durability)
    }
}
