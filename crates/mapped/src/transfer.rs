//! Copying a file's content into another file: shared blocks where the file system can, else data without holes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, copy_file_range, ioctl_ficlone, seek};
use rustix::io::Errno;

use crate::file::retry;

/// Bytes that one call copies at most, so that progress is shown.
const STEP_BYTES: u64 = 16 << 20;
/// Bytes in memory at most, where the system does not copy.
const BUFFER_BYTES: usize = 1 << 20;

/// Makes `to`, which is empty, `len` bytes long, with the content that `from` has there; what changes meanwhile may be old
/// or new. `tell` gets the bytes that are done. Returns whether the two files share their blocks.
///
/// Errors: what the system says; `to` holds a part.
pub(crate) fn transfer(
    from: &File,
    to: &File,
    len: u64,
    tell: &mut dyn FnMut(u64),
) -> io::Result<bool> {
    // Whatever refuses this lets the content be copied.
    if retry(|| ioctl_ficlone(to, from)).is_ok() {
        to.set_len(len)?;
        tell(len);
        return Ok(true);
    }
    to.set_len(len)?;
    let mut at = 0;
    while at < len {
        let (start, end) = data_from(from, at, len)?;
        let mut done = start;
        while done < end {
            let copied = copy_part(from, to, done, (end - done).min(STEP_BYTES))?;
            if copied == 0 {
                // The file has become shorter.
                break;
            }
            done += copied;
            tell(done);
        }
        at = end;
    }
    tell(len);
    Ok(false)
}

/// The next part that holds data, from `at` on and before `len`.
fn data_from(file: &File, at: u64, len: u64) -> io::Result<(u64, u64)> {
    let start = match retry(|| seek(file, SeekFrom::Data(at))) {
        Ok(start) => start.min(len),
        // There are only holes from here on.
        Err(Errno::NXIO) => return Ok((len, len)),
        // The file system does not report holes.
        Err(Errno::OPNOTSUPP | Errno::INVAL) => return Ok((at, len)),
        Err(other) => return Err(other.into()),
    };
    match retry(|| seek(file, SeekFrom::Hole(start))) {
        Ok(end) => Ok((start, end.min(len))),
        Err(Errno::NXIO | Errno::OPNOTSUPP | Errno::INVAL) => Ok((start, len)),
        Err(other) => Err(other.into()),
    }
}

/// Copies bytes, at least one unless the file ends. Returns how many.
fn copy_part(from: &File, to: &File, at: u64, bytes: u64) -> io::Result<u64> {
    let by_system = retry(|| {
        let (mut into, mut out) = (at, at);
        copy_file_range(from, Some(&mut into), to, Some(&mut out), bytes as usize)
    });
    match by_system {
        Ok(copied) => Ok(copied as u64),
        // Two file systems, or one that cannot.
        Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
            let mut buffer = vec![0; BUFFER_BYTES.min(bytes as usize)];
            let read = from.read_at(&mut buffer, at)?;
            to.write_all_at(&buffer[..read], at)?;
            Ok(read as u64)
        }
        Err(other) => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_copied_and_holes_stay_holes() {
        const LEN: u64 = 8 << 20;
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            let mut options = File::options();
            options.read(true).write(true).create_new(true);
            (options.open(&path).unwrap(), path)
        };
        let ((from, from_path), (to, to_path)) = (file("from"), file("to"));
        from.set_len(LEN).unwrap();
        for at in [0, 5 << 20, LEN - 4096] {
            from.write_all_at(&[7; 4096], at).unwrap();
        }
        let mut told = Vec::new();
        transfer(&from, &to, LEN, &mut |done| told.push(done)).unwrap();
        assert!(told.is_sorted() && told.last() == Some(&LEN), "{told:?}");
        assert!(std::fs::read(from_path).unwrap() == std::fs::read(to_path).unwrap());
        let blocks = |file: &File| rustix::fs::fstat(file).unwrap().st_blocks;
        assert!(blocks(&to) <= 2 * blocks(&from));
    }
}
