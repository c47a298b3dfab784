//! A thread's state: its open transaction, and its part of each pool.
//!
//! A library finds thread-local variables by a call of the loader, and every function here begins with them: an
//! insertion made 50 of these calls. So one word lies at an offset from the thread's control block that is known once
//! the library is loaded (model "initial exec" of ELF's thread-local storage), and leads to the rest. glibc reserves
//! room for libraries that are loaded late and want this: the library takes 184 bytes of 1,664.

use core::cell::{Cell, RefCell};
use core::ptr;
use std::sync::Arc;

use super::pools::Pobj;
use super::stages::Stages;
use super::thread::{Slot, end_all};
use crate::handle_pool::Handed;

/// A thread's state, used by that thread alone.
pub(crate) struct Local {
    pub(crate) stages: Stages,
    /// The last-used cache: the pool of the last call, and the thread's slot in it.
    pub(crate) last_used: Cell<(Handed<Pobj>, *const Slot)>,
    pub(crate) slots: RefCell<Slots>,
}

/// A thread's slots, by their pools. None is given back before the thread ends.
#[derive(Default)]
pub(crate) struct Slots {
    pub(crate) of_pools: Vec<(Handed<Pobj>, Arc<Slot>)>,
    /// Slots of closed pools.
    pub(crate) ended: Vec<Arc<Slot>>,
}

/// No pool has been used yet.
const NOWHERE: (Handed<Pobj>, *const Slot) = (Handed::NULL, ptr::null());

/// This thread's state, made if there is none.
#[inline(always)]
pub(crate) fn local() -> &'static Local {
    match known() {
        Some(local) => local,
        None => make(),
    }
}

/// This thread's state, if there is one.
#[inline(always)]
pub(crate) fn known() -> Option<&'static Local> {
    // SAFETY: only this thread uses the word, which begins as null and leads to memory that stays until the thread
    // ends. No caller keeps the reference.
    unsafe { (*word()).as_ref() }
}

#[cold]
fn make() -> &'static Local {
    let local = Box::leak(Box::new(Local {
        stages: Stages::new(),
        last_used: Cell::new(NOWHERE),
        slots: RefCell::default(),
    }));
    // SAFETY: only this thread uses the word.
    unsafe { word().write(local) };
    // If the thread is ending already, nothing frees a state made now.
    let _ = END.try_with(|end| end.0.set(local));
    local
}

/// Ends the thread's state with the thread.
struct End(Cell<*mut Local>);

thread_local! {
    static END: End = const { End(Cell::new(ptr::null_mut())) };
}

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: it is null, or `make` set it for this thread; it is not used any more once the word is null.
        if let Some(local) = unsafe { self.0.get().as_ref() } {
            let slots = local.slots.take();
            local.last_used.set(NOWHERE);
            end_all(slots);
            // SAFETY: only this thread uses the word; it led to a box from `make`, which cannot be found any more.
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

/// The address of the word.
#[inline(always)]
fn word() -> *mut *const Local {
    let word;
    // SAFETY: reads the thread's control block, whose first word is its own address, and a constant of the loader.
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
