//! State that fibers share without a lock: they take turns on one OS thread.
#![allow(unsafe_code)]

use core::cell::RefCell;
use core::ptr;

thread_local! {
    /// Its address tells OS threads apart that live at the same time.
    static HERE: u8 = const { 0 };
}

#[inline(always)]
fn here() -> usize {
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// A value that only the OS thread that made it may touch, though anyone may hold it. A check costs a
/// comparison, where a lock costs two locked instructions.
pub struct Confined<T> {
    home: usize,
    value: RefCell<T>,
}

// SAFETY: `with` is the only way to the value through a shared reference, and it panics on every OS thread but
// the one that made it; so no two threads ever touch it at once. A thread that has ended may share its address
// with a later one, which then is the only one that may. `T: Send` lets the value be dropped elsewhere.
unsafe impl<T: Send> Sync for Confined<T> {}

impl<T> Confined<T> {
    /// A value of this OS thread's.
    pub fn new(value: T) -> Self {
        Self {
            home: here(),
            value: RefCell::new(value),
        }
    }

    /// Whether this OS thread may touch it.
    #[inline(always)]
    pub fn is_here(&self) -> bool {
        self.home == here()
    }

    /// Touches the value. Panics on another OS thread, and inside itself.
    #[inline(always)]
    pub fn with<R>(&self, touch: impl FnOnce(&mut T) -> R) -> R {
        assert!(
            self.is_here(),
            "a simulated machine stays on the OS thread that made it"
        );
        touch(&mut self.value.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_is_refused() {
        let confined = Confined::new(1);
        confined.with(|value| *value += 1);
        std::thread::scope(|scope| {
            assert!(
                scope
                    .spawn(|| confined.with(|value| *value))
                    .join()
                    .is_err()
            );
        });
        assert_eq!(confined.with(|value| *value), 2);
    }
}
