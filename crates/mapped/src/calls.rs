//! The system calls that make stores and names durable. They are in one place so that tests can record them.

use core::ops::Range;
use std::fs::File;

use rustix::fs::fsync;
use rustix::io::Errno;

use crate::file::retry;
use crate::window::Window;

/// Waits until the device holds all stores to pages of the range.
pub(crate) fn write_out(window: &Window, range: Range<u64>) -> Result<(), Errno> {
    #[cfg(test)]
    recorded::add(recorded::Call::WriteOut(range.clone()));
    window.write_out(range)
}

/// Waits until the device holds the file, or a directory's names.
pub(crate) fn sync_file(file: &File) -> Result<(), Errno> {
    #[cfg(test)]
    recorded::add(recorded::Call::Sync(recorded::path_of(file)));
    retry(|| fsync(file))
}

#[cfg(test)]
mod recorded {
    use core::cell::RefCell;
    use core::ops::Range;
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    /// A call that this thread made.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub(super) enum Call {
        WriteOut(Range<u64>),
        /// Syncs the file or directory with this path.
        Sync(PathBuf),
    }

    thread_local! {
        static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn add(call: Call) {
        CALLS.with_borrow_mut(|calls| calls.push(call));
    }

    pub(super) fn path_of(file: &File) -> PathBuf {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        std::fs::read_link(link).unwrap()
    }

    /// The calls that `body` makes.
    pub(super) fn during<R>(body: impl FnOnce() -> R) -> (R, Vec<Call>) {
        CALLS.with_borrow_mut(Vec::clear);
        let result = body();
        (result, CALLS.take())
    }
}

#[cfg(test)]
mod tests {
    use firn_media::{Domain, Memory, Space};
    use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr};

    use super::recorded::{Call, during};
    use crate::{Mapped, MappedOptions, write_whole};

    fn unlogged() -> MappedOptions {
        MappedOptions::default().domain(Domain::Process)
    }

    /// On some file systems neither call alone writes the page cache out: msync writes the pages first, then fsync the
    /// length and the blocks.
    #[test]
    fn a_sync_writes_all_pages_out_and_then_syncs_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("pool");
        let medium = Mapped::create(&path, 3 * CHUNK_BYTES, &unlogged()).unwrap();
        medium.publish().unwrap();
        for len in [3 * CHUNK_BYTES, 3 * CHUNK_BYTES + FRAME_BYTES] {
            medium.reserve(VirtAddr(0), len).unwrap();
            medium.store_u64(VirtAddr(len - 8), 7);
            let (synced, calls) = during(|| medium.sync());
            synced.unwrap();
            let expected = [Call::WriteOut(0..len), Call::Sync(path.clone())];
            assert_eq!(calls, expected);
        }
    }

    #[test]
    fn the_name_of_a_new_file_is_durable_and_what_it_names_before() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().canonicalize().unwrap();
        let path = directory.join("pool");
        let options = unlogged();
        let medium = Mapped::create(&path, FRAME_BYTES, &options).unwrap();
        let (published, calls) = during(|| medium.publish());
        published.unwrap();
        let draft = |name: &str| Call::Sync(directory.join(format!(".{name}.firn-new")));
        let expected = [
            Call::WriteOut(0..FRAME_BYTES),
            draft("pool"),
            Call::Sync(directory.clone()),
        ];
        assert_eq!(calls, expected);
        let (written, calls) = during(|| write_whole(&directory.join("page"), b"content"));
        written.unwrap();
        assert_eq!(calls, [draft("page"), Call::Sync(directory.clone())]);
    }
}
