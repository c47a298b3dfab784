//! Dropping copies of pages that are home, while nobody stores.

use core::ops::Range;
use core::time::Duration;
use std::time::Instant;

use firn_units::{CHUNK_BYTES, FRAME_BYTES, WORD_BYTES};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use super::copies::Copies;
use super::group::Group;
use super::pages::Pages;
use super::{Covered, Logged};
use crate::file::retry;
use crate::window::FileMapping;

/// The program stands still for one call at most so long.
const LONGEST: Duration = Duration::from_micros(800);
/// Pages that are read ahead of a stop: more than it comes to.
const READY: usize = 1024;
/// Where copies could not be dropped, this share of the bound is allowed on top before it is tried again.
const MORE: usize = 8;

type Page = [u8; FRAME_BYTES as usize];

impl Logged {
    #[inline]
    pub(crate) fn is_full_of_copies(&self) -> bool {
        self.group().is_some_and(Group::is_full_of_copies)
    }

    /// Reads the file's pages that are compared next into the system's cache, where they may have been and gone: a stop must
    /// not wait for the disk.
    pub(crate) fn ready_copies(&self, on: &impl Pages, from: u64) {
        let Some(group) = self.group() else {
            return;
        };
        let mut state = group.lock();
        let home = state.log.home();
        state.copies.go_on_from((from / FRAME_BYTES) as usize);
        let pages = state.copies.following(READY, home);
        drop(state);
        let mut page: Page = [0; FRAME_BYTES as usize];
        for number in pages {
            // A page that cannot be read keeps its copy.
            let at = number as u64 * FRAME_BYTES;
            let _ = retry(|| pread(&on.file().file, &mut page, at));
        }
    }

    /// Drops copies of pages from byte `from` on, as many as there is time for. Returns whether it ran out of time.
    ///
    /// Concurrency: nobody stores there meanwhile.
    pub(crate) fn drop_copies(&self, on: &impl Pages, from: u64) -> bool {
        let Some(group) = self.group() else {
            return false;
        };
        let began = Instant::now();
        let mut covered = self.lock_covered();
        let mut state = group.lock();
        let home = state.log.home();
        state.copies.go_on_from((from / FRAME_BYTES) as usize);
        while let Some(page) = state.copies.next() {
            let dropped = drop_copy(on, page, (&state.copies, home), &mut covered);
            match dropped {
                Ok(None) => {}
                Ok(Some(range)) => state.copies.forget(&range),
                Err(refused) => {
                    group.fail(&mut state, "mapping the pool's file", refused.into());
                    return false;
                }
            }
            if began.elapsed() > LONGEST {
                group.tell_copies(&state);
                return true;
            }
        }
        group.tell_copies(&state);
        let (count, most) = (state.copies.count(), self.most_copies());
        group.allow_copies(most.max(count + most / MORE));
        false
    }
}

/// Drops the copy of a page, if it is home. Where memory lies in the file's place, this concerns all of it within the
/// page's chunk: so the process's mappings stay few. Returns what was dropped.
///
/// Errors: the system refused to map the file, and what was there is gone.
fn drop_copy(
    on: &impl Pages,
    page: usize,
    (copies, home): (&Copies, u64),
    covered: &mut Covered,
) -> Result<Option<Range<u64>>, Errno> {
    let at = page as u64 * FRAME_BYTES;
    let is_home = |at: u64| {
        let record = copies.record((at / FRAME_BYTES) as usize);
        record.is_none_or(|record| record <= home)
    };
    let chunk = at - at % CHUNK_BYTES;
    let of_memory = covered.memory.get(&at).cloned();
    let range = of_memory.as_ref().map_or(at..at + FRAME_BYTES, |memory| {
        memory.start.max(chunk)..memory.end.min(chunk + CHUNK_BYTES)
    });
    let mut pages = range.clone().step_by(FRAME_BYTES as usize);
    if !pages.all(|at| is_home(at) && is_in_file(on, at)) {
        return Ok(None);
    }
    match of_memory {
        None => Ok(on.window().forget(range.clone()).is_ok().then_some(range)),
        Some(_) => {
            map_again(on, &range)?;
            covered.memory.remove(range.clone());
            Ok(Some(range))
        }
    }
}

/// Maps the file in the place of memory with the same content.
fn map_again(on: &impl Pages, range: &Range<u64>) -> Result<(), Errno> {
    let private = FileMapping {
        writable: true,
        dax: false,
        private: true,
    };
    on.window()
        .map_file(range.clone(), &on.file().file, private)
}

/// Whether a page of the process holds what the file does. Not if the file's page would have to be read from the disk: it
/// will be there the next time.
fn is_in_file(on: &impl Pages, at: u64) -> bool {
    let file = &on.file().file;
    let mut there: Page = [0; FRAME_BYTES as usize];
    let mut read = |flags| {
        let into = &mut [std::io::IoSliceMut::new(&mut there)];
        retry(|| preadv2(file, into, at, flags))
    };
    let read = match read(ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP) => read(ReadWriteFlags::empty()),
        other => other,
    };
    if read != Ok(FRAME_BYTES as usize) {
        // Only a hint: a page that is not read ahead keeps its copy.
        let _ = fadvise(
            file,
            at,
            core::num::NonZeroU64::new(FRAME_BYTES),
            Advice::WillNeed,
        );
        return false;
    }
    let words = there.chunks_exact(WORD_BYTES as usize);
    (at..)
        .step_by(WORD_BYTES as usize)
        .zip(words)
        .all(|(at, word)| on.word_at(at).to_le_bytes() == word)
}
