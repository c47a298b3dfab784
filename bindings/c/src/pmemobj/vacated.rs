//! Memory that objects have left: inaccessible while a program is debugged.
//!
//! A pointer that a program keeps beyond the end of its transaction leads to its object's former address. Nothing else
//! will ever lie there before the pool is closed, so the program would load zeros and lose its stores. Guarded memory
//! stops it instead, at the faulting instruction, and a message names the object. The safepoints of any thread guard
//! what cycles have emptied: no thread may use it, because a cycle ends only when every thread has left the operation
//! in which it might have had a pointer.

use core::ffi::{c_int, c_void};
use core::fmt::{self, Write};
use core::{mem, ptr};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use firn_heap::Pool;
use firn_mapped::Mapped;
use firn_media::Memory;
use firn_units::{VirtAddr, WORD_BYTES};

use super::TYPE_BYTES;
use crate::status::{Failure, Outcome};

/// The guarded memory of a pool.
pub(crate) struct Vacated {
    is_guarded: bool,
    /// Cycles whose memory is guarded.
    cycles: Mutex<usize>,
}

impl Vacated {
    /// Guards in debug builds of the library, and if the environment says so. In a signal handler, `around` finds the
    /// pool around an address, and the address there.
    pub(crate) fn new(around: Around) -> Outcome<Self> {
        let is_guarded = match std::env::var("FIRN_GUARD").as_deref() {
            Err(_) | Ok("") => cfg!(debug_assertions),
            Ok("0") => false,
            Ok("1") => true,
            Ok(other) => {
                return Err(Failure::invalid(format!(
                    "FIRN_GUARD must be `0` or `1`, not `{other}`"
                )));
            }
        };
        if is_guarded {
            install(around);
        }
        Ok(Self {
            is_guarded,
            cycles: Mutex::new(0),
        })
    }

    /// Guards what cycles have emptied since this was last called.
    pub(crate) fn guard(&self, heap: &Pool<Mapped>) {
        if !self.is_guarded {
            return;
        }
        let mut cycles = self.cycles.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, emptied) = heap.emptied_since(*cycles);
        for (at, bytes) in emptied {
            // If the system refuses, a kept pointer goes unnoticed.
            heap.medium().set_accessible(at, bytes, false);
        }
        *cycles = all;
    }

    /// Ends the guard: the emptied memory is about to be used again.
    pub(crate) fn let_in(&self, heap: &Pool<Mapped>) {
        if !self.is_guarded {
            return;
        }
        let mut cycles = self.cycles.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, emptied) = heap.emptied_since(0);
        for (at, bytes) in emptied {
            heap.medium().set_accessible(at, bytes, true);
        }
        *cycles = 0;
    }
}

/// Finds the pool around an address, and the address there.
pub(crate) type Around = fn(usize) -> Option<(&'static Pool<Mapped>, VirtAddr)>;

/// How the handler finds pools.
static AROUND: OnceLock<Around> = OnceLock::new();

/// The former action for SIGSEGV.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

fn install(around: Around) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = AROUND.set(around);
        // SAFETY: zeros are a valid value of these structures, and both are the right ones for the call.
        unsafe {
            let mut new: libc::sigaction = mem::zeroed();
            let mut old: libc::sigaction = mem::zeroed();
            new.sa_sigaction = on_fault as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut new.sa_mask);
            if libc::sigaction(libc::SIGSEGV, ptr::null(), &raw mut old) == 0 {
                let _ = BEFORE.set(old);
                libc::sigaction(libc::SIGSEGV, &raw const new, ptr::null_mut());
            }
        }
    });
}

/// Reports the object if the fault is in memory that an object has left, then does the former action.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes valid pointers to the handler, which may read the fault's address.
    let address = unsafe { (*info).si_addr() }.addr();
    if let Some((pool, at)) = AROUND.get().and_then(|around| around(address)) {
        tell(pool, at);
    }
    let before = BEFORE.get().copied();
    match before.map(|action| (action.sa_sigaction, action.sa_flags)) {
        Some((handler, flags)) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            // SAFETY: this calls the handler that was installed before, as its flags say.
            unsafe {
                if flags & libc::SA_SIGINFO != 0 {
                    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                        mem::transmute(handler);
                    handler(signal, info, context);
                } else {
                    let handler: extern "C" fn(c_int) = mem::transmute(handler);
                    handler(signal);
                }
            }
        }
        _ => {
            // The instruction runs again, and the process ends at it. SAFETY: the system's default action always
            // exists.
            unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
        }
    }
}

/// Reports the object that lay there. It allocates nothing; the list of retained cycles is locked only for an instant
/// at a time, by threads that go on.
fn tell(pool: &Pool<Mapped>, at: VirtAddr) {
    let Some((was, is)) = pool.moved_from(at) else {
        return;
    };
    let body = is + WORD_BYTES;
    let type_num = pool.medium().load_u64(body);
    let into = at.0.saturating_sub((was + WORD_BYTES + TYPE_BYTES).0);
    let mut text = Text {
        bytes: [0; 512],
        len: 0,
    };
    // Text that does not fit is left out.
    let _ = writeln!(
        text,
        "firn: a pointer was kept too long. It leads to byte {into} of an object of type number {type_num} (TOID \
         or POBJ_ALLOC say which), which has moved from offset {:#x} to {:#x} since. Pointers are good until the \
         outermost transaction ends or firn_safepoint is called; keep the OID, and use D_RO or D_RW again.",
        (was + WORD_BYTES + TYPE_BYTES).0,
        (body + TYPE_BYTES).0,
    );
    // SAFETY: `len` bytes of the text are initialized; the call is allowed in a handler.
    unsafe { libc::write(2, text.bytes.as_ptr().cast(), text.len) };
}

/// Text of a fixed length.
struct Text {
    bytes: [u8; 512],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let rest = &mut self.bytes[self.len..];
        let taken = text.len().min(rest.len());
        rest[..taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.len += taken;
        match taken == text.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}
