//! A coroutine that any memory operation inside it can suspend.
//!
//! A medium's operation has no argument that could carry the coroutine's yielder. So the yielder's address is kept in a
//! thread-local, and dereferencing it is unsafe code.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

thread_local! {
    /// The yielder of the fiber that runs on this OS thread, or null.
    static RUNNING: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
    /// Stacks of ended fibers, kept for reuse.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// How many stacks are kept for reuse.
const SPARE_STACKS: usize = 32;

/// How a fiber's run ended.
pub enum Progress {
    /// It suspended itself.
    Suspended,
    /// Its job has ended.
    Ended,
    /// Its job panicked with this.
    Panicked(Box<dyn Any + Send>),
}

/// A job on a stack of its own. Dropping a suspended fiber unwinds its stack.
pub struct Fiber(Option<Coroutine<(), (), (), DefaultStack>>);

impl Fiber {
    /// A fiber that has not begun.
    pub fn new(job: impl FnOnce() + 'static) -> Self {
        let stack = STACKS.with_borrow_mut(Vec::pop).unwrap_or_default();
        Self(Some(Coroutine::with_stack(
            stack,
            move |yielder: &Yielder<(), ()>, ()| {
                RUNNING.set(yielder);
                job();
            },
        )))
    }

    /// Runs the fiber until it suspends itself or ends.
    pub fn resume(&mut self) -> Progress {
        let Some(coroutine) = self.0.as_mut() else {
            return Progress::Ended;
        };
        let before = RUNNING.replace(ptr::null());
        let result = catch_unwind(AssertUnwindSafe(|| coroutine.resume(())));
        RUNNING.set(before);
        match result {
            Ok(CoroutineResult::Yield(())) => Progress::Suspended,
            Ok(CoroutineResult::Return(())) => {
                self.recycle();
                Progress::Ended
            }
            Err(panic) => {
                self.recycle();
                Progress::Panicked(panic)
            }
        }
    }

    fn recycle(&mut self) {
        if let Some(coroutine) = self.0.take().filter(Coroutine::done) {
            keep(coroutine.into_stack());
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        if let Some(mut coroutine) = self.0.take() {
            let before = RUNNING.replace(ptr::null());
            // A panic of a destructor during the unwinding ends with the fiber.
            let _ = catch_unwind(AssertUnwindSafe(|| coroutine.force_unwind()));
            RUNNING.set(before);
            if coroutine.done() {
                keep(coroutine.into_stack());
            }
        }
    }
}

fn keep(stack: DefaultStack) {
    // When the OS thread exits, the thread-local may be gone already.
    let _ = STACKS.try_with(|stacks| {
        let mut stacks = stacks.borrow_mut();
        if stacks.len() < SPARE_STACKS {
            stacks.push(stack);
        }
    });
}

/// Whether the caller runs in a fiber that can be suspended.
pub fn inside() -> bool {
    !RUNNING.get().is_null()
}

/// Gives control back to the code that resumed the caller's fiber.
pub fn suspend() {
    let yielder = RUNNING.get();
    assert!(!yielder.is_null(), "only a fiber can be suspended");
    // SAFETY: a fiber's body sets RUNNING to its yielder, which lives on the fiber's own stack for as long as the body
    // runs. `resume` and `drop` clear RUNNING when they enter a fiber and restore it when they leave, so a non-null
    // value is the yielder of the fiber whose body is executing this call.
    unsafe { (*yielder).suspend(()) };
    RUNNING.set(yielder);
}
