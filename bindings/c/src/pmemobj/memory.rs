//! Flushing, and copying with a flush.

use core::ffi::{c_int, c_void};
use core::ptr;

use firn_heap::Error;
use firn_media::Memory;

use super::pools::{Pobj, Pop};
use crate::given::Source;
use crate::status::{Outcome, Status, status_of};

/// `PMEMOBJ_F_MEM_NOFLUSH`: neither written back nor fenced.
const NO_FLUSH: u32 = 1 << 5;
/// `PMEMOBJ_F_MEM_NODRAIN`: written back, not fenced.
const NO_DRAIN: u32 = 1 << 0;

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_persist(pool: Pop, from: *const c_void, len: usize) -> Status {
    status_of(|| {
        let it = pool.open()?;
        let at = it.range(from, len)?;
        it.heap.medium().write_back(at, len as u64);
        it.drain()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_flush(pool: Pop, from: *const c_void, len: usize) -> Status {
    status_of(|| {
        let it = pool.open()?;
        let at = it.range(from, len)?;
        it.heap.medium().write_back(at, len as u64);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_drain(pool: Pop) -> Status {
    status_of(|| pool.open()?.drain())
}

impl Pobj {
    /// Makes the stores durable, as far as the flags say.
    fn finish(&self, to: *mut c_void, len: usize, flags: u32) -> Outcome<()> {
        if flags & NO_FLUSH != 0 {
            return Ok(());
        }
        let at = self.range(to, len)?;
        let medium = self.heap.medium();
        medium.write_back(at, len as u64);
        match flags & NO_DRAIN {
            0 => self.drain(),
            _ => Ok(()),
        }
    }

    /// Makes what this thread has written back durable.
    #[inline]
    fn drain(&self) -> Outcome<()> {
        self.heap.medium().fence();
        self.wait_for_commits()
    }

    /// Waits until everything up to now is as durable as the pool's level says.
    #[inline]
    pub(super) fn wait_for_commits(&self) -> Outcome<()> {
        let medium = self.heap.medium();
        Ok(medium
            .wait_at(medium.commit(), medium.level())
            .map_err(Error::from)?)
    }
}

/// Copies bytes, which may overlap.
#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_memmove(
    pool: Pop,
    to: *mut c_void,
    from: Source<'_>,
    len: usize,
    flags: u32,
) -> Status {
    status_of(|| {
        let it = pool.open()?;
        it.range(to, len)?;
        // SAFETY: `range` found that the target lies in the pool, which is mapped, and whose bytes the program may
        // store to; the header promises `len` bytes at the source.
        unsafe { ptr::copy(from.pointer().cast::<u8>(), to.cast::<u8>(), len) };
        it.finish(to, len, flags)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_pmemobj_memset(
    pool: Pop,
    to: *mut c_void,
    byte: c_int,
    len: usize,
    flags: u32,
) -> Status {
    status_of(|| {
        let it = pool.open()?;
        it.range(to, len)?;
        // SAFETY: `range` found that the target lies in the pool, which is mapped, as for the copy.
        unsafe { ptr::write_bytes(to.cast::<u8>(), byte as u8, len) };
        it.finish(to, len, flags)
    })
}
