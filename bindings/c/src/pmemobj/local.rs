//! What a thread knows: the transaction that it has open, and what it has of each pool.
//!
//! A library finds variables of a thread's by a call of the loader's, and every function here begins with them: an
//! insertion made 50 of these calls. So one word lies at a distance from the thread's control block that is known
//! once the library is loaded (model "initial exec" of ELF's thread-local storage), and leads to the rest. glibc keeps
//! room for libraries that are loaded late and want that: the library's 184 bytes of 1,664.

use core::cell::{Cell, RefCell};
use core::ptr;
use std::sync::Arc;

use super::pools::Pobj;
use super::stages::Stages;
use super::thread::{Slot, end_all};
use crate::handle_pool::Handed;

/// A thread's own. It is used by that thread alone.
pub(crate) struct Local {
    pub(crate) stages: Stages,
    /// The pool that was used last, and the thread's slot of it.
    pub(crate) last_used: Cell<(Handed<Pobj>, *const Slot)>,
    pub(crate) slots: RefCell<Slots>,
}

/// A thread's slots, by their pools. None is given back before the thread ends.
#[derive(Default)]
pub(crate) struct Slots {
    pub(crate) of_pools: Vec<(Handed<Pobj>, Arc<Slot>)>,
    /// Of pools that were closed.
    pub(crate) ended: Vec<Arc<Slot>>,
}

/// No pool was used yet.
const NOWHERE: (Handed<Pobj>, *const Slot) = (Handed::NULL, ptr::null());

/// This thread's own, made if it has none.
#[inline(always)]
pub(crate) fn local() -> &'static Local {
    match known() {
        Some(local) => local,
        None => make(),
    }
}

/// This thread's own, if it has one.
#[inline(always)]
pub(crate) fn known() -> Option<&'static Local> {
    // SAFETY: the word is this thread's alone, and begins as null; it leads to memory that stays until the thread
    // ends. What is returned is not kept.
    unsafe { (*word()).as_ref() }
}

#[cold]
fn make() -> &'static Local {
    let local = Box::leak(Box::new(Local {
        stages: Stages::new(),
        last_used: Cell::new(NOWHERE),
        slots: RefCell::default(),
    }));
    // SAFETY: the word is this thread's alone.
    unsafe { word().write(local) };
    // Where the thread is at its end, nothing ends what comes now.
    let _ = END.try_with(|end| end.0.set(local));
    local
}

/// Ends what a thread has when it ends.
struct End(Cell<*mut Local>);

thread_local! {
    static END: End = const { End(Cell::new(ptr::null_mut())) };
}

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: it is null, or was made for this thread and is not looked at any more once the word is null.
        if let Some(local) = unsafe { self.0.get().as_ref() } {
            let slots = local.slots.take();
            local.last_used.set(NOWHERE);
            end_all(slots);
            // SAFETY: the word is this thread's; what it led to came from a box in `make`, and nobody finds it any more.
            unsafe {
                word().write(ptr::null());
                drop(Box::from_raw(self.0.get()));
            }
        }
    }
}

core::arch::global_asm!(
    ".pushsection .tbss.firn_pmemobj_local,\"awT\",@nobits",
    ".balign 8",
    ".globl firn_pmemobj_local",
    ".hidden firn_pmemobj_local",
    ".type firn_pmemobj_local, @object",
    ".size firn_pmemobj_local, 8",
    "firn_pmemobj_local:",
    ".zero 8",
    ".popsection",
);

/// Where the word is.
#[inline(always)]
fn word() -> *mut *const Local {
    let word;
    // SAFETY: reads the thread's control block, whose first word is its own address, and a constant of the loader's.
    unsafe {
        core::arch::asm!(
            "mov {word}, qword ptr [rip + firn_pmemobj_local@GOTTPOFF]",
            "add {word}, qword ptr fs:[0]",
            word = out(reg) word,
            options(pure, readonly, nostack),
        );
    }
    word
}
